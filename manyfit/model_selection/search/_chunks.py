"""An X of a search that is read in chunks, since it is larger than memory."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from manyfit._config.sizes import machine_memory
from manyfit.estimators.chunks.methods import METHODS, why_not_in_chunks
from manyfit.folds import (
    ChunkInput,
    ChunkRows,
    is_parquet_path,
    load_targets,
    may_be_in_chunks,
    read_input,
)
from manyfit.model_selection.job._job import DEFAULT_MEMORY_LIMIT, memory_limit_in_bytes


def search_input(X: Any, y: Any, memory_limit: int | str | None, names: Any = None) -> ChunkInput:
    """X and y of a search; X has rows that are read in chunks if it is larger than the memory limit.

    `names` are the columns that are read of a Parquet file, if it has them all. Memory maps stay what they
    are, since scikit-learn reads them too; see `as_row_source`.
    """
    limit = memory_limit_in_bytes(memory_limit)
    if type(X) is np.memmap or not (may_be_in_chunks(X) or is_parquet_path(X)):
        return ChunkInput(X, load_targets(y))
    return read_input(X, y, lambda: _half_of_memory() if memory_limit is None else limit, names=names)


def _half_of_memory() -> int:
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


def refuse_refit_in_chunks(X: ChunkRows, estimator: Any, candidates: Iterable[Mapping[str, Any]]) -> None:
    """Raise TypeError if the estimator of some setting could not be fitted to X in chunks."""
    for params in candidates:
        try:
            chosen = clone(estimator).set_params(**clone(dict(params), safe=False))
        except Exception:  # an unknown parameter; its fit raises it again in scikit-learn's own words
            continue
        reason = why_not_in_chunks(chosen)
        if reason is not None:
            raise TypeError(
                f"X, a {X.kind} of {X.nbytes:,} bytes, is larger than memory_limit and is read in chunks, "
                f"which the refit cannot read: {reason}. Set refit=False, or use estimators of "
                f"manyfit.estimators that read chunks: {', '.join(METHODS)}, alone or in a Pipeline."
            )
