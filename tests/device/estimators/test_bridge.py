"""Drop-in estimators on arrays that lie elsewhere: scikit-learn's numbers, in the place that is promised.

This process has SciPy's array API switch off, as most have: scikit-learn's dispatch works here all the same.
"""

from __future__ import annotations

import os
import pickle
import warnings
from importlib.util import find_spec

import array_api_compat as compat
import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils import _array_api

import manyfit
from manyfit import estimators
from manyfit._compat import array_api_dispatch
from manyfit.arrays import (
    container_kind,
    container_place,
    container_to_host,
    is_on_device,
    to_device,
    transfers,
)
from manyfit.estimators._catalog import ESTIMATORS
from manyfit.estimators._method_call import RECORD
from manyfit.estimators.backends import _cuml as _with_cuml
from manyfit.estimators.backends import _native_registry as _own
from manyfit.estimators.backends._native_registry import register_fitter, unregister_fitter
from manyfit.estimators.backends.selection import find_fitting_place
from manyfit.exceptions import HostFallbackError, HostFallbackWarning
from manyfit.folds import Unsupported
from manyfit.introspection.drop_in_classes import sklearn_class_of
from tests._covering import covering
from tests.behaviour.metrics._crossings import DEVICE, crossings, there
from tests.units.families._samples import LABELS, NAMES, NUMBERS, X, made, results, sample

WORDS = np.array(["ant", "bee", "cat"])[LABELS]
# What scikit-learn's own numbers may differ by: other solvers of the same equations, sums in another order.
CLOSE = {"rtol": 1e-6, "atol": 1e-8}
NEAR = {"rtol": 1e-5, "atol": 1e-6}  # two fits to the same optimum
STAYS = [
    name for name in NAMES if ESTIMATORS[name].dispatch and not ESTIMATORS[name].dispatch.refuses(made(name))
]
OTHERS = [
    pytest.param(name, marks=pytest.mark.gpu if name == "cupy" else ())
    for name in ("array_api_strict", "torch", "cupy")
    if find_spec(name)
]
FITTED = [name for name in NAMES if _own.fitter_of(sklearn_class_of(getattr(estimators, name)))]
BY_WHOM = [*((name, False) for name in NAMES), *((name, True) for name in FITTED)]
# With which fits of our own serve an estimator, and scikit-learn's end near the same optimum.
SHARP = {
    "GammaRegressor": {"tol": 1e-9},
    "LinearSVC": {"tol": 1e-9, "dual": False},
    "LinearSVR": {"tol": 1e-9, "dual": False, "loss": "squared_epsilon_insensitive"},
    "LogisticRegression": {"tol": 1e-9},
    "PoissonRegressor": {"tol": 1e-9},
    "TweedieRegressor": {"tol": 1e-9, "power": 1.5},
}
quiet = pytest.mark.filterwarnings("ignore")  # of fits, on either side; fallbacks have tests of their own


OWN = dict(_own._fitters)


@pytest.fixture(autouse=True)
def _scikit_learn_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits of our own are switched on where they are tested; cuML's, where it is, have tests of their own."""
    monkeypatch.setattr(_own, "_fitters", {})
    monkeypatch.setattr(_with_cuml, "LIBRARIES", ())


def home(value):
    if isinstance(value, (tuple, list)):
        return [home(one) for one in value]
    value = container_to_host(value)
    return value.toarray() if scipy.sparse.issparse(value) else value


def alike(found, wanted, iterated=False):
    found, wanted = home(found), home(wanted)
    if not isinstance(wanted, list):
        found, wanted = [found], [wanted]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(
            np.asarray(one, float), np.asarray(other, float), **(NEAR if iterated else CLOSE)
        )


def in_place(value, xp, device):
    """Whether all arrays of a result lie with X."""
    if isinstance(value, (tuple, list)):
        return all(in_place(one, xp, device) for one in value)
    if isinstance(value, float | np.floating) or scipy.sparse.issparse(value):
        return True
    if container_kind(value) == "sparse":
        return compat.is_cupy_namespace(xp)
    if xp is np:
        return isinstance(value, np.ndarray)
    return (
        container_kind(value) == "array"
        and compat.array_namespace(value) is xp
        and compat.device(value) == device
    )


