"""Condensed features give back the others, and every penalised optimum."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from manyfit.folds.rows._csr import merge_rare_features

rng = np.random.default_rng(0)


def hashed(n=40, common=6, alone=25, size=1.0):
    """Few columns of many rows, empty ones, many that one row has."""
    X = sp.random(n, common, density=0.4, random_state=0, format="csr")
    value = size * rng.normal(size=alone)
    own = sp.csr_array((value, (rng.integers(0, n // 2, alone), np.arange(alone))), shape=(n, alone))
    return sp.csr_array(sp.hstack([own, sp.csr_array((n, 3)), X]))


def with_zeros():
    X = hashed()
    X.data[::4] = 0.0
    return X


def with_duplicates():
    """Every value in two halves, as CSR may have it."""
    X = hashed()
    return sp.csr_array((np.repeat(X.data, 2) / 2, np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)


def apart():
    """Values of one row that no square of both could hold."""
    return sp.csr_array(np.array([[1e-200, 3e200, 0.0, 1e200], [0.0, 0.0, 2e-200, 0.0]]))


CASES = {
    "hashed": hashed(),
    "tiny": hashed(size=1e-200),
    "huge": hashed(size=1e200),
    "apart": apart(),
    "explicit zeros": with_zeros(),
    "duplicates": with_duplicates(),
    "only zeros that are stored": sp.csr_array((np.zeros(3), ([0, 1, 1], [0, 1, 2])), shape=(4, 5)),
    "empty": sp.csr_array((4, 5)),
    "one row": sp.csr_array(np.array([[1.0, 0.0, -2.0]])),
    "nothing to do": sp.csr_array(np.ones((3, 2))),
    "float32": hashed().astype(np.float32),
    "int": sp.csr_matrix(np.array([[1, 2, 0], [0, 0, 5], [0, 0, 4]])),
}


@pytest.mark.parametrize("X", CASES.values(), ids=CASES)
def test_nothing_is_lost(X):
    before = X.copy()
    Z, T = merge_rare_features(X)
    assert (Z.shape[0], Z.shape[1]) == (X.shape[0], T.shape[1])
    assert T.shape[0] == X.shape[1]
    full = X.toarray().astype(np.float64)
    size = np.abs(full).max(axis=1, keepdims=True)
    unit = np.where(size > 0, size, 1.0)
    np.testing.assert_allclose((Z @ T.T).toarray() / unit, full / unit, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose((T.T @ T).toarray(), np.eye(T.shape[1]), rtol=0, atol=1e-14)
    np.testing.assert_array_equal(X.data, before.data)
    np.testing.assert_array_equal(X.indices, before.indices)


def test_columns_of_one_row_become_one():
    X = hashed()
    Z, _ = merge_rare_features(X)
    alone = np.bincount(X.indices, minlength=X.shape[1]) == 1
    rows_with_some = np.count_nonzero(abs(X[:, np.flatnonzero(alone)]).sum(axis=1))
    assert Z.shape[1] == np.count_nonzero(np.bincount(X.indices) > 1) + rows_with_some < alone.sum()
    assert merge_rare_features(Z)[0].shape == Z.shape


@pytest.mark.parametrize("name", ["hashed", "explicit zeros", "duplicates"])
def test_a_penalised_optimum_is_the_same(name):
    X, y = CASES[name], rng.normal(size=40)
    Z, T = merge_rare_features(X)

    def ridge(A):
        A = A.toarray()
        return np.linalg.solve(A.T @ A + 0.3 * np.eye(A.shape[1]), A.T @ y)

    np.testing.assert_allclose(T @ ridge(Z), ridge(X), rtol=1e-10, atol=1e-12)
