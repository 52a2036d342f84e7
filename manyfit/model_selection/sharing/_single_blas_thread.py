"""One thread for BLAS, in fits whose own loops run on threads of OpenMP.

The two libraries have threads of their own. For a while after each call they keep a core busy, waiting for
the next one, and the threads of the other library wait for that core. On small data such fits take many times
as long as on one thread.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from manyfit.folds import blas_threads, single_blas_thread
from manyfit.introspection.class_names import is_instance
from manyfit.introspection.composites import walk

# In each of their iterations they call BLAS and a loop of OpenMP.
_ITERATE_ON_BOTH = (
    "sklearn.linear_model.LogisticRegression",
    "sklearn.linear_model.PoissonRegressor",
    "sklearn.linear_model.GammaRegressor",
    "sklearn.linear_model.TweedieRegressor",
    "sklearn.cluster.KMeans",
)
# Products with a larger X take longer than threads wait for each other.
MOST_BYTES = 2**25


def iterates_on_both(estimator: Any) -> bool:
    """Whether a fit of an estimator, or of one that it holds, calls BLAS and OpenMP in turn."""
    return is_instance(estimator, *_ITERATE_ON_BOTH) or any(
        is_instance(value, *_ITERATE_ON_BOTH) for _, value in walk(estimator) if hasattr(value, "get_params")
    )


def threads_of_fit(on_both: bool, n_bytes: int | None) -> AbstractContextManager[None]:
    """The context of a fit to X of so many bytes; `on_both` is what `iterates_on_both` says."""
    few = on_both and n_bytes is not None and n_bytes <= MOST_BYTES
    return single_blas_thread() if few and blas_threads() > 1 else nullcontext()