@pytest.mark.invariant("Drop-in estimators return results where the data lie")
@quiet
@pytest.mark.parametrize("xp", OTHERS, indirect=True)
@pytest.mark.parametrize(("name", "own"), BY_WHOM)
def test_every_estimator_on_every_library(name, own, xp, device, monkeypatch):
    """The same numbers as scikit-learn's on the host, from arrays, to arrays of the same place."""
    monkeypatch.setattr(_own, "_fitters", OWN if own else {})
    given, y = sample(name)
    X, Y = (None if one is None else to_device(one, device, xp) for one in (given, y))
    ours, twin = made(name), made(name, twin=True)
    for estimator in (ours, twin):
        estimator.set_params(**(SHARP.get(name, {}) if own else {}))
    ours.fit(*(one for one in (X, Y) if one is not None))
    twin.fit(*(one for one in (given, y) if one is not None))
    route = vars(ours)[RECORD].route
    assert route == ("own" if own else "scikit-learn" if name in STAYS else "host")
    if xp is not np:
        said = find_fitting_place(ours, container_place(X))  # before it is fitted, as a plan says it
        by = {"own": "manyfit fits it", "scikit-learn": "scikit-learn's array API dispatch supports it"}
        assert said == (("host", vars(ours)[RECORD].reason) if route == "host" else ("device", by[route]))
    for fitted in (ours, pickle.loads(pickle.dumps(ours))):
        found, wanted = results(fitted, X, Y), results(twin, given, y)
        assert set(found) == set(wanted)
        for method, result in found.items():
            signs = abs if (name, method) == ("LinearDiscriminantAnalysis", "transform") else lambda x: x
            alike(signs(result), signs(wanted[method]), own)  # the directions of its axes are not determined
            asked = found["transform"] if method == "inverse_transform" else X
            assert in_place(result, *((xp, device) if container_kind(asked) else (np, "cpu"))), method
    for attribute in (n for n in vars(twin) if n.endswith("_") and not n.startswith("_")):
        value = getattr(ours, attribute)
        if isinstance(getattr(twin, attribute), np.ndarray):
            assert (container_kind(value) == "array") == (route != "host"), attribute
            if getattr(twin, attribute).dtype.kind in "fi" and attribute not in ("scalings_", "n_iter_"):
                alike(value, getattr(twin, attribute), own)


@quiet
@pytest.mark.parametrize("name", sorted(set(NAMES) - set(STAYS)))
def test_what_is_left_to_the_host_does_not_work_on_the_device(name):
    """The table of `Dispatch` leaves out nothing that the installed scikit-learn does."""
    given, y = sample(name)
    twin = made(name, twin=True)
    with pytest.raises(Exception) as caught, array_api_dispatch():  # noqa: PT012  whatever it is
        twin.fit(*(there(one) for one in (given, y) if one is not None))
        twin.transform(there(given))
    assert isinstance(caught.value, (TypeError, ValueError, AttributeError, RuntimeError))


