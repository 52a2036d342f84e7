"""What counts as one matrix of numbers, and the reasons given for what does not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

from manyfit.folds import Unsupported, as_labels, as_matrix, as_targets, as_weights

X = np.arange(6.0).reshape(3, 2)


@pytest.mark.parametrize("dtype", ["b1", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_numbers_pass_untouched(dtype):
    array = X.astype(dtype)
    assert as_matrix(array) is array


def test_a_memmap_passes(tmp_path):
    array = np.memmap(tmp_path / "x", dtype="f8", mode="w+", shape=(3, 2))
    assert as_matrix(array) is array


@pytest.mark.parametrize("library", [pd, pl])
def test_frames_become_their_numbers(library):
    frame = library.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    np.testing.assert_array_equal(as_matrix(frame), [[1.0, 3.0], [2.0, 4.0]])


def test_bools_beside_numbers_are_numbers():
    """As pandas' get_dummies makes them; pandas' own array of both is of objects."""
    frame = pd.DataFrame({"a": [1.5, 2.0], "b": [True, False], "c": [1, 2]})
    assert as_matrix(frame).dtype == np.float64
    np.testing.assert_array_equal(as_matrix(frame), [[1.5, 1.0, 1.0], [2.0, 0.0, 2.0]])
    assert as_matrix(frame[["b"]]).dtype == bool
    with pytest.raises(Unsupported, match="dtype object|pandas extension"):
        as_matrix(frame.assign(d=np.array(["x", "y"], dtype=object)))


REFUSED = {
    "list": (X.tolist(), "X is a list, not a dense array or DataFrame"),
    "sparse": (scipy.sparse.csr_array(X), "X is a csr_array, not a dense array"),
    "masked": (np.ma.masked_array(X), "X is a MaskedArray"),
    "matrix": (X.view(np.matrix) if hasattr(np, "matrix") else None, "X is a matrix"),
    "vector": (X[:, 0], "X has 1 dimensions"),
    "cube": (X[None], "X has 3 dimensions"),
    "object": (X.astype(object), "dtype object"),
    "complex": (X.astype(complex), "dtype complex128"),
    "half": (X.astype("f2"), "dtype float16"),
    "text": (X.astype(str), "dtype <U32"),
    "big-endian": (X.astype(">f8"), "dtype >f8"),
    "no rows": (X[:0], "X is empty: shape"),
    "no columns": (X[:, :0], "X is empty: shape"),
    "frame of text": (
        pd.DataFrame({"a": ["x", "y"]}),
        "X has (columns of pandas extension dtypes, such as 'a' of dtype str|the dtype object)",
    ),
    "nullable frame": (pd.DataFrame({"a": [1, 2]}).astype("Int64"), "dtype Int64; as float64 they are read"),
    "mixed names": (pd.DataFrame({"a": [1.0], 0: [2.0]}), "names of several types"),
    "None": (None, "X is a NoneType"),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize(("given", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_matrix_is_named(given, message):
    with pytest.raises(Unsupported, match=message):
        as_matrix(given)


@pytest.mark.parametrize(
    "given", [[1.0, 2.0], pd.Series([1.0, 2.0]), pl.Series([1.0, 2.0]), np.array([1, 2])]
)
def test_targets_become_arrays(given):
    np.testing.assert_array_equal(as_targets(given), [1, 2])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "y is missing"),
        (scipy.sparse.csr_array(X), "y is sparse"),
        (pd.Series([1, 2], dtype="Int64"), "y has the pandas extension dtype Int64"),
        (pd.Series(["a", "b"], dtype="category"), "y has the pandas extension dtype category"),
        (np.zeros((2, 2, 2)), "y has shape"),
        (np.float64(3), "y has shape"),
        (np.zeros(0), "y has shape"),
        (np.array(["a", "b"]), "y has dtype <U1, not"),
        (np.array([1j]), "y has dtype complex128"),
        (np.array([True, False]), "y has dtype bool"),
        (np.array([1, None]), "y has dtype object"),
    ],
)
def test_what_are_no_targets_is_named(given, message):
    with pytest.raises(Unsupported, match=message):
        as_targets(given)


def test_labels_may_be_text():
    np.testing.assert_array_equal(as_labels(["a", "b"]), ["a", "b"])


def test_weights_become_float64():
    assert as_weights(None, 3) is None
    for given in ([1, 2, 0], np.array([1, 2, 0], dtype=np.float32), pd.Series([1, 2, 0])):
        weights = as_weights(given, 3)
        assert weights.dtype == np.float64
        np.testing.assert_array_equal(weights, [1, 2, 0])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (2.0, "not one number a row"),
        ([1.0, 2.0], "not one number a row"),
        ([[1.0], [1.0], [1.0]], "not one number a row"),
        (["a", "b", "c"], "not one number a row"),
        ([True, False, True], "not one number a row"),
        ([1.0, -1.0, 1.0], "negative or not finite"),
        ([1.0, np.nan, 1.0], "negative or not finite"),
        ([1.0, np.inf, 1.0], "negative or not finite"),
    ],
)
def test_other_weights_are_left_to_sklearn(given, message):
    with pytest.raises(Unsupported, match=message):
        as_weights(given, 3)
