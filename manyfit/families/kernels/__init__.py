"""Kernel methods: one kernel matrix of a fold, or its decomposition, serves all settings."""

from manyfit.families.kernels import _gaussian_process, _kernel_ridge, _support_vectors  # noqa: F401  (they register themselves)
