"""Function calls on a worker that copy their data to its device, if their estimators can compute on it.

Arrays are found among the arguments, also in tuples, lists, dicts and partials. Copied are matrices that were
sent as parts, and arrays with a number for each of their rows, such as y and weights. The indices of a split
and labels that are strings stay on the host.
"""

import inspect
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from distributed import Worker
from sklearn import config_context, get_config
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from manyfit._compat import DEVICE_TAKES_HOST_INDICES, is_fit_and_score, unwrap_delayed
from manyfit.arrays import default_gpu
from manyfit.cluster.worker.fetch import to_worker_device
from manyfit.introspection.composites import build_setting, pipeline_steps
from manyfit.introspection.gpu_support import supports_array_api, supports_device_data_natively
from manyfit.joblib_backend._batch_result import HostResult

# dtypes that every library of the array API has.
_NUMBERS = frozenset(("bool", *(f"{kind}{n}" for kind in ("int", "uint") for n in (8, 16, 32, 64))))
_FLOATS = frozenset(("float32", "float64"))
# scikit-learn's own functions that take device data; others convert them to NumPy.
_SKLEARNS = "sklearn.model_selection."


@dataclass(frozen=True)
class DeviceCalls:
    """Runs function calls on a worker, on its device if their estimators take device data."""

    worker: Worker
    place: str | tuple[str, str]  # "cuda", or an argument of `to_place`
    keys: Mapping[int, str]  # keys of arrays that were sent as parts, by their id

    def run(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call a function; results of device data are returned as a `HostResult`.

        Raises an error if the worker, or scikit-learn's configuration, does not let the estimators use the
        device.
        """
        estimators = estimators_in_call(function, args, kwargs)
        call = function, args, kwargs
        moving = self._moving(call) if estimators and all(map(wants_device_data, estimators)) else {}
        if not moving:
            return function(*args, **kwargs)
        with self._dispatch(function, estimators):
            place = _cuda(self.worker) if isinstance(self.place, str) else self.place
            moved = {one: self._moved(array, place) for one, array in moving.items()}
            function, args, kwargs = _map_leaves(call, lambda leaf: moved.get(id(leaf), leaf))
            return HostResult(function(*args, **kwargs))

    def _moving(self, call: Any) -> dict[int, np.ndarray]:
        leaves = [leaf for leaf in _leaves(call) if type(leaf) is np.ndarray and leaf.dtype.isnative]
        arrays = {id(leaf): leaf for leaf in leaves if leaf.dtype.name in _NUMBERS | _FLOATS}
        rows = {len(array) for one, array in arrays.items() if array.ndim > 1 and one in self.keys}
        return {one: array for one, array in arrays.items() if array.ndim and len(array) in rows}

    def _moved(self, array: np.ndarray, place: tuple[str, str]) -> Any:
        return to_worker_device(self.worker, self.keys.get(id(array)), array, place)

    def _dispatch(self, function: Any, estimators: Sequence[Any]) -> AbstractContextManager[None]:
        """Have scikit-learn's estimators compute on the device, or raise why they cannot."""
        steps = [step for one in estimators for step in pipeline_steps(one)]
        names = sorted({type(step).__name__ for step in steps if not supports_device_data_natively(step)})
        if not names:
            return nullcontext()
        subject = f"device={self.place!r} has {' and '.join(names)} compute on the device of the workers"
        if os.environ.get("SCIPY_ARRAY_API") != "1":
            raise RuntimeError(
                f"{subject}, for which scikit-learn needs SCIPY_ARRAY_API=1 in their environment; "
                f"{self.worker.address} was started without."
            )
        _, sent = unwrap_delayed(function)
        if sent is None:  # joblib's own `delayed` sends no configuration
            return config_context(**{**get_config(), "array_api_dispatch": True})  # type: ignore[no-any-return]
        if not sent["array_api_dispatch"]:
            raise ValueError(
                f"{subject}, which scikit-learn only does under "
                "sklearn.config_context(array_api_dispatch=True): set that around the call."
            )
        return nullcontext()


def estimators_in_call(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """Return the estimators that a call uses; none if scikit-learn's own function stays on the host."""
    plain, _ = unwrap_delayed(function)
    if is_fit_and_score(plain):
        return [_with_parameters(args[0], kwargs.get("parameters"))]
    if _stays_on_host(plain):
        return []
    leaves = _leaves((plain, args, kwargs))
    return [one for one in leaves if hasattr(one, "fit") and not isinstance(one, type)]


def _stays_on_host(function: Any) -> bool:
    module = str(getattr(function, "__module__", ""))
    if inspect.ismethod(function) or not module.startswith("sklearn."):
        return False
    return not (DEVICE_TAKES_HOST_INDICES and module.startswith(_SKLEARNS))


def wants_device_data(estimator: Any) -> bool:
    """Whether to copy host data to the device for an estimator; a fitted one keeps to where it was fitted."""
    return all(
        supports_device_data_natively(one) or _is_unfitted_array_api(one) for one in pipeline_steps(estimator)
    )


def _is_unfitted_array_api(step: Any) -> bool:
    if not supports_array_api(step):
        return False
    try:
        check_is_fitted(step)
    except NotFittedError:
        return True
    except Exception:  # the check itself fails
        return False
    return not any(name.endswith("_") for name in vars(step))  # some need no fit


def _with_parameters(estimator: Any, parameters: Mapping[str, Any] | None) -> Any:
    if not parameters:
        return estimator
    try:
        return build_setting(estimator, parameters)
    except Exception:  # the call will raise it
        return estimator


def _map_leaves(thing: Any, function: Callable[[Any], Any], within: tuple[int, ...] = ()) -> Any:
    """Put ``function(leaf)`` in place of each innermost part of a call.

    Lists and tuples in which that changes nothing stay the same objects, and so do methods, of whose object
    the result is not used. Containers that contain themselves are entered once.
    """
    if id(thing) in within:
        return thing

    def inside(part: Any) -> Any:
        return _map_leaves(part, function, (*within, id(thing)))

    if type(thing) in (tuple, list):
        parts = [inside(part) for part in thing]
        return thing if all(map(operator.is_, thing, parts)) else type(thing)(parts)
    if type(thing) is dict:
        return {name: inside(part) for name, part in thing.items()}
    if type(thing) is partial:
        return partial(inside(thing.func), *inside(thing.args), **inside(thing.keywords))
    if inspect.ismethod(thing):
        inside(thing.__self__)
        return thing
    return function(thing)


def _leaves(call: Any) -> list[Any]:
    """The innermost parts of a call."""
    leaves: list[Any] = []

    def note(leaf: Any) -> Any:
        leaves.append(leaf)
        return leaf

    _map_leaves(call, note)
    return leaves


def _cuda(worker: Worker) -> tuple[str, str]:
    try:
        return default_gpu()
    except (ImportError, RuntimeError) as error:
        raise type(error)(f"On {worker.address}: {error}") from error
