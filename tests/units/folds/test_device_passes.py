"""Passes over rows of a device against those over the same rows on the host, and what crosses for them."""

from __future__ import annotations

import tracemalloc
import warnings

import array_api_strict
import numpy as np
import pytest

from manyfit.arrays import array_namespace, float_dtype, to_device, to_host, transfers
from manyfit.arrays import device as device_of
from manyfit.folds import NumPyRows, Unsupported, as_row_source, check_blas_threads, finite_middle
from manyfit.folds.moments._host import middle
from manyfit.folds.passes import _device as module
from manyfit.folds.passes import _small_device as small
from manyfit.folds.passes._dense import DensePasses
from manyfit.folds.passes._device import DevicePasses
from manyfit.folds.passes._small_device import SmallDevicePasses
from tests.behaviour.metrics._crossings import crossings, there
from tests.units.folds.test_passes import ATOMS, TARGETS, VALUES, M, N, P, every_atoms, one_and_three

rng = np.random.default_rng(0)
EVERY_X = {
    "float64": VALUES + 0.25,
    "float32": (VALUES + 0.25).astype(np.float32),
    "int8": VALUES.astype(np.int8),
    "far": VALUES + 1e6 + np.linspace(0.0, 1.0, N)[:, None],
}
every_x = pytest.mark.parametrize("X", EVERY_X.values(), ids=EVERY_X)


@pytest.fixture(autouse=True)
def _several_blocks(monkeypatch):
    monkeypatch.setattr(module, "LEAST_VALUES", 300)


class Rows:
    """Callbacks that read rows of targets, wherever the linear predictors are."""

    def __init__(self, like):
        xp = array_namespace(like)
        self.targets = xp.astype(to_device(TARGETS, device_of(like), xp), float_dtype(like))

    def of(self, rows):
        if isinstance(rows, slice) or isinstance(self.targets, np.ndarray):
            return self.targets[rows]
        return array_namespace(self.targets).take(self.targets, rows, axis=0)

    def residual(self, Z, rows, columns):
        """Of both the rows and the columns, and not the same for every output; in the memory of Z."""
        xp = array_namespace(Z)
        Z += self.of(rows)
        Z *= self.like(np.arange(1.0, Z.shape[0] + 1), Z)[:, None, None]
        return xp.tanh(Z) * self.like(1.0 + columns, Z)[:, None]

    def like(self, numbers, Z):
        xp = array_namespace(Z)
        return xp.asarray(numbers.tolist(), dtype=Z.dtype, device=device_of(Z))

    def curvature(self, Z, rows):
        """Positive curvatures, and what outputs have with each other."""
        xp, t = array_namespace(Z), self.of(rows)
        if Z.shape[0] == 1:
            return 1.0 / (1.0 + Z**2) + t**2, None
        P = xp.abs(xp.sin(Z)) + t**2
        return P * (xp.sum(P, axis=0) - P), P


every_class = pytest.mark.parametrize("cls", [DevicePasses, SmallDevicePasses])


def both(X, atoms, device, xp, cls=DevicePasses):
    """Passes on the host and there, each with its callbacks."""
    away = to_device(X, device, xp)
    return [(DensePasses(NumPyRows(X), atoms), Rows(np.ones(1))), (cls(away, atoms), Rows(away))]


def alike(found, expected, tol=1e-12):
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=tol, atol=tol * np.abs(expected).max())


@pytest.mark.cases(30)
@every_class
@every_x
@every_atoms
@one_and_three
def test_gradient(xp, device, X, atoms, K, cls):
    theta = rng.normal(size=(M, K, P + 1))
    counts = rng.choice([0.0, 1.0, 3.0], size=(M, len(atoms)))
    counts[0], counts[:, 0] = 0.0, [0.0, 0.0, 1.0, 3.0]
    found = []
    for passes, rows in both(X, atoms, device, xp, cls):
        before = theta.copy()
        found.append([passes.gradient(theta, c, rows.residual) for c in (counts, counts, counts + 1.0)])
        np.testing.assert_array_equal(theta, before)
        assert not found[-1][0][0].any()
    np.testing.assert_array_equal(passes.origin, middle(NumPyRows(X), np.empty((N, 0)), slice(0, N)))
    for own, expected in zip(*reversed(found), strict=True):
        alike(own, expected)


