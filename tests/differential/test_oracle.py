"""The oracle by other routes: exact rational arithmetic, and scikit-learn on well conditioned problems."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_regression
from sklearn.linear_model import Lasso, LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

from tests._covering import covering
from tests.differential import _oracle
from tests.differential._optimum import at_the_optimum
from tests.differential._options import Options
from tests.differential._problem import Problem, weighable_steps
from tests.differential._recipe import Recipe
from tests.differential._register import case_named
from tests.differential._splits import Splits
from tests.differential._truth import Truth

pytestmark = pytest.mark.skipif(
    not _oracle.AVAILABLE, reason="longdouble is no more precise than float64 here"
)


def _solve_exactly(A: list[list[Fraction]], b: list[Fraction]) -> list[Fraction]:
    """Gauss-Jordan elimination of rational numbers."""
    rows = [[*row, right] for row, right in zip(A, b, strict=True)]
    for i in range(len(rows)):
        pivot = next(r for r in range(i, len(rows)) if rows[r][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for r in range(len(rows)):
            if r != i:
                rows[r] = [a - rows[r][i] * c for a, c in zip(rows[r], rows[i], strict=True)]
    return [row[-1] for row in rows]


def _ridge_exactly(X: np.ndarray, y: np.ndarray, alpha: float) -> list[Fraction]:
    columns = [[Fraction(float(v)) for v in column] for column in X.T]
    target = [Fraction(float(v)) for v in y]
    gram = [[sum(a * b for a, b in zip(c, d, strict=True)) for d in columns] for c in columns]
    for i in range(len(gram)):
        gram[i][i] += Fraction(alpha)
    return _solve_exactly(gram, [sum(a * b for a, b in zip(c, target, strict=True)) for c in columns])


@pytest.mark.filterwarnings("ignore:.*ll-conditioned matrix")  # it is the point
@pytest.mark.parametrize("alpha", [0.0, 1e-9, 1e-3])
def test_hilbert_matrix_by_rational_arithmetic(alpha: float) -> None:
    X = 1.0 / (1.0 + np.arange(12)[:, None] + np.arange(7))
    y = np.cos(np.arange(12.0))
    model = Ridge(alpha, fit_intercept=False)
    coef = _ridge_exactly(X, y, alpha)
    exact = np.array([float(sum(c * Fraction(float(v)) for c, v in zip(coef, x, strict=True))) for x in X])
    ours = _oracle.predict(model, X, y, X).astype(float)
    theirs = model.fit(X, y).predict(X)
    assert np.abs(ours - exact).max() < 1e-9
    assert np.abs(ours - exact).max() < np.abs(theirs - exact).max() / 50


def _squares_exactly(X: np.ndarray, t: np.ndarray, c: np.ndarray) -> np.ndarray:
    """What minimises ``|w|^2 / 2 + sum_i c_i (t_i - x_i w)^2``, rounded."""
    rows = [[Fraction(float(v)) for v in x] for x in X]
    twice, target = ([k * Fraction(float(v)) for v in a] for k, a in ((2, c), (1, t)))
    p = range(X.shape[1])
    A = [[sum(k * x[i] * x[j] for k, x in zip(twice, rows, strict=True)) + (i == j) for j in p] for i in p]
    b = [sum(k * x[i] * v for k, x, v in zip(twice, rows, target, strict=True)) for i in p]
    return np.array([float(v) for v in _solve_exactly(A, b)])


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e7])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_squared_hinge_by_rational_arithmetic(n_classes: int, scale: float) -> None:
    """The rows short of their margin decide alone, so the solution of these is the optimum's."""
    rng = np.random.default_rng(3)
    X, y = scale * rng.normal(size=(25, 3)), rng.integers(0, n_classes, 25)
    weights, of_class = rng.integers(0, 3, 25), np.array([3.0, 2.0, 0.5])[:n_classes]
    model = LinearSVC(C=0.5, dual=False, class_weight=dict(enumerate(of_class)), intercept_scaling=4.0)
    fitted = at_the_optimum(model).fit(X, y, sample_weight=weights)
    Z, W = np.c_[X, np.full(25, 4.0)], np.c_[fitted.coef_, fitted.intercept_ / 4.0]
    for k, w in enumerate(W, start=n_classes == 2):
        side = np.where(y == k, 1.0, -1.0)
        rest = of_class[0] if n_classes == 2 else 1.0
        near = side * (Z @ w) < 1
        c = 0.5 * weights * np.where(y == k, of_class[k], rest)
        np.testing.assert_allclose(w, _squares_exactly(Z[near], side[near], c[near]), rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e7])
