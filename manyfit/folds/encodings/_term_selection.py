"""Selections of the terms of all texts, which vectorizers learn from the training rows of a fold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from manyfit._compat import align_sparse
from manyfit.exceptions import Unsupported
from manyfit.folds.encodings._term_counts import TermCounts


class TermSelection:
    """The columns that a CountVectorizer fitted on some rows makes of the counts of all terms.

    `vocabulary` is that of the fitted vectorizer; `train_counts`, CSR, what its ``fit_transform`` returns.
    Raises `Unsupported` where the fit raises, and for rows that are repeated.
    """

    def __init__(self, vectorizer: Any, counts: TermCounts, train: Any) -> None:
        self._all, self._binary, self._dtype = counts, vectorizer.binary, vectorizer.dtype
        n_texts, n_terms = counts.by_text.shape
        self._column = np.full(n_terms, -1, np.int32)
        self.vocabulary: Mapping[str, int]
        if vectorizer.vocabulary is not None:
            self.vocabulary = _as_mapping(vectorizer.vocabulary)
            self._column[:] = [self.vocabulary.get(term, -1) for term in counts.terms.tolist()]
            self.train_counts = self.counts(train)
            return
        row = _positions(train, n_texts)[counts.by_term.indices]
        kept = _kept_terms(vectorizer, counts, row, len(np.arange(n_texts)[train]))
        terms = np.flatnonzero(kept)
        self._column[terms] = np.arange(len(terms), dtype=np.int32)
        # scikit-learn numbers terms in the order in which the training rows mention them, and leaves the
        # entries of a row in that order.
        terms = terms[np.argsort(_first_mentions(counts, row)[terms])]
        columns, plain = self._column[terms], vectorizer.max_features is None
        self.vocabulary = LearnedVocabulary(counts.terms, terms, columns, plain)
        chosen = counts.by_term[:, terms].tocsr()[train]
        self.train_counts = self._as_output(chosen.data, columns[chosen.indices], chosen.indptr)

    def counts(self, rows: Any) -> Any:
        """The counts of some rows, as ``transform`` of the vectorizer returns them."""
        some = self._all.by_text[rows]
        columns = self._column[some.indices]
        kept = columns >= 0
        ends = np.zeros(len(kept) + 1, np.int32)
        np.cumsum(kept, out=ends[1:])
        output = self._as_output(some.data[kept], columns[kept], ends[some.indptr])
        output.sort_indices()  # a vocabulary may be in any order
        return output

    def _as_output(self, data: NDArray[Any], columns: NDArray[np.int32], starts: NDArray[np.int32]) -> Any:
        data = np.ones(len(data), self._dtype) if self._binary else data.astype(self._dtype)
        shape = len(starts) - 1, len(self.vocabulary)
        return align_sparse(scipy.sparse.csr_array((data, columns, starts), shape=shape))


def _as_mapping(given: Any) -> dict[str, int]:
    if isinstance(given, Mapping):
        return dict(given)
    terms = sorted(given) if isinstance(given, set) else given
    return {term: j for j, term in enumerate(terms)}


def _positions(rows: Any, n: int) -> NDArray[np.int32]:
    """The position of each of `n` rows among some rows, or -1."""
    chosen = np.arange(n)[rows]
    position = np.full(n, -1, np.int32)
    position[chosen] = np.arange(len(chosen), dtype=np.int32)
    if np.count_nonzero(position >= 0) < len(chosen):
        raise Unsupported("rows are repeated")
    return position


def _kept_terms(
    vectorizer: Any, counts: TermCounts, row: NDArray[np.int32], n_texts: int
) -> NDArray[np.bool_]:
    """Which terms the limits of a vectorizer leave in the vocabulary; `row` is -1 where no row is read."""
    low, high = vectorizer.min_df, vectorizer.max_df
    least = low if isinstance(low, Integral) else low * n_texts
    most = high if isinstance(high, Integral) else high * n_texts
    read, starts = row >= 0, counts.by_term.indptr[:-1]
    frequency = np.add.reduceat(read, starts, dtype=np.int64)
    kept = (frequency > 0) & (frequency <= most) & (frequency >= least)
    if most < least or not kept.any():
        raise Unsupported("the vectorizer refuses the training rows")
    limit = vectorizer.max_features
    if limit is not None and kept.sum() > limit:
        mentions = read if vectorizer.binary else np.where(read, counts.by_term.data, 0)
        totals = np.add.reduceat(mentions, starts, dtype=np.int64)
        if np.dtype(vectorizer.dtype).kind == "f":
            totals = totals.astype(vectorizer.dtype)
        # How ties end is NumPy's affair: the same numbers in the same order.
        most_frequent = (-totals[kept]).argsort()[:limit]
        chosen = np.zeros(len(kept), bool)
        chosen[np.flatnonzero(kept)[most_frequent]] = True
        kept = chosen
    return kept


def _first_mentions(counts: TermCounts, row: NDArray[np.int32]) -> NDArray[np.int64]:
    """A number for each term that grows with the place where the rows first mention it."""
    place = row.astype(np.int64) << 32 | counts.places
    place[row < 0] = np.iinfo(np.int64).max
    return np.minimum.reduceat(place, counts.by_term.indptr[:-1])


class LearnedVocabulary(Mapping[str, int]):
    """The numbers of some terms of `all_terms`, in an order; copies and pickles are plain dicts.

    `plain`: the numbers are Python's integers, as scikit-learn has them without `max_features`.
    """

    def __init__(
        self, all_terms: NDArray[Any], terms: NDArray[Any], numbers: NDArray[Any], plain: bool
    ) -> None:
        self._all_terms, self._terms, self._numbers, self._plain = all_terms, terms, numbers, plain

    @cached_property
    def _found(self) -> dict[str, int]:
        numbers = self._numbers.tolist() if self._plain else self._numbers.astype(np.int64)
        return dict(zip(self._all_terms[self._terms].tolist(), numbers, strict=True))

    def __getitem__(self, term: str) -> int:
        return self._found[term]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._terms)

    def __deepcopy__(self, memo: Any) -> dict[str, int]:
        return dict(self._found)

    def __reduce__(self) -> tuple[Callable[..., dict[str, int]], tuple[dict[str, int]]]:
        return dict, (self._found,)
