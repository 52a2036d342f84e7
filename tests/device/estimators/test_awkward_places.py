"""Drop-in estimators given data, labels and parameters of several places, and data that none is fitted to."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
import sklearn.linear_model
from sklearn.base import clone

from manyfit import estimators
from manyfit.arrays import container_kind, container_place
from manyfit.estimators._factory import make_drop_in
from manyfit.estimators._method_call import RECORD
from manyfit.introspection.class_names import sklearn_class_of
from tests._covering import covering
from tests.behaviour.metrics._crossings import there
from tests.device.estimators import _fake_cuml as fake
from tests.device.estimators._places import home
from tests.units.families._samples import LABELS, NEW, NUMBERS, WORDS, X

array_api_strict = pytest.importorskip("array_api_strict")
SECOND = array_api_strict.Device("device2")
PRIORS = np.array([0.2, 0.3, 0.5])
# NumPy's under array-api-strict, and that Ridge is by another solver there, are no concern of these tests.
pytestmark = pytest.mark.filterwarnings(
    "ignore::manyfit.exceptions.HostFallbackWarning",
    "ignore:(invalid value|overflow) encountered:RuntimeWarning",
    "ignore:Using Array API dispatch to namespace .* with `solver='auto'`:UserWarning",
)
NO_SQUARES = "array must not contain infs or NaNs"


def on_second(values):
    return array_api_strict.asarray(np.asarray(values), device=SECOND, copy=True)


def theirs(estimator):
    return sklearn_class_of(type(estimator))(**estimator.get_params(deep=False))


# Ridge, whose solver there is the SVD


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["Ridge", "RidgeClassifier"])
def test_what_cannot_be_squared_is_refused_as_on_the_host(name, dtype):
    """An SVD gives coefficients of zero."""
    huge, y = (X * (1e160 if dtype == "float64" else 1e25)).astype(dtype), LABELS
    with pytest.warns() as caught, pytest.raises(ValueError, match=NO_SQUARES) as told:
        getattr(estimators, name)().fit(there(huge), there(y))
    with pytest.raises(ValueError, match=NO_SQUARES) as wanted:
        theirs(getattr(estimators, name)()).fit(huge, y)
    assert str(told.value) == str(wanted.value)
    if name == "Ridge" or NEW:
        assert any("X is too large to be squared" in str(one.message) for one in caught)
    model = getattr(estimators, name)().fit(there((X * 1e10).astype(dtype)), there(y))  # which can be
    wanted = theirs(model).fit((X * 1e10).astype(dtype), y)
    np.testing.assert_allclose(home(model.coef_), wanted.coef_, rtol=1e-3 if dtype == "float32" else 1e-9)


@pytest.mark.parametrize("solver", ["auto", "svd"])
@pytest.mark.parametrize("move", [there, np.asarray, list], ids=["there", "here", "list"])
def test_negative_weights_of_ridge(move, solver):
    weights = np.linspace(-0.5, 1.0, len(X))
    with pytest.raises(ValueError, match=r"square roots of sample_weight, got .*-0\.5\. Leave"):
        estimators.Ridge(solver=solver).fit(there(X), there(NUMBERS), sample_weight=move(weights))
    with pytest.raises(ValueError, match=r".*"):
        sklearn.linear_model.Ridge(solver=solver).fit(X, NUMBERS, weights)
    none = estimators.Ridge(solver=solver).fit(there(X), there(NUMBERS), move(np.maximum(weights, 0)))
    wanted = sklearn.linear_model.Ridge(solver=solver).fit(X, NUMBERS, np.maximum(weights, 0))
    np.testing.assert_allclose(home(none.coef_), wanted.coef_, rtol=1e-6)


# Parameters that are arrays

TWO = [("a", estimators.GaussianNB()), ("b", estimators.GaussianNB(var_smoothing=0.1))]
PARAMS = [
    ("KMeans", {"n_clusters": 2, "init": X[:2], "n_init": 1}, None),
    ("MiniBatchKMeans", {"n_clusters": 2, "init": X[:2], "n_init": 1, "random_state": 0}, None),
    ("GaussianNB", {"priors": PRIORS}, LABELS),
    ("MultinomialNB", {"class_prior": PRIORS, "alpha": np.full(5, 0.5)}, LABELS),
    ("LinearDiscriminantAnalysis", {"priors": PRIORS}, LABELS),
    ("Ridge", {"alpha": np.array([1.0, 100.0])}, np.stack([NUMBERS, NUMBERS[::-1]], axis=1)),
    ("OrdinalEncoder", {"categories": [np.arange(-1.0, 9.0)] * 5}, None),
    ("KNeighborsClassifier",
     {"metric": "mahalanobis", "metric_params": {"VI": np.eye(5)}, "algorithm": "brute"}, LABELS),
    ("VotingClassifier", {"estimators": TWO, "weights": np.array([1.0, 3.0]), "voting": "soft"}, LABELS),
]  # fmt: skip


def brought(value, move):
    if isinstance(value, np.ndarray):
        return move(value)
    if isinstance(value, dict):
        return {name: brought(part, move) for name, part in value.items()}
    return [brought(part, move) for part in value] if isinstance(value, list) else value


@pytest.mark.invariant("Parameters, targets and weights may lie on another device than X")
@pytest.mark.parametrize(
    ("name", "params", "y"), PARAMS, ids=lambda value: value if type(value) is str else ""
)
def test_parameters_are_brought_to_the_rows(name, params, y):
    rows = np.floor(X) if name == "OrdinalEncoder" else X
    cls = getattr(estimators, name)
    method = "predict" if hasattr(cls, "predict") else "transform"
    targets = () if y is None else (y,)
    wanted = getattr(sklearn_class_of(cls)(**params).fit(rows, *targets), method)(rows)
    for params_at in (np.asarray, there, on_second):
        for move in (np.asarray, there):
            model = cls(**brought(params, params_at))
            given = model.get_params(deep=False)
            for _ in range(2):  # also when it is fitted again
                model.fit(move(rows), *map(move, targets))
                found = getattr(model, method)(move(rows))
                np.testing.assert_allclose(home(found), wanted, rtol=1e-6)
            assert container_place(found) == container_place(move(X))
            after = model.get_params(deep=False)
            assert all(after[key] is given[key] for key in given)  # the user's own, where they were
            assert type(clone(model)) is cls


def test_parameters_are_put_back_after_an_error():
    start = there(X[:2])
    model = estimators.KMeans(3, init=start)
    for rows in (X, there(X)):
        with pytest.raises(ValueError, match=r"The shape of the initial centers \(2, 5\) does not match"):
            model.fit(rows)
        assert model.init is start


def test_what_a_fit_keeps_is_not_put_back():
    class Keeps(sklearn_class_of(estimators.KMeans)):
        def fit(self, X, y=None, sample_weight=None):
            self._seen = X
            return super().fit(X, y, sample_weight)

    model = make_drop_in(Keeps)(2, init=X[:2])
    model._seen = there(X[:3])
    model.fit(there(X))
    assert model._seen.shape == X.shape


def test_a_prediction_reads_moved_parameters_of_a_copy():
    """Another thread may be asking the same estimator."""
    seen = []

    class Watched(estimators.KNeighborsClassifier):
        def kneighbors(self, X=None, n_neighbors=None, return_distance=True):
            seen.append((self is model, container_kind(self.metric_params["VI"])))
            return super().kneighbors(X, n_neighbors, return_distance)

    model = Watched(metric="mahalanobis", metric_params={"VI": there(np.eye(5))}, algorithm="brute")
    model.fit(X, LABELS).predict(X)
    assert seen == [(False, None)] and container_kind(model.metric_params["VI"]) == "array"


# Labels in a series of a device


@pytest.mark.parametrize(
    "name", ["GaussianNB", "LinearDiscriminantAnalysis", "RidgeClassifier", "LogisticRegression", "SVC"]
)
def test_texts_of_a_series_on_a_device(name, monkeypatch):
    fake.install(monkeypatch, cuml=False)
    words = fake.Series(pd.Series(WORDS))
    model = getattr(estimators, name)().fit(there(X), words)
    wanted = theirs(model).fit(X, WORDS)
    found = model.predict(there(X))
    assert type(found) is np.ndarray and np.mean(found == wanted.predict(X)) > 0.97
    assert model.score(there(X), words) == pytest.approx(np.mean(found == WORDS))
    assert list(model.classes_) == ["ant", "bee", "cat"]


@pytest.mark.parametrize("name", ["StandardScaler", "PCA", "MinMaxScaler", "Normalizer"])
def test_a_transformer_that_reads_no_labels_takes_any(name, monkeypatch):
    fake.install(monkeypatch, cuml=False)
    series = [pd.Series(WORDS), fake.Series(pd.Series(LABELS)), fake.Series(pd.Series(WORDS))]
    labels = [WORDS, LABELS, there(LABELS), *series]
    wanted = getattr(estimators, name)().fit_transform(X)
    for y in labels:
        found = getattr(estimators, name)().fit_transform(there(X), y)
        np.testing.assert_allclose(np.abs(home(found)), np.abs(wanted), rtol=1e-6, atol=1e-9)


# Several places


@pytest.mark.invariant("Parameters, targets and weights may lie on another device than X")
@pytest.mark.parametrize("name", ["Ridge", "GaussianNB", "SVC", "KernelRidge", "LogisticRegression"])
def test_rows_targets_and_weights_of_three_places(name):
    model = getattr(estimators, name)()
    y, weights = NUMBERS if "Ridge" in name else LABELS, np.linspace(0.5, 1.0, len(X))
    wanted = theirs(model).fit(X, y, sample_weight=weights).predict(X)
    here = np.asarray
    for one, two, three in ((there, on_second, here), (here, there, on_second), (on_second, list, there)):
        found = clone(model).fit(one(X), two(y), sample_weight=three(weights)).predict(one(X))
        if "Ridge" in name:
            np.testing.assert_allclose(home(found), wanted, rtol=1e-6)
            assert container_place(found) == container_place(one(X))
        else:
            assert np.mean(home(found) == wanted) > 0.97


@pytest.mark.parametrize("name", ["Ridge", "GaussianNB", "PCA", "KMeans", "StackingRegressor"])
def test_fitted_here_and_asked_there(name):
    of = {"KMeans": {"n_clusters": 2, "random_state": 0},
          "StackingRegressor": {"estimators": [("a", estimators.Ridge())], "cv": 3}}  # fmt: skip
    model = getattr(estimators, name)(**of.get(name, {}))
    y = LABELS if name == "GaussianNB" else NUMBERS
    method = "transform" if name == "PCA" else "predict"
    wanted = getattr(theirs(model).fit(X, y), method)(X)
    for fitted in (np.asarray, there, on_second):
        model = clone(model).fit(fitted(X), fitted(y))
        for asked in (np.asarray, there, on_second):
            found = getattr(model, method)(asked(X))
            np.testing.assert_allclose(np.abs(home(found)), np.abs(wanted), rtol=1e-6, atol=1e-9)
            if name != "GaussianNB":  # whose labels follow those of its fit
                assert container_place(found) == container_place(asked(X))


def test_parts_of_several_places():
    y, rest = LABELS, slice(20, None)
    wanted = sklearn.naive_bayes.GaussianNB().partial_fit(X[:20], y[:20], [0, 1, 2])
    wanted.partial_fit(X[rest], y[rest])
    for first in (np.asarray, there, on_second):
        for then in (np.asarray, there, on_second):
            model = estimators.GaussianNB().partial_fit(first(X[:20]), first(y[:20]), [0, 1, 2])
            model.partial_fit(then(X[rest]), then(y[rest]))
            np.testing.assert_allclose(home(model.theta_), wanted.theta_, rtol=1e-9)
            np.testing.assert_array_equal(home(model.predict(then(X))), wanted.predict(X))


# What no one can be fitted to

BAD = {
    "no rows": (X[:0], LABELS[:0]),
    "no columns": (X[:, :0], LABELS),
    "one dimension": (X[:, 0], LABELS),
    "three dimensions": (X[None], LABELS),
    "not a number": (np.where(X > 2, np.nan, X), LABELS),
    "infinity": (np.where(X > 2, np.inf, X), LABELS),
    "complex": (X + 1j, LABELS),
    "too few targets": (X, LABELS[:-1]),
    "targets that are no numbers": (X, np.where(LABELS == 0, np.nan, 1.0)),
}
SOME = ["Ridge", "LinearRegression", "LogisticRegression", "LinearSVC", "GaussianNB", "PoissonRegressor",
        "LinearDiscriminantAnalysis", "SVC", "KernelRidge", "StackingRegressor"]  # fmt: skip


@pytest.mark.invariant("Parameters, targets and weights may lie on another device than X")
@pytest.mark.parametrize(("kind", "name"), covering(BAD, SOME, strength=1))
def test_an_error_is_scikit_learns(name, kind):
    rows, y = BAD[kind]
    given = {"estimators": [("a", estimators.Ridge())]} if name == "StackingRegressor" else {}
    model = getattr(estimators, name)(**given)
    with pytest.raises(ValueError, match=r".*") as wanted:
        theirs(model).fit(rows, y)
    with pytest.raises(ValueError, match=r".*") as told:
        model.fit(there(rows), there(y))
    assert type(told.value) is type(wanted.value)
    assert str(told.value)[:18] == str(wanted.value)[:18]


@pytest.mark.parametrize("name", ["Ridge", "LogisticRegression", "GaussianNB", "PCA", "KMeans", "SVC"])
def test_a_question_of_other_columns(name):
    model = getattr(estimators, name)().fit(there(X), there(LABELS))
    method = model.transform if name == "PCA" else model.predict
    for asked in (there, on_second, np.asarray):
        with pytest.raises(ValueError, match=rf"X has 4 features, but {name} is expecting 5 features"):
            method(asked(X[:, :4]))
        with pytest.raises(ValueError, match="Complex data not supported"):
            method(asked(X + 1j))
    assert vars(model)[RECORD] is not None


def test_an_error_of_complex_numbers_says_what_to_do():
    with pytest.raises(ValueError, match=r"Ridge\.fit got X of dtype .*complex128\. Pass real"):
        estimators.Ridge(solver="svd").fit(there(X + 1j), there(NUMBERS))


def test_tensors_with_gradients_and_of_short_floats():
    torch = pytest.importorskip("torch")
    rows, y = torch.asarray(X), torch.asarray(NUMBERS)
    wanted = sklearn.linear_model.Ridge().fit(X, NUMBERS).predict(X)
    found = estimators.Ridge().fit(rows.clone().requires_grad_(), y).predict(rows.clone().requires_grad_())
    assert not found.requires_grad
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-9)
    wide = (rows * 100).half()  # whose squares are not of its dtype
    model = estimators.Ridge().fit(wide, y)
    assert vars(model)[RECORD].route != "host"
    np.testing.assert_allclose(home(model.coef_), theirs(model).fit(wide.numpy(), NUMBERS).coef_, rtol=1e-6)
    for name in ("Ridge", "LinearRegression", "KernelRidge"):
        for dtype in (torch.bfloat16, torch.float16):
            model = getattr(estimators, name)().fit(rows.to(dtype), y)
            same = theirs(model).fit(rows.to(dtype).float().numpy(), NUMBERS)
            np.testing.assert_allclose(
                home(model.predict(rows.to(dtype))), same.predict(rows.to(dtype).float().numpy()), rtol=0.02
            )


# Labels and scores


BOOLS = LABELS > 0


@pytest.mark.parametrize("name", ["GaussianNB", "RidgeClassifier", "LogisticRegression", "LinearSVC", "SVC"])
def test_labels_that_are_bools(name):
    """No library sorts these."""
    ours, twin = getattr(estimators, name)(), theirs(getattr(estimators, name)())
    ours.fit(there(X), there(BOOLS))
    twin.fit(X, BOOLS)
    assert container_place(ours.predict(there(X))) == container_place(there(BOOLS))
    np.testing.assert_array_equal(home(ours.predict(there(X))), twin.predict(X))
    np.testing.assert_array_equal(home(ours.classes_), [False, True])
    assert ours.score(there(X), there(BOOLS)) == twin.score(X, BOOLS)


def outcome(call):
    """A number, or the type of what is raised."""
    try:
        return call()
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("name", ["PoissonRegressor", "GammaRegressor", "TweedieRegressor"])
@pytest.mark.parametrize("what", ["constant", "one row", "zeros", "short", "usual"])
@pytest.mark.filterwarnings("ignore:(divide by zero|invalid value) encountered:RuntimeWarning")
def test_deviances_that_are_no_numbers(name, what):
    """scikit-learn divides by a deviance of 0, or so near to it that rounding decides."""
    model = getattr(estimators, name)(**({"power": 1.5} if name == "TweedieRegressor" else {}), tol=1e-9)
    targets = np.exp(0.3 * NUMBERS)
    fitted = {"constant": np.full(len(X), 2.0), "zeros": np.zeros(len(X))}.get(what, targets)
    rows = {"one row": slice(1), "short": slice(3)}.get(what, slice(None))
    scored = X[: 1 if what == "one row" else None]
    twin = theirs(model)
    found = outcome(lambda: model.fit(there(X), there(fitted)).score(there(scored), there(fitted[rows])))
    wanted = outcome(lambda: twin.fit(X, fitted).score(scored, fitted[rows]))
    if what in ("usual", "short"):
        assert found == pytest.approx(wanted, rel=1e-6)
    elif isinstance(wanted, type):
        assert found is wanted
    else:
        assert np.isfinite(found) == np.isfinite(wanted)


@pytest.mark.parametrize("name", ["LogisticRegression", "GaussianNB", "Ridge", "PoissonRegressor"])
@pytest.mark.parametrize("what", ["NaN", "texts", "complex"])
def test_targets_that_cannot_be_scored_raise_scikit_learns_errors(name, what):
    positive = np.where(LABELS > 0, 2, 1)
    model, twin = getattr(estimators, name)(), theirs(getattr(estimators, name)())
    model.fit(there(X), there(positive))
    twin.fit(X, positive)
    y = {"NaN": np.r_[np.nan, positive[1:]], "texts": np.array(["a"] * len(X)), "complex": positive + 1j}[
        what
    ]
    wanted = outcome(lambda: twin.score(X, y))  # texts beside numbers are accepted before 1.8
    assert outcome(lambda: model.score(there(X), y if what == "texts" else there(y))) == wanted
    assert isinstance(wanted, type) or what == "texts"
    if what == "complex":
        with pytest.raises(ValueError, match="Complex data not supported"):
            model.fit(there(X), there(y))


def test_parameters_are_looked_at_before_weights():
    with pytest.raises(ValueError, match="'alpha' parameter of Ridge must be"):
        estimators.Ridge(alpha=-1.0).fit(there(X), there(NUMBERS), sample_weight=there(NUMBERS))


@pytest.mark.parametrize("solver", ["auto", "svd", "cholesky"])
def test_the_solver_of_ridge_is_the_one_that_was_asked_for(solver):
    ours, twin = estimators.Ridge(solver=solver), sklearn.linear_model.Ridge(solver=solver).fit(X, NUMBERS)
    assert ours.fit(there(X), there(NUMBERS)).solver_ == twin.solver_


def test_frames_can_be_asked_for_where_scikit_learn_has_them():
    assert not hasattr(estimators.TfidfTransformer(), "set_output")
    assert hasattr(estimators.StandardScaler(), "set_output")