RANDOMIZED = {
    "svd_solver": "randomized",
    "power_iteration_normalizer": "QR",
    "n_components": 2,
    "random_state": 0,
}
SERVED = [
    ("Ridge", {"solver": "svd", "fit_intercept": False}),
    ("PCA", {"n_components": 0.9}),
    ("PCA", RANDOMIZED),
    ("PCA", {"n_components": 2, "whiten": True, "svd_solver": "covariance_eigh"}),
    ("LinearDiscriminantAnalysis", {"n_components": 1}),
    ("MinMaxScaler", {"clip": True, "feature_range": (-1, 1)}),
    ("Normalizer", {"norm": "max"}),
    ("LogisticRegression", {"class_weight": "balanced", "tol": 1e-8}),
    ("LogisticRegression", {"fit_intercept": False, "C": 0.1, "tol": 1e-8}),
    ("RidgeClassifier", {"solver": "svd", "alpha": 0.5}),
    ("GaussianNB", {"priors": [0.2, 0.3, 0.5]}),
    ("StandardScaler", {"with_std": False}),
    ("PolynomialFeatures", {"interaction_only": True, "include_bias": False}),
    ("PoissonRegressor", {"alpha": 0.0, "tol": 1e-8}),
]
LEFT = [
    ("Ridge", {"solver": "lsqr"}),
    ("Ridge", {"positive": True}),
    ("PCA", {"svd_solver": "arpack", "n_components": 2}),
    ("LinearDiscriminantAnalysis", {"solver": "lsqr"}),
    ("LinearDiscriminantAnalysis", {"priors": [0.2, 0.3, 0.5]}),
    ("LinearDiscriminantAnalysis", {"store_covariance": True}),
    ("LogisticRegression", {"solver": "newton-cg"}),
    ("RidgeClassifier", {"class_weight": "balanced", "solver": "svd"}),
    ("PoissonRegressor", {"solver": "newton-cholesky"}),
    ("PolynomialFeatures", {"order": "F"}),
]


@quiet
@pytest.mark.parametrize(("name", "params"), [*SERVED, *LEFT])
def test_parameters_that_scikit_learn_serves_on_a_device(name, params):
    if name not in STAYS:
        pytest.skip("not of this version of scikit-learn")
    given, y = sample(name)
    ours = getattr(estimators, name)(**params)
    ours.fit(there(given), None if y is None else there(y))
    served = (name, params) in SERVED
    assert vars(ours)[RECORD].route == ("scikit-learn" if served else "host")
    twin = ours.__class__.__mro__[1](**params).fit(given, y)
    method = next(m for m in ("predict_proba", "predict", "transform") if hasattr(twin, m))
    alike(getattr(ours, method)(there(given)), getattr(twin, method)(given))
    if not served:  # and does not, as the table says
        with pytest.raises(Exception), array_api_dispatch():  # noqa: B017  whatever it is
            clone(twin).fit(there(given), None if y is None else there(y)).transform(there(given))


@pytest.mark.invariant("Drop-in estimators pass scikit-learn's own checks")
def test_scikit_learns_check_holds_everywhere_else():
    if os.environ.get("SCIPY_ARRAY_API") == "1":
        pytest.skip("this process has the switch on")
    made("Ridge").fit(there(X), there(NUMBERS))
    with (
        pytest.raises(RuntimeError, match="SCIPY_ARRAY_API"),
        sklearn.config_context(array_api_dispatch=True),
    ):
        pass
    assert sklearn.get_config()["array_api_dispatch"] is False


@pytest.mark.invariant("Drop-in estimators return results where the data lie")
def test_what_crosses():
    """A fit and its answers on the device hand nothing over but numbers that Python asks for."""
    Xd, Yd = there(X), there(NUMBERS)
    with crossings() as crossed, transfers() as counted:
        scaler = estimators.MinMaxScaler().fit(Xd)
        scaler.transform(Xd)
        made("Ridge").fit(Xd, Yd).predict(Xd)
    assert not crossed["__array__"] and not crossed["__dlpack__"] and not crossed["to_device"]
    assert counted.bytes_to_host == counted.bytes_to_device == 0
    with transfers() as counted, pytest.warns(HostFallbackWarning):
        estimators.KMeans(2, n_init=1).fit(Xd)
    assert counted.bytes_to_host == X.nbytes and counted.bytes_to_device == 0


# Labels follow y, all else X


CLASSIFIERS = ["LinearDiscriminantAnalysis", "SVC", "GaussianNB", "LogisticRegression", "RidgeClassifier"]


