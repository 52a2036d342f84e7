"""Callbacks of scikit-learn 1.9; older versions have none."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

try:
    from sklearn.callback import _transport
except ImportError:  # before 1.9
    _transport = None

__all__ = [
    "NO_CALLBACKS",
    "callback_context",
    "callbacks_of",
    "deliver_message",
    "has_callbacks",
    "is_message_handle",
    "keep_messages",
    "pass_on_callback_context",
    "takes_callback_context",
    "uses_callbacks",
]


class _NoCallbacks:
    """A callback context in which nothing happens."""

    def call_on_fit_task_begin(self, **kwargs: Any) -> "_NoCallbacks":
        return self

    call_on_fit_task_end = call_on_fit_task_begin

    def subcontext(self, **kwargs: Any) -> "_NoCallbacks":
        return self

    def propagate_callback_context(self, estimator: Any) -> Any:
        return nullcontext()


NO_CALLBACKS = _NoCallbacks()


def callback_context(search: Any, max_subtasks: int | None) -> Any:
    """The root callback context of a search; None: the number of its tasks is not known."""
    if hasattr(search, "_init_callback_context"):
        return search._init_callback_context(max_subtasks=max_subtasks)
    return _NoCallbacks()


def takes_callback_context(method: Callable[..., Any]) -> bool:
    """Whether a ``_run_search`` of scikit-learn or of a user's subclass takes the callback context."""
    return "callback_ctx" in inspect.signature(method).parameters


def has_callbacks(estimator: Any) -> bool:
    """Whether callbacks are attached to an estimator or will be handed down to it."""
    return bool(getattr(estimator, "_skl_callbacks", ()))


def callbacks_of(search: Any) -> list[Any]:
    """The callbacks that are attached to a search and to the estimators among its parameters, each once."""
    if not hasattr(search, "_init_callback_context"):
        return []
    holders = [search, search.estimator]
    if hasattr(search.estimator, "get_params"):
        holders += search.estimator.get_params(deep=True).values()
    found = [callback for holder in holders for callback in getattr(holder, "_skl_callbacks", ())]
    return list({id(callback): callback for callback in found}.values())


def uses_callbacks(search: Any) -> bool:
    """Whether callbacks are attached to a search or to any estimator among its parameters."""
    return bool(callbacks_of(search))


@contextmanager
def pass_on_callback_context(holder: Any, estimator: Any) -> Iterator[None]:
    """Give the callback context that a Pipeline set on `holder` to the estimator fitted in its place."""
    context = vars(holder).get("_parent_callback_ctx")
    if context is None or not has_callbacks(estimator):
        yield
        return
    estimator._parent_callback_ctx = context
    try:
        yield
    finally:
        del estimator._parent_callback_ctx


def is_message_handle(thing: Any) -> bool:
    """Whether a callback sends its messages to this object, which then has an ``address``."""
    return _transport is not None and isinstance(thing, _transport.ListenerHandle)


def keep_messages(address: str, keep: Callable[[Any], None] | None) -> bool:
    """Call `keep` with each message of this process to an address; with None, stop doing so.

    False, and nothing changes, if the callback that listens at the address lives in this process.
    """
    if address in _transport._listeners:
        return False
    if keep is None:
        _transport._message_consumers.pop(address, None)
    else:
        _transport._message_consumers[address] = keep
    return True


def deliver_message(address: str, message: Any) -> None:
    """Hand a message to the callback of this process at an address, if it still listens."""
    consumer = _transport._message_consumers.get(address)
    if consumer is not None:
        consumer(message)
