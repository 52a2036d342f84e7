"""A fitted estimator and rows to predict: all of them, or some again with other parameters."""

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any

import numpy as np
import scipy.sparse
import sklearn
from threadpoolctl import ThreadpoolController

from manyfit._compat import neighbors_query, openmp_threads, votes_need_plain_labels
from manyfit.families.protocol import Array, ModelAnswers, Role
from manyfit.folds import Fold, Unsupported

# Sums of squares of whole numbers up to this one are exact; a quarter of it for the parts of a distance.
LARGEST_WHOLE = 2.0**51
# Values that are multiples of one over this number count as whole: pixels divided by 16, for instance.
FRACTIONS = 2.0**10


class NeighborhoodAnswers(ModelAnswers):
    """What each setting asks of neighbours that are found once for the rows of a role of the fold."""

    def respond(self, role: Role, fold: Fold) -> Mapping[str, Array]:
        """See `Answers`; neighbours are found, or refused, before a method is read."""
        return self.predictions((role, fold), self.models)


class Query:
    """Rows X to predict, and the fitted estimator whose neighbours are looked for.

    It was fitted with the same algorithm as all settings that it is asked for.
    """

    def __init__(self, fitted: Any, X: Any) -> None:
        self.fitted = fitted
        self.X = X if scipy.sparse.issparse(X) else np.ascontiguousarray(X)

    def ask(self, params: Mapping[str, Any], method: str, rows: Array) -> Array:
        """Responses of scikit-learn's own method for some rows, with other parameters of the prediction."""
        model = copy.copy(self.fitted)
        vars(model).update(params)
        unit, n = self.unit, self.X.shape[0]
        asked = rows
        if unit > 1:  # whole units, so that each row has its place in the products again
            asked = np.flatnonzero(np.isin(np.arange(n) // unit, np.unique(rows // unit)))
        if len(asked) == n:
            found = getattr(model, method)(self.X)
        else:
            with _sequence_of(n, model.n_samples_fit_):
                found = getattr(model, method)(self.X[asked])
        return np.asarray(found[np.searchsorted(asked, rows)])

    def require_countable_labels(self) -> None:
        """Refuse labels of which scikit-learn cannot count votes, in versions that have this defect."""
        labels = self.fitted.classes_
        plain = labels.dtype.kind in "iu" and bool((labels == np.arange(len(labels))).all())
        if self.kind == "pairs" and votes_need_plain_labels() and not plain:
            raise Unsupported("this version of scikit-learn counts votes of labels 0, 1, ... only")

    @cached_property
    def kind(self) -> str:
        """How scikit-learn finds the neighbours, see `neighbors_query`."""
        return neighbors_query(self.fitted, self.X)

    @cached_property
    def exact(self) -> bool:
        """Whether squared Euclidean distances are exact in any order of sums: values are whole numbers."""
        euclidean = self.fitted.effective_metric_ in ("euclidean", "sqeuclidean")
        return euclidean and _all_whole(self.X, self.fitted._fit_X)

    @cached_property
    def unit(self) -> int:
        """How many rows one after the other have distances of their own, to the last bit."""
        if self.kind in ("tree", "pairs") or self.exact:
            return 1
        return chunk_size() if self.kind == "products" else int(self.X.shape[0])


def chunk_size() -> int:
    """Rows that scikit-learn multiplies at a time."""
    return int(sklearn.get_config().get("pairwise_dist_chunk_size", 256))


def _all_whole(X: Any, Y: Any) -> bool:
    largest = 0.0
    for one in (X, Y):
        values = one.data if scipy.sparse.issparse(one) else one
        if values.dtype.kind not in "iuf":
            return False
        scaled = values * FRACTIONS
        if not (np.rint(scaled) == scaled).all():
            return False
        largest = max(largest, float(np.abs(scaled).max(initial=0.0)))
    return bool(X.shape[1] * largest**2 < LARGEST_WHOLE)


@contextmanager
def _sequence_of(n: int, n_train: int) -> Iterator[None]:
    """Let scikit-learn see the training rows in the order in which a query of n rows would see them.

    Few rows are divided among threads by training rows, and ties are then decided in another order. In one
    thread there is one order.

    Reference: sklearn.metrics._pairwise_distances_reduction._base.BaseDistancesReduction.__init__ (1.9).
    """
    threads = openmp_threads()
    if threads == 1 or not (n_train < n or 4 * chunk_size() * threads < n):
        yield
        return
    with _openmp().limit(limits=1):
        yield


@cache
def _openmp() -> ThreadpoolController:
    """The OpenMP libraries of this process; looking for them takes milliseconds."""
    return ThreadpoolController().select(user_api="openmp")


# Metrics that sparse rows of whole numbers and of floats have alike.
SPARSE_METRICS = ("euclidean", "l2", "cosine")


def require_metric(estimator: Any) -> None:
    """Refuse metrics that are no names, and those of which X is no matrix of complete rows."""
    metric = estimator.metric
    if not isinstance(metric, str):
        raise Unsupported("metric is a function or an object")
    if metric in ("precomputed", "nan_euclidean"):
        raise Unsupported(f"metric={metric!r} is not shared")


def require_weighting(weights: Any) -> None:
    """Refuse weights of a user's own function, which may do anything."""
    if weights is not None and not (isinstance(weights, str) and weights in ("uniform", "distance")):
        raise Unsupported("weights is a function")


def require_rows(X: Any, fitted: Any) -> None:
    """Refuse rows with NaN or infinity, where scikit-learn raises, and sparse ones with rare metrics."""
    if scipy.sparse.issparse(X):
        if fitted.effective_metric_ not in SPARSE_METRICS:
            raise Unsupported(f"metric={fitted.effective_metric_!r} of sparse rows is not shared")
    elif X.dtype.kind == "f" and not np.isfinite(X).all():
        raise Unsupported("X holds NaN or infinity")
