"""A progress bar over the fits of a search, and one over its refit."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

# Searches that end sooner than this show no bar at all.
DELAY_S = 0.5
# Least width of the bar in columns; texts that would leave it less are not shown.
LEAST_BAR = 6
# Width where the terminal has none, as in a file.
USUAL_COLUMNS = 80


class Progress:
    """Counts finished fits; a context manager.

    `verbose`: 0 shows the bar only in an interactive session, 1 always; above 1 it is replaced by lines.
    """

    def __init__(self, total: int, verbose: int) -> None:
        self._total, self._bar = total, None
        if verbose == 1 or (verbose == 0 and _interactive()):
            delay = 0.0 if verbose == 1 else DELAY_S
            layout = _layout(total, ())[0]
            self._bar = _tqdm(total=total, desc="fits", unit="fit", delay=delay, bar_format=layout)

    @property
    def shown(self) -> bool:
        return self._bar is not None

    def done(self, n: int) -> None:
        if self._bar is not None:
            self._bar.update(n)

    def skip(self, n: int) -> None:
        """Count `n` more that took no time, so that the time left is estimated from the others."""
        if self._bar is not None:
            self._bar.initial += n
            self._bar.last_print_n += n
            self._bar.n += n

    def note(self, *texts: str) -> None:
        """Show texts beside the counts, the first ones where there is no room for all."""
        if self._bar is not None:
            self._bar.bar_format, text = _layout(self._total, texts)
            self._bar.set_postfix_str(text, refresh=False)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()


@contextmanager
def refitting(verbose: int, seconds: float) -> Iterator[None]:
    """Show the refit of a search; above `verbose` 1 as a line.

    Nothing is shown after a search shorter than `DELAY_S` unless `verbose` is 1.
    """
    if verbose > 1:
        print("Refitting the best setting on all rows")
    if verbose != 1 and (verbose or seconds < DELAY_S or not _interactive()):
        yield
        return
    with _tqdm(total=1, desc="refit", bar_format="{desc} {percentage:3.0f}%|{bar}| [{elapsed}]") as bar:
        yield
        bar.update()


def _tqdm(**options: Any) -> Any:
    """A bar of the kind that this session can show."""
    with warnings.catch_warnings():
        # In a notebook without ipywidgets tqdm warns when it is imported, and writes text as in a terminal.
        warnings.filterwarnings("ignore", message="IProgress not found")
        from tqdm.auto import tqdm

    return tqdm(dynamic_ncols=True, **options)


def _interactive() -> bool:
    terminal = hasattr(sys, "ps1") and sys.stderr is not None and sys.stderr.isatty()
    return terminal or _in_notebook()


def _in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except (AttributeError, OSError, ValueError):  # no terminal
        columns = os.environ.get("COLUMNS", "")
        return int(columns) if columns.isdigit() else USUAL_COLUMNS


def _layout(total: int, texts: tuple[str, ...]) -> tuple[str, str]:
    """The format of a bar that fits the terminal, and the texts that are shown beside it, as one."""
    left, times = "{desc} {percentage:3.0f}%|{bar}| ", " [{elapsed}<{remaining}]"
    room = _columns() - len("fits 100%|| ") - len(f"{total}/{total}") - LEAST_BAR
    if room < len(" [00:00<00:00]"):
        return left + "{n_fmt}/{total_fmt}", ""
    room -= len(" [00:00<00:00]")
    shown = []
    for text in filter(None, texts):
        if len(", " + text) > room:
            break
        room -= len(", " + text)
        shown.append(text)
    return left + "{n_fmt}/{total_fmt}{postfix}" + times, ", ".join(shown)
