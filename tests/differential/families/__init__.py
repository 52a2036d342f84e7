"""The registered families, one module for those that belong together."""

from tests.differential.families import (
    generative,
    iterated,
    kernels,
    least_squares,
    meta_estimators,
    neighbours,
    nested,
    one_by_one,
    sparse_linear,
)

__all__ = [
    "generative",
    "iterated",
    "kernels",
    "least_squares",
    "meta_estimators",
    "neighbours",
    "nested",
    "one_by_one",
    "sparse_linear",
]
