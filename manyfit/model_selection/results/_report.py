"""The report of a search."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manyfit.arrays import Crossings, Transfers
from manyfit.families import Continued
from manyfit.model_selection.results._report_view import as_html, as_text, describe_sharing

_COUNTS = (
    "fits_requested", "fits_done", "family_fits", "engine_fits", "engine_compared", "fits_shared",
    "fits_restored", "transformer_fits", "transformer_fits_saved", "steps_repeated",
    "fits_continued", "members_kept", "passes", "bytes_read", "bytes_to_device", "bytes_to_host",
    "synchronisations",
)  # fmt: skip


@dataclass
class Report:
    """The work that a search has done; `search.report_`. It holds no data, and prints as a table.

    Reports are equal where the same amount of work was done, whatever it took and in whatever groups.

    Attributes
    ----------
    fits_requested : int
        Settings times splits; with `time_budget` or `race`, the fits that have a result.
    fits_done : int
        Fits of the last estimator that were made, one by one or by families (the refit is not counted). A
        group shared through moments makes none.
    family_fits : int
        Those of `fits_done` that families made to answer their settings; the others were made one by one.
    engine_fits : int
        Those of `fits_done` that scikit-learn-intelex made (``engine="sklearnex"``).
    engine_compared : int
        Settings that both libraries fitted on the first split beforehand, to compare their scores; these fits
        do not count in `fits_done`.
    engine_difference : float or None
        Largest difference of their scores, relative to scikit-learn's where that is above 1.
    fits_shared : int
        Requested fits that shared work answered. With those made one by one and `fits_restored` they add up
        to `fits_requested`.
    fits_restored : int
        Fits whose results were in the checkpoint; they count neither as made nor as answered.
    transformer_fits : int
        Fits of transformers whose steps are shared or could have been. Those within fits that scikit-learn's
        own function made are not counted.
    transformer_fits_saved : int
        Fits of transformers that fits made one by one, and families behind steps, did not make, since another
        setting had made the same one.
    steps_repeated : int
        Fits and transforms of shared steps that were done again, since what they gave did not fit in
        ``memory_limit``.
    fits_continued : int
        Fits of a halving search that went on from the model of the round before; they count in `fits_done`.
    members_kept : int
        Trees and boosting iterations that they took from it, and did not make again.
    fitted_anew : dict of str to int
        With a parameter as the resource of a halving search: fits of later rounds that did not go on, by
        reason.
    passes : float
        Passes over X that shared fits made: those that summed moments, and those of iterating fits. Rows
        that were read by themselves count as a part of one. Predictions count for an X in chunks only.
    bytes_read : int
        Bytes of an X that is read in chunks, which the search read before its refit: those of passes, of
        samples and of predictions. 0 for an X in memory.
    bytes_to_device : int
        Bytes copied from the host to a device; 0 for data on the host.
    bytes_to_host : int
        Bytes copied back.
    synchronisations : int
        Times that the host waited for a device.
    transfers : dict of str to Crossings
        What crossed between host and device by reason, such as "y", "coefficients" or "transform of
        SimpleImputer": arrays and bytes to the device, arrays and bytes to the host. They add up to
        `bytes_to_device`, `bytes_to_host` and `synchronisations`.
    seconds : dict of str to float
        By kind of work: "plan", "moments", "shared iterations", "fold family", "one by one", "verify",
        "refit", "total". Work done by several workers at once is the sum over them.
    workers : int
        Workers that the one-by-one fits ran on.
    split_workers : dict of int to list of str
        On a cluster: for each split, the addresses of the workers that made its fits, shared ones included.
    groups : list of dict
        For each group: kind, estimator, settings (how many), candidates (their rows in `cv_results_`),
        fits_requested, reason; fits_undecided, those of which the plan said that it is decided when
        `decided_by` is seen; and left_to_sklearn, how many of its fits were left to scikit-learn, by reason.
    advice : list of str
        What a missing ``random_state`` cost, and what to set; that scores are optimistic, if they are. Then
        what the scores say: a parameter with one value; a best value that is the smallest or largest of at
        least three listed ones, unless the one beside it scores as well or the estimator takes none beyond;
        how many settings score less than one standard error below the best one, that of the difference over
        the splits (corrected as in `FoldScoresDisplay`). With a callable `refit` only the first.
    stopped : str or None
        With ``time_budget``: after how many seconds the search stopped, and how many settings have all their
        scores; None if all have.
    sample : str or None
        With ``sample``: how many of the rows the search was made on, and what drew them.
    dropped : list of dict
        With ``race``: for each setting that was not fitted on all splits since it was clearly worse, its
        ``candidate`` (row of ``cv_results_``), ``params``, ``fits``, and ``fits_not_made``.
    refit_n_iter : int or None
        With ``early_stopping="fold"``: iterations of the refit, the mean of the best setting's over the
        splits.
    left_to_sklearn : dict of str to int
        Pairs of setting and split that a shared group handed back to scikit-learn, by reason.
    as_good_as_best : list of dict
        Parameters of settings whose mean test score is nearer the best one's than ``tol`` tells: another fit
        that meets ``tol`` might choose them. Known of shared fits that iterate.
    verification : list of dict
        With ``verify=k``: for each pair that scikit-learn fitted again, its parameters, split, scorer,
        both scores and their difference, and the seconds of scikit-learn's fit and scores.
    """

    fits_requested: int = 0
    fits_done: int = 0
    family_fits: int = 0
    engine_fits: int = 0
    engine_compared: int = 0
    fits_shared: int = 0
    fits_restored: int = 0
    transformer_fits: int = 0
    transformer_fits_saved: int = 0
    steps_repeated: int = 0
    fits_continued: int = 0
    members_kept: int = 0
    passes: float = 0.0
    bytes_read: int = 0
    bytes_to_device: int = 0
    bytes_to_host: int = 0
    synchronisations: int = 0
    transfers: dict[str, Crossings] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict, compare=False)
    workers: int = 1
    split_workers: dict[int, list[str]] = field(default_factory=dict, compare=False)
    groups: list[dict[str, Any]] = field(default_factory=list, compare=False)
    advice: list[str] = field(default_factory=list, compare=False)
    engine_difference: float | None = field(default=None, compare=False)
    stopped: str | None = field(default=None, compare=False)
    sample: str | None = None
    dropped: list[dict[str, Any]] = field(default_factory=list)
    refit_n_iter: int | None = None
    left_to_sklearn: dict[str, int] = field(default_factory=dict)
    fitted_anew: dict[str, int] = field(default_factory=dict)
    as_good_as_best: list[dict[str, Any]] = field(default_factory=list, compare=False)
    verification: list[dict[str, Any]] = field(default_factory=list)

    def spend(self, kind: str, seconds: float) -> None:
        """Add time to a kind of work.

        Parameters
        ----------
        kind : str
            A key of `seconds`, new or not.
        seconds : float
            Seconds to add.
        """
        self.seconds[kind] = self.seconds.get(kind, 0.0) + seconds

    def note_worker(self, split: int, worker: str) -> None:
        """Note that a worker made fits of a split.

        Parameters
        ----------
        split : int
            Number of the split.
        worker : str
            Address of the worker.
        """
        known = self.split_workers.setdefault(split, [])
        if worker not in known:
            known.append(worker)

    def note_difference(self, difference: float | None) -> None:
        """Note a difference between a score of scikit-learn-intelex and scikit-learn's.

        Parameters
        ----------
        difference : float or None
            The difference; None and NaN, where there is none to compare, change nothing.
        """
        if difference is not None and not np.isnan(difference):
            self.engine_difference = max(difference, self.engine_difference or 0.0)

    def add(self, work: Mapping[str, int]) -> None:
        """Add to counts.

        Parameters
        ----------
        work : mapping of str to int
            What to add, by attribute.
        """
        for name, count in work.items():
            setattr(self, name, getattr(self, name) + count)

    def note_continued(self, counts: Continued) -> None:
        """Note which fits went on from those of an earlier round.

        Parameters
        ----------
        counts : Continued
            Of all rounds.
        """
        self.add({"fits_continued": counts.fits, "members_kept": counts.members})
        self.fitted_anew = dict(counts.anew)

    def cross(self, *counted: Transfers) -> None:
        """Add what crossed between host and device.

        Parameters
        ----------
        *counted : Transfers
            What was counted at different times.
        """
        for one in counted:
            self.bytes_to_device += one.bytes_to_device
            self.bytes_to_host += one.bytes_to_host
            self.synchronisations += one.synchronisations
            self.transfers = _join_transfers(self.transfers, one.by_label)

    def take_back(
        self, again: "Report", groups: Iterable[tuple[Mapping[str, Any], int]], n_restored: int, reason: str
    ) -> None:
        """Count fits that were answered by shared work, and that scikit-learn has made after all.

        Parameters
        ----------
        again : Report
            What scikit-learn's fits took.
        groups : iterable of (dict, int)
            Items of the list `groups`, each with how many of its fits there are.
        n_restored : int
            How many of the answers were restored from a checkpoint.
        reason : str
            Why.
        """
        self.fits_restored -= n_restored
        self.fits_shared -= again.fits_requested - n_restored
        self.add({name: getattr(again, name) for name in _COUNTS if name != "fits_requested"})
        self.transfers = _join_transfers(self.transfers, again.transfers)
        for left, n in [(self.left_to_sklearn, again.fits_requested)] + [
            (group["left_to_sklearn"], n) for group, n in groups if n
        ]:
            left[reason] = left.get(reason, 0) + n
        for kind, seconds in again.seconds.items():
            self.spend(kind, seconds)

    def merged(self, other: "Report") -> "Report":
        """This report and that of later settings of the same search.

        Parameters
        ----------
        other : Report
            The report of the later settings; it stays as it is.

        Returns
        -------
        Report
            A new one: counts, times and reasons are summed, lists joined, and of `workers` the larger is
            kept.
        """
        sums = {name: getattr(self, name) + getattr(other, name) for name in _COUNTS}
        seconds, left = Counter(self.seconds), Counter(self.left_to_sklearn)
        seconds.update(other.seconds)
        left.update(other.left_to_sklearn)
        workers = {split: list(found) for split, found in self.split_workers.items()}
        merged = Report(
            **sums,
            transfers=_join_transfers(self.transfers, other.transfers),
            seconds=dict(seconds),
            workers=max(self.workers, other.workers),
            split_workers=workers,
            groups=self.groups + other.groups,
            advice=list(dict.fromkeys(self.advice + other.advice)),
            left_to_sklearn=dict(left),
            verification=self.verification + other.verification,
            dropped=self.dropped + other.dropped,
            stopped=other.stopped or self.stopped,
        )
        for one in (self, other):
            merged.note_difference(one.engine_difference)
        merged._note_workers(other)
        return merged

    def _note_workers(self, other: "Report") -> None:
        for split, found in other.split_workers.items():
            for worker in found:
                self.note_worker(split, worker)

    @property
    def largest_difference(self) -> float | None:
        """Largest difference of a score to scikit-learn's among the verified; None if none were."""
        differences = [row["difference"] for row in self.verification]
        return float(np.max(differences)) if differences else None  # NaN, if any is

    @property
    def verdict(self) -> str:
        """How many of the fits were answered by shared work, in a sentence."""
        return describe_sharing(self)

    def __str__(self) -> str:
        return as_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self)

    def to_frame(self) -> Any:
        """The groups of the search as a table.

        Returns
        -------
        pandas.DataFrame
            A row for each group, in the order of `groups`, with its entries as columns: how its settings
            were answered (``kind``), by which estimator, of how many fits, and why no more was shared.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        import pandas as pd

        return pd.DataFrame(self.groups)


def _join_transfers(one: Mapping[str, Crossings], other: Mapping[str, Crossings]) -> dict[str, Crossings]:
    """The crossings of two counts by label."""
    labels = dict.fromkeys((*one, *other))
    return {label: one.get(label, Crossings()).plus(other.get(label, Crossings())) for label in labels}
