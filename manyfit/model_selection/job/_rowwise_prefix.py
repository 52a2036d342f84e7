"""First steps of pipelines that transform each row by itself: they run once on all rows, for every split.

Their output for a row is the same in every split, so that the output for all rows is cut as the rows are. The
lists are of exact types, since no tag says that a fit learns nothing from the rows.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import Binarizer, Normalizer, PolynomialFeatures

from manyfit._compat import safe_indexing
from manyfit.folds import Splits, TermCounts, Texts, counts_texts
from manyfit.introspection.composites import build_setting, children, composite_class
from manyfit.introspection.structural_key import Unkeyable, structural_key

# Rows are transformed in parts, of which the first is one of so many: its output shows how large all may be.
_FIRST_PART = 32


def _own_analyzer(hasher: Any) -> bool:
    """Whether it calls no functions of the user and reads no files, which may change."""
    functions = (hasher.preprocessor, hasher.tokenizer, hasher.analyzer, hasher.strip_accents)
    return hasher.input == "content" and not any(map(callable, functions))


def _no_first_row(hasher: Any) -> bool:
    """Whether no check depends on which row is the first, as it does for strings."""
    return isinstance(hasher.input_type, str) and hasher.input_type in ("dict", "pair")


# If the rule holds, their `fit` only validates, and `transform` of a row depends on that row alone (read in
# scikit-learn 1.7 to 1.9). They take lists and series of objects, or matrices.
_OBJECT_STEPS: dict[type, Callable[[Any], bool]] = {
    HashingVectorizer: _own_analyzer,
    FeatureHasher: _no_first_row,
}
_MATRIX_STEPS: dict[type, Callable[[Any], bool]] = {
    Normalizer: lambda step: True,
    Binarizer: lambda step: True,
    PolynomialFeatures: lambda step: bool(step.order == "C"),
}


def is_rowwise(step: Any) -> bool:
    """Whether the fit of a step learns nothing from the rows, and it transforms each row by itself."""
    rule = _OBJECT_STEPS.get(type(step)) or _MATRIX_STEPS.get(type(step))
    return rule is not None and rule(step)


def _takes(step: Any, X: Any) -> bool:
    """Whether a step treats all rows of `X` together as it treats some of them."""
    return is_sequence(X) if type(step) in _OBJECT_STEPS else _is_matrix(X)


def is_sequence(X: Any) -> bool:
    """Whether `X` holds one object for each row, such as a text."""
    pandas = sys.modules.get("pandas")
    series = pandas is not None and type(X) is pandas.Series
    return isinstance(X, (list, tuple)) or series or (type(X) is np.ndarray and X.ndim == 1)


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


def config_key() -> tuple[tuple[str, str], ...]:
    """scikit-learn's configuration, without an option that changes no output of a fit."""
    options = ((name, repr(value)) for name, value in get_config().items())
    return tuple(sorted(one for one in options if one[0] != "skip_parameter_validation"))


@dataclass(frozen=True)
class RowwisePrefix:
    """The first steps of a pipeline, with a key; they read X or one `column` of it."""

    steps: tuple[Any, ...] = ()
    key: Hashable = ()
    column: Hashable = None

    def then(self, step: Any) -> RowwisePrefix | None:
        """The prefix with one more step; None if that is not rowwise, or has no key."""
        if not is_rowwise(step):
            return None
        config = config_key()
        try:
            key = (self.key, structural_key(step), config)
            return RowwisePrefix((*self.steps, step), key, self.column)
        except Unkeyable:
            return None

    def of_column(self, column: Any) -> RowwisePrefix | None:
        """One column of X, of one dimension; None for what selects more, and behind steps."""
        if self.key != () or type(column) not in (str, int):
            return None
        return RowwisePrefix((), (type(column), column), column)


