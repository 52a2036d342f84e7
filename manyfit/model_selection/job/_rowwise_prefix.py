"""First steps of pipelines that transform each row by itself: they run once on all rows, for every split.

Their output for a row is the same in every split, so that the output for all rows is cut as the rows are. The
lists are of exact types, since no tag says that a fit learns nothing from the rows.
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

# All rows are transformed in so many parts, which shows early whether the output will be too large.
_N_PARTS = 32


def _own_analyzer(hasher: Any) -> bool:
    """Whether it calls no functions of the user and reads no files, which may change."""
    functions = (hasher.preprocessor, hasher.tokenizer, hasher.analyzer, hasher.strip_accents)
    return hasher.input == "content" and not any(map(callable, functions))


def _no_first_row(hasher: Any) -> bool:
    """Whether no check depends on which row is the first, as it does for strings."""
    return isinstance(hasher.input_type, str) and hasher.input_type in ("dict", "pair")


def _any(step: Any) -> bool:
    return True


# If the rule holds, their `fit` only validates, and `transform` of a row depends on that row alone (read in
# scikit-learn 1.7 to 1.9). They take lists and series of objects, or matrices.
_OBJECT_STEPS: dict[type, Callable[[Any], bool]] = {
    HashingVectorizer: _own_analyzer,
    FeatureHasher: _no_first_row,
}
_MATRIX_STEPS: dict[type, Callable[[Any], bool]] = {Normalizer: _any, Binarizer: _any}


def is_rowwise(step: Any) -> bool:
    """Whether the fit of a step learns nothing from the rows, and it transforms each row by itself."""
    rule = _OBJECT_STEPS.get(type(step)) or _MATRIX_STEPS.get(type(step))
    return rule is not None and rule(step)


def _takes(step: Any, X: Any) -> bool:
    """Whether a step treats all rows of `X` together as it treats some of them."""
    if type(step) in _OBJECT_STEPS:
        pandas = sys.modules.get("pandas")
        series = pandas is not None and type(X) is pandas.Series
        return isinstance(X, (list, tuple)) or series or (type(X) is np.ndarray and X.ndim == 1)
    return _is_matrix(X)


def _is_matrix(X: Any) -> bool:
    if scipy.sparse.issparse(X):
        return bool(X.format == "csr")
    # Rows of an array in another order are copied in C order, and sums over the copy may round differently.
    return type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "fiub" and X.flags.c_contiguous


def saves_work(splits: Splits) -> bool:
    """Whether the splits read more rows than X has, so that transforming all rows once is less work."""
    return sum(_n_rows(train) + _n_rows(test) for train, test in splits) > splits.n_samples


def _n_rows(index: Any) -> int:
    index = np.asarray(index)
    return int(index.sum()) if index.dtype == bool else index.size


def count_rowwise_steps(steps: Iterable[Any], X: Any) -> int:
    """How many first steps can transform all rows of `X` at once."""
    found = 0
    for step in steps:
        # The first of them makes a matrix.
        if not is_rowwise(step) or (type(step) in _OBJECT_STEPS if found else not _takes(step, X)):
            break
        found += 1
    return found


@dataclass(frozen=True)
class RowwisePrefix:
    """The first steps of a pipeline, with a key."""

    steps: tuple[Any, ...] = ()
    key: Hashable = ()

    def then(self, step: Any) -> RowwisePrefix | None:
        """The prefix with one more step; None if that is not rowwise, or has no key."""
        if not is_rowwise(step):
            return None
        config = tuple(sorted((name, repr(value)) for name, value in get_config().items()))
        try:
            return RowwisePrefix((*self.steps, step), (self.key, structural_key(step), config))
        except Unkeyable:
            return None


class RowwiseOutputs:
    """Outputs of rowwise prefixes for all rows of a search, each made once.

    `limit`: bytes of all outputs; those that do not fit are made split by split. `fits`: steps applied to
    all rows. A pickle has the outputs made so far, and makes no others.
    """

    def __init__(self, X: Any, splits: Splits, limit: int) -> None:
        self.X, self.splits, self.limit, self.fits = X, splits, limit, 0
        self._made_outputs: dict[Hashable, Any] = {}
        self._bytes = 0
        self._saves_work: bool | None = None
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "X": None, "splits": None, "_saves_work": False, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock())

    def prepare_setting(self, estimator: Any, params: Mapping[str, Any]) -> None:
        """Make the outputs for a setting before it is fitted."""
        with suppress(Exception):  # an unknown parameter, say: its fit raises
            model = clone(estimator).set_params(**clone(dict(params), safe=False))
            prefix: RowwisePrefix | None = RowwisePrefix()
            for step in _leading_steps(model):
                prefix = None if prefix is None else prefix.then(step)
                if prefix is None or self.all_rows(prefix) is None:
                    break

    def all_rows(self, prefix: RowwisePrefix) -> Any:
        """The output of a prefix for all rows; None where its output for a split may differ."""
        with self._lock:
            if prefix.key not in self._made_outputs:
                if self._saves_work is None:
                    self._saves_work = saves_work(self.splits)
                self._made_outputs[prefix.key] = self._make(prefix) if self._saves_work else None
            return self._made_outputs[prefix.key]

    def _make(self, prefix: RowwisePrefix) -> Any:
        *before, step = prefix.steps
        X = self.X
        if before:
            X = self._made_outputs.get(prefix.key[0])  # type: ignore[index]
        if X is None or not _takes(step, X):
            return None
        try:
            made = _transform_in_parts(clone(step), X, self.splits.n_samples, self.limit - self._bytes)
        except Exception:  # the row may be in no split; otherwise the fit of a split raises
            return None
        if made is not None:
            self._bytes += _size(made)
            self.fits += 1
        return made


def _leading_steps(estimator: Any) -> Iterator[Any]:
    """The steps of a pipeline but its last one, and those of a pipeline at its end; no "passthrough"."""
    while type(estimator) is Pipeline and estimator.memory is None:
        *before, last = children(estimator)
        yield from (child.estimator for child in before if child.is_estimator)
        estimator = last.estimator


def _transform_in_parts(step: Any, X: Any, n: int, limit: int) -> Any:
    """The output of a step for all rows, or None if it takes more than `limit` bytes."""
    step.fit(X)
    parts, size = [], 0
    for rows in np.array_split(np.arange(n), min(n, _N_PARTS)):
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
    # More entries need wider indices than those of a split.
    return whole if whole.indices.dtype == parts[0].indices.dtype else None


def _size(X: Any) -> int:
    pieces = (X.data, X.indices, X.indptr) if scipy.sparse.issparse(X) else (X,)
    return sum(int(piece.nbytes) for piece in pieces)


class FoldRowwise:
    """Outputs of rowwise prefixes for the rows of one split.

    `rows()` returns token and index of the training and of the test rows; it is called at the first use.
    """

    def __init__(self, rowwise: RowwiseOutputs, rows: Callable[[], Sequence[tuple[int | None, Any]]]) -> None:
        self._outputs, self._rows = rowwise, rows
        self._known: dict[int, tuple[RowwisePrefix, Any]] | None = None

    def output(self, step: Any, token: int | None) -> Any:
        """The output of a step for the input with a token; None if the step has to run."""
        prefix = self._prefix_after(step, token)
        if prefix is None:
            return None
        whole = self._outputs.all_rows(prefix[0])
        return None if whole is None else safe_indexing(whole, prefix[1])

    def follow(self, step: Any, token: int | None, made: int) -> None:
        """Note that the output of a step for the input `token` has the token `made`."""
        prefix = self._prefix_after(step, token)
        if prefix is not None:
            self._tokens()[made] = prefix

    def _prefix_after(self, step: Any, token: int | None) -> tuple[RowwisePrefix, Any] | None:
        if token is None or not is_rowwise(step):
            return None
        prefix, index = self._tokens().get(token, (None, None))
        prefix = None if prefix is None else prefix.then(step)
        return None if prefix is None else (prefix, index)

    def _tokens(self) -> dict[int, tuple[RowwisePrefix, Any]]:
        if self._known is None:
            self._known = {
                token: (RowwisePrefix(), index) for token, index in self._rows() if token is not None
            }
        return self._known
