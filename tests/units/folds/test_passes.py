"""Passes against the sums written out."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from manyfit.folds import AtomGroup, NumPyRows, Unsupported, as_row_source, require_classes
from manyfit.folds._mixed_matrix import MixedMatrix, OneHot
from manyfit.folds.passes._dense import GRAM_ROWS, DensePasses
from manyfit.folds.passes._device import DevicePasses
from manyfit.folds.passes._mixed import MixedPasses
from manyfit.folds.passes._sparse import SparsePasses
from tests.behaviour.metrics._crossings import there

rng = np.random.default_rng(0)
N, P, M = 60, 5, 4
VALUES = rng.integers(-3, 4, size=(N, P))
DENSE = {
    "float64": VALUES + 0.25,
    "float32": (VALUES + 0.25).astype(np.float32),
    "int8": VALUES.astype(np.int8),
    "Fortran": np.asfortranarray(VALUES + 0.25),
    "every other": np.repeat(VALUES + 0.25, 2, axis=0)[::2],
}
SPARSE = {
    "csr": sp.csr_array(VALUES * 0.5),
    "float32": sp.csr_matrix(VALUES.astype(np.float32)),
    "int": sp.csr_array(VALUES),
    "empty": sp.csr_array((N, P)),
}
# Numbers are columns 2 and 5; all others are one-hot.
MIXED = MixedMatrix(
    VALUES[:, :2] + 0.25,
    np.array([2, 5]),
    (
        OneHot(0, 2, VALUES[:, 2] % 2),
        OneHot(3, 2, (VALUES[:, 3] > 0).astype(int)),
        OneHot(6, 1, 0 * VALUES[:, 4]),
    ),
)
order = rng.permutation(N)
ATOMS = {
    "one": [slice(0, N)],
    "slices": [slice(0, 20), slice(20, 21), slice(21, N)],
    "indices": [np.sort(order[:7]), np.sort(order[7:40]), np.sort(order[40:])],
    "not all": [np.array([3]), slice(10, 50)],
}
TARGETS = rng.normal(size=N)


def residual(Z, rows, columns):
    """Of both the rows and the columns, and not the same for every output; in the memory of Z."""
    Z += TARGETS[rows]
    Z *= np.arange(1.0, len(Z) + 1)[:, None, None]
    return np.tanh(Z, out=Z) * (1.0 + columns)[:, None]


def bounded(Z, rows):
    """Positive curvatures, and what outputs have with each other."""
    if len(Z) == 1:
        return 1.0 / (1.0 + Z**2) + TARGETS[rows] ** 2, None
    P = np.abs(np.sin(Z)) + TARGETS[rows] ** 2
    return P * (P.sum(axis=0) - P), P


def made(X, atoms):
    if isinstance(X, MixedMatrix):
        return MixedPasses(X, atoms, np.arange(X.shape[1]) / 4.0)
    return SparsePasses(X, atoms) if sp.issparse(X) else DensePasses(NumPyRows(X), atoms)


def with_ones(X, passes):
    full = X.dense() if isinstance(X, MixedMatrix) else X.toarray() if sp.issparse(X) else X
    return np.c_[np.asarray(full, dtype=np.float64) - passes.origin, np.ones(full.shape[0])]


def expected_gradient(A, atoms, theta, counts):
    out = np.zeros(theta.shape)
    for j in range(len(theta)):
        for a, rows in enumerate(atoms):
            Z = (A[rows] @ theta[j].T).T[:, None]
            out[j] += counts[j, a] * residual(Z, rows, np.array([j]))[:, 0] @ A[rows]
    return out


def expected_gram(A, rows, theta):
    (_, K, d), B = theta.shape, A[rows]
    D, among = bounded((theta[0] @ B.T)[:, None], rows)
    out = np.zeros((K, d, K, d))
    for k in range(K):
        for j in range(K):
            weights = D[k, 0] if k == j else -among[k, 0] * among[j, 0]
            out[k, :, j] = (B * weights[:, None]).T @ B
    return out.reshape(K * d, K * d)


EVERY_X = [pytest.param(X, id=f"dense {name}") for name, X in DENSE.items()]
EVERY_X += [pytest.param(X, id=f"sparse {name}") for name, X in SPARSE.items()]
EVERY_X += [pytest.param(MIXED, id="mixed")]
every_x = pytest.mark.parametrize("X", EVERY_X)
every_atoms = pytest.mark.parametrize("atoms", ATOMS.values(), ids=ATOMS)
one_and_three = pytest.mark.parametrize("K", [1, 3])


@every_x
@every_atoms
@one_and_three
def test_gradient(X, atoms, K):
    theta = rng.normal(size=(M, K, X.shape[1] + 1))
    counts = rng.choice([0.0, 1.0, 3.0], size=(M, len(atoms)))
    counts[0], counts[:, 0] = 0.0, [0.0, 0.0, 1.0, 3.0]
    passes = made(X, atoms)
    before = theta.copy()
    got = passes.gradient(theta, counts, residual)
    expected = expected_gradient(with_ones(X, passes), atoms, theta, counts)
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(theta, before)
    assert not got[0].any()


@pytest.mark.parametrize("X", [DENSE["float64"], SPARSE["csr"]], ids=["dense", "sparse"])
def test_an_atom_that_nobody_uses_is_not_read(X):
    seen = []

    def spy(Z, rows, columns):
        seen.append((rows.start, list(columns)))
        return Z

    counts = np.array([[0.0, 1.0], [0.0, 0.0], [0.0, 3.0]])
    made(X, [slice(0, 30), slice(30, N)]).gradient(np.ones((3, 1, P + 1)), counts, spy)
    assert seen == [(30, [0, 2])]


@pytest.mark.cases(48)
@every_x
@every_atoms
@one_and_three
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gram_and_its_diagonal(X, atoms, K, dtype):
    theta = rng.normal(size=(1, K, X.shape[1] + 1))
    passes = made(X, atoms)
    A = with_ones(X, passes)
    gram, squares = passes.gram(theta, bounded, dtype), passes.squares(theta, bounded)
    assert gram.dtype == squares.dtype == np.float64
    for a, rows in enumerate(atoms):
        expected = expected_gram(A, rows, theta)
        tol = 1e-12 if dtype == np.float64 or sp.issparse(X) else 1e-5  # single precision
        if getattr(X, "dtype", None) == np.float32:
            tol = max(tol, 1e-6)  # sparse: in the precision of X
        np.testing.assert_allclose(gram[a], expected, rtol=tol, atol=tol * np.abs(expected).max())
        np.testing.assert_allclose(squares[a], np.diagonal(expected), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("X", [DENSE["float64"], SPARSE["csr"], MIXED], ids=["dense", "sparse", "mixed"])
@pytest.mark.parametrize("K", [1, 3])
def test_gram_by_some_features(X, K):
    p = X.shape[1]
    theta, passes = rng.normal(size=(1, K, p + 1)), made(X, ATOMS["indices"])
    features, dtype = np.array([3, 0]), np.float64
    full = passes.gram(theta, bounded, dtype).reshape(3, K, p + 1, K, p + 1)
    some = np.append(features, p)
    expected = full[:, :, some][:, :, :, :, some].reshape(3, K * 3, K * 3)
    np.testing.assert_allclose(passes.gram(theta, bounded, dtype, features), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("X", [DENSE["float64"], SPARSE["csr"], MIXED], ids=["dense", "sparse", "mixed"])
def test_rows_that_are_read_are_counted(X):
    passes, theta = made(X, ATOMS["slices"]), np.zeros((2, 1, X.shape[1] + 1))
    passes.gradient(theta, np.array([[1.0, 0.0, 1.0], [1.0, 0.0, 0.0]]), residual)
    assert passes.rows_read == N - 1  # nobody asks for the second atom
    passes.gram(theta[:1], bounded, np.float64)
    passes.squares(theta[:1], bounded)
    assert passes.rows_read == 3 * N - 1


def test_a_sample_of_mixed_rows():
    passes, rows = made(MIXED, ATOMS["one"]), np.array([5, 2, 40])
    A, sample = with_ones(MIXED, passes)[rows], passes.sample(rows)
    theta = rng.normal(size=(M, A.shape[1]))
    np.testing.assert_allclose(sample.predictors(theta), theta @ A.T, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(sample.column_squares(), (A[:, :-1] ** 2).sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(sample.mean_square(), (A[:, :-1] ** 2).mean(), rtol=1e-12)
    assert sample.n_rows == 3


def test_far_columns_lose_no_digits():
    near = rng.normal(size=(N, P))
    far = near + 1e6
    passes = DensePasses(NumPyRows(far), [slice(0, N)])
    theta = rng.normal(size=(1, 1, P + 1))
    A = with_ones(far, passes)
    assert np.abs(A).max() < 10.0
    got = passes.gradient(theta, np.ones((1, 1)), residual)
    np.testing.assert_allclose(got, expected_gradient(A, [slice(0, N)], theta, np.ones((1, 1))), rtol=1e-12)
    gram = passes.gram(theta, bounded, np.float32)[0]
    np.testing.assert_allclose(gram, expected_gram(A, slice(0, N), theta), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("n", [1, 2, GRAM_ROWS, GRAM_ROWS + 1, 9000])
def test_any_number_of_blocks(n):
    X, y = rng.normal(size=(n, 2)), rng.normal(size=n)
    passes = DensePasses(NumPyRows(X), [slice(0, n)])
    theta = rng.normal(size=(2, 1, 3))
    got = passes.gradient(theta, np.ones((2, 1)), lambda Z, rows, columns: Z - y[rows])
    A = with_ones(X, passes)
    expected = (theta[:, 0] @ A.T - y) @ A
    np.testing.assert_allclose(got[:, 0], expected, rtol=1e-9, atol=1e-9 * n)
    gram = passes.gram(theta[:1], lambda Z, rows: (np.ones(Z.shape), None), np.float64)
    np.testing.assert_allclose(gram[0], A.T @ A, rtol=1e-10, atol=1e-10 * n)


def test_sums_that_overflow_do_so_without_a_word():
    X = rng.normal(size=(N, 2)) * 1e200
    passes = DensePasses(NumPyRows(X), [slice(0, N)], np.zeros(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dtype in (np.float32, np.float64):
            gram = passes.gram(np.zeros((1, 1, 3)), bounded, dtype)
            assert not np.isfinite(gram).all()
        assert np.isinf(passes.squares(np.zeros((1, 1, 3)), bounded)).any()


def test_passes_over_takes_dense_and_sparse():
    rows = [slice(0, N)]
    assert isinstance(as_row_source(DENSE["float64"]).passes(rows), DensePasses)
    assert isinstance(as_row_source(there(DENSE["float64"])).passes(rows), DevicePasses)
    assert isinstance(as_row_source(SPARSE["csr"]).passes(rows), SparsePasses)
    assert not as_row_source(SPARSE["csr"]).passes(rows).origin.any()


def test_every_training_part_needs_every_class():
    codes = np.array([0, 1, 0, 1, 2, 2])
    both = AtomGroup(
        range(2), [slice(0, 4), slice(4, 5), slice(5, 6)], np.array([[1, 1, 0], [1, 0, 1.0]]), None
    )
    require_classes(codes, 3, [both])
    only = AtomGroup(range(2, 3), [slice(0, 4), slice(4, 6)], np.array([[2.0, 0.0]]), None)
    with pytest.raises(Unsupported, match="a class is missing in a training part"):
        require_classes(codes, 3, [both, only])
    with pytest.raises(Unsupported, match="one class"):
        require_classes(np.zeros(6, dtype=int), 1, [both])
