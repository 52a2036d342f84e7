"""cross_val_predict on data of a device: scikit-learn's predictions, where X lies, without X on the host."""

from __future__ import annotations

import inspect

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.model_selection import KFold
from sklearn.model_selection import cross_val_predict as theirs
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import manyfit
from manyfit import estimators, model_selection
from manyfit.arrays import to_host, transfers
from manyfit.exceptions import HostFallbackError, HostFallbackWarning
from manyfit.model_selection import cross_val_predict
from tests.behaviour.metrics._crossings import DEVICE, there

rng = np.random.default_rng(0)
X = np.abs(rng.normal(size=(90, 40)))
LABELS = np.digitize(X[:, 0], [0.4, 1.0])
Y = X @ np.arange(40.0) + rng.normal(size=90)
WEIGHTS = rng.uniform(0.5, 1.5, size=90)
WORDS = np.array(["ant", "bee", "cat"])[LABELS]
STAYS = {"host_fallback": "error"}
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")


def at(value):
    return getattr(value, "device", None) if type(value) is not np.ndarray else None


@pytest.mark.cases(4)
@pytest.mark.parametrize("cv", [3, KFold(3, shuffle=True, random_state=0)], ids=["given", "shuffled"])
@pytest.mark.parametrize("method", ["predict", "predict_proba"])
@pytest.mark.parametrize("labels", ["there", "here", "texts"])
def test_classes_and_probabilities(labels, method, cv):
    model = make_pipeline(estimators.MinMaxScaler(), estimators.GaussianNB())
    y = {"there": there(LABELS), "here": LABELS, "texts": WORDS}[labels]
    # scikit-learn before 1.8 has no GaussianNB for a device.
    with manyfit.config_context(host_fallback="ignore"):
        found = cross_val_predict(model, there(X), y, cv=cv, method=method)
    wanted = theirs(model, X, WORDS if labels == "texts" else LABELS, cv=cv, method=method)
    assert at(found) == (DEVICE if method == "predict_proba" or labels == "there" else None)
    if labels == "texts" and method == "predict":
        np.testing.assert_array_equal(found, wanted)
    else:
        np.testing.assert_allclose(to_host(found), wanted, rtol=1e-9)


@pytest.mark.invariant("Drop-in estimators return results where the data lie")
def test_regressions_with_weights_leave_x_where_it_is():
    rows = rng.normal(size=(3000, 10))
    y, weights = rows[:, 0] ** 2 + rows[:, 1], rng.uniform(0.5, 1.5, size=3000)
    model, params = estimators.Ridge(), {"sample_weight": there(weights)}
    with manyfit.config_context(**STAYS), transfers() as crossed:
        found = cross_val_predict(model, there(rows), there(y), cv=3, params=params, n_jobs=2)
    moments = 3 * 20 * 20 * 8  # at most, of each fold
    assert crossed.bytes_to_host <= 4 * y.nbytes + weights.nbytes + moments < rows.nbytes
    wanted = theirs(model, rows, y, cv=3, params={"sample_weight": weights})
    np.testing.assert_allclose(to_host(found), wanted, rtol=1e-9)
    assert at(found) == DEVICE
    with sklearn.config_context(enable_metadata_routing=True):
        routed = estimators.Ridge().set_fit_request(sample_weight=True)
        found = cross_val_predict(routed, there(rows), there(y), cv=KFold(3), params=params)
    np.testing.assert_allclose(to_host(found), wanted, rtol=1e-9)


def test_several_outputs():
    y = np.stack([LABELS, LABELS[::-1]], axis=1)
    model = estimators.KNeighborsClassifier()
    with manyfit.config_context(host_fallback="ignore"):
        found = cross_val_predict(model, there(X), there(y), cv=KFold(3), method="predict_proba")
        labels = cross_val_predict(model, there(X), there(y), cv=KFold(3))
    wanted = theirs(model, X, y, cv=KFold(3), method="predict_proba")
    for one, other in zip(found, wanted, strict=True):
        assert at(one) == DEVICE
        np.testing.assert_allclose(to_host(one), other)
    np.testing.assert_array_equal(to_host(labels), theirs(model, X, y, cv=KFold(3)))


class FirstColumn:
    """A splitter of a user's, which reads X where it lies."""

    def split(self, X, y=None, groups=None):
        assert X.device == DEVICE and X.shape == (90, 40)
        half = np.argsort(to_host(X[:, 0]))
        yield half[:45], half[45:]
        yield half[45:], half[:45]

    def get_n_splits(self, X=None, y=None, groups=None):
        return 2


class Uneven:
    """A splitter of a user's around another one."""

    def __init__(self, cv):
        self._cv = cv

    def split(self, X, y=None, groups=None):
        yield np.arange(10), np.arange(10, 90)
        yield np.arange(10, 90), np.arange(10)

    def get_n_splits(self, X=None, y=None, groups=None):
        return 2


