"""Written by ``python -m tests.stubs``: names that are made at run time, for type checkers."""

from typing import Any

from sklearn.metrics.pairwise import PAIRED_DISTANCES as PAIRED_DISTANCES
from sklearn.metrics.pairwise import PAIRWISE_BOOLEAN_FUNCTIONS as PAIRWISE_BOOLEAN_FUNCTIONS
from sklearn.metrics.pairwise import PAIRWISE_DISTANCE_FUNCTIONS as PAIRWISE_DISTANCE_FUNCTIONS
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS as PAIRWISE_KERNEL_FUNCTIONS
from sklearn.metrics.pairwise import check_paired_arrays as check_paired_arrays
from sklearn.metrics.pairwise import check_pairwise_arrays as check_pairwise_arrays
from sklearn.metrics.pairwise import distance_metrics as distance_metrics
from sklearn.metrics.pairwise import kernel_metrics as kernel_metrics

from manyfit.metrics._published import euclidean_distances as euclidean_distances
from manyfit.metrics._published import nan_euclidean_distances as nan_euclidean_distances
from manyfit.metrics._published import pairwise_distances as pairwise_distances
from manyfit.metrics._published import pairwise_distances_argmin as pairwise_distances_argmin
from manyfit.metrics._published import pairwise_distances_argmin_min as pairwise_distances_argmin_min
from manyfit.metrics._published import pairwise_distances_chunked as pairwise_distances_chunked
from manyfit.metrics._published import pairwise_kernels as pairwise_kernels

__all__ = [
    "PAIRED_DISTANCES",
    "PAIRWISE_BOOLEAN_FUNCTIONS",
    "PAIRWISE_DISTANCE_FUNCTIONS",
    "PAIRWISE_KERNEL_FUNCTIONS",
    "additive_chi2_kernel",
    "check_paired_arrays",
    "check_pairwise_arrays",
    "chi2_kernel",
    "cosine_distances",
    "cosine_similarity",
    "distance_metrics",
    "euclidean_distances",
    "haversine_distances",
    "kernel_metrics",
    "laplacian_kernel",
    "linear_kernel",
    "manhattan_distances",
    "nan_euclidean_distances",
    "paired_cosine_distances",
    "paired_distances",
    "paired_euclidean_distances",
    "paired_manhattan_distances",
    "pairwise_distances",
    "pairwise_distances_argmin",
    "pairwise_distances_argmin_min",
    "pairwise_distances_chunked",
    "pairwise_kernels",
    "polynomial_kernel",
    "rbf_kernel",
    "sigmoid_kernel",
]

def additive_chi2_kernel(X: Any, Y: Any = ...) -> Any: ...
def chi2_kernel(X: Any, Y: Any = ..., gamma: Any = ...) -> Any: ...
def cosine_distances(X: Any, Y: Any = ...) -> Any: ...
def cosine_similarity(X: Any, Y: Any = ..., dense_output: Any = ...) -> Any: ...
def haversine_distances(X: Any, Y: Any = ...) -> Any: ...
def laplacian_kernel(X: Any, Y: Any = ..., gamma: Any = ...) -> Any: ...
def linear_kernel(X: Any, Y: Any = ..., dense_output: Any = ...) -> Any: ...
def manhattan_distances(X: Any, Y: Any = ...) -> Any: ...
def paired_cosine_distances(X: Any, Y: Any) -> Any: ...
def paired_distances(X: Any, Y: Any, *, metric: Any = ..., **kwds: Any) -> Any: ...
def paired_euclidean_distances(X: Any, Y: Any) -> Any: ...
def paired_manhattan_distances(X: Any, Y: Any) -> Any: ...
def polynomial_kernel(X: Any, Y: Any = ..., degree: Any = ..., gamma: Any = ..., coef0: Any = ...) -> Any: ...
def rbf_kernel(X: Any, Y: Any = ..., gamma: Any = ...) -> Any: ...
def sigmoid_kernel(X: Any, Y: Any = ..., gamma: Any = ..., coef0: Any = ...) -> Any: ...
