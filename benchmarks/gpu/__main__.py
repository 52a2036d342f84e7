"""One part as a process: ``python -m benchmarks.gpu PROBLEM ...``; without a problem, the device's name."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from benchmarks.gpu._place import NoDevice, find_place
from benchmarks.gpu._timed import Row

NO_DEVICE = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a part, and append each row to a file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu")
    parser.add_argument("problems", nargs="*", help="names of problems, or 'tests'")
    parser.add_argument("--rows", type=Path, help="file of the rows")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args(arguments)
    try:
        if not asked.problems:
            print(find_place().name)
            return 0
        with asked.rows.open("a") as file:
            _run(asked, file)
    except NoDevice as why:
        print(why, file=sys.stderr)
        return NO_DEVICE
    return 0


def _run(asked: argparse.Namespace, file: IO[str]) -> None:
    # Imported here, because they load more than the search for a device needs.
    from benchmarks.gpu._part import run_part
    from benchmarks.gpu._tests import run_tests

    def keep(row: Row) -> None:
        file.write(json.dumps(row) + "\n")
        file.flush()

    if asked.problems == ["tests"]:
        run_tests(asked.seconds, asked.quick, keep)
    else:
        run_part(asked.problems, asked.seconds, asked.quick, keep)


if __name__ == "__main__":
    sys.exit(main())
