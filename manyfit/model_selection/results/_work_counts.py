"""Counts, times and reasons of the work of a search, as its parts add to them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np

from manyfit.arrays import Crossings, Transfers
from manyfit.families import Continued


@dataclass
class WorkCounts:
    """The numbers of a `Report`, which describes them."""

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
        """Add seconds to a kind of work."""
        self.seconds[kind] = self.seconds.get(kind, 0.0) + seconds

    def note_worker(self, split: int, worker: str) -> None:
        """Note that a worker, by its address, made fits of a split."""
        known = self.split_workers.setdefault(split, [])
        if worker not in known:
            known.append(worker)

    def note_difference(self, difference: float | None) -> None:
        """Note a difference of scikit-learn-intelex's scores to scikit-learn's; None and NaN are none."""
        if difference is not None and not np.isnan(difference):
            self.engine_difference = max(difference, self.engine_difference or 0.0)

    def add(self, work: Mapping[str, int]) -> None:
        """Add to counts, by attribute."""
        for name, count in work.items():
            setattr(self, name, getattr(self, name) + count)

    def note_fits(self, asked: int, alone: int, why: str) -> None:
        """Count fits that were asked for, and those of them that were left to scikit-learn for a reason."""
        self.add({"fits_requested": asked, "fits_done": alone, "fits_shared": asked - alone})
        if alone:
            self.left_to_sklearn[why] = self.left_to_sklearn.get(why, 0) + alone

    def note_continued(self, counts: Continued) -> None:
        """Note which fits of all rounds went on from those of an earlier one."""
        self.add({"fits_continued": counts.fits, "members_kept": counts.members})
        self.fitted_anew = dict(counts.anew)

    def cross(self, *counted: Transfers) -> None:
        """Add what crossed between host and device at different times."""
        for one in counted:
            self.bytes_to_device += one.bytes_to_device
            self.bytes_to_host += one.bytes_to_host
            self.synchronisations += one.synchronisations
            self.transfers = _join_transfers(self.transfers, one.by_label)

    def take_back(
        self,
        again: "WorkCounts",
        groups: Iterable[tuple[Mapping[str, Any], int]],
        n_restored: int,
        reason: str,
    ) -> None:
        """Count fits that shared work had answered, and that scikit-learn has made after all, for a reason.

        `again`: what these took. `groups`: entries of `groups`, each with how many of its fits there are.
        `n_restored`: how many of the answers were restored from a checkpoint.
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

    def merged(self, other: Self) -> Self:
        """This report and that of later settings of the same search, as a new one.

        Counts, times and reasons are summed, lists joined, and of `workers` the larger is kept.
        """
        sums = {name: getattr(self, name) + getattr(other, name) for name in _COUNTS}
        seconds, left = Counter(self.seconds), Counter(self.left_to_sklearn)
        seconds.update(other.seconds)
        left.update(other.left_to_sklearn)
        workers = {split: list(found) for split, found in self.split_workers.items()}
        merged = type(self)(
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
        for split, found in other.split_workers.items():
            for worker in found:
                merged.note_worker(split, worker)
        return merged


# The fields that begin at 0.
_COUNTS = tuple(one.name for one in fields(WorkCounts) if one.default == 0)


def _join_transfers(one: Mapping[str, Crossings], other: Mapping[str, Crossings]) -> dict[str, Crossings]:
    """The crossings of two counts by label."""
    labels = dict.fromkeys((*one, *other))
    return {label: one.get(label, Crossings()).plus(other.get(label, Crossings())) for label in labels}
