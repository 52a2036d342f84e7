"""Steps at the front of pipelines that see one row at a time: applied to all rows once, for every split.

What such a step makes of a row is the same in each split, so its output for all rows of the search is cut as
the rows themselves are. Explicit lists of exact types: no tag tells that a fit learns nothing of the rows.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from sklearn import get_config
from sklearn.base import clone
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Binarizer, Normalizer

from manyfit._compat import safe_indexing
from manyfit.folds import Splits
from manyfit.introspection.composites import children
from manyfit.introspection.structural_key import Unkeyable, structural_key

# All rows are transformed a part at a time, so that it is seen early whether the output would be too large.
_PARTS = 32


def _own_analyzer(hasher: Any) -> bool:
    """Whether nobody's functions are called; one that reads from files may find others the next time."""
    functions = (hasher.preprocessor, hasher.tokenizer, hasher.analyzer, hasher.strip_accents)
    return hasher.input == "content" and not any(map(callable, functions))


def _no_first_row(hasher: Any) -> bool:
    """Of strings only the first row of each call is checked, whichever that is."""
    return isinstance(hasher.input_type, str) and hasher.input_type in ("dict", "pair")


def _any(step: Any) -> bool:
    return True


# Their `fit` validates, and `transform` makes of a row what follows from that row alone (read in scikit-learn
# 1.7 to 1.9), when the rule holds. Of lists and series of things, and of matrices.
_OF_THINGS: dict[type, Callable[[Any], bool]] = {
    HashingVectorizer: _own_analyzer,
    FeatureHasher: _no_first_row,
}
_OF_MATRICES: dict[type, Callable[[Any], bool]] = {Normalizer: _any, Binarizer: _any}


def row_by_row(step: Any) -> bool:
    """Whether the fit of a step learns nothing from the rows, and each row is transformed for itself."""
    rule = _OF_THINGS.get(type(step)) or _OF_MATRICES.get(type(step))
    return rule is not None and rule(step)


def _takes(step: Any, X: Any) -> bool:
    """Whether all rows of `X` together are to a step what some of them are."""
    if type(step) in _OF_THINGS:
        pandas = sys.modules.get("pandas")
        series = pandas is not None and type(X) is pandas.Series
        return isinstance(X, (list, tuple)) or series or (type(X) is np.ndarray and X.ndim == 1)
    return _is_matrix(X)


def _is_matrix(X: Any) -> bool:
    if scipy.sparse.issparse(X):
        return bool(X.format == "csr")
    # Rows of an array in another order are cut into one in this order, and sums over it may round otherwise.
    return type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "fiub" and X.flags.c_contiguous


def saves_work(splits: Splits) -> bool:
    """Whether the splits read more rows than there are: else to transform all of them is more work."""
    return sum(_n_rows(train) + _n_rows(test) for train, test in splits) > splits.n_samples


def _n_rows(index: Any) -> int:
    index = np.asarray(index)
    return int(index.sum()) if index.dtype == bool else index.size


def n_front(steps: Iterable[Any], X: Any) -> int:
    """How many of some steps, from the first one, may be applied to all rows of `X` at once."""
    found = 0
    for step in steps:
        # Behind the first of them there is a matrix.
        if not row_by_row(step) or (type(step) in _OF_THINGS if found else not _takes(step, X)):
            break
        found += 1
    return found


@dataclass(frozen=True)
class Front:
    """Some steps, one after the other, from the first one of a pipeline on."""

    steps: tuple[Any, ...] = ()
    key: Hashable = ()

    def then(self, step: Any) -> Front | None:
        """With one more step; None if that is not of this kind, or has no key."""
        if not row_by_row(step):
            return None
        config = tuple(sorted((name, repr(value)) for name, value in get_config().items()))
        try:
            return Front((*self.steps, step), (self.key, structural_key(step), config))
        except Unkeyable:
            return None


