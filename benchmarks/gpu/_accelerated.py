"""scikit-learn's search under cuml.accel, which changes a whole process and so gets one of its own.

``python -m cuml.accel -m benchmarks.gpu._accelerated PROBLEM`` reads one case per line and writes one row
per line.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from sklearn.model_selection import GridSearchCV

from benchmarks.gpu._memory import Memory, device_memory
from benchmarks.gpu._problems import PROBLEMS, Case, Problem, settings_of
from benchmarks.gpu._timed import Row, counted_bytes, some, timed

_ROOT = Path(__file__).parents[2]
_STARTING = 60.0  # seconds: it imports cuML
_ANSWER = b"answer: "


class Accelerated:
    """The process: starts with the first request, ends with the context."""

    def __init__(self, problem: Problem, quick: bool) -> None:
        self.problem, self.quick = problem, quick
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (the end of the context closes it)

    def __enter__(self) -> Accelerated:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._errors.close()

    def timed(self, case: Case, limit: float, per_byte: float | None) -> Row:
        """Return the row of one case, or a row with the reason why there is none."""
        if find_spec("cuml") is None:
            return {"failure": "ModuleNotFoundError: No module named 'cuml'"}
        try:
            process = self._process or self._start()
            assert process.stdin is not None
            question = {"case": asdict(case), "limit": limit, "per_byte": per_byte}
            process.stdin.write(json.dumps(question).encode() + b"\n")
            # Making the data is neither timed nor limited.
            row: Row = self._answer(2.0 * limit + 30.0)
            return row
        except (OSError, EOFError) as error:
            return {"failure": self._why(error)}

    def _start(self) -> subprocess.Popen[bytes]:
        # Its default, managed memory, is for data that do not fit the device; all of these fit.
        command = [sys.executable, "-m", "cuml.accel", "--disable-uvm", "-m", __name__, self.problem.name]
        command += ["--quick"] if self.quick else []
        # Without buffers, because `select` does not see what a buffer holds.
        self._process = subprocess.Popen(
            command,
            cwd=_ROOT,
            env={name: value for name, value in os.environ.items() if name != "SCIPY_ARRAY_API"},
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        self._answer(_STARTING)
        return self._process

    def _answer(self, limit: float) -> Row:
        """Return the next answer, and skip lines that libraries print."""
        assert self._process is not None and self._process.stdout is not None
        end = time.monotonic() + limit
        while True:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise TimeoutError(f"no answer in {limit:.0f} s")
            line = self._process.stdout.readline()
            if not line:
                raise EOFError("the process ended")
            if line.startswith(_ANSWER):
                return dict(json.loads(line.removeprefix(_ANSWER)))

    def _why(self, error: Exception) -> str:
        self._end()
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip().splitlines()
        return f"{type(error).__name__}: {error}" + (f" ({said[-1][:300]})" if said else "")

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def _case(
    problem: Problem, settings: Any, question: dict[str, Any], again: bool, memory: Memory | None
) -> Row:
    X, y = problem.data(Case(**question["case"]))
    expected = question["per_byte"] and question["per_byte"] * counted_bytes(X.nbytes)

    def search(now: Any) -> Any:
        grid = [{name: [value] for name, value in params.items()} for params in now]
        options = {"cv": problem.task.cv, "scoring": problem.task.scoring, "refit": False}
        return GridSearchCV(problem.task.estimator, grid, error_score="raise", **options).fit(X, y)

    first = some(settings, problem.task, False)
    return timed(search, settings, first, question["limit"], expected, again, memory)


def main() -> None:
    """Answer the requests, one line after the other."""
    warnings.simplefilter("ignore")
    problem = PROBLEMS[sys.argv[1]]
    quick = "--quick" in sys.argv
    settings, memory = settings_of(problem, quick), _memory()
    warm = {"case": asdict(problem.quick[0]), "limit": _STARTING, "per_byte": None}
    with contextlib.suppress(Exception):  # a real failure occurs again in the search
        _case(problem, settings[:: max(1, len(settings) - 1)], warm, False, None)
    _say({})
    for line in sys.stdin:
        _say(_case(problem, settings, json.loads(line), not quick, memory))


def _memory() -> Memory | None:
    """Use the same pool as the other contenders, if there is RMM."""
    with contextlib.suppress(Exception):  # no GPU: the search reports it
        return device_memory("cupy")
    return None


def _say(row: Row) -> None:
    print("\n" + _ANSWER.decode() + json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
