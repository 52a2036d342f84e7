"""Searches on a device, by scorers that leave their scores there; in a process with SciPy's switch for it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import array_api_strict, numpy as np, sklearn
from sklearn.datasets import make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_validate as reference, GridSearchCV as Reference
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from manyfit import metrics
from manyfit.model_selection import *

sklearn.set_config(array_api_dispatch=True)
X, y = make_classification(120, 8, n_informative=5, n_classes=3, random_state=0)
device = array_api_strict.Device("device1")
Xd, yd = (array_api_strict.asarray(a, device=device) for a in (X, y))
F = y + X[:, 0]
Fd = array_api_strict.asarray(F, device=device)

def alike(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-9)

names = {NAMES}
ours = {name: metrics.get_scorer(name) for name in names}
model, numbers = LinearDiscriminantAnalysis(), Ridge(solver="svd")
found = cross_validate(model, Xd, yd, scoring=ours, cv=StratifiedKFold(3), error_score="raise", n_jobs=N_JOBS)
wanted = reference(model, X, y, scoring=names, cv=3)
for name in names:
    alike(found["test_" + name], wanted["test_" + name])

grid = {"alpha": [0.1, 10.0]}
for scoring in (ours_r2 := metrics.get_scorer("r2"), {"score": ours_r2}):
    search = GridSearchCV(numbers, grid, scoring=scoring, cv=KFold(3), refit="score", error_score="raise")
    search.fit(Xd, Fd)
    theirs = Reference(numbers, grid, scoring="r2", cv=KFold(3)).fit(X, F)
    for key in ("mean_test_score", "split1_test_score"):
        alike(search.cv_results_[key], theirs.cv_results_[key])
    assert search.best_params_ == theirs.best_params_
    assert isinstance(search.best_score_, float)

# Steps and a last one that scikit-learn dispatches are shared where X lies, as they are on the host.
model = make_pipeline(MinMaxScaler(), Ridge(solver="svd"))
grid = {"minmaxscaler__feature_range": [(0, 1), (0, 2)], "ridge__alpha": [0.1, 10.0]}
for scoring, sharing in (("r2", "auto"), (None, "auto"), ("r2", "none")):
    options = {"cv": 3, "refit": False, "scoring": scoring, "sharing": sharing, "error_score": "raise"}
    search = GridSearchCV(model, grid, **options).fit(Xd, Fd)
    wanted = GridSearchCV(model, grid, **options).fit(X, F)
    alike(search.cv_results_["mean_test_score"], wanted.cv_results_["mean_test_score"])
    fits = (search.report_.fits_done, search.report_.transformer_fits)
    assert fits == ((0, 6) if sharing == "auto" else (12, 0)), fits
model = make_pipeline(MinMaxScaler(), LinearDiscriminantAnalysis())
grid = {"lineardiscriminantanalysis__tol": [1e-4, 1e-3]}
search = GridSearchCV(model, grid, cv=3, refit=False, scoring="accuracy", error_score="raise").fit(Xd, yd)
assert (search.report_.fits_done, search.report_.transformer_fits) == (6, 3)
wanted = Reference(model, grid, cv=3).fit(X, y)
alike(search.cv_results_["mean_test_score"], wanted.cv_results_["mean_test_score"])
print("alike")
"""


@pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.thorough)])
@pytest.mark.slow
def test_scores_that_lie_on_the_device(n_jobs):
    names = ["accuracy", "f1_macro", "neg_log_loss", "roc_auc_ovr", "matthews_corrcoef"]
    script = SCRIPT.replace("{NAMES}", repr(names)).replace("N_JOBS", repr(n_jobs))
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", script],
        capture_output=True, text=True, env=environment, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout.strip() == "alike", done.stderr