@quiet
@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("y", [WORDS, LABELS, pd.Series(WORDS), list(WORDS), WORDS.astype(object)], ids=type)
def test_labels_of_the_host_stay_there(name, y):
    ours, twin = made(name).fit(there(X), y), made(name, twin=True).fit(X, y)
    predicted = ours.predict(there(X))
    assert type(predicted) is np.ndarray and type(ours.classes_) is np.ndarray
    np.testing.assert_array_equal(predicted, twin.predict(X))
    np.testing.assert_array_equal(ours.classes_, twin.classes_)
    np.testing.assert_array_equal(ours.predict(X), twin.predict(X))
    method = "predict_proba" if hasattr(twin, "predict_proba") else "decision_function"
    alike(getattr(ours, method)(there(X)), getattr(twin, method)(X))
    assert in_place(getattr(ours, method)(there(X)), compat.array_namespace(there(X)), DEVICE)
    assert type(getattr(ours, method)(X)) is np.ndarray
    assert ours.score(there(X), y) == pytest.approx(twin.score(X, y), abs=1e-12)


@quiet
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_labels_of_a_device_stay_there(name):
    ours = made(name).fit(X, there(LABELS))
    assert container_place(ours.predict(X)).device == DEVICE
    assert type(ours.classes_) is np.ndarray  # fitted where X is
    ours = made(name).fit(there(X), there(LABELS))
    for data in (X, there(X), pd.DataFrame(X)):
        assert container_place(ours.predict(data)).device == DEVICE
    assert container_kind(ours.classes_) == ("array" if name in STAYS else None)
    with pytest.raises(ValueError, match="Unknown label type"):
        made(name).fit(there(X), NUMBERS)


@quiet
def test_weights_and_targets_come_to_x():
    weights = np.linspace(0.1, 1.0, len(X))
    wanted = sklearn.linear_model.Ridge(solver="svd").fit(X, NUMBERS, weights)
    even = sklearn.linear_model.Ridge(solver="svd").fit(X, NUMBERS, 2.0)
    alike(estimators.Ridge(solver="svd").fit(there(X), there(NUMBERS), sample_weight=2.0).coef_, even.coef_)
    for y, weight in ((NUMBERS, weights), (there(NUMBERS), weights), (pd.Series(NUMBERS), list(weights))):
        ours = estimators.Ridge(solver="svd").fit(there(X), y, sample_weight=weight)
        alike(ours.coef_, wanted.coef_)
        assert in_place(ours.coef_, compat.array_namespace(there(X)), DEVICE)
        assert ours.score(there(X), y, weight) == pytest.approx(wanted.score(X, NUMBERS, weights))


DTYPES = ["bool", "int64", "uint8", "float32", "float64"]


@quiet
@pytest.mark.parametrize(
    ("library", "own", "name"),
    covering(
        ["array_api_strict", "torch"],
        {"own": True, "dispatch": False}.items(),
        ["Ridge", "RidgeClassifier", "LogisticRegression", "LinearDiscriminantAnalysis", "PCA"],
        strength=1,
    ),
)
def test_dtypes_mix_as_numpys_do(name, own, library, monkeypatch):
    """Libraries refuse products of two dtypes, which NumPy promotes."""
    monkeypatch.setattr(_own, "_fitters", OWN if own else {})
    bring = pytest.importorskip("torch").asarray if library == "torch" else there
    method = "transform" if name == "PCA" else "predict"
    for fitted in DTYPES:
        data = np.round(3 * X).astype(fitted)
        y = bring(LABELS if name != "Ridge" else NUMBERS)
        twin = made(name, twin=True).fit(data, LABELS if name != "Ridge" else NUMBERS)
        ours = made(name).fit(bring(data), y)
        for asked in DTYPES:
            rows = np.round(3 * X).astype(asked)
            found, wanted = getattr(ours, method)(bring(rows)), getattr(twin, method)(rows)
            np.testing.assert_allclose(np.abs(home(found)), np.abs(wanted), rtol=1e-3, atol=1e-3)


@quiet
def test_one_weight_for_all_rows_and_texts_for_numbers(monkeypatch):
    monkeypatch.setattr(_own, "_fitters", OWN)
    alike(
        estimators.Ridge().fit(there(X), there(NUMBERS), sample_weight=2.0).coef_,
        made("Ridge", twin=True).set_params(alpha=0.5).fit(X, NUMBERS).coef_,
    )
    with pytest.raises(ValueError, match="could not convert string to float"):
        estimators.Ridge().fit(there(X), WORDS)


