"""Iterating families whose rows lie on a device: the answers on the host, and what crosses to get them."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor, TweedieRegressor
from sklearn.model_selection import KFold, ShuffleSplit, TimeSeriesSplit
from sklearn.svm import LinearSVC, LinearSVR

from manyfit.arrays import TransferCache, to_device, to_host, transfers
from manyfit.estimators import family_of
from manyfit.families.smooth.solver._losses import HalfBinomial
from manyfit.families.smooth.solver._objective import RowLoss
from manyfit.folds import PassData, Splits, wrap_rows
from manyfit.folds.passes import _small_device
from tests._covering import spread
from tests.behaviour.metrics._crossings import crossings, there

rng = np.random.default_rng(0)
N, P = 600, 6
X = rng.normal(size=(N, P)) * 10.0 ** np.arange(-1.5, 1.5, 0.5) + np.array([0.0, 1e4, 0.0, -3.0, 50.0, 1e3])
SIGNAL = ((X - X.mean(axis=0)) / X.std(axis=0)) @ rng.normal(size=P)
TWO = np.array(["yes", "no"])[(SIGNAL + rng.normal(size=N) > 0).astype(int)]
THREE = np.digitize(SIGNAL + rng.normal(size=N), [-1.5, 2.0])
COUNTS = rng.poisson(np.exp(SIGNAL / 4))
WEIGHT = rng.random(N).round(2)
CS, ALPHAS = [1e-3, 0.1, 3.0], [1e-3, 0.1, 1.0]
HALVES = ShuffleSplit(2, test_size=0.5, random_state=0)
SHUFFLED = KFold(3, shuffle=True, random_state=0)


@dataclass(frozen=True)
class Case:
    """Settings of an estimator, and data."""

    estimator: object
    y: np.ndarray
    cv: object = KFold(3)
    weight: np.ndarray | None = None
    dtype: object = np.float64

    def fit(self, X, y=None):
        name, values = ("C", CS) if hasattr(self.estimator, "C") else ("alpha", ALPHAS)
        splits = Splits.draw(self.cv, np.empty((N, 1)), self.y, N, {})
        k = self.cv.get_n_splits()
        data = PassData(X, self.y if y is None else y, splits.atom_groups, self.weight, [None] * k)
        settings = [{name: value} for value in values]
        return list(family_of(type(self.estimator)).fit_many(self.estimator, settings, data))

    def rows(self, X):
        return X.astype(self.dtype)


CASES = {
    "two classes": Case(LogisticRegression(tol=1e-9), TWO),
    "two classes, weights": Case(
        LogisticRegression(tol=1e-9, class_weight="balanced"), TWO, SHUFFLED, WEIGHT
    ),
    "two classes, float32": Case(LogisticRegression(tol=1e-9), TWO, TimeSeriesSplit(3), dtype=np.float32),
    "two classes, no intercept": Case(LogisticRegression(tol=1e-9, fit_intercept=False), TWO, HALVES),
    "three classes": Case(LogisticRegression(tol=1e-9), THREE),
    "three classes, weights": Case(
        LogisticRegression(tol=1e-9, class_weight={0: 1.0, 1: 2.0, 2: 0.5}), THREE, HALVES, WEIGHT
    ),
    "hinge": Case(LinearSVC(tol=1e-9), TWO, weight=WEIGHT),
    "hinge, three classes": Case(LinearSVC(tol=1e-9, class_weight="balanced"), THREE, HALVES),
    "insensitive": Case(LinearSVR(loss="squared_epsilon_insensitive", tol=1e-9, epsilon=0.3), SIGNAL),
    "poisson": Case(PoissonRegressor(tol=1e-9), COUNTS, SHUFFLED, WEIGHT),
    "gamma": Case(GammaRegressor(tol=1e-9), COUNTS + 0.5),
    "tweedie": Case(TweedieRegressor(power=1.5, tol=1e-9), COUNTS, HALVES),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def alike(found, expected):
    for one, other in zip(expected, found, strict=True):
        assert not one.refused and not other.refused
        scale = one.linear.coef.std(axis=(1, 2), keepdims=True) + np.abs(one.linear.coef)
        # Both have a gradient of tol / 100; the smallest penalty holds a coefficient to 1e3 of that.
        np.testing.assert_allclose(other.linear.coef / scale, one.linear.coef / scale, rtol=0, atol=1e-7)
        np.testing.assert_array_equal(other.linear.origin, one.linear.origin)


@pytest.mark.cases(3)
@pytest.mark.invariant("An iterating family gives a device's data the host's answers")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_answers_are_those_on_the_host_which_waits_at_most_twice_an_iteration(case, steps):
    own = case.rows(X)
    away = there(own)
    with crossings() as crossed, transfers() as moved:
        found = case.fit(away)
    assert 0 < crossed["to_device"] == moved.synchronisations <= 2 * len(steps)
    assert set(crossed) == {"to_device", "bytes"}
    assert crossed["bytes"] == moved.bytes_to_host
    alike(found, case.fit(own))


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    "name", spread(["two classes, weights", "two classes, float32", "three classes", "poisson"], 2)
)
def test_answers_in_any_library(xp, device, name):
    case = CASES[name]
    own = case.rows(X)
    alike(case.fit(to_device(own, device, xp)), case.fit(own))


@pytest.mark.invariant("Iterating families neither transfer nor copy the rows of a device")
def test_nothing_of_the_size_of_the_rows_crosses_or_is_copied(monkeypatch):
    """Of an X that is not small: here, one for which the limit of a small one is too low."""
    n, p = 40_000, 30
    monkeypatch.setattr(_small_device, "SMALL_VALUES", n * p)
    big = rng.normal(size=(n, p))
    y = (big[:, 0] + rng.normal(size=n) > 0).astype(int)
    away = there(big)
    splits = Splits.draw(KFold(3), np.empty((n, 1)), y, n, {})
    data = PassData(away, there(y), splits.atom_groups, None, [None] * 3)
    tracemalloc.start()
    try:
        with transfers() as moved:
            answers = list(
                family_of(LogisticRegression).fit_many(
                    LogisticRegression(class_weight="balanced"), [{"C": c} for c in CS], data
                )
            )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert not any(one.refused for one in answers)
    # y comes home; labels and codes go there.
    assert moved.bytes_to_host < y.nbytes + 200_000 < big.nbytes / 8
    assert moved.bytes_to_device < 2 * y.nbytes + n * 8 * 2 < big.nbytes / 3
    assert peak < big.nbytes


@pytest.mark.cases(2)
@pytest.mark.parametrize("y", spread({"integers": THREE, "floats": THREE + 0.5, "counts": COUNTS}.items(), 2))
def test_targets_of_a_device_are_those_of_the_host(y, xp, device):
    case = Case(PoissonRegressor() if y is COUNTS else LinearSVC(), y)
    away = to_device(X, device, xp)
    for one, other in zip(case.fit(away), case.fit(away, to_device(y, device, xp)), strict=True):
        np.testing.assert_array_equal(other.linear.coef, one.linear.coef)
        assert other.classes is None or other.classes.tolist() == one.classes.tolist()


class Scored:
    """Rows to score, wherever they lie."""

    def __init__(self, rows):
        self.own = rows

    def rows(self, role):
        return self.own


@pytest.mark.cases(4)
@pytest.mark.parametrize("name", ["two classes", "two classes, float32", "three classes", "hinge", "poisson"])
def test_responses_lie_where_the_rows_do(xp, device, name):
    case = CASES[name]
    own = case.rows(X)
    answers = case.fit(own)[0]
    expected = answers.respond("test", Scored(own))
    found = answers.respond("test", Scored(to_device(own, device, xp)))
    assert set(found) == set(expected)
    for method, values in found.items():
        home = to_host(values)
        if method == "predict" and answers.classes is not None and not isinstance(values, np.ndarray):
            assert home.dtype == np.int64
            home = answers.classes[home]
        assert home.dtype == expected[method].dtype and home.shape == expected[method].shape
        if home.dtype.kind == "f":
            tol = 1e-12 if home.dtype == np.float64 else 1e-5
            np.testing.assert_allclose(home, expected[method], rtol=tol, atol=tol)
        else:
            np.testing.assert_array_equal(home, expected[method])


@pytest.mark.parametrize("name", ["two classes", "three classes"])
def test_labels_in_doubt_are_counted_where_the_rows_lie(name):
    answers = CASES[name].fit(X)[0]
    error = answers.fitted.error
    unsure = replace(error, coef=1e-2 * rng.normal(size=error.coef.shape))
    answers = replace(answers, fitted=replace(answers.fitted, error=unsure))
    expected = answers.near_boundary("test", Scored(X))
    assert (expected > 0).all() and (expected < N).all()
    with crossings() as crossed:
        found = answers.near_boundary("test", Scored(there(X)))
    assert not crossed["to_device"]
    np.testing.assert_array_equal(to_host(found), expected)


def test_weights_of_classes_go_there_once():
    rowwise = RowLoss(
        HalfBinomial(),
        (THREE == 1)[None].astype(float),
        None,
        np.array([[1.5, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        THREE,
    )
    beside = rowwise.beside(wrap_rows(there(X)))
    splits = np.array([1, 0, 1])
    Z = rng.normal(size=(1, 3, 10))
    expected = rowwise.gradient(Z.copy(), slice(5, 15), splits)
    own = there(Z)
    with transfers() as moved:
        found = beside.gradient(own, slice(5, 15), splits)
    assert moved.bytes_to_device == 0
    np.testing.assert_allclose(to_host(found), expected, rtol=1e-14)
    index = np.array([7, 3, 11])
    found = beside.curvature(there(Z[:, :, :3]), TransferCache(beside.targets)(index), splits)[0]
    np.testing.assert_allclose(to_host(found), rowwise.curvature(Z[:, :, :3], index, splits)[0], rtol=1e-14)
