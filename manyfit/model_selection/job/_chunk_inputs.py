"""X, y and weights of a search or a cross-validation, where X may be read in chunks."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags, indexable

from manyfit._config.sizes import machine_memory
from manyfit.arrays import compute_dask_inputs
from manyfit.folds import (
    ChunkInput,
    ChunkRows,
    RowSource,
    is_parquet_path,
    load_targets,
    may_be_in_chunks,
    prepare_rows,
    read_input,
)
from manyfit.introspection.composites import last_step
from manyfit.model_selection.job._device_frames import arrays_of_frames
from manyfit.model_selection.job._option_values import DEFAULT_MEMORY_LIMIT, memory_limit_in_bytes


class IndexedRows:
    """The rows of a `RowSource` with `len` and an index, which splitters need."""

    def __init__(self, source: RowSource) -> None:
        self.shape, self.dtype, self.source = source.shape, source.dtype, source

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        return self.source.take(rows)


def chunk_input(X: Any, y: Any, memory_limit: int | str | None, names: Any = None) -> ChunkInput:
    """X and y as given; X has rows that are read in chunks if it is larger than the memory limit.

    `names` are the columns that are read of a Parquet file, if it has them all. Memory maps stay what they
    are, since scikit-learn reads them too; see `as_row_source`.
    """
    limit = memory_limit_in_bytes(memory_limit)
    if type(X) is np.memmap or not (may_be_in_chunks(X) or is_parquet_path(X)):
        return ChunkInput(X, load_targets(y))
    return read_input(X, y, lambda: half_of_memory() if memory_limit is None else limit, names=names)


def load_inputs(
    search: Any, X: Any, y: Any, params: Mapping[str, Any], source: RowSource | None = None
) -> tuple[Any, Any, dict[str, Any]]:
    """X, y and the parameters of ``fit`` of a search, in memory.

    An X that is read in chunks, or by a `source` of the user's own, becomes `IndexedRows`.
    """
    if source is None:
        given = chunk_input(X, y, search.memory_limit)
        X, y, source = given.X, given.y, given.rows
        if source is not None and y is None and get_tags(last_step(search.estimator)).target_tags.required:
            raise ValueError(
                f"{type(search.estimator).__name__} needs y, and got X alone, a {source.kind} that is read "
                "in chunks. Pass y, or a column of X as y; a function of Blocks may yield (X, y)."
            )
        if given.sample_weight is not None:
            params = weights_as_params(search.estimator, given.sample_weight, params)
    lazy = None if source is not None else X, y, *map(load_targets, params.values())
    X, y, *values = compute_dask_inputs(lazy, type(search).__name__)
    X, y, *values = arrays_of_frames(search.estimator, X, (y, *values))
    if isinstance(source, ChunkRows):
        prepare_rows(source, y)
    X, y = indexable(X if source is None else IndexedRows(source), y)
    return X, y, dict(zip(params, values, strict=True))


def read_for_shared_fits(X: Any) -> str:
    """A sentence on the rows of a `RowSource`, which scikit-learn cannot read."""
    how = (
        f"a {X.kind} that is read in chunks"
        if isinstance(X, ChunkRows)
        else f"which {type(X).__name__} reads"
    )
    return f"scikit-learn cannot read X, {how} for shared fits only."


def half_of_memory() -> int:
    """The memory limit of an X in chunks if the user gives none, in bytes."""
    return max(machine_memory() // 2, DEFAULT_MEMORY_LIMIT)


def weights_as_params(estimator: Any, weights: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of ``fit`` with weights that came with X, for the last step of a pipeline.

    Raises ValueError if the user gives weights, too.
    """
    name = "sample_weight"
    if type(estimator) is Pipeline and not get_config()["enable_metadata_routing"]:
        name = f"{estimator.steps[-1][0]}__{name}"
    if name in params:
        raise ValueError(f"{name} was given, and the blocks of X come with weights: give one of them.")
    return {**params, name: weights}
