"""``python -m cuml.accel --disable-uvm -m MODULE ...``: runs the module, and prints that it is there."""

import runpy
import sys

print("a stand-in for cuml.accel")
assert sys.argv[1:3] == ["--disable-uvm", "-m"]
sys.argv[:] = sys.argv[3:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
