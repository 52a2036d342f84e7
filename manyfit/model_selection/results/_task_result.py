"""Results of a part of a search."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from manyfit.model_selection.job._job import Pair, Result


@dataclass
class TaskResult:
    """Results of some pairs, and the work that they took.

    Attributes
    ----------
    results : dict of pair to dict
        As scikit-learn's ``_fit_and_score`` gives them.
    refused : dict of pair to str
        Pairs that shared work leaves to scikit-learn, with the reasons; those without a result are not fitted
        yet.
    fitted : set of pair
        Pairs of `results` that were fitted one by one, after shared work had left them.
    work : Counter of str
        Counts of a `Report` about shared steps.
    doubts : dict of pair to mapping of str to float
        How far `tol` leaves test scores of shared iterations open, by the name of the scorer.
    rows_read : int
        Rows of X that iterating fits went over, each as often as it was.
    fits_made : int
        Fits that families made, each of which may answer many settings.
    seconds : float
        Seconds of work, summed over workers.
    seconds_fitting : float
        Those of `seconds` that the fits of `fitted` took.
    messages : list
        Messages of callbacks on a worker, for the search to deliver; see `RemoteCallbacks`.
    versions : mapping of str to str, or None
        Versions of the packages that computed the results, where they are not those of the search's process.
    unfinished : WorkItem or None
        What is left of an item that took long, for this worker or another.
    lasting : bool
        Whether the results are written to the checkpoint: another run would find the same.
    """

    results: dict[Pair, Result] = field(default_factory=dict)
    refused: dict[Pair, str] = field(default_factory=dict)
    fitted: set[Pair] = field(default_factory=set)
    work: Counter[str] = field(default_factory=Counter)
    doubts: dict[Pair, Mapping[str, float]] = field(default_factory=dict)
    rows_read: int = 0
    fits_made: int = 0
    seconds: float = 0.0
    seconds_fitting: float = 0.0
    messages: list[Any] = field(default_factory=list)
    versions: Mapping[str, str] | None = None
    unfinished: Any = None
    lasting: bool = True

    @property
    def left(self) -> list[Pair]:
        """Pairs that shared work left to scikit-learn, and that are not fitted yet."""
        return sorted(self.refused.keys() - self.results.keys())

    def note_iterations(
        self, candidates: Sequence[int], i: int, answers: Any, doubts: Mapping[int, Mapping[str, float]]
    ) -> None:
        """Add the work of the answers on split `i`, and the doubts of their settings."""
        self.rows_read += answers.rows_read
        self.fits_made += answers.fits_made
        self.doubts.update({(candidates[j], i): doubt for j, doubt in doubts.items()})

    def add(self, other: "TaskResult") -> None:
        """Add the results and counts of another part."""
        self.results.update(other.results)
        self.refused.update(other.refused)
        self.fitted |= other.fitted
        self.work.update(other.work)  # which keeps negative counts
        self.doubts.update(other.doubts)
        self.rows_read += other.rows_read
        self.fits_made += other.fits_made
        self.seconds += other.seconds
        self.seconds_fitting += other.seconds_fitting
