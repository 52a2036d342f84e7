"""A fitted search, asked about data on a device that must come to the host."""

import copy
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from sklearn.utils.metaestimators import available_if

from manyfit._compat import map_scorers
from manyfit.arrays import TransferCache, compute_dask_inputs, is_xp_array
from manyfit.estimators.backends.array_api import predict_host_labels, predicts_device_labels
from manyfit.introspection.gpu_support import is_drop_in, supports_device_data
from manyfit.metrics import get_scorer, scores_on_host
from manyfit.model_selection.planning._data_location import warn_moved_to_host

Search = TypeVar("Search", bound=type)

# Methods of a fitted search that ask its best estimator.
_METHODS = (
    "decision_function",
    "inverse_transform",
    "predict",
    "predict_log_proba",
    "predict_proba",
    "score",
    "score_samples",
    "transform",
)


def accept_device_data(search: Search) -> Search:
    """Let methods of a search class take data of a device, also where its estimator was fitted at home."""
    for name in _METHODS:
        member = inspect.getattr_static(search, name)
        if hasattr(member, "check"):  # of `available_if`
            setattr(search, name, available_if(member.check)(_asked(member.fn)))
        else:
            setattr(search, name, _asked(member))
    return search


def _asked(inner: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(inner)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = compute_dask_inputs(
            (*args, *kwargs.values()), type(self).__name__
        )  # what Dask has not computed yet
        args, kwargs = tuple(given[: len(args)]), dict(zip(kwargs, given[len(args) :], strict=True))
        there = [value for value in (*args, *kwargs.values()) if is_xp_array(value)]
        best = getattr(self, "best_estimator_", None)
        if best is None or not (there or predicts_device_labels(best)):
            return inner(self, *args, **kwargs)
        if not supports_device_data(best):
            warn_moved_to_host(
                f"{type(best).__name__} of a search", there, "it was fitted there, and answers there"
            )
            home = TransferCache()
            return inner(self, *map(home, args), **{name: home(value) for name, value in kwargs.items()})
        if inner.__name__ == "score" and is_drop_in(best):
            return _score_there(self, inner, *args, **kwargs)
        return inner(self, *args, **kwargs)

    return method


def _score_there(search: Any, inner: Callable[..., Any], X: Any, y: Any = None, **params: Any) -> Any:
    """The score of a drop-in estimator where X lies: scorers read labels, which come to the host."""
    asked = copy.copy(search)
    asked.best_estimator_ = predict_host_labels(search.best_estimator_)
    scorers = search.scorer_ if isinstance(search.scorer_, dict) else {"": search.scorer_}
    scorers = {name: scores_on_host(map_scorers(one, get_scorer)) for name, one in scorers.items()}
    asked.scorer_ = scorers if isinstance(search.scorer_, dict) else scorers[""]
    return inner(asked, X, TransferCache()(y), **params)
