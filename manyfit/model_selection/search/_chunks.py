"""An X of a search that is read in chunks, since it is larger than memory."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from manyfit._config.sizes import machine_memory
from manyfit.estimators.chunks.methods import METHODS, why_not_in_chunks
from manyfit.folds import ChunkRows, as_chunk_rows, is_in_file, may_be_in_chunks, size_in_chunks
from manyfit.model_selection.job._job import DEFAULT_MEMORY_LIMIT, memory_limit_in_bytes


def rows_in_chunks(X: Any, memory_limit: int | str | None) -> ChunkRows | None:
    """The rows of X if it is larger than the memory limit, and of a class that is read in chunks; or None.

    Memory maps stay what they are, since scikit-learn reads them too; see `as_row_source`.
    """
    if not may_be_in_chunks(X) or type(X) is np.memmap:
        return None
    if isinstance(X, ChunkRows):
        return X
    limit, size = memory_limit_in_bytes(memory_limit), size_in_chunks(X)
    if size is None or size <= limit:
        return None
    if memory_limit is None:
        limit = _half_of_memory()
    return as_chunk_rows(X, limit) if size > limit else None


def _half_of_memory() -> int:
    return max(machine_memory() // 2, DEFAULT_MEMORY_LIMIT)


def load_file(one: Any) -> Any:
    """An array of h5py or Zarr in memory; anything else as it is."""
    return one[...] if is_in_file(one) else one


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
