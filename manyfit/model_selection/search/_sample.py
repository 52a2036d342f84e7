"""A sample of rows that a search is made on in place of all, as `sample` asks."""

import numbers
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.random import sample_without_replacement

from manyfit._compat import check_method_params, num_samples, safe_indexing, safe_split
from manyfit.arrays import is_xp_array
from manyfit.folds import ChunkRows, take_rows
from manyfit.model_selection.job._chunk_inputs import IndexedRows
from manyfit.model_selection.planning._plan import Plan


@dataclass(frozen=True)
class Sample:
    """The rows of a search, in order, of `n` rows in all; `state` is the random state that drew them."""

    rows: Any
    n: int
    state: Any

    @classmethod
    def draw(cls, size: float, n: int, state: Any) -> "Sample":
        """So many of `n` rows, or that part of them; raises ValueError if there are fewer."""
        k = int(size) if isinstance(size, numbers.Integral) else max(1, round(size * n))
        if k > n:
            raise ValueError(
                f"sample={size} rows were asked for, and X has {n} rows. Ask for fewer, or set sample=None."
            )
        rows = sample_without_replacement(n, k, random_state=check_random_state(state))
        return cls(np.sort(rows), n, state)

    def __str__(self) -> str:
        return (
            f"the search is made on a sample of {len(self.rows):,} of {self.n:,} rows, drawn by "
            f"random_state={self.state!r}: folds, scores and the refit are those of the sample"
        )

    def take(self, estimator: Any, X: Any, y: Any, params: Any, limit: int) -> tuple[Any, Any, Any]:
        """X and y of the rows, in memory, and the parameters of `fit` that have an entry a row.

        Of a kernel or distances, which an estimator may take as X, also the columns of these rows.

        Raises MemoryError if X is read in chunks, and the sample takes more than `limit` bytes.
        """
        if is_xp_array(X):
            X, y, *values = (self._cut(value) for value in (X, y, *params.values()))
            if get_tags(estimator).input_tags.pairwise:
                X = take_rows(X.T, self.rows).T
            return X, y, dict(zip(params, values, strict=True))
        params = check_method_params(X, params=params, indices=self.rows)
        if not isinstance(X, IndexedRows):
            return *safe_split(estimator, X, y, self.rows), params
        y = None if y is None else safe_indexing(y, self.rows)
        rows = X.source
        if not isinstance(rows, ChunkRows):
            return rows.take(self.rows), y, params
        nbytes = len(self.rows) * rows.row_bytes
        if nbytes > limit:
            raise MemoryError(
                f"A sample of {len(self.rows):,} rows of X takes {nbytes:,} bytes, and memory_limit is "
                f"{limit:,}. Set a smaller sample, or a larger memory_limit."
            )
        return rows.load_rows(self.rows), y, params

    def _cut(self, value: Any) -> Any:
        """The rows of a value that has one for each row of X; any other value."""
        if is_xp_array(value):
            return take_rows(value, self.rows)
        has_rows = hasattr(value, "__len__") and not isinstance(value, str) and num_samples(value) == self.n
        return safe_indexing(value, self.rows) if has_rows else value

    def note(self, plan: Plan) -> Plan:
        """The plan of a search on the sample, which says so."""
        return replace(plan, reading=(str(self), *plan.reading))


def sample_of(search: Any, X: Any, planned: Sample | None) -> Sample | None:
    """The rows that a search asks for, those of its plan if X has as many rows; None if it reads all rows.

    Raises ValueError if `cv` is a list of splits, whose numbers are those of all rows.
    """
    if search.sample is None:
        return None
    if isinstance(search.cv, Iterable) and not hasattr(search.cv, "split"):
        raise ValueError(
            f"sample={search.sample!r} draws rows of X, and cv lists rows by their numbers in X. Give a "
            "splitter, or a number of folds."
        )
    n = num_samples(X)
    if planned is not None and planned.n == n:
        return planned
    return Sample.draw(search.sample, n, getattr(search, "random_state", None))