def test_squared_epsilon_insensitive_by_rational_arithmetic(scale: float) -> None:
    rng = np.random.default_rng(3)
    X, y, weights = scale * rng.normal(size=(25, 3)), rng.normal(size=25), rng.integers(0, 3, 25)
    model = LinearSVR(C=0.5, epsilon=0.25, loss="squared_epsilon_insensitive", fit_intercept=False)
    w = at_the_optimum(model.set_params(dual=False)).fit(X, y, sample_weight=weights).coef_
    apart = X @ w - y
    near = np.abs(apart) > 0.25
    nearest = (y + 0.25 * np.sign(apart))[near]
    np.testing.assert_allclose(w, _squares_exactly(X[near], nearest, 0.5 * weights[near]), rtol=1e-12)


ESTIMATORS = [
    Ridge(0.5),
    Ridge(0.5, fit_intercept=False),
    LinearRegression(),
    make_pipeline(StandardScaler(), Ridge(2.0)),
    make_pipeline(StandardScaler(with_mean=False), PCA(2, whiten=True), Ridge(2.0)),
    make_pipeline(make_pipeline(StandardScaler(), PCA(0.7)), "passthrough", LinearRegression()),
    make_pipeline(VarianceThreshold(0.01), SelectKBest(f_regression, k=2), LinearRegression()),
]


@pytest.mark.parametrize(
    ("estimator", "n", "outputs"), covering(ESTIMATORS, [30, 5], [[], [1], [2]], strength=1)
)
def test_well_conditioned_as_scikit_learn(estimator: Any, n: int, outputs: list[int]) -> None:
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(n, 6)) * np.linspace(0.5, 2.0, 6), rng.normal(size=(4, 6))
    selects = "SelectKBest" in repr(estimator)
    y = rng.normal(size=(n, *([] if selects else outputs)))
    theirs = clone(estimator).fit(X, y).predict(new)
    ours = _oracle.predict(estimator, X, y, new).astype(float)
    # scikit-learn's Ridge answers a column with a vector.
    np.testing.assert_allclose(ours.reshape(theirs.shape), theirs, rtol=1e-9, atol=1e-9)


def test_weights_reach_their_steps() -> None:
    rng = np.random.default_rng(1)
    X, y, w = rng.normal(size=(20, 3)), rng.normal(size=20), rng.uniform(size=20)
    estimator = make_pipeline(StandardScaler(), Ridge(5.0))
    both = {"standardscaler__sample_weight": w, "ridge__sample_weight": w}
    for chosen in ({}, dict([*both.items()][:1]), dict([*both.items()][1:]), both):
        paths = {name.removesuffix("__sample_weight"): w for name in chosen}
        theirs = clone(estimator).fit(X, y, **chosen).predict(X)
        np.testing.assert_allclose(
            _oracle.predict(estimator, X, y, X, paths).astype(float), theirs, rtol=1e-10
        )


GIVEN = [
    *(("GroupKFold", weights, routing) for weights in (None, "random") for routing in (False, True)),
    # How the rows of a split are written has nothing to do with who is given weights.
    ("masks", "random", False),
    ("generator", "random", False),
]


@pytest.mark.parametrize(
    ("estimator", "splits", "weights", "routing"),
    covering([Ridge(), make_pipeline(StandardScaler(), Ridge())], GIVEN, strength=1),
)
def test_truth_of_a_search(estimator: Any, splits: str, weights: str | None, routing: bool) -> None:
    """Weights, routing and groups reach the more precise route as they reach scikit-learn."""
    path = "ridge__" if weighable(estimator) == ["standardscaler", "ridge"] else ""
    options = Options(("r2",), routing=routing, weighted="last", weighted_scores=(routing,))
    recipe = Recipe(n=20, p=3, weights=weights, form="pandas")
    case, grid = case_named("scaler, ridge"), {f"{path}alpha": [0.1, 10.0]}
    problem = Problem(case, estimator, grid, recipe, Splits(splits, 3, 0), options)
    theirs = problem.run(GridSearchCV).results
    truth = Truth(problem)
    for results in (truth.results, *truth.scatter):
        np.testing.assert_allclose(results["split1_test_score"], theirs["split1_test_score"], rtol=1e-10)
    assert any(np.any(s["mean_test_score"] != theirs["mean_test_score"]) for s in truth.scatter)


def weighable(estimator: Any) -> list[str]:
    return [path for path, _ in weighable_steps(estimator)]


def test_svd_is_orthogonal_and_reconstructs() -> None:
    A = 1.0 / (1.0 + np.arange(9)[:, None] + np.arange(9)).astype(np.longdouble)
    U, s, Vt = _oracle.svd(A)
    assert np.abs(U * s @ Vt - A).max() < 1e-17
    assert np.abs(U.T @ U - np.eye(9)).max() < 1e-15
    assert np.all(np.diff(s) <= 0)


@pytest.mark.parametrize(
    "estimator", [Lasso(), Ridge(solver="lsqr"), make_pipeline(PCA(svd_solver="arpack"), Ridge())]
)
def test_unknown_estimators_are_named(estimator: Any) -> None:
    X, y = np.eye(4), np.arange(4.0)
    with pytest.raises(_oracle.Unknown, match="Lasso|lsqr|arpack"):
        _oracle.predict(estimator, X, y, X)
