"""Logistic regression with an l1 penalty: quadratic steps, certificates, scikit-learn's fits of one split."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manyfit.estimators import Cost, family_of
from manyfit.families.smooth._l1 import TrainingRows
from manyfit.families.smooth._quadratic import minimise_with_l1
from manyfit.model_selection import GridSearchCV

# scikit-learn 1.8 names a penalty by its ratio.
L1 = {"l1_ratio": 1.0} if LogisticRegression().get_params()["penalty"] != "l2" else {"penalty": "l1"}
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 8)) @ (np.eye(8) + 0.3 * rng.normal(size=(8, 8)))
SIGNAL = X[:, 0] - X[:, 1] + rng.normal(size=300)
TWO = np.where(SIGNAL > 0.5, "yes", "no")
THREE = np.digitize(SIGNAL, [-1.0, 1.0])
W = rng.random(300) * (rng.random(300) < 0.8)
C = {"C": [1e-3, 0.02, 0.3, 10.0]}
MODEL = LogisticRegression(solver="liblinear", tol=1e-7, max_iter=1000, random_state=0, **L1)


@pytest.fixture(autouse=True)
def _whatever_it_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(family_of(LogisticRegression)), "cost", lambda *_: Cost(0.0, 1.0))


@pytest.mark.parametrize("rank", [12, 5], ids=["regular", "singular"])
def test_quadratic_minima_meet_the_conditions_of_an_optimum(rank: int) -> None:
    for _ in range(20):
        R = rng.normal(size=(rank, 12))
        H, q = R.T @ R, R.T @ (5.0 * rng.normal(size=rank))
        u = minimise_with_l1(H, q, rng.normal(size=12) * (rng.random(12) < 0.5))
        slopes, free = H @ u - q, u != 0.0
        assert np.abs(slopes[free] + np.sign(u[free])).max(initial=0.0) < 1e-8
        assert np.abs(slopes).max() < 1.0 + 1e-8
        assert 0 < free.sum() < 12


def test_a_violation_is_the_slope_of_the_objective() -> None:
    rows = TrainingRows(X, (TWO == "yes").astype(int), W, 0.3)
    w = np.where(np.arange(8) < 4, 0.0, rng.normal(size=8))
    _, slope, _ = rows.violation(w, 0.7)
    for j in range(4, 8):
        step = 1e-6 * np.eye(8)[j]
        numeric = (rows.value(w + step, 0.7) - rows.value(w - step, 0.7)) / 2e-6
        assert numeric == pytest.approx(slope[j] + np.sign(w[j]), abs=1e-5)
    found, left = rows.minimum(np.zeros(8), 0.7, 1e-9)
    assert left <= 1e-9 and np.count_nonzero(found) > 0
    for _ in range(20):
        assert rows.value(found, 0.7) <= rows.value(found + 1e-3 * rng.normal(size=8), 0.7)


def searched(model: Any, grid: dict[str, Any], y: Any, data: Any = X, **fit: Any) -> Any:
    """A search of which all scores agree with scikit-learn's, and how it was shared."""
    options = {
        "scoring": ["accuracy", "neg_log_loss"],
        "refit": False,
        "cv": KFold(4),
        "return_train_score": True,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's of a penalty by its name
        ours = GridSearchCV(model, grid, **options).fit(data, y, **fit)
        theirs = SklearnSearch(model, grid, **options).fit(data, y, **fit)
    for key, expected in theirs.cv_results_.items():
        if key.startswith("split"):
            np.testing.assert_allclose(ours.cv_results_[key], expected, atol=2e-6, err_msg=key)
    return ours


@pytest.mark.parametrize(
    "model",
    [MODEL, MODEL.__class__(**{**MODEL.get_params(), "fit_intercept": False, "class_weight": "balanced"})],
    ids=["intercept", "balanced, none"],
)
def test_scikit_learn_fits_one_split(model: Any) -> None:
    search = searched(model, C, TWO)
    assert search.report_.fits_done == 4, search.report_
    exact = [search.cv_results_["split0_test_neg_log_loss"], search.cv_results_["split1_test_neg_log_loss"]]
    theirs = SklearnSearch(model, C, scoring="neg_log_loss", refit=False, cv=KFold(4)).fit(X, TWO).cv_results_
    np.testing.assert_allclose(exact[0], theirs["split0_test_score"], rtol=1e-12)
    assert not np.array_equal(exact[1], theirs["split1_test_score"])


@pytest.mark.parametrize("weights", [{"no": 0.3, "yes": 2.0}, {"yes": 2.0}], ids=["both", "one"])
def test_class_weights_by_label(weights: dict[str, float]) -> None:
    model = MODEL.__class__(**{**MODEL.get_params(), "class_weight": weights})
    search = searched(model, C, TWO)
    assert search.report_.fits_done == 4, search.report_


def test_weights_steps_and_single_precision() -> None:
    assert searched(MODEL, C, TWO, sample_weight=W).report_.fits_done == 4
    assert searched(MODEL, C, TWO, X.astype(np.float32)).report_.fits_done == 4
    model = make_pipeline(StandardScaler(), MODEL)
    search = searched(model, {f"logisticregression__{k}": v for k, v in C.items()}, TWO, 3.0 * X + 5.0)
    assert search.report_.fits_done == 4, search.report_
    search = searched(OneVsRestClassifier(MODEL), {"estimator__C": C["C"]}, THREE)
    # The smallest C makes all coefficients zero, and classes tie.
    assert search.report_.fits_done == 8, search.report_


@pytest.mark.parametrize("scale", [1e8, 1e14])
def test_numbers_too_large_for_the_steps_of_liblinear_are_scikit_learns(scale: float) -> None:
    """Its coefficients stay zero, or stop short, where steps would be smaller than 1e-12."""
    options = {"scoring": "neg_log_loss", "refit": False, "cv": KFold(4)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = GridSearchCV(MODEL, C, **options, sharing="optimum").fit(scale * X, TWO)
        theirs = SklearnSearch(MODEL, C, **options).fit(scale * X, TWO)
    found, expected = (one.cv_results_["mean_test_score"] for one in (ours, theirs))
    np.testing.assert_array_equal(found, expected)
    assert "smallest step" in str(ours.report_)


def test_a_fit_that_ends_at_max_iter_is_scikit_learns() -> None:
    few = LogisticRegression(solver="liblinear", max_iter=3, random_state=0, **L1)
    options = {"scoring": "neg_log_loss", "refit": False, "cv": KFold(4)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = GridSearchCV(few, C, **options).fit(X, TWO)
        theirs = SklearnSearch(few, C, **options).fit(X, TWO)
    found, expected = (one.cv_results_["mean_test_score"] for one in (ours, theirs))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert "may stop before it meets tol" in str(ours.report_)


@pytest.mark.parametrize(
    ("model", "cv", "reason"),
    [
        (LogisticRegression(solver="liblinear", **L1), KFold(3), "draws random numbers"),
        (LogisticRegression(solver="saga", random_state=0, **L1), KFold(3), "only the l2 penalty"),
        (MODEL, [(np.r_[0:200, 0:10], np.arange(200, 300))] * 2, "training rows are repeated"),
    ],
    ids=["no seed", "saga", "repeated rows"],
)
def test_what_is_left_to_scikit_learn(model: Any, cv: Any, reason: str) -> None:
    search = GridSearchCV(model, {"C": [0.01, 0.1]}, refit=False, cv=cv)
    found = str(search.plan(X, TWO))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert reason in found + str(search.fit(X, TWO).report_)