class RowwiseOutputs:
    """Outputs of rowwise prefixes for all rows of a search, and counts of texts, each made once.

    `limit`: bytes of all outputs; those that do not fit are made split by split. A pickle has the outputs
    made so far, and makes no others.
    """

    def __init__(self, X: Any, splits: Splits, limit: int) -> None:
        self.X, self.splits, self.limit = X, splits, limit
        self._made_outputs: dict[Hashable, Any] = {}
        self._texts: dict[Hashable, Texts] = {}
        self._refused: set[Hashable] = set()
        self._n_applied = 0
        self._bytes = 0
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if name != "_saves_work"}
        return {**state, "X": None, "splits": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock())

    @property
    def fits(self) -> int:
        """Rowwise steps that were applied to all rows, and times that all texts were tokenised."""
        return self._n_applied + sum(texts.n_tokenized for texts in self._texts.values())

    def prepare_setting(self, estimator: Any, params: Mapping[str, Any]) -> None:
        """Make the outputs for a setting before it is fitted."""
        with suppress(Exception):  # an unknown parameter, say: its fit raises
            model = build_setting(estimator, params)
            self._prepare(model, RowwisePrefix())

    def _prepare(self, part: Any, prefix: RowwisePrefix | None) -> RowwisePrefix | None:
        """Make the outputs of the first steps of a part; return the prefix that ends with the part."""
        if prefix is None or part is None or isinstance(part, str):
            return prefix
        kind = composite_class(part)
        if kind is Pipeline and part.memory is None:
            for child in children(part):
                prefix = self._prepare(child.estimator, prefix)
            return prefix
        for child in children(part) if kind in (FeatureUnion, ColumnTransformer) else ():
            of_all = kind is FeatureUnion
            self._prepare(child.estimator, prefix if of_all else prefix.of_column(child.columns))
        self.term_counts(prefix, part)
        prefix = prefix.then(part)
        return None if prefix is None or self.all_rows(prefix) is None else prefix

    def all_rows(self, prefix: RowwisePrefix) -> Any:
        """The output of a prefix for all rows; None where its output for a split may differ."""
        with self._lock:
            if prefix.key not in self._made_outputs:
                self._made_outputs[prefix.key] = self._make(prefix) if self._saves_work else None
            return self._made_outputs[prefix.key]

    def term_counts(self, prefix: RowwisePrefix, step: Any) -> TermCounts | None:
        """The counts of all terms, for a vectorizer behind a prefix; None if it has to read the texts itself.

        The texts are X, or one of its columns.
        """
        if prefix.steps or not counts_texts(step):
            return None
        with self._lock:
            if prefix.key not in self._texts:
                X = self._source(prefix)
                self._texts[prefix.key] = Texts(X if self._saves_work and is_sequence(X) else None)
            texts = self._texts[prefix.key]
            key = prefix.key, texts.key_of(step)
            if key in self._refused:
                return None
            before = texts.nbytes
            try:
                return texts.encode(step, self.limit - self._bytes)
            except Exception:  # no text: the row may be in no split; otherwise its fit raises
                self._refused.add(key)
                return None
            finally:
                self._bytes += texts.nbytes - before

    @cached_property
    def _saves_work(self) -> bool:
        return self.splits is not None and saves_work(self.splits)

    def _source(self, prefix: RowwisePrefix) -> Any:
        if self.X is None or prefix.column is None:
            return self.X
        return safe_indexing(self.X, prefix.column, axis=1)

    def _make(self, prefix: RowwisePrefix) -> Any:
        *before, step = prefix.steps
        X = self._source(prefix)
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
            self._n_applied += 1
        return made


def _transform_in_parts(step: Any, X: Any, n: int, limit: int) -> Any:
    """The output of a step for all rows, or None if it takes more than `limit` bytes."""
    step.fit(X)
    parts, size = [], 0
    for rows in _parts(n):
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


def _parts(n: int) -> list[NDArray[np.intp]]:
    """Rows in parts, the first of them small and each of the others as large as all before it."""
    ends = [n]
    while ends[-1] > max(n // _FIRST_PART, 1):
        ends.append(-(-ends[-1] // 2))
    return np.split(np.arange(n), ends[:0:-1])


def _size(X: Any) -> int:
    pieces = (X.data, X.indices, X.indptr) if scipy.sparse.issparse(X) else (X,)
    return sum(int(piece.nbytes) for piece in pieces)
