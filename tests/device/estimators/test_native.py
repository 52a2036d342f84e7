"""Drop-in estimators that families fit where their data lie: scikit-learn's attributes and predictions."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn import linear_model, svm

import manyfit
from manyfit import estimators
from manyfit._compat import DEVICE_TAKES_HOST_INDICES
from manyfit.arrays import array_namespace, is_array, to_device, to_host
from manyfit.arrays import device as device_of
from manyfit.exceptions import HostFallbackError
from manyfit.introspection.class_names import sklearn_class_of
from tests._covering import covering
from tests.behaviour.metrics._crossings import crossings, there

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 6)) + 2.0
Y = X @ rng.normal(size=6) + rng.normal(size=400)
POSITIVE = np.exp(0.2 * Y) + 0.1
TWO = np.where(rng.random(400) < 0.9, np.median(Y) < Y, np.median(Y) > Y).astype(int)
THREE = np.digitize(Y + rng.normal(size=400), np.quantile(Y, [0.3, 0.6]))
NAMES = np.array(["low", "middle", "top"])[THREE]
TIGHT = {"tol": 1e-9, "max_iter": 100_000}
BALANCED = {"class_weight": "balanced"}
SQUARED = {"loss": "squared_epsilon_insensitive", "dual": False, **TIGHT}
METHODS = ("predict", "decision_function", "predict_proba", "predict_log_proba")

CASES = [
    (linear_model.Ridge, {}, Y, 1e-11),
    (linear_model.Ridge, {"alpha": 10.0, "fit_intercept": False}, Y, 1e-11),
    (linear_model.Ridge, {}, Y[:, None], 1e-11),
    (linear_model.Ridge, {}, np.c_[Y, POSITIVE], 1e-11),
    (linear_model.LinearRegression, {}, Y, 1e-11),
    (linear_model.LinearRegression, {"fit_intercept": False}, np.c_[Y, POSITIVE], 1e-11),
    (linear_model.LogisticRegression, TIGHT, TWO, 1e-6),
    (linear_model.LogisticRegression, {"fit_intercept": False, **BALANCED, **TIGHT}, TWO, 1e-6),
    (linear_model.LogisticRegression, TIGHT, THREE, 1e-6),
    (linear_model.LogisticRegression, TIGHT, NAMES, 1e-6),
    (linear_model.PoissonRegressor, TIGHT, POSITIVE, 1e-6),
    (linear_model.GammaRegressor, TIGHT, POSITIVE, 1e-6),
    (linear_model.TweedieRegressor, {"power": 1.5, "fit_intercept": False, **TIGHT}, POSITIVE, 1e-6),
    (svm.LinearSVC, TIGHT, TWO, 1e-5),
    (svm.LinearSVC, {"fit_intercept": False, **TIGHT}, NAMES, 1e-5),
    (svm.LinearSVR, SQUARED, Y, 1e-5),
]


def placed(values, device, xp):
    return values if values.dtype.kind == "U" else to_device(values, device, xp)


def at_home(values):
    return to_host(values) if is_array(values) else np.asarray(values)


@pytest.mark.cases(11)
@pytest.mark.parametrize(
    ("weighted", "twin", "params", "y", "atol"), covering([False, True], CASES, strength=1)
)
def test_fits_are_scikit_learns_and_stay_where_x_lies(xp, device, twin, params, y, atol, weighted):
    weight = {"sample_weight": rng.uniform(0.5, 2.0, len(Y))} if weighted else {}
    theirs = twin(**params).fit(X, y, **weight)
    ours = getattr(estimators, twin.__name__)(**params)
    Xd = to_device(X, device, xp)
    assert ours.fit(Xd, placed(y, device, xp), **weight) is ours
    if not isinstance(Xd, np.ndarray):
        assert vars(ours)["_manyfit_fitted"].route == "own"
    for name, wanted in vars(theirs).items():
        if not name.endswith("_") or name in ("n_iter_", "solver_"):
            continue
        found = getattr(ours, name)
        assert np.shape(wanted) == (found.shape if is_array(found) else np.shape(found)), name
        if name != "classes_" and isinstance(wanted, np.ndarray):
            assert array_namespace(found) is array_namespace(Xd) and device_of(found) == device_of(Xd)
        if np.asarray(wanted).dtype.kind == "f":
            np.testing.assert_allclose(at_home(found), wanted, rtol=1e-6, atol=10 * atol, err_msg=name)
    for method in METHODS:
        if hasattr(theirs, method):
            found, wanted = getattr(ours, method)(Xd), getattr(theirs, method)(X)
            if method == "predict" and twin.__name__ in ("LinearSVC", "LogisticRegression"):
                assert type(found) is type(placed(y, device, xp))
                assert (at_home(found) == wanted).mean() > 0.99
            else:
                assert type(found) is type(Xd)
                np.testing.assert_allclose(at_home(found), wanted, rtol=1e-5, atol=50 * atol, err_msg=method)
    score = ours.score(Xd, placed(y, device, xp), **weight)
    assert score == pytest.approx(theirs.score(X, y, **weight), abs=1e-4)
    assert isinstance(score, float)


@pytest.mark.parametrize(
    ("model", "y", "most"),
    [
        (estimators.Ridge(), Y, 1),
        (estimators.LinearRegression(), Y, 1),
        (estimators.LogisticRegression(), TWO, 60),
    ],
)
def test_what_crosses_is_small(model, y, most):
    Xd, yd = there(X), there(y)
    with crossings() as crossed:
        model.fit(Xd, yd)
    assert crossed["to_device"] <= most
    assert crossed["bytes"] < X.nbytes
    with crossings() as crossed:
        model.predict(Xd)
    # Whether all of X is finite, which scikit-learn asks, too.
    assert sum(crossed.values()) - crossed["bytes"] <= 1 and crossed["bytes"] <= 8


@pytest.mark.cases(4)
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.parametrize("name", ["Ridge", "LogisticRegression", "LinearSVC"])
def test_dtypes_are_scikit_learns(place, name, dtype):
    given, y = (10 * X).astype(dtype), Y if name == "Ridge" else TWO
    ours = getattr(estimators, name)().fit(place(given), place(y))
    theirs = sklearn_class_of(type(ours))().fit(given, y)
    # LogisticRegression of scikit-learn 1.7 makes float64 of float32.
    assert to_host(ours.coef_).dtype in (theirs.coef_.dtype, given.dtype)
    assert to_host(ours.predict(place(given))).dtype == theirs.predict(given).dtype


def test_what_families_do_not_serve_goes_on_to_the_next():
    Xd, yd = there(X), there(TWO)
    with manyfit.config_context(host_fallback="error"):
        with pytest.raises(HostFallbackError, match="LogisticRegression.*penalty of the intercept"):
            estimators.LogisticRegression(solver="liblinear", intercept_scaling=2.0).fit(Xd, yd)
        with pytest.raises(HostFallbackError, match="constrained"):
            estimators.Ridge(positive=True).fit(Xd, there(Y))


@pytest.mark.parametrize("name", ["Ridge", "PoissonRegressor"])
def test_targets_of_another_length_are_refused(name):
    with manyfit.config_context(host_fallback="ignore"), pytest.raises(ValueError, match="inconsistent"):
        getattr(estimators, name)().fit(there(X), there(POSITIVE[:-1]))


def test_what_was_fitted_there_is_pickled_and_answers_for_the_host():
    model = estimators.LogisticRegression().fit(there(X), NAMES)
    again = pickle.loads(pickle.dumps(model))
    expected = model.predict(there(X))
    np.testing.assert_array_equal(again.predict(there(X)), expected)
    np.testing.assert_array_equal(again.predict(X), expected)
    assert type(again.predict_proba(X)) is np.ndarray


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["Ridge", "LogisticRegression", "LinearSVC", "PoissonRegressor"])
def test_rows_that_scikit_learn_refuses_are_refused(name, value):
    """Predictions would be labels all the same."""
    y = POSITIVE if name in ("Ridge", "PoissonRegressor") else TWO
    model, rows = getattr(estimators, name)().fit(there(X), there(y)), X[:5].copy()
    rows[2, 1] = value
    methods = [name for name in ("predict", "predict_proba", "decision_function") if hasattr(model, name)]
    for method in methods:
        with pytest.raises(ValueError, match="Input X contains (NaN|infinity)"):
            getattr(model, method)(there(rows))


@pytest.mark.parametrize("name", ["LogisticRegression", "LinearSVC"])
def test_labels_that_are_no_classes_are_refused(name):
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        getattr(estimators, name)().fit(there(X), there(Y))


@pytest.mark.parametrize(
    "twin", [linear_model.Ridge, linear_model.LogisticRegression, linear_model.PoissonRegressor]
)
@pytest.mark.skipif(not DEVICE_TAKES_HOST_INDICES, reason="scikit-learn before 1.9 divides by zero")
def test_weights_that_are_all_zero_are_refused_as_scikit_learn_does(twin):
    nothing = np.zeros(len(X))
    for cls, place in ((twin, np.asarray), (getattr(estimators, twin.__name__), there)):
        with pytest.raises(ValueError, match="at least one non-zero number"):
            cls().fit(place(X), place(TWO), sample_weight=place(nothing))
