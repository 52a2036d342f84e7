"""Row sources: every kind of X gives the same numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from manyfit.arrays import to_host
from manyfit.folds import (
    NumPyRows,
    RowSource,
    Unsupported,
    as_row_source,
    register_row_source,
    unregister_row_source,
    wrap_rows,
)
from manyfit.folds.rows._csr import CsrRows
from manyfit.folds.rows._device import DeviceRows
from manyfit.folds.rows.chunks._sliced import SlicedRows
from manyfit.metrics import LinearPredictors
from tests.behaviour.metrics._crossings import there

rng = np.random.default_rng(0)
N, P = 60, 4
X = rng.integers(-3, 4, size=(N, P)) + 0.5
Y = rng.normal(size=(N, 1))
ATOMS = [slice(0, 20), np.array([21, 40, 25]), slice(45, N)]
SOURCES = {
    "NumPy": NumPyRows(X),
    "device": DeviceRows(there(X)),
    "chunks": SlicedRows(X, "file", 16 * 7 * X[0].nbytes),  # 7 rows a read
    "single rows": SlicedRows(X, "file", 16 * X[0].nbytes),
    "CSR": CsrRows(sp.csr_array(X)),
}
every_source = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
every_dense = pytest.mark.parametrize("source", list(SOURCES.values())[:4], ids=list(SOURCES)[:4])


def dense(rows):
    return rows.toarray() if sp.issparse(rows) else to_host(rows)


# What every source promises


@every_source
def test_a_source_has_the_size_and_the_rows_of_x(source):
    assert isinstance(source, RowSource)
    assert (source.shape, source.dtype) == (X.shape, X.dtype)
    assert source.nnz == (X.size if isinstance(source, CsrRows) else None)
    for rows in ATOMS:
        np.testing.assert_array_equal(dense(source.take(rows)), X[rows])
    blocks = list(source.blocks(slice(3, 20), 7))
    assert [rows for rows, _ in blocks] == [slice(3, 10), slice(10, 17), slice(17, 20)]
    np.testing.assert_array_equal(np.concatenate([dense(block) for _, block in blocks]), X[3:20])


@every_source
@pytest.mark.parametrize("rows", [None, slice(5, 30), np.array([4, 2, 2])])
def test_predictions(source, rows):
    linear = LinearPredictors(rng.normal(size=(P, 3, 2)), rng.normal(size=(3, 2)), rng.normal(size=P))
    seen = X if rows is None else X[rows]
    expected = np.einsum("np,pmq->mnq", seen - linear.origin, linear.coef) + linear.at_origin[:, None]
    np.testing.assert_allclose(to_host(source.predict(linear, rows)), expected, rtol=1e-12, atol=1e-12)


@every_dense
def test_moments_and_ranges(source):
    weights = rng.uniform(size=N)
    summed = source.moments(source.send(Y, "y"), ATOMS, source.send(weights, "weights"))
    low, high = source.ranges(ATOMS, np.array([3, 0]))
    for a, rows in enumerate(ATOMS):
        moments, read = summed[a]
        assert read >= len(X[rows]) == moments.rows
        np.testing.assert_allclose(
            moments.mean, np.average(np.c_[X, Y][rows], axis=0, weights=weights[rows]), rtol=1e-12
        )
        np.testing.assert_array_equal(low[a], X[rows][:, [3, 0]].min(axis=0))
        np.testing.assert_array_equal(high[a], X[rows][:, [3, 0]].max(axis=0))


def test_sparse_rows_have_no_moments():
    for work in (lambda s: s.moments(Y, ATOMS), lambda s: s.ranges(ATOMS, np.arange(2))):
        with pytest.raises(Unsupported, match="X is sparse"):
            work(SOURCES["CSR"])


@every_source
def test_numbers_are_sent_where_the_rows_lie(source):
    for numbers in (np.array([1, 0, 1]), np.array([0.5, 2.0])):
        np.testing.assert_array_equal(to_host(source.send_numbers(numbers, "y")), numbers)
    assert source.send(None, "weights") is source.send_numbers(None, "weights") is None


@every_source
def test_a_sample_of_the_rows(source):
    sample = source.sample(np.array([3, 5, 40]))
    if isinstance(source, DeviceRows):
        assert sample is None
    else:
        np.testing.assert_array_equal(dense(sample.take(slice(0, 3))), X[[3, 5, 40]])


@every_source
def test_merged_features_give_the_rows_back(source):
    Z, basis = source.merge_features()
    if basis is None:
        assert Z is source
    else:
        np.testing.assert_allclose((Z.X @ basis.T).toarray(), X, rtol=1e-12)


# The registry


def test_every_kind_of_x_has_a_source():
    for given, kind in (
        (X, NumPyRows), (pd.DataFrame(X), NumPyRows), (there(X), DeviceRows), (sp.coo_array(X), CsrRows),
    ):  # fmt: skip
        assert type(as_row_source(given)) is kind
    assert as_row_source(SOURCES["CSR"]) is wrap_rows(SOURCES["CSR"]) is SOURCES["CSR"]
    with pytest.raises(Unsupported, match="X is a list"):
        as_row_source(X.tolist())


def test_the_latest_registration_counts_until_it_is_taken_back():
    def first(X):
        return NumPyRows(X + 1.0)

    def second(X):
        return NumPyRows(X + 2.0)

    for factory in (first, second):
        register_row_source(lambda X: isinstance(X, np.ndarray), factory)
    try:
        assert as_row_source(X).take(slice(0, 1))[0, 0] == X[0, 0] + 2.0
        unregister_row_source(second)
        assert as_row_source(X).take(slice(0, 1))[0, 0] == X[0, 0] + 1.0
    finally:
        unregister_row_source(first)
        unregister_row_source(second)
    assert as_row_source(X).take(slice(0, 1))[0, 0] == X[0, 0]
