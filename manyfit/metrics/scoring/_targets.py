"""Scores of many settings at once from their predictions; what depends on the targets is computed once."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from manyfit.arrays import TransferCache
from manyfit.metrics.kernels._label_codes_numpy import codes_and_known

Array = NDArray[Any]
# From responses of some settings, (m, n) or (m, n, n_classes), to m scores; NaN where one is not sure.
Scores = Callable[[Array], Array]

# Values scored at a time: 512 KiB of float64, which stay in a second-level cache from one step to the next.
CHUNK = 1 << 16


@dataclass(frozen=True)
class ScoredTargets:
    """What the predictions of some rows are scored against.

    Attributes
    ----------
    y : ndarray of shape (n,) or (n, q)
        Targets: numbers or labels.
    weight : ndarray of float64 of shape (n,), optional
        Finite and not negative; None: all 1.
    classes : ndarray of shape (n_classes,), optional
        Classes that the estimator knows, in the order of the columns of its probabilities.
    given_dtype : dtype, optional
        Dtype that the user's targets brought along, None of a list: it decides in which precision
        scikit-learn computes.
    """

    y: Array
    weight: Array | None = None
    classes: Array | None = None
    given_dtype: Any = None

    def beside(self, responses: Array) -> TransferCache:
        """What brings its arrays to where predictions lie: to one place, each once."""
        if "_beside" not in vars(self):
            vars(self)["_beside"] = TransferCache(responses)
        return cast(TransferCache, vars(self)["_beside"])

    @property
    def plain(self) -> bool:
        """Whether there is one target, and weight on some row."""
        if self.y.ndim != 1 or not len(self.y):
            return False
        return self.weight is None or bool(0.0 < self.weight.sum() < np.inf)

    def mean(self, rows: Array) -> Array:
        """Weighted mean of each line of an array of shape (m, n), summed as ``numpy.average`` sums."""
        if self.weight is None:
            return np.asarray(rows.mean(axis=1))
        return np.asarray((rows * self.weight).sum(axis=1) / self.weight.sum())

    @cached_property
    def varied(self) -> bool:
        """Whether rows that count have different targets."""
        y = self.y if self.weight is None else self.y[self.weight > 0]
        return bool(y.min() < y.max())

    @cached_property
    def codes(self) -> Array | None:
        """Position of the class of each row; None where scikit-learn might not take these for labels."""
        classes, y = self.classes, self.y
        if classes is None or classes.ndim != 1 or len(classes) < 2 or classes.dtype.kind != y.dtype.kind:
            return None
        # More classes than half of the rows: scikit-learn 1.7 warns of it.
        if not _labels(classes) or not _labels(y) or (len(y) > 20 and 2 * len(classes) >= len(y)):
            return None
        if not (classes[:-1] < classes[1:]).all():
            return None
        codes, known = codes_and_known(classes, y)
        return codes if known.all() else None

    @cached_property
    def holds_all_classes(self) -> bool:
        """Whether every class is the target of some row."""
        if self.codes is None or self.classes is None:
            return False
        return bool(np.bincount(self.codes, minlength=len(self.classes)).all())


def _labels(values: Array) -> bool:
    """Whether scikit-learn takes an array for labels, as far as its own values say."""
    if values.dtype.kind == "f":
        return bool((np.isfinite(values) & (values == np.trunc(values))).all())
    if values.dtype.kind == "O":
        return all(isinstance(value, str) for value in values)
    return values.dtype.kind in "biuU"


@dataclass(frozen=True)
class SearchMetric:
    """A metric of many settings at once.

    Attributes
    ----------
    methods : tuple of str
        Methods of the estimator, of which it reads what the first that there is returns.
    prepare : callable
        ``prepare(truth, responses)`` looks at the truth, and at dtype and shape of the responses, and
        returns `Scores`; None where it leaves all of them to scikit-learn's own metric.
    """

    methods: tuple[str, ...]
    prepare: Callable[[ScoredTargets, Array], Scores | None]

    def __call__(self, truth: ScoredTargets, responses: Array) -> Array:
        """Scores of m settings, not yet multiplied by the sign of a scorer.

        Parameters
        ----------
        truth : Truth
            Of n rows.
        responses : ndarray of shape (m, n) or (m, n, n_classes)
            Predictions or probabilities; on the host, not changed.

        Returns
        -------
        ndarray of shape (m,)
            scikit-learn's numbers but for the order of summation. NaN where that is not sure, or where
            scikit-learn would warn or raise: score these settings with its own metric.
        """
        m = len(responses)
        with np.errstate(all="ignore"):
            fits = isinstance(responses, np.ndarray) and responses.shape[1:2] == truth.y.shape and m
            scores = self.prepare(truth, responses) if fits and truth.plain else None
            if scores is None:
                return np.full(m, np.nan)
            step = max(1, CHUNK // max(responses[0].size, 1))
            out = np.concatenate([scores(responses[j : j + step]) for j in range(0, m, step)])
        return np.where(np.isfinite(out), out, np.nan).astype(np.float64)
