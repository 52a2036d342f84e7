"""Drop-in estimators on arrays that lie elsewhere: scikit-learn's numbers, in the place that is promised.

This process has SciPy's array API switch off, as most have: scikit-learn's dispatch works here all the same.
"""

from __future__ import annotations

import os
import pickle
from importlib.util import find_spec

import array_api_compat as compat
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.utils import _array_api

from manyfit import estimators
from manyfit._compat import array_api_dispatch
from manyfit.arrays import (
    container_kind,
    container_place,
    to_device,
    transfers,
)
from manyfit.estimators._method_call import RECORD
from manyfit.estimators.backends import _native_registry as _own
from manyfit.estimators.backends._native_registry import register_fitter
from manyfit.estimators.backends.selection import find_fitting_place
from manyfit.exceptions import HostFallbackWarning
from manyfit.folds import Unsupported
from manyfit.introspection.class_names import sklearn_class_of
from tests.behaviour.metrics._crossings import DEVICE, crossings, there
from tests.device.estimators._places import OWN, STAYS, alike, home, in_place, quiet, told
from tests.units.families._samples import LABELS, NAMES, NUMBERS, X, made, results, sample

pytestmark = pytest.mark.usefixtures("scikit_learn_only")

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


@quiet
def test_a_model_of_our_own_fit_predicts_on_the_host(monkeypatch):
    """Sparse rows for one: scikit-learn's own code reads attributes that it would have set."""
    monkeypatch.setattr(_own, "_fitters", OWN)
    ours = estimators.PoissonRegressor().fit(there(X), there(np.exp(NUMBERS / 9)))
    alike(ours.predict(scipy.sparse.csr_array(X)), home(ours.predict(there(X))))


@quiet
def test_frames_are_asked_for():
    """What `set_output` asks for is a frame of the host, so it is made there."""
    ours = made("MinMaxScaler").set_output(transform="pandas")
    assert isinstance(ours.fit_transform(there(X)), pd.DataFrame)
    ours = made("MinMaxScaler").fit(there(X)).set_output(transform="pandas")
    frame = ours.transform(there(X))
    assert isinstance(frame, pd.DataFrame)
    alike(frame.to_numpy(), made("MinMaxScaler").fit(X).transform(X))


@quiet
def test_a_users_subclass_keeps_its_own_way():
    class Twice(estimators.Ridge):
        def predict(self, X):
            return 2 * super().predict(X)

    fitted = Twice(solver="svd").fit(there(X), there(NUMBERS))
    alike(fitted.predict(there(X)), 2 * sklearn.linear_model.Ridge().fit(X, NUMBERS).predict(X))


@quiet
def test_other_containers():
    polars = pytest.importorskip("polars")
    for data in (polars.DataFrame(X), da.from_array(X), memoryview(X), X.tolist()):
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


@quiet
def test_a_fit_of_our_own_goes_first(monkeypatch):
    seen = []

    def fit(estimator, X, y, sample_weight):
        if estimator.positive:
            raise Unsupported("not positive ones")
        seen.append((container_kind(X), type(y), sample_weight))
        xp = compat.array_namespace(X)
        estimator.n_features_in_ = X.shape[1]
        estimator.coef_, estimator.intercept_ = xp.ones(X.shape[1], device=X.device, dtype=X.dtype), 1.0

    twin = sklearn.linear_model.LinearRegression
    with monkeypatch.context() as patch:
        patch.setattr(_own, "_fitters", {})
        register_fitter(twin, fit)
        ours = estimators.LinearRegression().fit(there(X), NUMBERS)
        assert vars(ours)[RECORD].route == "own" and seen == [("array", np.ndarray, None)]
        alike(ours.predict(there(X)), X.sum(axis=1) + 1)
        alike(ours.predict(X), X.sum(axis=1) + 1)
        positive = estimators.LinearRegression(positive=True)
        (warning,) = told(lambda: positive.fit(there(X), there(NUMBERS)))
        assert "not positive ones; scikit-learn supports it on the host only" in str(warning.message)
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
