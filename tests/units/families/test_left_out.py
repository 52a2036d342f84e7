"""Residuals of rows left out of a ridge fit, against fits without them."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier, RidgeCV
from sklearn.metrics import make_scorer, mean_squared_error
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import KFold, LeaveOneOut

from manyfit.estimators import family_of
from manyfit.families.least_squares.left_out import _damped_inverse, _residuals
from manyfit.families.least_squares.left_out._residuals import HALF, bound_leverage
from manyfit.folds import FoldedMatrix, NumPyRows, Spectrum, Splits
from manyfit.model_selection import GridSearchCV
from tests._covering import covering

ALPHAS = [1e-3, 1.0, 50.0, 1.0]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 5)) * [0.1, 1.0, 1.0, 10.0, 3.0] + [0.0, 5.0, 0.0, -100.0, 0.0]
    return X, X @ rng.normal(size=5) + rng.normal(size=90)


def blocks(X, y, cv, estimator, alphas=ALPHAS):
    matrix = FoldedMatrix(X, y, Splits.draw(cv, X, y, len(X), {}))
    family = family_of(type(estimator))
    return matrix, list(family.leave_out(estimator, [{"alpha": alpha} for alpha in alphas], matrix))


@pytest.mark.cases(16)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("rotates", [True, False])
@pytest.mark.parametrize("cv", [LeaveOneOut(), KFold(20), KFold(7, shuffle=True, random_state=0)])
@pytest.mark.parametrize("alphas", [[1.0], ALPHAS])
@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("inverses", [0, 8])
def test_residuals_are_those_of_fits_without_the_rows(
    monkeypatch, data, cv, rotates, fit_intercept, alphas, bounded, inverses
):
    monkeypatch.setattr(_residuals, "_rotates", lambda *args: rotates)
    monkeypatch.setattr(_damped_inverse, "MOST_INVERSES", inverses)
    if not bounded:
        monkeypatch.setattr(_residuals, "bound_leverage", lambda *args: 1.0)
    monkeypatch.setattr(_residuals, "BLOCK_BYTES", 2000)  # several blocks
    X, y = data
    Y, estimator = np.column_stack([y, X[:, 1] ** 2]), Ridge(fit_intercept=fit_intercept)
    matrix, found = blocks(X, Y, cv, estimator, alphas)
    assert sorted(i for block in found for i in block.splits) == list(range(matrix.n_splits))
    for block in found:
        assert not block.merged.any()
        for place in range(0, len(block.splits), 9):
            train, test = matrix.splits.indices(block.splits[place])
            for j, alpha in enumerate(alphas):
                model = Ridge(alpha=alpha, fit_intercept=fit_intercept).fit(X[train], Y[train])
                expected = Y[test] - model.predict(X[test])
                np.testing.assert_allclose(block.residuals[place, :, j], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_rows", [1, 3])
def test_a_set_that_alone_tells_a_direction_is_not_answered(data, n_rows):
    X, y = data
    X = np.column_stack([X, np.arange(len(X)) < n_rows])
    cv = KFold(len(X) // 3) if n_rows == 3 else LeaveOneOut()
    for alpha, expected in ((1e-4, True), (1e4, False)):
        _, found = blocks(X, y, cv, Ridge(), [alpha])
        merged = np.concatenate([block.merged[:, 0] for block in found])
        assert merged.tolist() == [expected] + [False] * (len(merged) - 1)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("share", [0.2, 0.4, 0.6, 1.0])
def test_half_of_a_direction_is_the_most_that_a_part_may_hold(share, fit_intercept, weighted):
    """The bound is that of the largest eigenvalue of the hat matrix of any part."""
    rng = np.random.default_rng(0)
    X = 3.0 + rng.normal(size=(400, 4))
    X[:, 0] *= np.sqrt(np.repeat([1.0 - share, share], [300, 100]) * np.repeat([1.0, 3.0], [300, 100]))
    weights = rng.uniform(0.5, 2.0, 400) if weighted else np.ones(400)
    parts = [slice(start, start + 100) for start in range(0, 400, 100)]
    moments = [one for one, _ in NumPyRows(X).moments(np.zeros((400, 1)), parts, weights)]
    weight = weights.sum() if fit_intercept else 0.0
    centre = weights @ X / weight if fit_intercept else np.zeros(4)
    Z = (X - centre) * np.sqrt(weights)[:, None]
    A = Z.T @ Z + 0.1 * np.eye(4)
    bound = bound_leverage(A, moments[0].origin[:4] - centre, weight, moments)
    own = np.column_stack([Z, np.sqrt(weights)]) if fit_intercept else Z
    whole = own.T @ own
    whole[:4, :4] = A
    largest = max(np.linalg.eigvals(own[p] @ np.linalg.inv(whole) @ own[p].T).real.max() for p in parts)
    assert bound == (HALF if largest < HALF else 1.0)


def test_where_no_set_can_hold_much_no_random_vector_is_solved(monkeypatch, data):
    def no_random(*args):
        raise AssertionError("a random vector is drawn")

    monkeypatch.setattr(np.random, "default_rng", lambda seed: SimpleNamespace(standard_normal=no_random))
    X, y = data
    blocks(X, y, KFold(30), Ridge(), [1.0])
    X = np.column_stack([X, np.arange(len(X)) < 3])
    with pytest.raises(AssertionError, match="random"):
        blocks(X, y, KFold(30), Ridge(), [1e-4])


@pytest.mark.parametrize("rotates", [True, False])
@pytest.mark.parametrize("inverses", [True, False])
def test_inverses_of_damped_matrices(monkeypatch, rotates, inverses):
    monkeypatch.setattr(_damped_inverse, "MOST_INVERSES", 8 if inverses else 0)
    rng = np.random.default_rng(0)
    X, rhs, alphas = rng.normal(size=(30, 4)), rng.normal(size=(4, 2)), np.array([0.1, 2.0])
    S, floors = X.T @ X, _damped_inverse.Floors(1e-9, 0.0)
    found = _damped_inverse.damped_inverse(S, lambda: Spectrum.of(S), rhs, alphas, floors, rotates=rotates)
    exact = [np.linalg.inv(S + alpha * np.eye(4)) for alpha in alphas]
    turn = np.eye(4) if found.rotation is None else found.rotation
    np.testing.assert_allclose(found.coef @ turn.T, [(one @ rhs).T for one in exact], rtol=1e-12)
    U, place = rng.normal(size=(5, 3, 4)), np.array([0, 1, 0])
    expected = np.stack([U[:, j] @ exact[a] for j, a in enumerate(place)], axis=1)
    np.testing.assert_allclose(found.times(U @ turn, place) @ turn.T, expected, rtol=1e-12)
    expected = np.stack([((U @ one) ** 2).sum(axis=(1, 2)) for one in exact], axis=1)
    np.testing.assert_allclose(found.squares(U @ turn, np.arange(2)), expected, rtol=1e-12)
    values = np.linalg.eigvalsh(S)
    assert found.least <= (values[0] + 0.1) * (1 + 1e-12)
    assert found.largest >= (values[-1] + 0.1) * (1 - 1e-12)
    assert found.scale == pytest.approx(values[-1], rel=0.05)
    for poor in (_damped_inverse.Floors(0.9, 0.0), _damped_inverse.Floors(0.0, values[0] + 0.2)):
        args = S, lambda: Spectrum.of(S), rhs, alphas, poor
        assert _damped_inverse.damped_inverse(*args, rotates=rotates) is None


@pytest.mark.parametrize("squares", [True, False])
@pytest.mark.parametrize("alpha", [1e-6, 1e-5, 1e-4, 1e-2])
def test_a_direction_that_only_one_set_tells_is_seen_though_its_rows_are_fitted(squares, alpha):
    """An indicator of each set: its rows leave no residual along it, so only a random vector shows it."""
    rng = np.random.default_rng(0)
    sets = np.repeat(np.arange(60), 10)
    X = np.column_stack([rng.normal(size=(600, 3)), np.eye(60)[sets]])
    y = X[:, 0] + 3.0 * rng.normal(size=60)[sets] + rng.normal(size=600)
    matrix = FoldedMatrix(X, y, Splits.draw(KFold(60), X, y, 600, {}))
    (block,) = family_of(Ridge).leave_out(Ridge(), [{"alpha": alpha}], matrix, squares)
    assert block.merged.all()


@pytest.mark.cases(2)
@pytest.mark.parametrize("largest", [0.01, 0.3, 0.9])
@pytest.mark.parametrize("n_rows", [3, 40])
def test_sums_of_squares_are_exact_where_only_they_are_read(data, largest, n_rows):
    """Rows of any leverage, also such as conjugate gradients find only after many iterations."""
    rng = np.random.default_rng(n_rows)
    X = (
        rng.normal(size=(20 * n_rows, 12))
        * np.where(np.arange(20 * n_rows) < n_rows, 30.0 * largest, 1.0)[:, None]
    )
    y = X[:, 0] + rng.normal(size=len(X))
    matrix = FoldedMatrix(X, y, Splits.draw(KFold(20), X, y, len(X), {}))
    for block in family_of(Ridge).leave_out(Ridge(), [{"alpha": 1.0}, {"alpha": 30.0}], matrix, True):
        for place in np.flatnonzero(~block.merged.any(axis=1)):
            train, test = matrix.splits.indices(block.splits[place])
            for j, alpha in enumerate((1.0, 30.0)):
                expected = (
                    (y[test] - Ridge(alpha=alpha).fit(X[train], y[train]).predict(X[test])) ** 2
                ).sum()
                assert (block.residuals[place, :, j] ** 2).sum() == pytest.approx(expected, rel=5e-10)
    assert not block.merged.all()


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_products_of_few_columns_are_products(columns):
    rng = np.random.default_rng(0)
    Z, U = rng.normal(size=(7, 3, 6)), rng.normal(size=(7, columns, 6))
    for one in (U, U[:1]):
        np.testing.assert_allclose(_residuals._onto_rows(one, Z), one @ Z.transpose(0, 2, 1), atol=1e-12)


def test_rounding_that_could_change_a_score_is_found(data):
    X, _ = data
    _, found = blocks(X, X @ np.arange(5.0), KFold(30), Ridge(), [1e-9])
    assert all(block.lost.all() for block in found)


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("estimator", "grid", "scoring", "cv"),
    covering(
        [
            (Ridge(), {"alpha": ALPHAS}, ["neg_mean_squared_error", "neg_mean_absolute_error"]),
            (Ridge(), {"alpha": ALPHAS}, ["neg_root_mean_squared_error", "neg_max_error"]),
            (LinearRegression(), {"fit_intercept": [True]}, "neg_mean_squared_error"),
            (RidgeClassifier(), {"alpha": ALPHAS}, "accuracy"),
        ],
        [LeaveOneOut(), KFold(10)],
        strength=1,
    ),
)
def test_scores_are_those_of_scikit_learn(data, estimator, grid, scoring, cv):
    X, y = data
    X, y = X[:30], (y[:30] > np.median(y)) if isinstance(estimator, RidgeClassifier) else y[:30]
    ours, theirs = (
        one(estimator, grid, scoring=scoring, cv=cv, refit=False).fit(X, y)
        for one in (GridSearchCV, SklearnSearch)
    )
    assert ours.report_.passes <= 1.0
    assert ours.report_.fits_shared > 0.8 * ours.report_.fits_requested
    for name, values in theirs.cv_results_.items():
        if "test_" in name and "rank" not in name:
            np.testing.assert_allclose(ours.cv_results_[name], values, rtol=1e-9, atol=1e-9)


def test_r2_and_explained_variance_of_small_folds(data):
    X, y = data
    y = np.where(np.arange(len(y)) < 3, 1.0, y)  # constant in the first fold
    scoring = ["r2", "explained_variance"]
    ours, theirs = (
        one(Ridge(), {"alpha": [1.0]}, scoring=scoring, cv=30, refit=False).fit(X, y)
        for one in (GridSearchCV, SklearnSearch)
    )
    for name in scoring:
        for i in range(30):
            key = f"split{i}_test_{name}"
            np.testing.assert_allclose(ours.cv_results_[key], theirs.cv_results_[key], rtol=1e-9)


def test_training_scores_are_those_of_scikit_learn(data):
    ours, theirs = (
        one(Ridge(), {"alpha": ALPHAS}, cv=10, refit=False, return_train_score=True).fit(*data)
        for one in (GridSearchCV, SklearnSearch)
    )
    assert ours.report_.fits_done == 0
    for key in ("split3_train_score", "mean_train_score"):
        np.testing.assert_allclose(ours.cv_results_[key], theirs.cv_results_[key], rtol=1e-9)


def test_leave_one_out_finds_the_setting_of_ridge_cv(data):
    X, y = data
    alphas = np.logspace(-2, 3, 10)
    search = GridSearchCV(Ridge(), {"alpha": alphas}, cv=LeaveOneOut(), scoring="neg_mean_squared_error")
    search.fit(X, y)
    reference = RidgeCV(alphas).fit(X, y)
    assert search.best_params_ == {"alpha": reference.alpha_}
    assert search.best_score_ == pytest.approx(reference.best_score_, rel=1e-9)


def test_memory_for_the_moments_of_each_fold_is_not_needed(data):
    X, y = data
    search = GridSearchCV(
        Ridge(), {"alpha": [1.0]}, cv=30, scoring="neg_mean_squared_error", memory_limit=6000, refit=False
    )
    search.fit(X, y)
    assert search.report_.fits_shared == 30


def test_a_failure_is_named_and_left_to_scikit_learn(monkeypatch, data):
    def fail(*args):
        raise FloatingPointError("on purpose")

    monkeypatch.setattr(_residuals._Equations, "solve", fail)
    search = GridSearchCV(Ridge(), {"alpha": [1.0]}, cv=30, refit=False).fit(*data)
    assert search.report_.fits_shared == 0
    assert "on purpose" in next(iter(search.report_.left_to_sklearn))


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    ("cv", "fit_intercept", "rotates", "scored"),
    covering([LeaveOneOut(), KFold(9, shuffle=True, random_state=0)], *[[True, False]] * 3, strength=3),
)
def test_weights(monkeypatch, cv, fit_intercept, rotates, scored):
    monkeypatch.setattr(_residuals, "_rotates", lambda *args: rotates)
    monkeypatch.setattr(FoldedMatrix, "view", None)  # the moments of a training set are not asked for
    rng = np.random.default_rng(0)
    X = 1.0 + rng.normal(size=(36, 4))
    y = X[:, 0] + rng.normal(size=36)
    weights = rng.uniform(0.1, 3.0, len(X)) * (np.arange(len(X)) % 5 > 0)
    with config_context(enable_metadata_routing=True):
        scoring = make_scorer(mean_squared_error).set_score_request(sample_weight=scored)
        estimator = Ridge(fit_intercept=fit_intercept).set_fit_request(sample_weight=True)
        if isinstance(cv, LeaveOneOut):
            weights = weights + 0.1  # the mean of one square of no weight is not a number
        ours, theirs = (
            one(estimator, {"alpha": ALPHAS[:2]}, cv=cv, scoring=scoring, refit=False).fit(
                X, y, sample_weight=weights
            )
            for one in (GridSearchCV, SklearnSearch)
        )
    assert ours.report_.fits_shared == ours.report_.fits_requested
    for i in range(ours.n_splits_):
        name = f"split{i}_test_score"
        np.testing.assert_allclose(ours.cv_results_[name], theirs.cv_results_[name], rtol=1e-9)


def test_float32_takes_the_moments_of_each_fold(data):
    X, y = data
    ours, theirs = (
        one(Ridge(), {"alpha": [1.0]}, cv=30, scoring="neg_mean_squared_error", refit=False).fit(
            X.astype(np.float32), y
        )
        for one in (GridSearchCV, SklearnSearch)
    )
    # scikit-learn computes in float32.
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], rtol=1e-3
    )


@pytest.mark.parametrize("scoring", ["roc_auc", "average_precision"])
def test_rows_that_are_equal_tie_where_rows_are_ranked(scoring):
    """Residuals of equal rows with two labels have other rounding errors, which may not rank them."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (90, 3)).astype(float)
    y = (X[:, 0] + rng.normal(size=90) > 1).astype(int)
    both = [
        search(RidgeClassifier(), {"alpha": [0.1, 1.0, 10.0]}, scoring=scoring, cv=KFold(9))
        for search in (SklearnSearch, GridSearchCV)
    ]
    theirs, ours = (one.fit(X, y).cv_results_["mean_test_score"] for one in both)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    assert both[1].report_.fits_shared == 27


def test_a_singular_matrix_is_refused_without_a_warning():
    data = np.random.default_rng(1)
    X, y = data.normal(size=(20, 60)), data.normal(size=20)
    options = {"cv": LeaveOneOut(), "scoring": "neg_mean_squared_error", "refit": False}
    found, given = [], []
    for search in (GridSearchCV, SklearnSearch):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = search(Ridge(), {"alpha": [0.0, 1.0, 1e3]}, **options).fit(X, y)
        found.append(fitted.cv_results_["mean_test_score"])
        given.append({str(one.message) for one in caught})
    np.testing.assert_allclose(*found, rtol=1e-7)
    assert given[0] == given[1]
