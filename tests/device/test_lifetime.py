"""What a search leaves of a device's memory: nothing, at once, without the garbage collector."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from sklearn.linear_model import Lasso, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import manyfit
from manyfit import estimators
from manyfit.model_selection import GridSearchCV
from tests._covering import spread
from tests.behaviour.metrics._crossings import there

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4))
Y = X @ np.arange(4.0) + rng.normal(size=120)
LABELS = (Y > 0).astype(int)
SCALED = make_pipeline(StandardScaler(), Ridge())
BEHIND = make_pipeline(estimators.SimpleImputer(), estimators.PolynomialFeatures(), estimators.Ridge())
STEPS = make_pipeline(make_pipeline(estimators.MinMaxScaler(), estimators.SimpleImputer()), estimators.SVR())
# Its settings are fitted one by one, by the drop-in estimator there.
ALONE = {"max_iter": [50, 100]}


@pytest.mark.cases(2)
@pytest.mark.invariant("A search frees the memory of its device")
@pytest.mark.parametrize(
    ("estimator", "grid", "y", "options"),
    spread(
        {
            "ridge": (estimators.Ridge(), {"alpha": [0.1, 1.0]}, Y, {}),
            "pipeline": (
                SCALED,
                {"ridge__alpha": [0.1, 1.0]},
                Y,
                {"scoring": "neg_median_absolute_error", "refit": False},
            ),
            "logistic": (
                estimators.LogisticRegression(),
                {"C": [0.1, 1.0]},
                LABELS,
                {"scoring": "roc_auc", "verify": 2},
            ),
            "alone": (estimators.LogisticRegression(), ALONE, LABELS, {}),
            "host": (Lasso(), {"alpha": [0.1, 1.0]}, Y, {}),
            "behind steps": (
                BEHIND,
                {"ridge__alpha": [0.1, 1.0]},
                Y,
                {"scoring": "neg_median_absolute_error"},
            ),
            "shared steps": (STEPS, {"svr__C": [0.1, 1.0]}, Y, {"error_score": "raise"}),
        }.items(),
        4,
    ),
)
def test_data_go_with_their_owner_at_once(estimator, grid, y, options):
    Xd, yd = there(X), there(y)
    kept = [weakref.ref(Xd), weakref.ref(yd)]
    search = GridSearchCV(estimator, grid, cv=3, **options)
    gc.collect()
    gc.disable()
    try:
        with manyfit.config_context(host_fallback="ignore"):
            plan = search.plan(Xd, yd)
            search.fit(Xd, yd)
        del Xd, yd
        assert [ref() for ref in kept] == [None, None]
    finally:
        gc.enable()
    assert plan.n_candidates == len(search.cv_results_["params"]) == 2