@pytest.mark.parametrize("labels", [there, np.asarray], ids=["there", "here"])
def test_a_splitter_that_holds_another_is_asked_itself(labels):
    found = cross_val_predict(estimators.Ridge(), there(X), labels(Y), cv=Uneven(KFold(3)))
    wanted = theirs(estimators.Ridge(), X, Y, cv=Uneven(KFold(3)))
    np.testing.assert_allclose(to_host(found), wanted, rtol=1e-9)


@pytest.mark.invariant("No estimator or scorer can change the data of another fit")
@pytest.mark.filterwarnings("ignore::manyfit.exceptions.HostFallbackWarning")
def test_who_writes_into_its_input_has_rows_of_its_own():
    model = make_pipeline(estimators.MinMaxScaler(copy=False), estimators.Ridge())
    rows = there(X)
    found = cross_val_predict(model, rows, there(Y), cv=KFold(3))
    np.testing.assert_array_equal(to_host(rows), X)
    np.testing.assert_allclose(to_host(found), theirs(model, X.copy(), Y, cv=KFold(3)), rtol=1e-9)


def test_one_fit_after_the_other_also_within_a_parallel_config():
    with joblib.parallel_config(n_jobs=2):
        found = cross_val_predict(estimators.Ridge(), there(X), there(Y), cv=3)
    np.testing.assert_allclose(to_host(found), theirs(estimators.Ridge(), X, Y, cv=3), rtol=1e-9)


@pytest.mark.parametrize("function", [cross_val_predict, model_selection.cross_val_score])
def test_groups_are_routed_to_the_splitter(function):
    groups, cv = np.arange(90) % 7, model_selection.GroupKFold(3)
    with sklearn.config_context(enable_metadata_routing=True):
        found = function(estimators.Ridge(), there(X), there(Y), cv=cv, params={"groups": there(groups)})
        wanted = function(estimators.Ridge(), X, Y, cv=cv, params={"groups": groups})
    np.testing.assert_allclose(to_host(found), wanted, rtol=1e-9)


def test_splitters_and_groups():
    groups = np.arange(90) % 6
    found = cross_val_predict(estimators.Ridge(), there(X), there(Y), cv=FirstColumn())
    half = np.argsort(X[:, 0])
    splits = [(half[:45], half[45:]), (half[45:], half[:45])]
    np.testing.assert_allclose(to_host(found), theirs(estimators.Ridge(), X, Y, cv=splits), rtol=1e-9)
    cv = model_selection.GroupKFold(3)
    found = cross_val_predict(estimators.Ridge(), there(X), there(Y), cv=cv, groups=there(groups))
    wanted = theirs(estimators.Ridge(), X, Y, cv=cv, groups=groups)
    np.testing.assert_allclose(to_host(found), wanted, rtol=1e-9)
    with pytest.raises(ValueError, match="only works for partitions"):
        cross_val_predict(estimators.Ridge(), there(X), there(Y), cv=model_selection.ShuffleSplit(2))
    with pytest.raises(AttributeError, match="predict_proba"):
        cross_val_predict(estimators.Ridge(), there(X), there(Y), method="predict_proba")


def test_a_precomputed_kernel_is_cut_on_the_host():
    kernel = X @ X.T
    model = estimators.KernelRidge(kernel="precomputed")
    with pytest.warns(HostFallbackWarning, match="cross_val_predict works on the host"):
        found = cross_val_predict(model, there(kernel), there(Y), cv=3)
    np.testing.assert_allclose(to_host(found), theirs(model, kernel, Y, cv=3), rtol=1e-9)


@pytest.mark.parametrize("method", ["predict", "decision_function"])
def test_scikit_learns_own_brings_x_home_and_says_so(method):
    params = {"sample_weight": there(WEIGHTS)}
    with pytest.warns(HostFallbackWarning, match="cross_val_predict works on the host") as caught:
        found = cross_val_predict(SVC(), there(X), there(LABELS), cv=3, method=method, params=params)
    assert caught[0].filename == __file__ and at(found) == DEVICE
    wanted = theirs(SVC(), X, LABELS, cv=3, method=method, params={"sample_weight": WEIGHTS})
    np.testing.assert_array_equal(to_host(found), wanted)
    said = "cross_val_predict works on"
    with manyfit.config_context(**STAYS), pytest.raises(HostFallbackError, match=said):
        cross_val_predict(SVC(), there(X), there(LABELS))


@pytest.mark.parametrize("name", ["cross_validate", "cross_val_predict", "learning_curve"])
def test_the_text_says_where_results_lie(name):
    text = getattr(model_selection, name).__doc__
    own = inspect.cleandoc(getattr(sklearn.model_selection, name).__doc__)
    assert text.count("\nNotes\n-----\n") == 1 and "may be on a device." in text
    assert text.startswith(own[:200]) and text.endswith(own[-200:]) and len(text) > len(own)
