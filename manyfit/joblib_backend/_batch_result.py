"""What became of a batch on its worker, pickled there, and read by the caller."""

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
    """What became of a batch.

    Attributes
    ----------
    results : list
    error : BaseException or None
    seconds : float
        That it took on its worker; 0 where that is not known.
    """

    results: list[Any] = field(default_factory=list)
    error: BaseException | None = None
    seconds: float = 0.0

    def result(self) -> list[Any]:
        """Give the results of a batch, or raise its error."""
        if self.error is not None:
            raise self.error
        return self.results


@dataclass(frozen=True)
class Home:
    """A result whose arrays come from the worker's device as NumPy's: the caller's data were NumPy's, too.

    Attributes
    ----------
    result : object
    """

    result: Any

    def __reduce__(self) -> Any:
        file = io.BytesIO()
        _Homewards(file, protocol=5).dump(self.result)
        return pickle.loads, (file.getvalue(),)


class _Homewards(cloudpickle.Pickler):  # type: ignore[misc]
    def reducer_override(self, thing: Any) -> Any:
        if is_on_device(thing):
            return np.asarray, (to_host(thing, label="results of workers"),)
        return super().reducer_override(thing)


class RemoteTraceback(Exception):
    """The traceback of an exception where it was raised, as its cause."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def succeeded(results: list[Any], seconds: float) -> bytes:
    """The results of a batch; if they cannot be pickled, the error that says so."""
    try:
        return cloudpickle.dumps((True, results, seconds))  # type: ignore[no-any-return]
    except Exception as error:
        kinds = ", ".join(sorted({type(_plain(result)).__name__ for result in results}))
        refusal = pickle.PicklingError(
            f"Could not pickle a result of type {kinds} to bring it back from its worker: {error!r}"
        )
        refusal.__cause__ = error
        return failed(refusal)


def failed(error: BaseException) -> bytes:
    """The exception of a batch, with its traceback as text."""
    text = "".join(traceback.format_exception(error))
    # The text has them; and where Dask has them pickled, those of a deep recursion cannot be.
    error.__traceback__ = error.__cause__ = error.__context__ = None
    try:
        pickled: bytes = cloudpickle.dumps((False, error, text))
        pickle.loads(pickled)  # not all that can be pickled can be read again
        return pickled
    except Exception as why:
        stand_in = RuntimeError(
            f"{described(error)} (the exception itself cannot be brought back from its worker: {why!r})"
        )
        return cloudpickle.dumps((False, stand_in, text))  # type: ignore[no-any-return]


def described(error: BaseException) -> str:
    """The class and the text of an exception, whose own text may fail."""
    kind = type(error)
    try:
        text = str(error)
    except Exception:
        text = "its text could not be had"
    return f"{kind.__module__}.{kind.__qualname__}: {text}"


def read(pickled: bytes) -> BatchResult:
    """What a batch came to."""
    try:
        succeeded, result, told = pickle.loads(pickled)
    except BaseException as error:
        return BatchResult(error=error)
    if succeeded:
        return BatchResult(result, seconds=told)
    result.__cause__ = RemoteTraceback(told)
    return BatchResult(error=result)


def _plain(result: Any) -> Any:
    return result.result if isinstance(result, Home) else result
