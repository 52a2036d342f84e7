"""An X of a search that is read in chunks, since it is larger than memory."""

from collections.abc import Iterable, Mapping
from typing import Any

from sklearn.base import clone

from manyfit.estimators.chunks.methods import METHODS, why_not_in_chunks
from manyfit.folds import ChunkRows


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
