"""Kernel methods: one decomposition of the kernel matrix of a fold answers all penalties."""

from manyfit.families.kernels._kernel_ridge import KERNEL_RIDGE

__all__ = ["KERNEL_RIDGE"]