@quiet
def test_a_model_of_our_own_fit_predicts_on_the_host(monkeypatch):
    """Sparse rows for one: scikit-learn's own code reads attributes that it would have set."""
    monkeypatch.setattr(_own, "_fitters", OWN)
    ours = estimators.PoissonRegressor().fit(there(X), there(np.exp(NUMBERS / 9)))
    alike(ours.predict(scipy.sparse.csr_array(X)), home(ours.predict(there(X))))


@quiet
def test_a_fitted_estimator_answers_data_of_another_place():
    there_fitted, home_fitted = made("PCA").fit(there(X)), made("PCA").fit(X)
    wanted = home_fitted.transform(X)
    for data in (X, pd.DataFrame(X), X.tolist()):
        assert type(there_fitted.transform(data)) is np.ndarray
        alike(there_fitted.transform(data), wanted)
    with pytest.warns(HostFallbackWarning, match="PCA works on the host.*it was fitted on the host"):
        assert in_place(home_fitted.transform(there(X)), compat.array_namespace(there(X)), DEVICE)
    alike(there_fitted.get_covariance(), home_fitted.get_covariance())
    assert in_place(there_fitted.get_covariance(), compat.array_namespace(there(X)), DEVICE)
    sparse = scipy.sparse.csr_array(X)
    alike(made("MaxAbsScaler").fit(there(X)).transform(sparse), made("MaxAbsScaler").fit(X).transform(sparse))


@quiet
def test_a_new_fit_forgets_the_old_one():
    ours = made("LinearDiscriminantAnalysis").fit(there(X), WORDS)
    ours.fit(X, LABELS)
    assert RECORD not in vars(ours) and ours.predict(X).dtype == LABELS.dtype
    assert type(ours.coef_) is np.ndarray
    ours.fit(there(X), there(LABELS)).fit(X, WORDS)
    wanted = made("LinearDiscriminantAnalysis").fit(X, WORDS).predict(X)
    np.testing.assert_array_equal(ours.predict(X), wanted)


@quiet
@pytest.mark.parametrize(
    "name", ["MinMaxScaler", "StandardScaler", "GaussianNB", "IncrementalPCA", "MiniBatchKMeans"]
)
def test_learning_in_parts_goes_on_where_it_began(name):
    halves, y = (X[:30], X[30:]), LABELS.reshape(2, 30)
    classes = [0, 1, 2]

    def learnt(estimator, move, last):
        for half, (rows, labels) in enumerate(zip(halves, y, strict=True)):
            rows = move(rows) if half == 0 else last(rows)
            more = (labels,) if is_classifier(estimator) else ()
            options = {"classes": classes} if more and half == 0 else {}
            estimator.partial_fit(rows, *map(move if half == 0 else last, more), **options)
        return estimator

    wanted = learnt(made(name, twin=True), np.asarray, np.asarray)
    for last in (there, np.asarray):
        ours = learnt(made(name), there, last)
        assert vars(ours)[RECORD].route == ("scikit-learn" if name in STAYS else "host")
        method = "predict" if hasattr(wanted, "predict") else "transform"
        alike(getattr(ours, method)(there(X)), getattr(wanted, method)(X))


@quiet
def test_what_was_learnt_on_the_host_goes_on_there():
    wanted = made("MinMaxScaler", twin=True).partial_fit(X[:30]).partial_fit(X[30:])
    ours = made("MinMaxScaler").partial_fit(X[:30])
    with pytest.warns(HostFallbackWarning, match="it was fitted on the host"):
        ours.partial_fit(there(X[30:]))
    alike(ours.transform(there(X)), wanted.transform(X))
    assert type(ours.data_max_) is np.ndarray