@pytest.mark.cases(30)
@every_class
@every_x
@every_atoms
@one_and_three
def test_hessians(xp, device, X, atoms, K, cls):
    theta, features = rng.normal(size=(1, K, P + 1)), np.array([3, 0])
    results = []
    for passes, rows in both(X, atoms, device, xp, cls):
        sums = [passes.gram(theta, rows.curvature, np.float64)]
        sums += [passes.gram(theta, rows.curvature, np.float64, features)]
        sums += [passes.squares(theta, rows.curvature), passes.gram(theta, rows.curvature, np.float32)]
        results.append(passes.to_host(sums))
    for expected, found in zip(*(one[:3] for one in results), strict=True):
        alike(found, expected)
    alike(results[1][3], results[0][3], 1e-5)  # single precision, in blocks of other sizes


@every_class
def test_outputs_that_are_apart(xp, device, cls):
    theta = rng.normal(size=(1, 3, P + 1))
    found = []
    for passes, rows in both(EVERY_X["float64"], ATOMS["indices"], device, xp, cls):
        found += passes.to_host(
            [passes.gram(theta, lambda Z, r, own=rows: (Z**2 + own.of(r) ** 2, None), float)]
        )
    alike(found[1], found[0])


def test_rows_that_are_read_are_counted_and_an_interrupt_is_asked_for():
    passes, theta = DevicePasses(there(EVERY_X["float64"]), ATOMS["slices"]), np.zeros((2, 1, P + 1))
    asked = []
    rows = Rows(passes.X)
    with check_blas_threads(lambda: asked.append(1)):
        passes.gradient(theta, np.array([[1.0, 0.0, 1.0], [1.0, 0.0, 0.0]]), rows.residual)
        assert passes.rows_read == N - 1  # nobody asks for the second atom
        passes.gram(theta[:1], rows.curvature, np.float64)
        passes.squares(theta[:1], rows.curvature)
    assert passes.rows_read == 3 * N - 1 and len(asked) == 3


@pytest.mark.invariant("The host waits for a device at most twice per iteration of all columns")
@every_class
@every_atoms
def test_the_host_waits_once_for_a_pass_and_an_index_is_sent_once(atoms, cls):
    passes, theta = cls(there(EVERY_X["float32"]), atoms), rng.normal(size=(M, 3, P + 1))
    rows, counts = Rows(passes.send(TARGETS)), rng.choice([0.0, 1.0], size=(M, len(atoms)))

    def residual(Z, own, columns):
        return Z - rows.of(own)

    def once(work, nbytes):
        with crossings() as crossed, transfers() as moved:
            work()
        assert crossed["to_device"] == moved.synchronisations == 1
        assert crossed["bytes"] == moved.bytes_to_host == nbytes
        return moved.bytes_to_device

    sent = once(lambda: passes.gradient(theta, counts, residual), theta.nbytes)
    if cls is SmallDevicePasses:
        assert sent == theta.nbytes + 3 * counts.nbytes
    assert once(lambda: passes.gradient(theta, counts, residual), theta.nbytes) == theta.nbytes
    d, one = 3 * (P + 1), theta[:1]

    def hessian():
        return passes.to_host(
            [passes.gram(one, rows.curvature, np.float32), passes.squares(one, rows.curvature)]
        )

    assert once(hessian, len(atoms) * (d**2 + d) * 8) == 2 * one.nbytes


