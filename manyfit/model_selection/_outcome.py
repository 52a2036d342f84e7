"""What a part of a search came to."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from manyfit.model_selection._job import Pair, Result


@dataclass
class Outcome:
    """Results of some pairs, and what it took to get them.

    Attributes
    ----------
    results : dict of pair to dict
        As scikit-learn's ``_fit_and_score`` gives them.
    alone : dict of pair to str
        Pairs that shared work hands back to scikit-learn, with the reasons.
    work : Counter of str
        Counts of a `Report` about shared steps.
    cut_short : set of int
        Candidates that scikit-learn's solver is expected to leave at its ``max_iter``.
    rows_read : int
        Rows of X that iterating fits went over, each as often as it was.
    seconds : float
        Of several workers, the sum.
    messages : list
        What callbacks on a worker said, see `Callbacks`; for the search to deliver.
    versions : mapping of str to str, or None
        Versions of the packages that computed the results, where they are not those of the search's process.
    """

    results: dict[Pair, Result] = field(default_factory=dict)
    alone: dict[Pair, str] = field(default_factory=dict)
    work: Counter[str] = field(default_factory=Counter)
    cut_short: set[int] = field(default_factory=set)
    rows_read: int = 0
    seconds: float = 0.0
    messages: list[Any] = field(default_factory=list)
    versions: Mapping[str, str] | None = None

    def add(self, other: "Outcome") -> None:
        """Take over what another part came to."""
        self.results.update(other.results)
        self.alone.update(other.alone)
        self.work += other.work
        self.cut_short |= other.cut_short
        self.rows_read += other.rows_read
        self.seconds += other.seconds
