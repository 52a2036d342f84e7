"""Columns of frames and matrices, as numbers with gaps or as categories."""

from __future__ import annotations

import math
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import OneHotEncoder

from manyfit.folds import Table, Unsupported

NUMBERS = {
    "floats": ([1.5, np.nan, 2.0], "float64", "f"),
    "integers": ([1, 2, 3], "int64", "i"),
    "bools": ([True, False, True], "bool", "b"),
    "nullable integers": ([1, None, 3], "Int64", "i"),
    "nullable floats": ([1.0, None, 3.5], "Float64", "f"),
    "nullable bools": ([True, None, False], "boolean", "b"),
    "Arrow": ([1.0, None, 3.5], "double[pyarrow]", "f"),
}


@pytest.mark.parametrize(("values", "dtype", "kind"), NUMBERS.values(), ids=NUMBERS)
def test_numbers_are_float64_with_nan_for_gaps(values, dtype, kind):
    table = Table(pd.DataFrame({"a": pd.Series(values, dtype=dtype)}))
    expected = [math.nan if v is None else float(v) for v in values]
    np.testing.assert_array_equal(table.numbers(0), expected)
    assert (table.number_kind(0), table.numbers(0).dtype) == (kind, np.float64)
    assert table.numbers(0) is table.numbers(0), "a column is read once"


def test_numbers_of_polars():
    pl = pytest.importorskip("polars")
    table = Table(pl.DataFrame({"a": [1.0, None, 2.0], "b": [True, False, None], "c": ["x", "y", "z"]}))
    np.testing.assert_array_equal(table.numbers(0), [1.0, np.nan, 2.0])
    assert [table.number_kind(j) for j in range(3)] == ["f", "i", None]


CATEGORIES = {
    "words": ["b", "a", "b", "ä"],
    "None": ["b", None, "a", None],
    "NaN": np.array(["b", np.nan, "a", float("nan")], dtype=object),
    "integers": [3, -1, 3, 0],
    "floats and gaps": [2.0, np.nan, -1.0, np.nan],
    "bools": [True, False, True, True],
    "one word": ["a", "a", "a", "a"],
    "fixed width": np.array(["b", "a", "b", "ccc"]),
}


@pytest.mark.parametrize("without_pandas", [False, True])
@pytest.mark.parametrize("values", CATEGORIES.values(), ids=CATEGORIES)
def test_categories_are_in_scikit_learns_order(values, without_pandas, monkeypatch):
    if without_pandas:
        monkeypatch.delitem(sys.modules, "pandas")
    array = np.asarray(values)
    if array.dtype.kind == "U":
        array = array.astype(object)
    categories = Table(array[:, None]).categories(0)
    encoder = OneHotEncoder(sparse_output=False).fit(array[:, None])
    np.testing.assert_array_equal(categories.codes, encoder.transform(array[:, None]).argmax(axis=1))
    assert list(map(repr, categories.labels)) == list(map(repr, encoder.categories_[0].tolist()))
    missing = [v for v in values if v is None or v != v]
    assert (categories.missing is not ...) == bool(missing)
    assert not missing or (categories.missing is None) == (missing[0] is None)


REFUSED = {
    "NaN and None": np.array(["a", None, np.nan], dtype=object),
    "words and numbers": np.array(["a", 1, "b"], dtype=object),
    "pandas.NA": np.array(["a", pd.NA, "b"], dtype=object),
    "bools as objects": np.array([True, False, True], dtype=object),
}


@pytest.mark.parametrize("without_pandas", [False, True])
@pytest.mark.parametrize("values", REFUSED.values(), ids=REFUSED)
def test_values_of_several_types_are_refused(values, without_pandas, monkeypatch):
    if without_pandas:
        monkeypatch.delitem(sys.modules, "pandas")
    with pytest.raises(Unsupported, match="several types"):
        Table(values[:, None]).categories(0)


@pytest.mark.parametrize(
    ("X", "why"),
    [
        ([[1.0]], "X is of class list"),
        (np.ones(3), "X is of class ndarray"),
        (np.ones((2, 2), dtype=complex), "X is of class ndarray"),
        (np.ma.masked_array(np.ones((2, 2))), "X is of class MaskedArray"),
        (np.ones((0, 2)), "X is empty"),
        (np.ones((2, 0)), "X is empty"),
        (pd.DataFrame(np.ones((2, 2))), "names that are no strings"),
        (pd.DataFrame(np.ones((2, 2)), columns=["a", "a"]), "same name"),
    ],
)
def test_other_data_are_refused(X, why):
    with pytest.raises(Unsupported, match=why):
        Table(X)


@pytest.mark.parametrize("dtype", ["float16", "longdouble", "object", "datetime64[ns]"])
def test_columns_in_which_scikit_learn_computes_otherwise_are_refused(dtype):
    with pytest.raises(Unsupported, match="dtype"):
        Table(pd.DataFrame({"a": pd.Series([0, 1], dtype=dtype)})).numbers(0)


@pytest.mark.parametrize(
    ("dtype", "read_as"), [("float32", "float32"), ("Float32", "float64"), ("float[pyarrow]", "float64")]
)
def test_columns_of_single_precision_keep_their_numbers(dtype, read_as):
    table = Table(pd.DataFrame({"a": pd.Series([0.1, 1.0], dtype=dtype)}))
    assert table.numbers(0)[0] == np.float32(0.1)
    assert table.dtype(0) == read_as


def test_a_gap_of_numbers_is_one_object():
    categories = Table(pd.DataFrame({"a": [2.0, np.nan, 1.0]})).categories(0)
    assert categories.labels[-1] is categories.missing