def test_only_a_part_of_the_rows_is_worked_on_at_a_time(monkeypatch):
    n, p = 20_000, 40
    X = there(rng.normal(size=(n, p)))
    passes = DevicePasses(X, [slice(0, n // 2), np.arange(n // 2, n)])
    theta, size = rng.normal(size=(4, 1, p + 1)), n * p * 8
    tracemalloc.start()
    try:
        passes.gradient(theta, np.ones((4, 2)), lambda Z, rows, columns: Z)
        passes.gram(theta[:1], lambda Z, rows: (Z**2, None), np.float64)
        passes.squares(theta[:1], lambda Z, rows: (Z**2, None))
        finite_middle(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < size / 2


def test_a_look_takes_one_synchronisation():
    X = there(EVERY_X["far"])
    with crossings() as crossed:
        origin = finite_middle(X)
    assert crossed["to_device"] == 1
    np.testing.assert_array_equal(origin, middle(NumPyRows(EVERY_X["far"]), np.empty((N, 0)), slice(0, N)))


@pytest.mark.parametrize("n", [1, 2, 3, 14, 16])
def test_the_middle_of_few_rows(xp, device, n):
    X = rng.normal(size=(n, 2))
    np.testing.assert_array_equal(
        finite_middle(to_device(X, device, xp)), middle(NumPyRows(X), np.empty((n, 0)), slice(0, n))
    )


@pytest.mark.parametrize("n_columns", [1, 40])
def test_a_pass_of_few_columns_takes_few_calls(n_columns, watch):
    """Of more columns one block does not hold the numbers, so that each atom has blocks of its own."""
    passes = SmallDevicePasses(there(EVERY_X["float64"]), ATOMS["indices"])
    theta, counts = rng.normal(size=(n_columns, 1, P + 1)), np.ones((n_columns, 3))
    rows, read = Rows(passes.X), []
    most = N * (P + 4 * 10)

    def residual(Z, own, columns):
        read.append(Z.shape[2])
        return rows.residual(Z, own, columns)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small, "SMALL_VALUES", most)
        found = passes.gradient(theta, counts, residual)
    assert (read == [N]) is (n_columns == 1) and sum(read) == N
    alike(
        found,
        DensePasses(NumPyRows(EVERY_X["float64"]), ATOMS["indices"]).gradient(
            theta, counts, Rows(np.ones(1)).residual
        ),
    )


def test_rows_that_overflow_count_for_no_column_that_leaves_them_out(xp, device):
    X = EVERY_X["float64"].copy()
    X[-1] = 1e300
    atoms, counts = [slice(0, N - 1), slice(N - 1, N)], np.array([[1.0, 0.0], [2.0, 0.0]])
    theta, origin = np.ones((2, 1, P + 1)), np.zeros(P)
    passes = SmallDevicePasses(to_device(X, device, xp), atoms, origin)
    found = passes.gradient(theta, counts, lambda Z, rows, columns: Z**2)
    wanted = DensePasses(NumPyRows(X), atoms, origin).gradient(theta, counts, lambda Z, r, c: Z**2)
    alike(found, wanted)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 41])  # the first is among those that are looked at
def test_what_is_not_finite_is_found(xp, device, bad, row):
    X = EVERY_X["float64"].copy()
    X[row, 1] = bad
    for own in (X, to_device(X, device, xp)):
        with pytest.raises(Unsupported, match="X holds NaN, infinity or numbers near them"):
            finite_middle(own)


def test_sums_that_overflow_do_so_without_a_word(xp, device):
    X = rng.normal(size=(N, 2)) * 1e200
    passes = DevicePasses(to_device(X, device, xp), [slice(0, N)], np.zeros(2))
    rows = Rows(passes.send(np.ones(1)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grams = [passes.gram(np.zeros((1, 1, 3)), rows.curvature, t) for t in (np.float32, np.float64)]
        squares = passes.squares(np.zeros((1, 1, 3)), rows.curvature)
    assert not any(np.isfinite(one).all() for one in passes.to_host(grams))
    assert np.isinf(passes.to_host([squares])[0]).any()


def test_a_device_without_float64_computes_in_float32():
    X = array_api_strict.asarray(EVERY_X["float32"], device=array_api_strict.Device("no_float64"))
    passes = DevicePasses(X, ATOMS["indices"])
    host = DensePasses(NumPyRows(EVERY_X["float32"]), ATOMS["indices"])
    assert passes.eps == np.finfo(np.float32).eps and host.eps == np.finfo(np.float64).eps
    theta, one = rng.normal(size=(M, 1, P + 1)), np.ones((M, 3))
    own = passes.gradient(theta, one, lambda Z, rows, columns: 2.0 * Z)
    alike(own, host.gradient(theta, one, lambda Z, rows, columns: 2.0 * Z), 1e-5)
    squares = passes.to_host([passes.squares(theta[:1], lambda Z, rows: (Z**2, None))])[0]
    alike(squares, host.squares(theta[:1], lambda Z, rows: (Z**2, None)), 1e-5)


def test_some_rows(xp, device):
    X = EVERY_X["far"]
    for rows in (slice(0, N, 7), np.array([5, 2, 44])):
        away = DevicePasses(to_device(X, device, xp), ATOMS["one"])
        few = away.sample(rows)
        some, index = few.X, few.rows
        np.testing.assert_array_equal(to_host(some), DensePasses(NumPyRows(X), ATOMS["one"]).sample(rows).X)
        assert index == rows if isinstance(rows, slice) else (to_host(index) == rows).all()


class SparseThere:
    """A sparse matrix of a library that SciPy knows nothing of."""

    def tocsr(self):
        raise AssertionError


def test_sparse_rows_of_a_device_are_refused():
    with pytest.raises(Unsupported, match=r"X is a .*SparseThere: sparse rows are read on the host"):
        as_row_source(SparseThere())
