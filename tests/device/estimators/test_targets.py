"""Labels, targets and weights of drop-in estimators in another place than X."""

from __future__ import annotations

import array_api_compat as compat
import numpy as np
import pandas as pd
import pytest
import sklearn

from manyfit import estimators
from manyfit.arrays import (
    container_kind,
    container_place,
)
from manyfit.estimators.backends import _native_registry as _own
from tests._covering import covering
from tests.behaviour.metrics._crossings import DEVICE, there
from tests.device.estimators._places import OWN, STAYS, alike, home, in_place, quiet
from tests.units.families._samples import LABELS, NUMBERS, WORDS, X, made

pytestmark = pytest.mark.usefixtures("scikit_learn_only")


# Labels follow y, all else X


CLASSIFIERS = ["LinearDiscriminantAnalysis", "SVC", "GaussianNB", "LogisticRegression", "RidgeClassifier"]


@pytest.mark.cases(9)
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


@pytest.mark.cases(2)
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
