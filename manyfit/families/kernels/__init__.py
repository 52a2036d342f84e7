"""Kernel methods: one kernel matrix of a fold, or its decomposition, serves all settings."""

from manyfit.families.kernels._kernel_ridge import KERNEL_RIDGE
from manyfit.families.kernels._support_vectors import SVMS

__all__ = ["KERNEL_RIDGE", "SVMS"]
