"""Splits are what the splitter gave: indices, order and dtype."""

from __future__ import annotations

import pickle
from itertools import combinations, product

import numpy as np
import pytest
from sklearn import model_selection as ms
from sklearn.model_selection import KFold, check_cv

from manyfit.folds import FoldedMatrix, Splits
from manyfit.folds.splits import _splits
from manyfit.folds.splits._splits import _joins_partition

N = 23
X = np.arange(2.0 * N).reshape(N, 2)
Y = np.arange(N) % 3
GROUPS = np.arange(N) // 4

SPLITTERS = {
    "KFold": ms.KFold(4),
    "KFold shuffled": ms.KFold(4, shuffle=True, random_state=0),
    "StratifiedKFold": ms.StratifiedKFold(3),
    "StratifiedKFold shuffled": ms.StratifiedKFold(3, shuffle=True, random_state=1),
    "GroupKFold": ms.GroupKFold(3),
    "StratifiedGroupKFold": ms.StratifiedGroupKFold(2),
    "LeaveOneOut": ms.LeaveOneOut(),
    "LeavePOut": ms.LeavePOut(22),
    "LeaveOneGroupOut": ms.LeaveOneGroupOut(),
    "LeavePGroupsOut": ms.LeavePGroupsOut(2),
    "ShuffleSplit": ms.ShuffleSplit(3, random_state=0),
    "StratifiedShuffleSplit": ms.StratifiedShuffleSplit(3, random_state=0),
    "GroupShuffleSplit": ms.GroupShuffleSplit(3, random_state=0),
    "TimeSeriesSplit": ms.TimeSeriesSplit(4),
    "TimeSeriesSplit gap": ms.TimeSeriesSplit(3, gap=2, max_train_size=7),
    "RepeatedKFold": ms.RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "RepeatedStratifiedKFold": ms.RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
    "PredefinedSplit": ms.PredefinedSplit(np.r_[-1, -1, np.arange(N - 2) % 3]),
}


def drawn(cv, n=N, **params):
    return Splits.draw(cv, X[:n], Y[:n], n, params)


def assert_same(splits, expected):
    assert splits.n_splits == len(expected)
    for got, (train, test) in zip(splits, expected, strict=True):
        for ours, theirs in zip(got, (train, test), strict=True):
            assert isinstance(ours, type(theirs))
            np.testing.assert_array_equal(ours, theirs)
            if isinstance(theirs, np.ndarray):
                assert ours.dtype == theirs.dtype


@pytest.mark.invariant("Splits are kept exactly as the splitter gave them")
@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
@pytest.mark.parametrize("cv", SPLITTERS.values(), ids=SPLITTERS)
def test_every_splitter_keeps_its_indices(cv):
    expected = list(cv.split(X, Y, GROUPS))
    splits = drawn(cv, groups=GROUPS)
    assert_same(splits, expected)
    assert_same(splits, expected)  # read twice


def test_all_of_sklearns_splitters_are_in_the_table():
    abstract = {"BaseCrossValidator", "BaseShuffleSplit"}
    public = {
        name
        for name, thing in vars(ms).items()
        if name in ms.__all__ and hasattr(thing, "split") and name not in abstract
    }
    assert public <= {type(cv).__name__ for cv in SPLITTERS.values()}


@pytest.mark.parametrize("n", [4, 5, 7, 8])
def test_kfold_of_uneven_sizes(n):
    assert_same(drawn(KFold(4), n), list(KFold(4).split(X[:n])))


def test_a_partition_is_one_for_every_two_sets_of_rows():
    n = 6
    sets = [np.array(rows) for size in range(1, n) for rows in combinations(range(n), size)]
    for test, train in product(sets, sets):
        labels = np.full(n, -1, dtype=np.int16)
        joins = _joins_partition(train, test, labels, 0)
        assert joins == np.array_equal(np.sort(np.concatenate([train, test])), np.arange(n))
        assert np.array_equal(np.flatnonzero(labels == 0), test if joins else [])


@pytest.mark.invariant("A partition has one atom per fold and never holds all indices of its splits")
def test_kfold_keeps_no_indices():
    n = 100_000
    splits = Splits.draw(KFold(5), np.empty((n, 1)), None, n, {})
    assert len(pickle.dumps(splits)) < 2000


@pytest.mark.invariant("A partition has one atom per fold and never holds all indices of its splits")
def test_a_partition_keeps_one_label_a_row():
    n = 20_000
    cv = KFold(5, shuffle=True, random_state=0)
    splits = Splits.draw(cv, np.empty((n, 1)), None, n, {})
    assert len(pickle.dumps(splits)) < 3 * n  # five index arrays would take 40 bytes a row


