"""Keywords that manyfit adds to scikit-learn's functions of validation."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any, get_args

from manyfit.model_selection.job._job import Engine
from manyfit.model_selection.job._sklearnex import sklearnex_version

_ENGINE: ContextVar[Engine] = ContextVar("engine", default=None)

_DOC = """engine : {"sklearnex"} or None, default=None
    "sklearnex": scikit-learn-intelex makes fits that are made one by one, as in
    `manyfit.model_selection.GridSearchCV`.

"""


def current_engine() -> Engine:
    """The engine of the call that is being made."""
    return _ENGINE.get()


def with_engine(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of scikit-learn with the keyword `engine`, for the fits that it makes."""
    signature = inspect.signature(function)
    known = get_args(get_args(Engine)[0])

    @wraps(function)
    def call(*args: Any, engine: Engine = None, **kwargs: Any) -> Any:
        if engine is not None:
            if engine not in known:
                raise ValueError(
                    f"engine of {function.__name__} should be 'sklearnex' or None; got {engine!r}."
                )
            sklearnex_version()  # raises if it is not installed
        token = _ENGINE.set(engine)
        try:
            return function(*args, **kwargs)
        finally:
            _ENGINE.reset(token)

    own = inspect.Parameter("engine", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Engine)
    parameters = [*signature.parameters.values(), own]
    vars(call)["__signature__"] = signature.replace(parameters=parameters)
    head, mark, tail = (call.__doc__ or "").partition("Returns\n-------\n")
    call.__doc__ = f"{head}{_DOC}{mark}{tail}"
    return call
