"""IsolationForest: the first trees of the largest forest, and each share of outliers, to the bit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import IsolationForest
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manyfit.estimators import family_of
from manyfit.folds import FoldArrays, SingleFold, Unsupported
from manyfit.model_selection import GridSearchCV
from tests._covering import covering, spread
from tests._same_results import both

rng = np.random.default_rng(0)
N = 160
X = np.round(rng.standard_t(2, size=(N, 4)), 1)
X[::8] = X[1]  # the same row many times
SIDES = np.where(np.abs(X).max(axis=1) > 4, -1, 1)
WEIGHTS = rng.integers(1, 4, N).astype(float)
GRID = {"n_estimators": [5, 1, 12], "contamination": ["auto", 0.1, 0.5, np.float32(0.25)]}
FORMS: dict[str, Any] = {
    "array": np.asarray,
    "float32": lambda rows: rows.astype(np.float32),
    "sparse": sp.csr_matrix,
    "gaps": lambda rows: np.where(rows == 0.1, np.nan, rows),
}
MODELS = [
    IsolationForest(random_state=0),
    IsolationForest(max_samples=20, bootstrap=True, random_state=1),
    IsolationForest(max_samples=0.6, max_features=2, random_state=2),
    IsolationForest(max_samples=1, max_features=0.5, n_jobs=2, random_state=3),
]


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("form", "number", "weighted"), covering(FORMS, range(len(MODELS)), [False, True], strength=1)
)
def test_responses_are_equal_to_the_bit(form, number, weighted):
    model, rows, train = MODELS[number], FORMS[form](X), np.arange(N) % 3 > 0
    settings, params = list(ParameterGrid(GRID)), {}
    if weighted:
        params = {"sample_weight": WEIGHTS[train]}
    arrays = FoldArrays(
        rows[train], SIDES[train], rows[~train], SIDES[~train], params.get("sample_weight"), rows[train],
        SIDES[train], SIDES[~train],
    )  # fmt: skip
    family = family_of(IsolationForest)
    family.check(model, settings)
    (answers,) = family.fit_many(model, settings, SingleFold(arrays))
    chosen = [3, 0, *range(4, len(settings))]
    kept = answers.subset(chosen)
    assert answers.fits_made == 1
    for place, j in enumerate(chosen):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            alone = clone(model).set_params(**settings[j]).fit(rows[train], **params)
        for role, seen in (("test", rows[~train]), ("train", rows[train])):
            for method, found in kept.respond(role, arrays).items():
                expected = getattr(alone, method)(seen)
                assert_array_equal(found[place], expected, err_msg=f"{method} {settings[j]}")
                assert found.dtype == expected.dtype


SCORERS = [["f1", "balanced_accuracy"], "accuracy", "average_precision", "roc_auc"]


@pytest.mark.parametrize("scoring", spread(SCORERS, 2))
def test_searches_make_one_fit_a_split(scoring):
    options = {"scoring": scoring, "cv": 3, "return_train_score": True, "refit": False}
    exact = {"compare": {"rtol": 0, "atol": 0}}
    grid = {"n_estimators": [5, 1], "contamination": ["auto", 0.1]}
    search = both(MODELS[1], grid | {"max_features": [1, 3]}, X, SIDES, **options, **exact)
    assert (search.report_.fits_done, search.report_.fits_shared) == (6, 24)
    behind = {f"isolationforest__{name}": values for name, values in grid.items()}
    search = both(make_pipeline(StandardScaler(), MODELS[0]), behind, X, SIDES, **options, **exact)
    assert search.report_.fits_done == 3


def test_a_forest_that_warns_of_its_samples_is_scikit_learns():
    model, grid = IsolationForest(max_samples=150, random_state=0), {"n_estimators": [2, 3]}
    with pytest.warns(UserWarning, match="max_samples"):
        search = GridSearchCV(model, grid, scoring="accuracy", cv=3).fit(X, SIDES)
    assert search.report_.fits_shared == 0


def test_callables_read_real_fits():
    def mean_score(model, rows, y=None):
        return float(model.score_samples(rows).mean() + model.offset_)

    search = both(MODELS[0], GRID, X, None, scoring=mean_score, cv=3)
    assert search.report_.fits_shared == 0


@pytest.mark.parametrize(
    ("model", "setting", "reason"),
    [
        (IsolationForest(), {}, "random_state"),
        (IsolationForest(random_state=0, warm_start=True), {}, "warm_start"),
        (MODELS[0], {"contamination": 0.6}, "contamination=0.6"),
        (MODELS[0], {"contamination": 0}, "contamination=0"),
        (MODELS[0], {"contamination": "some"}, "contamination='some'"),
        (MODELS[0], {"n_estimators": 0}, "n_estimators"),
    ],
    ids=str,
)
def test_what_is_left_alone(model, setting, reason):
    with pytest.raises(Unsupported, match=reason):
        family_of(IsolationForest).check(model, [{"n_estimators": 3, "contamination": "auto"} | setting])
