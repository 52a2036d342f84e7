"""``python -m manyfit script.py``: run a program while manyfit is installed."""

from manyfit.installation.command import main

if __name__ == "__main__":
    main()