class RowwiseOutputs:
    """What rowwise make of all rows of a search, each once.

    Parameters
    ----------
    X : array-like
        All rows.
    splits : Splits
        The splits.
    limit : int
        Bytes of what is kept. Whatever does not fit is left to each split; nothing is dropped for it.

    Attributes
    ----------
    fits : int
        Steps applied to all rows.

    Notes
    -----
    A pickled one has what was made until then, and makes no more.
    """

    def __init__(self, X: Any, splits: Splits, limit: int) -> None:
        self.X, self.splits, self.limit, self.fits = X, splits, limit, 0
        self._kept: dict[Hashable, Any] = {}
        self._bytes = 0
        self._pays: bool | None = None
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "X": None, "splits": None, "_pays": False, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock())

    def prepare_setting(self, estimator: Any, params: Mapping[str, Any]) -> None:
        """Make what the front of a setting makes of all rows, where it is known before it is fitted."""
        with suppress(Exception):  # a parameter that is not there, say: its fit says so
            model = clone(estimator).set_params(**clone(dict(params), safe=False))
            front: Front | None = Front()
            for step in _leading_steps(model):
                front = None if front is None else front.then(step)
                if front is None or self.all_rows(front) is None:
                    break

    def all_rows(self, front: Front) -> Any:
        """What a front makes of all rows; None where that may not be what it makes of each split's."""
        with self._lock:
            if front.key not in self._kept:
                if self._pays is None:
                    self._pays = saves_work(self.splits)
                self._kept[front.key] = self._made(front) if self._pays else None
            return self._kept[front.key]

    def _made(self, front: Front) -> Any:
        *before, step = front.steps
        X = self.X
        if before:
            X = self._kept.get(front.key[0])  # type: ignore[index]
        if X is None or not _takes(step, X):
            return None
        try:
            made = _in_parts(clone(step), X, self.splits.n_samples, self.limit - self._bytes)
        except Exception:  # of a row that perhaps no split reads: whoever reads it hears of it
            return None
        if made is not None:
            self._bytes += _size(made)
            self.fits += 1
        return made


def _leading_steps(estimator: Any) -> Iterator[Any]:
    """The steps of a pipeline, "passthrough" and the last one left out; those of one at its end, too."""
    while type(estimator) is Pipeline and estimator.memory is None:
        *before, last = children(estimator)
        yield from (child.estimator for child in before if child.is_estimator)
        estimator = last.estimator


def _in_parts(step: Any, X: Any, n: int, limit: int) -> Any:
    """The output of a step for all rows, or None if it takes more than `limit` bytes."""
    step.fit(X)
    parts, size = [], 0
    for rows in np.array_split(np.arange(n), min(n, _PARTS)):
        part = step.transform(safe_indexing(X, rows))
        if not _is_matrix(part) or part.shape[0] != len(rows):
            return None
        parts.append(part)
        size += _size(part)
        if size * (n / (rows[-1] + 1)) > limit:
            return None
    if not scipy.sparse.issparse(parts[0]):
        return np.concatenate(parts)
    whole = scipy.sparse.vstack(parts, format="csr")
    # So many entries that their places take wider numbers than those of a split would.
    return whole if whole.indices.dtype == parts[0].indices.dtype else None


def _size(X: Any) -> int:
    pieces = (X.data, X.indices, X.indptr) if scipy.sparse.issparse(X) else (X,)
    return sum(int(piece.nbytes) for piece in pieces)


class FoldRowwise:
    """What rowwise make of the rows of one split.

    Parameters
    ----------
    rowwise : Fronts
        Of the search.
    rows : callable
        Gives the token and the index of the training and of the test rows; called when that is asked first.
    """

    def __init__(self, rowwise: RowwiseOutputs, rows: Callable[[], Sequence[tuple[int | None, Any]]]) -> None:
        self._fronts, self._rows = rowwise, rows
        self._known: dict[int, tuple[Front, Any]] | None = None

    def output(self, step: Any, token: int | None) -> Any:
        """What a step makes of what is known by a token, or None if it has to be applied."""
        front = self._behind(step, token)
        if front is None:
            return None
        whole = self._fronts.all_rows(front[0])
        return None if whole is None else safe_indexing(whole, front[1])

    def follow(self, step: Any, token: int | None, made: int) -> None:
        """Make known that what a step makes of what is known by `token` is known by `made`."""
        front = self._behind(step, token)
        if front is not None:
            self._tokens()[made] = front

    def _behind(self, step: Any, token: int | None) -> tuple[Front, Any] | None:
        if token is None or not row_by_row(step):
            return None
        front, index = self._tokens().get(token, (None, None))
        front = None if front is None else front.then(step)
        return None if front is None else (front, index)

    def _tokens(self) -> dict[int, tuple[Front, Any]]:
        if self._known is None:
            self._known = {token: (Front(), index) for token, index in self._rows() if token is not None}
        return self._known