def test_more_folds_than_rows_is_sklearns_error():
    with pytest.raises(ValueError, match="Cannot have number of splits n_splits=30 greater than the number"):
        drawn(KFold(30))


@pytest.mark.invariant("A splitter is called once, and a generator of splits is read once")
def test_a_generator_is_read_once_and_kept():
    def generate():
        yield from KFold(3).split(X)

    assert_same(Splits.given(generate(), N), list(KFold(3).split(X)))


@pytest.mark.invariant("A splitter is called once, and a generator of splits is read once")
def test_a_random_splitter_is_drawn_once():
    splits = drawn(ms.ShuffleSplit(3))
    for (a, b), (c, d) in zip(splits, splits, strict=True):
        np.testing.assert_array_equal(a, c)
        np.testing.assert_array_equal(b, d)


ODD = {
    "masks": [(np.arange(N) % 2 == 0, np.arange(N) % 2 == 1)] * 2,
    "lists": [([0, 1, 2, 3], [4, 5]), ([4, 5], [0, 1])],
    "negative": [(np.array([0, 1, -1]), np.array([-2, 3]))],
    "repeated": [(np.array([5, 5, 2, 2, 2]), np.array([1, 1]))],
    "unsorted": [(np.arange(N)[:10:-1], np.arange(11)[::-1]), (np.arange(11)[::-1], np.arange(N)[:10:-1])],
    "int32": [(np.arange(5, N, dtype=np.int32), np.arange(5, dtype=np.int32))],
    "uint8": [(np.arange(5, N, dtype=np.uint8), np.arange(5, dtype=np.uint8))],
    "overlapping": [(np.arange(N), np.arange(N))],
    "partly covering": list(KFold(4).split(X))[:3],
    "a test set twice": [list(KFold(4).split(X))[j] for j in (0, 1, 1, 3)],
    "rows left out of training": [(np.arange(2, 10), np.arange(2)), (np.arange(5), np.arange(5, 10))],
    "a partition that breaks late": [*list(KFold(4).split(X))[:3], (np.arange(3), np.arange(3))],
    "empty test": [(np.arange(N), np.arange(0))],
}


@pytest.mark.invariant("Splits are kept exactly as the splitter gave them")
@pytest.mark.parametrize("given", ODD.values(), ids=ODD)
def test_whatever_is_given_is_kept(given):
    assert_same(Splits.given(iter(given), N), given)
    assert_same(drawn(check_cv(given)), given)


def test_groups_that_a_splitter_ignores_are_still_mentioned():
    groups = np.arange(N) // 2
    with pytest.warns(UserWarning, match="groups parameter is ignored by KFold"):
        splits = Splits.draw(KFold(3), X, None, N, {"groups": groups})
    assert_same(splits, list(KFold(3).split(X)))
    Splits.draw(KFold(3), X, None, N, {"groups": None})


def test_a_subclass_of_kfold_splits_its_own_way():
    class Backwards(KFold):
        def split(self, X, y=None, groups=None):
            return ((train[::-1], test) for train, test in super().split(X))

    assert_same(drawn(Backwards(3)), list(Backwards(3).split(X)))


def test_a_partition_may_have_more_splits_than_the_first_dtype_numbers(monkeypatch):
    monkeypatch.setattr(_splits, "FEW_LABELS", np.int8)
    n, cv = 400, KFold(200, shuffle=True, random_state=0)
    splits = Splits.draw(cv, np.empty((n, 1)), None, n, {})
    assert splits.test_sets is not None
    assert_same(splits, list(cv.split(np.empty((n, 1)))))


@pytest.mark.parametrize("cv", [KFold(6), KFold(6, shuffle=True, random_state=0), ms.LeaveOneOut()])
def test_classes_that_splits_train_on(cv):
    """Of splits that divide the rows they are counted from the test sets, of others from the atoms."""
    y = np.array([0, 1, 1, 2, 2, 2, 2, 1, 3, 3, 3, 3])
    rows, X = list(cv.split(y)), np.empty((12, 1))
    divided = FoldedMatrix(X, y, Splits.given(rows, 12))
    twice = FoldedMatrix(X, y, Splits.given([*rows, *rows], 12))
    assert divided.splits.test_sets is not None and twice.splits.test_sets is None
    held = [np.isin(np.arange(4), y[train]) for train, _ in rows]
    assert divided.trains_on_all_classes == twice.trains_on_all_classes == np.all(held)
    for i, own in enumerate(held):
        for data in (divided, twice):
            np.testing.assert_array_equal(np.unique(data.trained_labels([i])), np.flatnonzero(own))
