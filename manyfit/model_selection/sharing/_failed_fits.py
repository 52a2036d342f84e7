"""Fits of shared steps that failed: scikit-learn fits the settings that need one, without another try."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from manyfit.folds import Unsupported


class FailedFits:
    """Fits that failed on one fold, by key."""

    def __init__(self) -> None:
        self._failed: dict[Hashable, str] = {}

    @contextmanager
    def noted(self, key: Hashable) -> Iterator[None]:
        """Remember `key` if the block raises; raise `Unsupported` if it did before."""
        if key in self._failed:
            raise Unsupported(f"shared work failed ({self._failed[key]})")
        try:
            yield
        except Exception as error:
            self._failed[key] = type(error).__name__
            raise
