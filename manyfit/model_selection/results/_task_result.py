"""The result of a work item: results of its pairs, and the pairs that it leaves to scikit-learn."""

import traceback
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from manyfit.families import Continued, Family
from manyfit.folds import Unsupported
from manyfit.model_selection.job._job import Pair, Result


@dataclass
class TaskResult:
    """Results of some pairs, and the work that they took."""

    # As scikit-learn's `_fit_and_score` returns them.
    results: dict[Pair, Result] = field(default_factory=dict)
    # Pairs that shared work leaves to scikit-learn, with the reasons.
    refused: dict[Pair, str] = field(default_factory=dict)
    # Results without test scores of pairs in `refused`: their test rows cannot be transformed.
    unscored: dict[Pair, Result] = field(default_factory=dict)
    # Pairs of `results` that were fitted one by one, after shared work had left them.
    fitted: set[Pair] = field(default_factory=set)
    work: Counter[str] = field(default_factory=Counter)  # counts of a `Report` about shared steps
    # How far `tol` leaves test scores of shared iterations open, by scorer.
    doubts: dict[Pair, Mapping[str, float]] = field(default_factory=dict)
    rows_read: int = 0  # rows of X that iterations read, each as often as it was read
    fits_made: int = 0  # fits that families made, each of which may answer many settings
    seconds: float = 0.0  # summed over workers
    seconds_fitting: float = 0.0  # seconds that the fits of `fitted` took
    # Messages of callbacks on a worker, for the search to deliver.
    messages: list[Any] = field(default_factory=list)
    # Of a worker: what its fits kept for the next round, the bytes of each by the key of Dask.
    kept: Mapping[Pair, Mapping[str, int]] = field(default_factory=dict)
    continued: Continued = field(default_factory=Continued)  # fits in another process that went on
    versions: Mapping[str, str] | None = None  # of the worker's packages; None: those of the search's process
    worker: str | None = None  # its address; None: the process of the search, or one of joblib
    unfinished: Any = None  # a `WorkItem` with the rest of an item that took long
    lasting: bool = True  # whether another run would find the same, so that the checkpoint may store them

    @property
    def left(self) -> list[Pair]:
        """Pairs that shared work left to scikit-learn, and that are not fitted yet."""
        return sorted(self.refused.keys() - self.results.keys())

    def leave(self, pairs: Iterable[Pair], why: Exception | str) -> None:
        """Leave pairs without a result to scikit-learn, which raises what the user should see."""
        reason = why if isinstance(why, str) else _refusal_reason(why)
        self.refused.update({pair: reason for pair in pairs if pair not in self.results})

    def add(self, other: "TaskResult") -> None:
        self.results.update(other.results)
        self.refused.update(other.refused)
        self.unscored.update(other.unscored)
        self.fitted |= other.fitted
        self.work.update(other.work)  # which keeps negative counts
        self.doubts.update(other.doubts)
        self.rows_read += other.rows_read
        self.fits_made += other.fits_made
        self.seconds += other.seconds
        self.seconds_fitting += other.seconds_fitting


def _refusal_reason(error: Exception) -> str:
    """The reason that an exception in shared work gives."""
    if isinstance(error, Unsupported):
        return str(error)
    lines = str(error).strip().splitlines()
    what = f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
    return f"shared work failed ({_failed_family(error)}{what})"


def _failed_family(error: Exception) -> str:
    """The `fit_many` that an exception went through, as a prefix; empty if it went through none."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        family = frame.f_locals.get("self")
        if frame.f_code.co_name == "fit_many" and isinstance(family, Family):
            return f"{type(family).__name__}.fit_many: "
    return ""
