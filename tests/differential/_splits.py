"""Splits of every sort that scikit-learn takes: splitters, indices, masks, generators, repeated rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from sklearn import model_selection as ms

from tests.differential._recipe import mostly

Pair = tuple[Any, Any]


@dataclass(frozen=True)
class Splits:
    """A description of a `cv` parameter; `make` gives a fresh one, since one search uses up a generator."""

    kind: str
    k: int
    seed: int

    def make(self, n: int) -> Any:
        """The `cv` parameter for `n` rows."""
        for splitters in (SPLITTERS, SMALL_SETS):
            if self.kind in splitters:
                return splitters[self.kind](self, n)
        return LISTS[self.kind](self, n)

    @property
    def needs_groups(self) -> bool:
        """Whether the splitter refuses to work without groups."""
        return self.kind in GROUPED

    def _folds(self, n: int) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        return ms.KFold(min(self.k, n), shuffle=True, random_state=self.seed).split(np.zeros((n, 1)))

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)


def _bootstrap(s: Splits, n: int) -> list[Pair]:
    rng = s._rng()
    draws = [rng.integers(0, n, n) for _ in range(s.k)]
    return [(train, np.setdiff1d(np.arange(n), train)) for train in draws]


def _repeated_test(s: Splits, n: int) -> list[Pair]:
    rng = s._rng()
    return [(train, rng.choice(test, len(test) + 2)) for train, test in s._folds(n)]


def _overlapping(s: Splits, n: int) -> list[Pair]:
    rng = s._rng()
    half = max(3, n // 2)
    return [(rng.permutation(n)[:half], rng.permutation(n)[:half]) for _ in range(s.k)]


def _masks(s: Splits, n: int) -> list[Pair]:
    rows = np.arange(n)
    return [(np.isin(rows, train), np.isin(rows, test)) for train, test in s._folds(n)]


def _unsorted(s: Splits, n: int) -> list[Pair]:
    rng = s._rng()
    return [(rng.permutation(train), rng.permutation(test)) for train, test in s._folds(n)]


def _unequal(s: Splits, n: int) -> list[Pair]:
    """A large, a small and a one-row test fold in the same search, and a training part of few rows."""
    rows = np.arange(n)
    cuts = (1, 2, max(3, n // 2), n - 3)
    return [(rows[c:], rows[:c]) for c in cuts]


def _generator(s: Splits, n: int) -> Iterable[Pair]:
    return ((train, test) for train, test in list(s._folds(n)))


def _predefined(s: Splits, n: int) -> ms.PredefinedSplit:
    return ms.PredefinedSplit(s._rng().integers(-1, s.k, n))


SPLITTERS: dict[str, Callable[[Splits, int], Any]] = {
    "int": lambda s, n: s.k,
    "default": lambda s, n: None,
    "KFold": lambda s, n: ms.KFold(s.k),
    "shuffled KFold": lambda s, n: ms.KFold(s.k, shuffle=True, random_state=s.seed),
    "TimeSeriesSplit": lambda s, n: ms.TimeSeriesSplit(s.k),
    "ShuffleSplit": lambda s, n: ms.ShuffleSplit(s.k, test_size=0.3, random_state=s.seed),
    "small ShuffleSplit": lambda s, n: ms.ShuffleSplit(s.k, test_size=0.2, train_size=0.4, random_state=0),
    "RepeatedKFold": lambda s, n: ms.RepeatedKFold(n_splits=s.k, n_repeats=2, random_state=s.seed),
    "PredefinedSplit": _predefined,
    "LeaveOneOut": lambda s, n: ms.LeaveOneOut() if n <= 12 else ms.KFold(s.k),
    "StratifiedKFold": lambda s, n: ms.StratifiedKFold(s.k),
    "GroupKFold": lambda s, n: ms.GroupKFold(min(s.k, 3)),
    "LeaveOneGroupOut": lambda s, n: ms.LeaveOneGroupOut(),
}
# Many splits that each test few rows.
SMALL_SETS: dict[str, Callable[[Splits, int], Any]] = {
    "each row": lambda s, n: ms.LeaveOneOut(),
    "pairs of rows": lambda s, n: ms.KFold(n // 2),
    "shuffled pairs": lambda s, n: ms.KFold(n // 2, shuffle=True, random_state=s.seed),
    "one pair": lambda s, n: ms.KFold(n - 1),
    "threes": lambda s, n: ms.KFold(max(2, n // 3)),
    "tiny groups": lambda s, n: ms.PredefinedSplit(s._rng().integers(0, max(2, n // 3), n)),
    "tiny groups in order": lambda s, n: ms.PredefinedSplit(np.arange(n) // s.k),
    "all pairs": lambda s, n: ms.LeavePOut(2) if n <= 9 else ms.KFold(n // 2),
    "some rows": lambda s, n: ms.ShuffleSplit(2 * s.k, test_size=s.k - 1, random_state=s.seed),
    "repeated pairs": lambda s, n: ms.RepeatedKFold(n_splits=n // 2, n_repeats=2, random_state=s.seed),
}
GROUPED = ("GroupKFold", "LeaveOneGroupOut")
LISTS: dict[str, Callable[[Splits, int], Any]] = {
    "bootstrap": _bootstrap,
    "repeated test rows": _repeated_test,
    "overlapping": _overlapping,
    "masks": _masks,
    "unsorted": _unsorted,
    "unequal": _unequal,
    "generator": _generator,
    "negative": lambda s, n: [(train - n, test - n) for train, test in s._folds(n)],
    "lists": lambda s, n: [(train.tolist(), test.tolist()) for train, test in s._folds(n)],
    "int32": lambda s, n: [(train.astype(np.int32), test.astype(np.int32)) for train, test in s._folds(n)],
    "training rows": lambda s, n: [(train, train) for train, _ in s._folds(n)],
    "one split": lambda s, n: [(np.arange(n // 3, n), np.arange(n // 3))],
    # Refused by scikit-learn, one way or another.
    "empty test": lambda s, n: [(np.arange(n), np.arange(0)), *s._folds(n)],
    "empty training": lambda s, n: [(np.arange(0), np.arange(n)), *s._folds(n)],
    "no splits": lambda s, n: [],
}
REFUSED = ("empty test", "empty training", "no splits", "StratifiedKFold")


@st.composite
def splits(draw: st.DrawFn, classes: bool = False, small_sets: bool = False) -> Splits:
    """Any sort of splits, now and then one that is refused; stratified ones for classes.

    `small_sets`: many splits that each test few rows.
    """
    if small_sets:
        return Splits(
            draw(st.sampled_from(tuple(SMALL_SETS))), draw(st.integers(2, 4)), draw(st.integers(0, 999))
        )
    refused = REFUSED[:-1] if classes else REFUSED
    usual = tuple(k for k in (*SPLITTERS, *LISTS) if k not in refused)
    kind = draw(st.sampled_from(mostly(draw, usual, (refused,), odds=24)))
    return Splits(kind, draw(st.integers(2, 4)), draw(st.integers(0, 999)))
