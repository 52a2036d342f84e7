"""Result of a batch: pickled on its worker, and read by the caller."""

import io
import pickle
import traceback
from dataclasses import dataclass, field
from typing import Any

import cloudpickle
import numpy as np

from manyfit.arrays import is_on_device, to_host


@dataclass(frozen=True)
class BatchResult:
    """Results of a batch, or its error."""

    results: list[Any] = field(default_factory=list)
    error: BaseException | None = None

    def result(self) -> list[Any]:
        """Return the results, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.results


@dataclass(frozen=True)
class HostResult:
    """A result whose device arrays are pickled as NumPy arrays, as the caller's data were."""

    result: Any

    def __reduce__(self) -> Any:
        file = io.BytesIO()
        _HostPickler(file, protocol=5).dump(self.result)
        return pickle.loads, (file.getvalue(),)


class _HostPickler(cloudpickle.Pickler):  # type: ignore[misc]
    def reducer_override(self, thing: Any) -> Any:
        if is_on_device(thing):
            return np.asarray, (to_host(thing, label="results of workers"),)
        return super().reducer_override(thing)


class RemoteTraceback(Exception):
    """Traceback of an exception on its worker, as the cause of that exception."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def pickle_results(results: list[Any]) -> bytes:
    """Pickle the results of a batch, or the error that they cannot be pickled."""
    try:
        return cloudpickle.dumps((True, results, ""))  # type: ignore[no-any-return]
    except Exception as error:
        plain = (one.result if isinstance(one, HostResult) else one for one in results)
        kinds = ", ".join(sorted({type(one).__name__ for one in plain}))
        refusal = pickle.PicklingError(
            f"Could not pickle a result of type {kinds} to return it from its worker: {error!r}"
        )
        refusal.__cause__ = error
        return pickle_error(refusal)


def pickle_error(error: BaseException) -> bytes:
    """Pickle the exception of a batch, with its traceback as text."""
    text = "".join(traceback.format_exception(error))
    # The text contains them, and after a deep recursion they cannot be pickled.
    error.__traceback__ = error.__cause__ = error.__context__ = None
    try:
        pickled: bytes = cloudpickle.dumps((False, error, text))
        pickle.loads(pickled)  # some exceptions can be pickled and not read
        return pickled
    except Exception as why:
        stand_in = RuntimeError(
            f"{describe_error(error)} (the exception itself cannot be returned from its worker: {why!r})"
        )
        return cloudpickle.dumps((False, stand_in, text))  # type: ignore[no-any-return]


def describe_error(error: BaseException) -> str:
    """Return the class and the text of an exception, whose `__str__` may fail."""
    kind = type(error)
    try:
        text = str(error)
    except Exception:
        text = "its text is not available"
    return f"{kind.__module__}.{kind.__qualname__}: {text}"


def read_result(pickled: bytes) -> BatchResult:
    """Read a pickled result of a batch."""
    try:
        succeeded, result, trace = pickle.loads(pickled)
    except BaseException as error:
        return BatchResult(error=error)
    if succeeded:
        return BatchResult(result)
    result.__cause__ = RemoteTraceback(trace)
    return BatchResult(error=result)
