"""The progress bar can be read, however wide the terminal is, in notebooks too."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

import pytest

from manyfit.model_selection.results import _progress_bar as _progress
from manyfit.model_selection.results._progress_bar import Progress, refitting

TEXTS = ("saved 480 fits", "best 0.9438", "settings 48/50")


def last_line(captured: str) -> str:
    return captured.rstrip("\r\n").rpartition("\r")[2].rstrip()


@contextmanager
def terminal(columns: int) -> Iterator[list[str]]:
    """A terminal in place of stderr; what was written to it is listed in the end."""
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    written: list[str] = []
    with open(theirs, "w", encoding="utf-8") as stream, redirect_stderr(stream):
        yield written
        stream.flush()
        found = b""
        while select.select([ours], [], [], 0.2)[0]:
            found += os.read(ours, 4096)
        written.append(found.decode())
    os.close(ours)


@pytest.mark.parametrize(
    ("columns", "shown"), [(120, TEXTS), (80, TEXTS[:2]), (60, TEXTS[:1]), (40, ()), (30, ())]
)
def test_the_bar_has_room_at_any_width(columns, shown):
    with terminal(columns) as written, Progress(500, 1) as bar:
        bar.note(*TEXTS)
        bar.done(490)
    line = last_line(written[0])
    assert len(line) <= columns
    assert [text for text in TEXTS if text in line] == list(shown)
    assert "490/500" in line and (re.search(r" \[00:0\d<00:0\d]$", line) is not None) == (columns >= 40)
    assert len(re.search(r"\|(.*)\|", line)[1]) >= 6


def test_the_width_of_no_terminal_is_the_usual_one(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert _progress._columns() == 80
    monkeypatch.setenv("COLUMNS", "43")
    assert _progress._columns() == 43


def test_restored_fits_are_counted_at_once(capsys):
    with Progress(8, 1) as bar:
        bar.skip(4)
        bar.done(4)
    assert "8/8" in last_line(capsys.readouterr().err)


@pytest.mark.parametrize(
    ("verbose", "seconds", "session", "shown"),
    [(1, 0.0, False, "a bar"), (2, 9.0, False, "a line"), (0, 9.0, False, ""), (0, 0.1, True, "")]
    + [(0, 2.0, True, "a bar")],
)
def test_the_refit_is_shown(verbose, seconds, session, shown, capsys, monkeypatch):
    monkeypatch.setattr(_progress, "_interactive", lambda: session)
    with refitting(verbose, seconds):
        pass
    out, err = capsys.readouterr()
    assert ("refit 100%" in err) == (shown == "a bar")
    assert ("Refitting the best setting" in out) == (shown == "a line")


NOTEBOOK = """
import sys
from types import ModuleType

class Shell:
    kernel = object()

for name in ("ipykernel", "ipykernel.zmqshell", "IPython"):
    sys.modules[name] = ModuleType(name)
sys.modules["IPython"].get_ipython = Shell
sys.modules["ipywidgets"] = None  # not installed

from manyfit.model_selection.results import _progress_bar as _progress
import manyfit.model_selection
assert "tqdm" not in sys.modules, "imported before there is a bar"
_progress.DELAY_S = 0.0
with _progress.Progress(4, 0) as bar:
    bar.note("saved 2 fits")
    bar.done(4)
with _progress.refitting(0, 1.0):
    pass
"""


def test_a_notebook_without_widgets():
    """tqdm.auto warns there, which is an error here."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", NOTEBOOK], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "4/4, saved 2 fits" in done.stderr and "refit 100%" in done.stderr
    assert "IProgress" not in done.stderr
