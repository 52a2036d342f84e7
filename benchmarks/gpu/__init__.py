"""Searches with their data on a GPU, beside scikit-learn on all cores, cuML and cuml.accel.

`benchmarks.on_gpu` registers the parts. Each runs in a process of its own (`__main__.py`), so that a
failure or a timeout leaves the other parts as they are.
"""
