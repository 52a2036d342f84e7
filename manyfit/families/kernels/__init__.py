"""Kernel methods: one decomposition of the kernel matrix of a fold answers all penalties."""

from manyfit.families.kernels import _kernel_ridge  # noqa: F401  (they register themselves)
