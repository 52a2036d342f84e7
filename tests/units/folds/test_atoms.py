"""Atoms: each split's rows are the union, with multiplicity, of the atoms that it uses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit, TimeSeriesSplit

from manyfit.folds import Splits

N = 24
X = np.zeros((N, 1))


def counted(index):
    """How often each row is in an index, by NumPy's own indexing."""
    index = np.asarray(index)
    return np.bincount(np.arange(N)[index], minlength=N) if index.size else np.zeros(N, dtype=int)


def assert_atoms(groups, splits):
    """Atoms are disjoint, each split belongs to one group, and counts add up to the split."""
    assert [i for group in groups for i in group.splits] == list(range(len(splits)))
    for group in groups:
        labels = np.full(N, -1)
        for a, rows in enumerate(group.rows):
            members = np.arange(N)[rows]
            assert members.size and np.all(labels[members] == -1)
            assert np.all(np.diff(members) > 0)
            labels[members] = a
        for i in group.splits:
            for counts, index in zip((group.train, group.test), splits[i], strict=True):
                row = np.append(counts[i - group.splits.start], 0)  # label -1: not used
                np.testing.assert_array_equal(row[labels], counted(index))


def atoms(splits):
    return Splits.given(splits, N).atom_groups


@pytest.mark.invariant("A partition has one atom per fold and never holds all indices of its splits")
@pytest.mark.parametrize("shuffle", [False, True])
def test_kfold_has_an_atom_a_fold(shuffle):
    cv = KFold(5, shuffle=shuffle, random_state=0 if shuffle else None)
    splits = Splits.draw(cv, X, None, N, {})
    (group,) = splits.atom_groups
    assert len(group.rows) == 5
    assert_atoms([group], list(cv.split(X)))
    if not shuffle:
        assert all(isinstance(rows, slice) for rows in group.rows)


def test_kfold_as_slices_and_as_given_pairs_has_the_same_atoms():
    pairs = list(KFold(5).split(X))
    (drawn,), (given_) = Splits.draw(KFold(5), X, None, N, {}).atom_groups, atoms(pairs)
    assert drawn.rows == given_[0].rows
    np.testing.assert_array_equal(drawn.train, given_[0].train)


def test_time_series_has_one_atom_more_than_splits():
    pairs = list(TimeSeriesSplit(4).split(X))
    (group,) = atoms(pairs)
    assert len(group.rows) == 5
    assert_atoms([group], pairs)


def test_repeated_kfold_is_treated_in_groups():
    pairs = list(RepeatedKFold(n_splits=4, n_repeats=3, random_state=0).split(X))
    groups = atoms(pairs)
    assert 1 < len(groups) <= 3
    assert all(len(group.rows) <= len(group.splits) + 2 for group in groups)
    assert_atoms(groups, pairs)


def test_shuffled_splits_stay_few_atoms_each():
    pairs = list(ShuffleSplit(6, random_state=0).split(X))
    groups = atoms(pairs)
    assert all(len(group.rows) <= len(group.splits) + 2 for group in groups)
    assert_atoms(groups, pairs)


AWKWARD = {
    "masks": [(np.arange(N) < 10, np.arange(N) >= 10), (np.arange(N) >= 10, np.arange(N) < 10)],
    "negative": [([0, 1, -1, -1], [-2, 3])],
    "bootstrap": [([3, 3, 3, 5, 7, 7], [0, 1, 0])],
    "train is test": [(np.arange(N), np.arange(N))],
    "rows in both": [(np.arange(12), np.arange(6, 20))],
    "unused rows": [([0, 1], [5]), ([1, 2], [5])],
    "empty test": [(np.arange(3), np.arange(0))],
}


@pytest.mark.parametrize("splits", AWKWARD.values(), ids=AWKWARD)
def test_awkward_splits(splits):
    assert_atoms(atoms(splits), splits)


def test_unused_rows_are_in_no_atom():
    (group,) = atoms([([0, 1], [5])])
    assert sorted(r for rows in group.rows for r in np.arange(N)[rows]) == [0, 1, 5]


index = st.lists(st.integers(-N, N - 1), min_size=1, max_size=30)


@pytest.mark.invariant("Atoms rebuild any splits, repeated rows included")
@settings(max_examples=40)
@given(st.lists(st.tuples(index, index), min_size=1, max_size=6))
def test_any_splits(splits):
    assert_atoms(atoms(splits), splits)


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (([0, N], [1]), f"A split has indices from 0 to {N}; X has {N} rows"),
        (([0], [-N - 1]), f"A split has indices from {-N - 1} to {-N - 1}; X has {N} rows"),
        ((np.ones(N + 1, dtype=bool), [0]), f"A mask of a split has {N + 1} entries; X has {N} rows"),
    ],
)
def test_an_index_out_of_range_is_named(split, message):
    with pytest.raises(IndexError, match=message):
        _ = atoms([split])
