"""``python -m cuml.accel -m MODULE ...``: runs the module, and prints that it is there."""

import runpy
import sys

print("a stand-in for cuml.accel")
sys.argv[:] = sys.argv[2:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
