"""Searches with their data on a GPU, beside scikit-learn on all cores, cuML and cuml.accel.

`benchmarks.on_gpu` registers the parts; each is a process of its own (`__main__.py`), so that what fails or
takes too long in one leaves the others as they are.
"""
