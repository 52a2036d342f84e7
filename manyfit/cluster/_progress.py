"""A progress bar over the fits of a search."""

import sys
from types import TracebackType

from tqdm.auto import tqdm

# Searches that end sooner than this show no bar at all.
DELAY_S = 0.5


class Progress:
    """Counts settings times splits as they are done; a context manager.

    Parameters
    ----------
    total : int
        Fits asked for.
    verbose : int
        0 shows the bar only in an interactive session; 1 always; above 1 scikit-learn's lines take its place.
    """

    def __init__(self, total: int, verbose: int) -> None:
        interactive = hasattr(sys, "ps1") and sys.stderr is not None and sys.stderr.isatty()
        shown = verbose == 1 or (verbose == 0 and interactive)
        delay = 0.0 if verbose == 1 else DELAY_S
        self._bar = tqdm(total=total, desc="fits", unit="fit", disable=not shown, delay=delay)

    @property
    def shown(self) -> bool:
        """Whether anybody may see it."""
        return not self._bar.disable

    def done(self, n: int) -> None:
        """Count `n` more."""
        self._bar.update(n)

    def skip(self, n: int) -> None:
        """Count `n` more that took no time, so that the time left is told by the others."""
        if not self.shown:  # a bar that is switched off counts nothing
            return
        self._bar.initial += n
        self._bar.last_print_n += n
        self._bar.n += n

    def note(self, text: str) -> None:
        """Say `text` beside the counts from the next time that the bar is drawn."""
        self._bar.set_postfix_str(text, refresh=False)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()
