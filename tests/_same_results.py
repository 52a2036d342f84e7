"""What it means that our search did as scikit-learn's does."""

from __future__ import annotations

import numpy as np
from sklearn import model_selection
from sklearn.base import clone
from sklearn.datasets import make_classification, make_regression

from manyfit.model_selection import GridSearchCV

X, Y = make_regression(n_samples=80, n_features=5, noise=20.0, random_state=0)
X_CLASS, LABELS = make_classification(
    n_samples=90, n_features=6, n_informative=4, n_classes=3, n_clusters_per_class=1, random_state=0
)
WEIGHTS = np.random.default_rng(0).integers(0, 4, len(Y)).astype(float)


def assert_same_results(ours, theirs, rtol=1e-9, atol=1e-12):
    """cv_results_ with the same keys, order, dtypes and numbers, but for times."""
    a, b = ours.cv_results_, theirs.cv_results_
    assert list(a) == list(b)
    assert [list(p) for p in a["params"]] == [list(p) for p in b["params"]]
    for key in b:
        if key.endswith("_time"):
            assert np.all(np.asarray(a[key]) >= 0)
        elif key.startswith("param_"):
            assert a[key].dtype == b[key].dtype and np.array_equal(a[key].mask, b[key].mask)
            assert [repr(v) for v in a[key]] == [repr(v) for v in b[key]]
        elif key != "params":
            assert a[key].dtype == b[key].dtype
            np.testing.assert_allclose(a[key], b[key], rtol=rtol, atol=atol, err_msg=key)
    assert getattr(ours, "best_index_", None) == getattr(theirs, "best_index_", None)
    assert ours.n_splits_ == theirs.n_splits_ and ours.multimetric_ == theirs.multimetric_


def failures(search):
    """Reasons of shared work that failed: none where it only met what it knows to leave."""
    return [why for why in search.report_.left_to_sklearn if why.startswith("shared work failed")]


def both(estimator, grid, X=X, y=Y, fit_params=None, ours=None, may_fail=False, compare=None, **params):
    """Fit both searches and compare their results; returns ours."""
    targets = () if y is None else (y,)
    theirs = model_selection.GridSearchCV(clone(estimator), grid, **params)
    theirs.fit(X, *targets, **(fit_params or {}))
    search = GridSearchCV(estimator, grid, **params, **(ours or {}))
    search.fit(X, *targets, **(fit_params or {}))
    assert_same_results(search, theirs, **(compare or {}))
    assert may_fail or not failures(search), failures(search)
    return search
