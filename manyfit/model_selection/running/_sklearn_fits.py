"""Individual fits in a process of joblib, which imports for them what scikit-learn's search would import."""

from __future__ import annotations

import pickle
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from sklearn.base import clone

from manyfit._config import config_context
from manyfit.model_selection.sharing._fit_overhead import keep_signatures, skip_parameter_checks

if TYPE_CHECKING:
    from manyfit.model_selection.sharing._plain_scores import SplitScorers

Results = tuple[int, list[dict[str, Any]], float]
"""The number of a bundle, the result of each of its fits, and the seconds that they took together."""

# Larger inputs stay with joblib, whose processes share the memory of large arrays.
MOST_BYTES = 2**22


@dataclass(frozen=True)
class FitInputs:
    """What all fits of a search have in common.

    `function` is scikit-learn's for a fit and its scores. `common` are the arguments of it that do not depend
    on the fit; `scorers`, if any, replace the scorer among them. The last two are of `Options`.
    """

    function: Callable[..., dict[str, Any]]
    estimator: Any
    X: Any
    y: Any
    common: Mapping[str, Any]
    scorers: SplitScorers | None
    host_fallback: str
    fits_within: Callable[[], AbstractContextManager[Any]]

    def read(self) -> FitInputs:
        return self


class InputFile:
    """Inputs of fits in a file, which each process reads once.

    joblib would send them through a pipe with each bundle, which can take longer than a fit. Where it shares
    the memory of arrays, it may wait for a tenth of a second at the end, to delete its own files. joblib
    deletes this file if the process that wrote it is killed.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    @classmethod
    def write(cls, inputs: FitInputs) -> InputFile | None:
        """Write inputs to a new file, as joblib pickles them; None if they are large or cannot be written."""
        from manyfit._compat import dump_for_processes, track_file

        try:
            file, path = tempfile.mkstemp(prefix="manyfit-fits-")
        except OSError:
            return None
        written, is_whole = cls(path), False
        try:
            with suppress(Exception), open(file, "wb") as stream:
                track_file(path)
                dump_for_processes(inputs, _LimitedStream(stream))
                stream.flush()
                is_whole = True
        finally:
            if not is_whole:
                written.remove()
        return written if is_whole else None

    def read(self) -> FitInputs:
        """The inputs; those that this process read last are kept."""
        global _last_read
        if _last_read is None or _last_read[0] != self._path:
            with open(self._path, "rb") as stream:
                _last_read = self._path, pickle.load(stream)
        return _last_read[1]

    def remove(self) -> None:
        """Delete the file; on Windows one that a process reads is deleted when this process ends."""
        from manyfit._compat import delete_tracked_file

        with suppress(OSError, ValueError):  # ValueError: a path that joblib cannot track
            delete_tracked_file(self._path)


class _LimitedStream:
    """A stream of bytes that refuses more than `MOST_BYTES`."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._left = stream, MOST_BYTES

    def write(self, data: Any) -> int:
        self._left -= memoryview(data).nbytes
        if self._left < 0:
            raise OverflowError("The inputs of fits are large.")
        return self._stream.write(data)


_last_read: tuple[str, FitInputs] | None = None


def make_fits(
    number: int, source: FitInputs | InputFile, fits: Sequence[Mapping[str, Any]], checked: Sequence[bool]
) -> Results:
    """Make a bundle of fits. `checked` says of which fits another one has checked the parameters."""
    inputs = source.read()
    start, results = time.perf_counter(), []
    values = [value for fit in fits for value in (fit["parameters"] or {}).values()]
    keep_signatures([inputs.estimator, *values])
    with config_context(host_fallback=inputs.host_fallback), inputs.fits_within():
        for fit, skip in zip(fits, checked, strict=True):
            with skip_parameter_checks(skip):
                results.append(_fit(inputs, fit))
    return number, results, time.perf_counter() - start


def _fit(inputs: FitInputs, fit: Mapping[str, Any]) -> dict[str, Any]:
    arguments = {**inputs.common, **fit}
    if inputs.scorers is not None:
        arguments["scorer"] = inputs.scorers.of_split(fit["split_progress"][0])
    return inputs.function(clone(inputs.estimator), inputs.X, inputs.y, **arguments)
