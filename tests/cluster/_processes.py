"""Real processes for the tests of clusters: started with a command, ended with all that they started."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parent.parent.parent
# What a slow machine may take to start one process that imports Dask and scikit-learn.
PATIENCE_S = 60


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of a page in one language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```\n", page, re.M | re.S)


def wait_for(what: Callable[[], Any], name: str = "what was waited for", seconds: float = PATIENCE_S) -> Any:
    """What `what` returns as soon as that is true; TimeoutError if it never is."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := what():
            return value
        time.sleep(0.05)
    raise TimeoutError(f"{name} did not come in {seconds} s")


def gone(pids: list[int]) -> bool:
    """Whether no process of these is left."""
    return not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in pids)


@contextmanager
def running(command: str, folder: Path, *more: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Run a line of a shell, ``dask ...`` with this Python's Dask, in a folder while the context lasts.

    Variables before the command and options behind it, of which the last one counts, are as in a shell.
    """
    words = shlex.split(command)
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    assert words[0] == "dask"
    path = os.pathsep.join([*filter(None, [environment.pop("PYTHONPATH", "")]), str(ROOT), *_python_path()])
    process = subprocess.Popen(
        [sys.executable, "-m", *words, *more],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        _end(process)


def _python_path() -> list[str]:
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


def _end(process: subprocess.Popen[str]) -> None:
    """Ask a process to end, and see to it for all that it has started."""
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    process.terminate()
    psutil.wait_procs(family, timeout=5)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # a session of its own, so a group of its own
    process.wait(PATIENCE_S)
    process.stderr.close()
    _, left = psutil.wait_procs(family, timeout=5)
    assert left == [], left
