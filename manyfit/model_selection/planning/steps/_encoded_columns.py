"""The encoding of X that serves all settings of a search, and which of their steps it serves."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from manyfit._compat import own_output_container
from manyfit.families import (
    View,
    affine_step_of,
    apply_step,
    check_output,
    check_step,
    column_step_of,
    moments_behind,
)
from manyfit.folds import (
    ChunkEncoding,
    ChunkRows,
    ChunkTable,
    EncodedFold,
    Encoding,
    FoldColumns,
    MomentsNeeded,
    Table,
    Unsupported,
)
from manyfit.model_selection.job._job import Job
from manyfit.model_selection.planning._pipeline_spec import PipelineReader, StepSpec

# Each split looks at the numbers of a column, and adds ranges, where steps divide it into bins.
MOST_DIVIDED = 50
# Splits that are tried until the steps of a setting can be applied to one.
MOST_TRIED = 20


def reads_columns(steps: Iterable[StepSpec]) -> bool:
    """Whether a step reads the columns of X as they are, so that their moments do not suffice."""
    return any(column_step_of(step.cls) and not affine_step_of(step.cls) for step in steps)


# Settings read one matrix if it has no more columns than this, or no more than twice those that each reads.
ONE_MATRIX = 64


@dataclass(frozen=True)
class Rows:
    """The rows behind some steps: whether scikit-learn has a sparse matrix, or has rounded to float32.

    `keys` are those of the columns of the encoding that the steps read.
    """

    is_sparse: bool
    is_rounded: bool
    keys: frozenset[Hashable] = frozenset()


DENSE = Rows(is_sparse=False, is_rounded=False)


class EncodedColumns:
    """The columns of X, encoded once for settings that read about the same ones.

    The steps of all settings are applied to the first split, without moments: this shows which columns they
    read, and which of them are linear in these. If that split of an X in chunks cannot be read, the next is
    tried: scikit-learn makes no fit of such an X, and those of other splits are shared.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        if not job.splits.n_splits:
            raise Unsupported("there are no splits")
        limit = job.options.memory_limit
        if isinstance(job.X, ChunkRows):
            table: Table = ChunkTable(job.X, job.splits.atom_groups, limit)
            self._planned: Encoding = ChunkEncoding(table, _most_made(job.X.most_rows_read, limit))
        else:
            table = Table(job.X)
            self._planned = Encoding(table, _most_made(table.shape[0], limit))
        self._start = self._columns_of(0)
        self._found: dict[Any, Rows | str] = {}  # by key of steps: their rows, or the reason
        reader = PipelineReader(job.estimator)
        for params in job.candidates:
            with suppress(Exception):  # settings that cannot be read have no steps to apply
                self._find(reader.read(params).opened.steps)
        self._planned.finish_plan()
        self._encodings = self._shared()

    def encoding_behind(self, steps: Sequence[StepSpec]) -> Encoding:
        """The encoding that settings behind some steps read; raises `Unsupported` if they are not linear."""
        read = self.rows_behind(steps).keys
        return next(encoding for keys, encoding in self._encodings if read <= keys)

    def _shared(self) -> list[tuple[frozenset[Hashable], Encoding]]:
        """Sets of columns that are read together, and their encodings; small sets come first."""
        width, shared = self._planned.numbers_stored, list[tuple[int, frozenset[Hashable]]]()
        read = {found.keys for found in self._found.values() if isinstance(found, Rows)}
        for keys in sorted(read, key=width, reverse=True):  # the smallest of a set decides, and comes last
            for k, (_, others) in enumerate(shared):
                if width(keys | others) <= max(ONE_MATRIX, 2 * width(keys)):
                    shared[k] = width(keys), keys | others
                    break
            else:
                shared.append((width(keys), keys))
        sets = sorted((keys for _, keys in shared), key=width)
        return [(keys, self._planned.only(keys)) for keys in sets]

    def rows_behind(self, steps: Sequence[StepSpec]) -> Rows:
        """The rows behind some steps; raises `Unsupported` unless they are linear in the columns."""
        found = self._find(steps)
        if isinstance(found, str):
            raise Unsupported(found)
        return found

    def _find(self, steps: Sequence[StepSpec]) -> Rows | str:
        key = tuple(step.key for step in steps)
        if key not in self._found:
            self._planned.asked = set()
            try:
                self._found[key] = replace(self._apply(steps), keys=frozenset(self._planned.asked))
            except Unsupported as why:
                self._found[key] = str(why)
            except Exception as error:  # of a step that scikit-learn cannot fit either, say
                self._found[key] = f"the steps cannot read the columns of X ({type(error).__name__}: {error})"
        return self._found[key]

    def _apply(self, steps: Sequence[StepSpec]) -> Rows:
        """The rows behind some steps; each fold notes how it divides columns."""
        before, n_splits = self._planned.n_divisions, self._job.splits.n_splits
        found, first = self._on_first_split(steps)
        if self._planned.n_divisions == before:
            return found
        if n_splits > MOST_DIVIDED:
            raise Unsupported(f"more than {MOST_DIVIDED} splits divide columns into bins, or multiply codes")
        for i in range(first + 1, n_splits):
            with suppress(Exception):  # a fold that cannot be read is left to scikit-learn
                _rows_behind(steps, self._columns_of(i))
        return found

    def _on_first_split(self, steps: Sequence[StepSpec]) -> tuple[Rows, int]:
        """The rows behind some steps on the first split that can be read, and its number."""
        try:
            return _rows_behind(steps, self._start), 0
        except Exception:
            if self._planned.read_by_sklearn:
                raise
            for i in range(1, min(self._job.splits.n_splits, MOST_TRIED)):
                with suppress(Exception):
                    return _rows_behind(steps, self._columns_of(i)), i
            raise

    def _columns_of(self, i: int) -> FoldColumns:
        """The columns of X on a split."""
        return FoldColumns.start(EncodedFold(self._planned, *self._job.splits.indices(i), split=i))


def _rows_behind(steps: Sequence[StepSpec], view: View) -> Rows:
    for step in steps:
        check_step(step.build())
        check_output(step.build(), own_output_container(step.rest))
        try:
            view = apply_step(step.build(), view)
        except MomentsNeeded:
            return DENSE
    with suppress(MomentsNeeded):
        moments_behind(view)
    return Rows(view.is_sparse, view.is_rounded) if isinstance(view, FoldColumns) else DENSE


def _most_made(n: int, memory_limit: int) -> int:
    """Columns of `n` rows that a step may make: with a copy, and moments of ten atoms, in `memory_limit`.

    The rows are all, or those that are in memory at a time.
    """
    return min(memory_limit // (4 * 8 * max(n, 1)), math.isqrt(memory_limit // (10 * 8)))