@quiet
@pytest.mark.skipif("LogisticRegression" not in STAYS, reason="not of this version of scikit-learn")
def test_a_warm_start_from_another_place():
    ours = made("LogisticRegression").set_params(warm_start=True)
    wanted = made("LogisticRegression", twin=True).fit(X, LABELS)
    for data, y in ((X, LABELS), (there(X), there(LABELS)), (X, LABELS), (there(X), LABELS)):
        ours.fit(data, y)
        alike(ours.coef_, wanted.coef_, True)
        assert container_kind(ours.coef_) == container_kind(data)


# Warnings and errors


def told(run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return [one for one in caught if issubclass(one.category, HostFallbackWarning)]


def test_one_warning_for_an_estimator_and_a_reason():
    def run():
        fitted = made("SVC").fit(there(X), there(LABELS))
        fitted.predict(there(X))
        made("SVC").fit(there(X), there(LABELS))
        estimators.Ridge(solver="lsqr").fit(there(X), there(NUMBERS))

    first, second = told(run)
    assert str(first.message) == (
        "SVC works on the host, so its data are copied there: scikit-learn supports it on the host only."
    )
    assert "Ridge works on the host" in str(second.message) and "solver='lsqr'" in str(second.message)
    assert first.filename == second.filename == __file__
    assert told(run) == []


def test_nothing_is_told_where_nothing_crosses():
    import array_api_strict

    data = array_api_strict.asarray(X)
    assert not is_on_device(data)
    fitted = []
    assert told(lambda: fitted.append(made("KMeans").set_params(n_clusters=2).fit(data))) == []
    assert told(lambda: fitted[0].predict(data)) == []
    assert told(lambda: made("SVC").fit(X, there(LABELS))) == []  # X is where the fit is
    with manyfit.config_context(host_fallback="ignore"):
        assert told(lambda: made("SVC").fit(there(X), there(LABELS))) == []


def test_an_error_instead_and_nothing_is_moved():
    with manyfit.config_context(host_fallback="error"), transfers() as counted:
        with pytest.raises(
            HostFallbackError, match=r"SVC works on the host.*config_context\(host_fallback='warn'\)"
        ):
            made("SVC").fit(there(X), there(LABELS))
        made("MinMaxScaler").fit(there(X))
        made("SVC").fit(X, LABELS)
    assert counted.bytes_to_host == 0


def test_an_unfitted_estimator_says_so_wherever_the_data_lie():
    for name in ("SVC", "Ridge", "PCA"):
        with pytest.raises(NotFittedError):
            (made(name).transform if name == "PCA" else made(name).predict)(there(X))
    in_xp = made("Normalizer").transform(there(X))  # needs no fit
    alike(in_xp, made("Normalizer").transform(X))
    assert in_place(in_xp, compat.array_namespace(there(X)), DEVICE)


@quiet
def test_frames_are_asked_for():
    """What `set_output` asks for is a frame of the host, so it is made there."""
    ours = made("MinMaxScaler").set_output(transform="pandas")
    assert isinstance(ours.fit_transform(there(X)), pd.DataFrame)
    ours = made("MinMaxScaler").fit(there(X)).set_output(transform="pandas")
    frame = ours.transform(there(X))
    assert isinstance(frame, pd.DataFrame)
    alike(frame.to_numpy(), made("MinMaxScaler").fit(X).transform(X))


def test_wrong_arguments_are_scikit_learns_errors():
    Xd, yd = there(X), there(NUMBERS)
    for model, given, options, error, said in (
        (made("Ridge"), (Xd,), {}, TypeError, r"fit\(\) missing 1 required positional argument: 'y'"),
        (made("Ridge"), (Xd, yd), {"weights": None}, TypeError, "unexpected keyword argument 'weights'"),
        (made("Ridge"), (Xd, yd[:5]), {}, ValueError, "inconsistent numbers of samples"),
        (estimators.Ridge(alpha="much"), (Xd, yd), {}, ValueError, "The 'alpha' parameter of Ridge must be"),
    ):
        with pytest.raises(error, match=said):
            model.fit(*given, **options)


@quiet
def test_a_users_subclass_keeps_its_own_way():
    class Twice(estimators.Ridge):
        def predict(self, X):
            return 2 * super().predict(X)

    fitted = Twice(solver="svd").fit(there(X), there(NUMBERS))
    alike(fitted.predict(there(X)), 2 * sklearn.linear_model.Ridge().fit(X, NUMBERS).predict(X))


@quiet
def test_other_containers():
    for data in (pl.DataFrame(X), da.from_array(X), memoryview(X), X.tolist()):
        ours = estimators.Ridge().fit(data, NUMBERS)
        wanted = sklearn.linear_model.Ridge().fit(data, NUMBERS).predict(data)
        assert RECORD not in vars(ours)
        np.testing.assert_array_equal(ours.predict(data), wanted)
    targets = np.stack([LABELS, 1 - LABELS % 2], axis=1)
    ours = made("KNeighborsClassifier").fit(there(X), there(targets))
    twin = made("KNeighborsClassifier", twin=True).fit(X, targets)
    alike(ours.predict(there(X)), twin.predict(X))
    for one, other in zip(ours.predict_proba(there(X)), twin.predict_proba(X), strict=True):
        alike(one, other)
        assert in_place(one, compat.array_namespace(there(X)), DEVICE)


@quiet
def test_tensors_that_require_gradients():
    torch = pytest.importorskip("torch")
    data = torch.asarray(X).requires_grad_()
    for name in ("MinMaxScaler", "PCA", "RobustScaler"):
        alike(made(name).fit(data).transform(data), made(name).fit(X).transform(X))


# Fits of our own


@quiet
def test_a_fit_of_our_own_goes_first():
    seen = []

    def fit(estimator, X, y, sample_weight):
        if estimator.positive:
            raise Unsupported("not positive ones")
        seen.append((container_kind(X), type(y), sample_weight))
        xp = compat.array_namespace(X)
        estimator.n_features_in_ = X.shape[1]
        estimator.coef_, estimator.intercept_ = xp.ones(X.shape[1], device=X.device, dtype=X.dtype), 1.0

    twin = sklearn.linear_model.LinearRegression
    fitter = register_fitter(twin, fit)
    try:
        ours = estimators.LinearRegression().fit(there(X), NUMBERS)
        assert vars(ours)[RECORD].route == "own" and seen == [("array", np.ndarray, None)]
        alike(ours.predict(there(X)), X.sum(axis=1) + 1)
        alike(ours.predict(X), X.sum(axis=1) + 1)
        positive = estimators.LinearRegression(positive=True)
        (warning,) = told(lambda: positive.fit(there(X), there(NUMBERS)))
        assert "not positive ones; scikit-learn supports it on the host only" in str(warning.message)
    finally:
        unregister_fitter(fitter)
    estimators.LinearRegression().fit(there(X), NUMBERS)
    assert len(seen) == 1


@pytest.mark.invariant("Drop-in estimators pass scikit-learn's own checks")
def test_a_patch_of_others_around_ours_stays(monkeypatch):
    # As cuML's accelerator does it: what was there before is called by what takes its place.
    asked = []
    with array_api_dispatch():
        ours = _array_api._check_array_api_dispatch

    def patch(dispatch):
        asked.append(dispatch)
        ours(dispatch)

    monkeypatch.setattr(_array_api, "_check_array_api_dispatch", patch)
    with array_api_dispatch():
        assert asked == []
    _array_api._check_array_api_dispatch(False)
    assert asked == [False]


@quiet
def test_classes_may_be_told_again():
    ours, theirs = estimators.GaussianNB(), sklearn.naive_bayes.GaussianNB()
    for _ in range(2):
        ours.partial_fit(there(X), there(LABELS), classes=[0, 1, 2])
        theirs.partial_fit(X, LABELS, classes=[0, 1, 2])
    alike(ours.predict_proba(there(X)), theirs.predict_proba(X))
    with pytest.raises(ValueError, match="classes="):
        ours.partial_fit(there(X), there(LABELS), classes=[0, 1])
