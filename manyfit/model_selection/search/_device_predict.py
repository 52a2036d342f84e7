"""Methods of a fitted search on device data that have to be copied to the host."""

import copy
from collections.abc import Callable
from typing import Any

from manyfit._compat import map_scorers
from manyfit.arrays import TransferCache, array_of_frame, compute_dask_inputs, container_kind
from manyfit.estimators import ParallelPostFit
from manyfit.estimators.backends.array_api import predict_host_labels, predicts_device_labels
from manyfit.estimators.chunks.methods import ROWWISE, lazily, why_not_in_chunks
from manyfit.folds import ChunkRows, is_dask, load_targets
from manyfit.introspection.gpu_support import reads_device_frames, supports_device_data
from manyfit.metrics.scoring import get_scorer, scores_on_host
from manyfit.model_selection.job._chunk_inputs import chunk_input
from manyfit.model_selection.planning.places._data_location import warn_moved_to_host


def call_with_device_data(
    inner: Callable[..., Any], search: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call a method of a fitted search, on data where its best estimator reads them."""
    given, best = [*args, *kwargs.values()], getattr(search, "best_estimator_", None)
    args, kwargs = _loaded(search, inner.__name__, args, kwargs)
    on_device = [value for value in (*args, *kwargs.values()) if container_kind(value) is not None]
    in_chunks = any(isinstance(value, ChunkRows) for value in (*args, *kwargs.values()))
    if in_chunks and best is not None and inner.__name__ in ROWWISE and is_dask(given[0]):
        return lazily(best, inner.__name__, given[0])
    if best is not None and in_chunks and why_not_in_chunks(best) is not None:  # it was fitted to a sample
        by_block = copy.copy(search)
        by_block.best_estimator_ = ParallelPostFit(best)
        return inner(by_block, *args, **kwargs)
    if best is None or not (on_device or predicts_device_labels(best)):
        return inner(search, *args, **kwargs)
    if not supports_device_data(best):
        warn_moved_to_host(
            f"{type(best).__name__} of a search",
            on_device,
            "it was fitted on the host, and predicts on it",
        )
        to_host = TransferCache()
        return inner(search, *map(to_host, args), **{name: to_host(v) for name, v in kwargs.items()})
    if inner.__name__ == "score" and reads_device_frames(best):
        return _score_on_device(search, inner, *args, **kwargs)
    if not reads_device_frames(best):
        args, kwargs = tuple(map(array_of_frame, args)), {k: array_of_frame(v) for k, v in kwargs.items()}
    return inner(search, *args, **kwargs)


def _loaded(
    search: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a method in memory, but for an X that is larger than the memory limit."""
    given = {**dict(zip(("X", "y"), args, strict=False)), **kwargs}
    if len(args) > 2 or "X" not in given:  # wrong arguments: Python's error says so
        return args, kwargs
    names = getattr(getattr(search, "best_estimator_", None), "feature_names_in_", None)
    found = chunk_input(given["X"], given.get("y"), search.memory_limit, names)
    given["X"] = found.X if found.rows is None else found.rows
    if "y" in given or (name == "score" and found.y is not None):
        given["y"] = found.y
    values = compute_dask_inputs([load_targets(one) for one in given.values()], type(search).__name__)
    given = dict(zip(given, values, strict=True))
    return tuple(given.pop(key) for key in ("X", "y")[: len(args)]), given


def _score_on_device(search: Any, inner: Callable[..., Any], X: Any, y: Any = None, **params: Any) -> Any:
    """The score of a drop-in estimator, or of cuML's, on device data; scorers read its labels on the host."""
    scoring = copy.copy(search)
    scoring.best_estimator_ = predict_host_labels(search.best_estimator_)
    scorers = search.scorer_ if isinstance(search.scorer_, dict) else {"": search.scorer_}
    scorers = {name: scores_on_host(map_scorers(one, get_scorer)) for name, one in scorers.items()}
    scoring.scorer_ = scorers if isinstance(search.scorer_, dict) else scorers[""]
    return inner(scoring, X, TransferCache()(y), **params)
