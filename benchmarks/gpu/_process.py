"""Runs a part in a process of its own, keeps its rows even if it fails, and stops it in time."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._study import Tell
from benchmarks.gpu.__main__ import NO_DEVICE
from benchmarks.gpu._timed import Row

_ROOT = Path(__file__).parents[2]
_POLL = 0.1
# Set for good: no other part is to begin.
_stop = threading.Event()
# Seconds to find the device, including the imports of CuPy and torch.
_LOOKING = 60.0


@dataclass(frozen=True)
class Run:
    """The rows of a part, its device and seconds, and the reason if rows are missing."""

    rows: list[Row]
    about: dict[str, Any]
    seconds: float
    failure: str | None


@functools.cache
def why_no_device() -> str | None:
    """Return why there is no device, or None. A process looks for it, and leaves nothing on the device."""
    command = [sys.executable, "-m", "benchmarks.gpu"]
    try:
        done = subprocess.run(
            command, cwd=_ROOT, env=_environment(), capture_output=True, text=True, timeout=_LOOKING
        )
    except subprocess.TimeoutExpired:
        return f"No GPU was found in {_LOOKING:.0f} s: CuPy or torch hang while they look for one."
    if done.returncode == 0:
        return None
    said = done.stderr.strip().splitlines() or [f"python -m benchmarks.gpu ended with {done.returncode}"]
    return said[-1]


def run_process(problems: Sequence[str], seconds: float, quick: bool, tell: Tell) -> Run:
    """Run a part, for so many seconds at most."""
    with tempfile.TemporaryDirectory() as scratch:
        rows, errors = Path(scratch) / "rows", Path(scratch) / "errors"
        rows.touch()
        command = [sys.executable, "-m", "benchmarks.gpu", *problems, "--rows", str(rows)]
        # The process gets a shorter limit, so that it ends by itself.
        command += ["--seconds", f"{0.8 * seconds:g}", *(["--quick"] if quick else [])]
        start = time.monotonic()
        with errors.open("w") as file, _asked_to_stop() as stop:
            process = subprocess.Popen(
                command, cwd=_ROOT, env=_environment(), stdout=file, stderr=file, start_new_session=True
            )
            failure = _wait(process, start + seconds, seconds, rows, tell, stop)
        found = [
            json.loads(line) for line in rows.read_text().splitlines(keepends=True) if line.endswith("\n")
        ]
        if process.returncode and failure is None:
            said = errors.read_text().strip().splitlines() or [""]
            why = said[-1][:300] if process.returncode != NO_DEVICE else "there is no GPU"
            failure = f"the process ended with {process.returncode}: {why}"
        about = found.pop(0)["about"] if found else {}
        return Run(found, about, time.monotonic() - start, failure)


@contextmanager
def _asked_to_stop() -> Iterator[threading.Event]:
    """An event for SIGTERM, which ``timeout`` and batch systems send: what was measured is written first."""
    if threading.current_thread() is not threading.main_thread():
        yield _stop
        return
    before = signal.signal(signal.SIGTERM, lambda *_: _stop.set())
    try:
        yield _stop
    finally:
        signal.signal(signal.SIGTERM, before)


def _wait(
    process: subprocess.Popen[Any],
    end: float,
    seconds: float,
    rows: Path,
    tell: Tell,
    stop: threading.Event,
) -> str | None:
    """Wait for the end of the process, or stop it and all of its children."""
    try:
        told = None
        while process.poll() is None and time.monotonic() < end and not stop.is_set():
            time.sleep(_POLL)
            shown = _shown(rows.read_text().splitlines())
            if shown != told:
                tell(shown)
                told = shown
        if process.poll() is not None:
            return None
        return "stopped by a signal" if stop.is_set() else f"ended after {seconds:.0f} s"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _shown(lines: Sequence[str]) -> str:
    """The progress of the process."""
    if not lines:
        return "starting"
    try:
        row = json.loads(lines[-1])
    except ValueError:  # the process is writing it
        return _shown(lines[:-1])
    done = [str(row[key]) for key in ("folder", "problem", "case", "contender") if key in row]
    return f"done: {', '.join(done or ['looking'])}"


def _environment() -> dict[str, str]:
    # scikit-learn accepts device arrays only if SciPy does.
    return {**os.environ, "SCIPY_ARRAY_API": "1"}
