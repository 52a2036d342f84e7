"""The global matrix, and the columns of folds as linear maps of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from manyfit.folds import (
    CategoryColumn,
    EncodedFold,
    Encoding,
    FoldColumns,
    LinearColumns,
    MomentsNeeded,
    NumberColumn,
    Table,
    Unsupported,
    as_categories,
)

FRAME = pd.DataFrame({"a": [1.0, np.nan, 4.0, 3.0], "b": [5, 6, 7, 8], "c": ["x", "y", "x", "z"]})
TRAIN, TEST = np.array([0, 1, 2]), np.array([3])


@pytest.fixture
def encoding():
    return Encoding(Table(FRAME))


@pytest.fixture
def start(encoding):
    return FoldColumns.start(EncodedFold(encoding, TRAIN, TEST))


def test_each_column_is_written_once(encoding):
    value, gap = encoding.number_index(0, None)
    assert encoding.number_index(0, None) == (value, gap)
    assert encoding.number_index(1, None) == (2, None)
    assert encoding.category_start(2) == encoding.category_start(2) == 3
    G = encoding.take(slice(None))
    assert encoding.shape == G.shape == (4, 6)
    np.testing.assert_array_equal(G[:, gap], [0.0, 1.0, 0.0, 0.0])
    np.testing.assert_array_equal(G[:, value], [1.0, 3.0, 4.0, 3.0])  # the median in the gap
    np.testing.assert_array_equal(G[:, 3:], np.eye(3)[[0, 1, 0, 2]])
    np.testing.assert_array_equal(encoding.take(TEST), G[TEST])


def test_the_matrix_has_no_room_for_columns_that_come_late(encoding):
    encoding.number_index(1, None)
    assert encoding.take(slice(None)).shape == (4, 1)
    encoding.number_index(1, None)
    with pytest.raises(Unsupported, match="did not foresee"):
        encoding.category_start(2)


@pytest.mark.parametrize(
    ("values", "function", "why"),
    [
        ([1.0, np.inf], None, "infinity"),
        ([np.nan, np.nan], None, "no number"),
        ([1.0, -1.0], np.log, "no finite value"),
        ([1.0, 0.0], np.reciprocal, "no finite value"),
    ],
)
def test_numbers_that_are_not_encoded(values, function, why):
    with pytest.raises(Unsupported, match=why):
        Encoding(Table(np.array(values)[:, None])).derived(0, function)


def test_columns_are_a_linear_map_of_the_matrix(encoding, start):
    filled = NumberColumn(0, fill=10.0, shift=2.0, scale=4.0)
    doubled = LinearColumns(((np.array([3, 4]), np.array([0, 0]), np.array([1.0, 2.0])),), np.array([0.5]))
    for j in (0, 1):
        encoding.number_index(j, None)
    encoding.category_start(2)
    linear = start.changed([filled, NumberColumn(1), doubled]).linear
    mapped = encoding.take(slice(None)) @ linear.matrix(6) + linear.constant
    expected = np.c_[(np.array([1.0, 10.0, 4.0, 3.0]) - 2.0) / 4.0, FRAME["b"], [1.5, 2.5, 1.5, 0.5]]
    np.testing.assert_allclose(mapped, expected, rtol=1e-15)
    assert (linear.width, linear.stored) == (3, None)


def test_columns_beside_sparse_ones_are_stored_in_full(start):
    nothing = ((np.array([0]), np.array([0]), np.array([1.0])),)
    sparse = LinearColumns(nothing, np.zeros(1), stored=2.0)
    assert start.changed([NumberColumn(1), sparse]).linear.stored == 3 + 2.0
    assert start.changed([NumberColumn(1), sparse]).is_sparse
    assert not start.is_sparse


@pytest.mark.parametrize(("chosen", "why"), [([0], "column .a. has gaps"), ([2], "holds no numbers")])
def test_columns_that_are_no_numbers_are_not_linear(start, chosen, why):
    with pytest.raises(Unsupported, match=why):
        _ = start.selected(chosen).linear


def test_columns_are_chosen_before_they_are_mixed(start):
    some = start.selected([2, 0])
    assert list(some.head.columns) == ["c", "a"] and some.width == 2
    with pytest.raises(Unsupported, match="mixed"):
        start.changed([LinearColumns((), np.zeros(2))]).selected([0])


def test_moments_are_needed_while_a_search_is_planned(start):
    with pytest.raises(MomentsNeeded):
        _ = start.selected([1]).moments


def test_counts_of_categories(start):
    train, test = start.fold.counts(2)
    assert (train.tolist(), test.tolist()) == ([2, 1, 0], [0, 0, 1])


def test_numbers_of_training_rows(start):
    np.testing.assert_array_equal(start.fold.numbers(NumberColumn(0)), [1.0, np.nan, 4.0])
    np.testing.assert_array_equal(start.fold.numbers(NumberColumn(0, fill=2.0, scale=2.0)), [0.5, 1.0, 2.0])
    assert start.fold.has_gaps(NumberColumn(0)) and not start.fold.has_gaps(NumberColumn(0, fill=2.0))


def test_numbers_are_categories_as_long_as_no_step_has_changed_them(encoding):
    column = as_categories(encoding, NumberColumn(1))
    assert column == CategoryColumn(1, tuple((label, (code,)) for code, label in enumerate([5, 6, 7, 8])))
    assert as_categories(encoding, column) is column
    for changed in (NumberColumn(1, scale=2.0), NumberColumn(0, fill=1.0), LinearColumns((), np.zeros(1))):
        with pytest.raises(Unsupported, match="a step has changed"):
            as_categories(encoding, changed)
