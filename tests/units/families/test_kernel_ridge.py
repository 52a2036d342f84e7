"""KernelRidge beside scikit-learn's own fits, where rounding is large."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV as SklearnSearch

from manyfit.estimators import Cost, family_of
from manyfit.model_selection import GridSearchCV
from tests._covering import covering

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 3))
Y = np.c_[X[:, 0] + 0.1 * rng.normal(size=120), X[:, 1] - X[:, 2]]
WEIGHTS = rng.random(120) * (rng.random(120) < 0.7)
ALPHAS = {"alpha": [1e-12, 1e-3, 1.0, 100.0]}


@pytest.fixture(autouse=True)
def _whatever_it_costs(monkeypatch):
    monkeypatch.setattr(type(family_of(KernelRidge)), "cost", lambda *_: Cost(0.0, 1.0))


def searched(model, data, y, **fit):
    """A search of which all scores are scikit-learn's."""
    options = {"cv": 3, "refit": False, "return_train_score": True, "scoring": "neg_mean_squared_error"}
    ours = GridSearchCV(model, ALPHAS, **options).fit(data, y, **fit)
    theirs = SklearnSearch(model, ALPHAS, **options).fit(data, y, **fit)
    for key in ("mean_test_score", "mean_train_score"):
        np.testing.assert_allclose(ours.cv_results_[key], theirs.cv_results_[key], rtol=1e-9, atol=1e-13)
    return ours.report_


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("form", "kernel", "n_targets"),
    covering(
        [np.asarray, np.asfortranarray, sp.csr_array],
        ["linear", "rbf", "poly", "laplacian", "cosine"],
        [1, 2],
        strength=1,
    ),
)
def test_scores(kernel, form, n_targets):
    y = Y if n_targets == 2 else Y[:, 0]
    assert searched(KernelRidge(kernel=kernel), form(X), y).fits_shared >= 6
    assert searched(KernelRidge(kernel=kernel), form(X), y, sample_weight=WEIGHTS).fits_shared >= 6


@pytest.mark.cases(4)
@pytest.mark.parametrize("data", [1e6 * X, X + 1e5, sp.csr_array(1e6 * X), np.rint(1e6 * X).astype(int)])
@pytest.mark.parametrize("gamma", [None, 1e3])
def test_distances_that_are_rounding_are_left_to_scikit_learn(data, gamma):
    report = searched(KernelRidge(kernel="rbf", gamma=gamma), data, Y)
    assert report.fits_shared == 0
    assert "distances are rounding" in str(report)


def test_weights_of_float32_are_left_to_scikit_learn():
    report = searched(KernelRidge(kernel="rbf"), X, Y, sample_weight=WEIGHTS.astype(np.float32))
    assert report.fits_shared == 0
    assert "weights of float32" in report.groups[0]["reason"]
