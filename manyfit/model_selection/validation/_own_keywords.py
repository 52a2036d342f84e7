"""Keywords that manyfit adds to scikit-learn's functions of validation."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any, get_args

from manyfit._config import set_in_block
from manyfit.model_selection.job._option_values import Engine, memory_limit_in_bytes
from manyfit.model_selection.job._predictions import Recording, recording_of
from manyfit.model_selection.job._sklearnex import sklearnex_version


@dataclass
class OwnKeywords:
    """The keywords of a call, and the predictions that it has made."""

    engine: Engine = None
    memory_limit: int | str | None = None
    recording: Recording | None = None
    predictions: Any = None


_CURRENT: ContextVar[OwnKeywords] = ContextVar("keywords of manyfit")
_DOCS = {
    "engine": """engine : {"sklearnex"} or None, default=None
    "sklearnex": scikit-learn-intelex makes fits that are made one by one, as in
    `manyfit.model_selection.GridSearchCV`.
""",
    "memory_limit": """memory_limit : int or str, default=None
    Bytes, or a text such as ``"2GB"``, as in `manyfit.model_selection.GridSearchCV`: a larger X in a file, of
    Dask or in blocks is read in chunks. None: half of the machine's memory for such an X, 1 GiB for others.
""",
    "return_predictions": """return_predictions : bool or str, default=False
    Whether the result has ``"predictions"`` for the test rows of each split: those of ``predict`` (True), or
    of the method that is named. They are in the order of the rows of X if each row is tested once; otherwise
    a list of pairs, the test rows of a split and their predictions. None if a fit failed.
""",
}


def own_keywords() -> OwnKeywords:
    """The keywords of the call that is being made."""
    return _CURRENT.get(None) or OwnKeywords()


def with_own_keywords(
    function: Callable[..., Any], names: tuple[str, ...] = ("engine", "memory_limit")
) -> Callable[..., Any]:
    """A function of scikit-learn with some of the keywords; one with `return_predictions` gives a dict."""
    defaults = {"engine": None, "memory_limit": None, "return_predictions": False}

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        own = _read(function, {name: kwargs.pop(name, defaults[name]) for name in names})
        with set_in_block(_CURRENT, own):
            result = function(*args, **kwargs)
        return result if own.recording is None else result | {"predictions": own.predictions}

    signature = inspect.signature(function)
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name]) for name in names
    ]
    parameters = [*signature.parameters.values(), *added]
    vars(call)["__signature__"] = signature.replace(parameters=parameters)
    head, mark, tail = (call.__doc__ or "").partition("Returns\n-------\n")
    call.__doc__ = head + "\n".join(_DOCS[name] for name in names) + "\n" + mark + tail
    return call


def _read(function: Callable[..., Any], given: dict[str, Any]) -> OwnKeywords:
    engine, wanted = given.get("engine"), given.get("return_predictions", False)
    memory_limit_in_bytes(given["memory_limit"])  # raises if it is none
    if engine is not None:
        if engine not in get_args(get_args(Engine)[0]):
            raise ValueError(f"engine of {function.__name__} should be 'sklearnex' or None; got {engine!r}.")
        sklearnex_version()  # raises if it is not installed
    recording = recording_of(wanted)
    if recording is not None and recording.every:
        raise ValueError(
            f"return_predictions={wanted!r} is for searches; {function.__name__} has one setting. Use True,"
            " or the name of a method."
        )
    return OwnKeywords(engine, given["memory_limit"], recording)
