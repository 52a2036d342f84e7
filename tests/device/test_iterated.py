"""Searches of families that iterate, on data of a device: scores, and how often the host waits for them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.metrics import f1_score, get_scorer_names, make_scorer
from sklearn.model_selection import GridSearchCV as sklearn_search
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

from manyfit.exceptions import HostFallbackWarning
from manyfit.families.smooth.solver._curvatures import SAMPLE_ROWS
from manyfit.folds.passes._device import DevicePasses
from tests._covering import covering, spread
from tests.behaviour.iterations._optimum import Optimum as GridSearchCV
from tests.behaviour.metrics._crossings import crossings, there
from tests.device import _both

rng = np.random.default_rng(0)
N, P = 2000, 12
X = rng.normal(size=(N, P)) + 20.0
SIGNAL = (X - 20.0) @ rng.normal(size=P)
TWO = (SIGNAL + rng.normal(size=N) > 0).astype(int)
THREE = np.digitize(SIGNAL + rng.normal(size=N), [-2, 1])
CS = {"C": np.logspace(-3, 1, 5)}
BEHIND = {"logisticregression__C": CS["C"]}


def on_both(model, grid, X, y, rtol=1e-6, **options):
    """As for any search; and which settings are as good as the best, which a device knows for labels only."""
    found, wanted = _both.on_both(model, grid, X, y, rtol=rtol, **options)
    assert all(one in wanted.report_.as_good_as_best for one in found.report_.as_good_as_best)
    return found


@pytest.mark.cases(2)
@pytest.mark.invariant("The host waits for a device at most twice per iteration of all columns")
@pytest.mark.parametrize(
    ("scoring", "y_there"), [(None, True), ("neg_log_loss", False), (["roc_auc", "f1"], True)], ids=str
)
def test_the_host_waits_at_most_twice_an_iteration(scoring, y_there, steps):
    options = {"cv": 5, "scoring": scoring, "refit": False}
    away, y = there(X), there(TWO) if y_there else TWO
    search = GridSearchCV(LogisticRegression(), CS, **options)
    with crossings() as crossed:
        search.fit(away, y)
    assert crossed["to_device"] <= 2 * len(steps)
    assert search.report_.synchronisations == crossed["to_device"]
    # Sums of Hessians and gradients, whatever the number of rows; y once.
    assert crossed["bytes"] == search.report_.bytes_to_host < X.nbytes
    assert search.report_.fits_done == 0
    _both.alike(search, GridSearchCV(LogisticRegression(), CS, **options).fit(X, TWO), 1e-6)


@pytest.mark.cases(2)
@pytest.mark.invariant("An iterating family gives a device's data the host's answers")
@pytest.mark.parametrize(
    ("model", "grid", "y", "dtype"),
    spread(
        {
            "texts": (
                LogisticRegression(class_weight="balanced"),
                CS,
                np.array(["a", "bb", "c"])[THREE],
                np.float32,
            ),
            "steps": (make_pipeline(StandardScaler(), LogisticRegression()), BEHIND, THREE, np.float64),
            "hinge": (LinearSVC(), CS, TWO, np.float64),
            "poisson": (PoissonRegressor(), {"alpha": [1e-3, 0.1]}, TWO * 3.0, np.float32),
        }.items(),
        2,
    ),
)
def test_scores_are_those_on_the_host(place, model, grid, y, dtype):
    options = {"place": place, "place_y": np.asarray, "cv": 3, "return_train_score": True}
    assert on_both(model, grid, X.astype(dtype), y, **options).report_.fits_done == 0


def test_a_scorer_of_the_users_own_sees_labels_on_the_host():
    def macro(y, predicted):
        assert isinstance(predicted, np.ndarray) and set(predicted) <= {"a", "bb", "c"}
        return f1_score(y, predicted, average="macro")

    y = np.array(["a", "bb", "c"])[THREE]
    assert on_both(LogisticRegression(), CS, X, y, cv=3, scoring=make_scorer(macro)).report_.fits_done == 0


def small(monkeypatch, most):
    """Have a device take no rows for a product beyond some bytes; what it refused."""
    refused, centred = [], DevicePasses._centred

    def limited(passes, rows):
        part = centred(passes, rows)
        if 8 * part.size > most:
            refused.append(8 * part.size)
            raise MemoryError(f"Out of memory allocating {8 * part.size:,} bytes")
        return part

    monkeypatch.setattr(DevicePasses, "_centred", limited)
    return refused


def test_where_memory_is_short_blocks_get_smaller(monkeypatch):
    big, y = np.tile(X, (9, 1)), np.tile(TWO, 9)
    refused = small(monkeypatch, 2 * SAMPLE_ROWS * big[0].nbytes)  # these are taken in any case
    search = on_both(LogisticRegression(), {"C": [0.1, 1.0]}, big, y, place_y=np.asarray, cv=2)
    assert len(refused) == 1 and search.report_.fits_done == 0


def test_where_there_is_no_memory_the_report_says_so(monkeypatch):
    refused, model = small(monkeypatch, 100), LogisticRegression(max_iter=1000)
    with pytest.warns(HostFallbackWarning, match="LogisticRegression"):
        search = GridSearchCV(model, CS, cv=3, refit=False).fit(there(X), TWO)
    (why,) = search.report_.left_to_sklearn
    assert why == (
        "the iterations of LogisticRegression ran out of memory, also in smaller blocks: "
        f"Out of memory allocating {refused[-1]:,} bytes"
    )
    assert search.report_.fits_done == 15


# In a search on a device these bring more home: tables of counts that are gone through one by one, and
# predictions, since scikit-learn warns of the best two of two classes.
HOMEWARD = {"adjusted_mutual_info_score", "top_k_accuracy"}
OF_NUMBERS = ("r2", "explained", "absolute", "squared", "max_error", "deviance", "pinball")
# Scorers of two classes at least, two of which older versions of scikit-learn lack.
OF_TWO = 38 + len({"d2_brier_score", "d2_log_loss_score"} & set(get_scorer_names()))
NOISY = X[:150, :4].sum(axis=1) - 80.0 + np.random.default_rng(1).normal(size=150)


TARGETS = {
    "numbers": (Ridge(), {"alpha": [0.1, 1.0]}, np.exp(0.3 * NOISY) + 20.0, 2, 12),
    "three": (LogisticRegression(tol=0.01), {"C": [0.1, 1.0]}, np.digitize(NOISY, [-1.0, 1.0]), 0, 30),
    "two classes": (LogisticRegression(tol=0.01), {"C": [0.1, 1.0]}, np.digitize(NOISY, [0.0]), 0, OF_TWO),
}


@pytest.mark.parametrize(("model", "grid", "y", "more", "n"), spread(TARGETS.items(), 1))
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_scorer_brings_y_and_scores_home_and_nothing_else(model, grid, y, more, n):
    few, crossed = X[:150, :4] - 20.0, {}
    for name in get_scorer_names():
        if any(part in name for part in OF_NUMBERS) != (type(model) is Ridge) or name.endswith("_samples"):
            continue
        search = GridSearchCV(model, grid, cv=2, refit=False, scoring=name)
        expected = search.fit(few, y).cv_results_["mean_test_score"]
        if np.isfinite(expected).all():  # else it is not for so many classes
            with crossings() as counter:
                found = search.fit(there(few), there(y)).cv_results_["mean_test_score"]
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12, err_msg=name)
            assert search.report_.fits_done == 0, name
            crossed[name] = counter["to_device"]
    # The fits are the same for all, and so is what they bring home. Moments need neither y nor predictions.
    most = min(crossed.values()) + more
    assert {name for name, times in crossed.items() if times > most} <= HOMEWARD
    assert len(crossed) >= n


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("last", "kind", "steps"),
    covering(
        [
            (PoissonRegressor(tol=1e-9, max_iter=5000, fit_intercept=False), "counts"),
            (LogisticRegression(tol=1e-9, max_iter=5000, fit_intercept=False), "labels"),
            (LinearSVC(tol=1e-8, max_iter=20000), "labels"),
            (LinearSVR(loss="squared_epsilon_insensitive", dual=False, tol=1e-9, max_iter=20000), "numbers"),
        ],
        {"scaled": [StandardScaler(with_std=False)], "turned": [PCA(2)]}.items(),
        strength=1,
    ),
)
def test_intercepts_that_are_not_free_behind_steps(last, kind, steps):
    """Passes and moments count from points of their own there, which such an intercept must not see."""
    X = np.random.default_rng(3).gamma(0.5, size=(200, 4)) * [1.0, 3.0, 0.1, 2.0] + [0.0, 9.0, 0.0, -4.0]
    score = X @ [0.3, -0.2, 1.0, 0.4] + np.random.default_rng(4).normal(size=200)
    y = {"counts": np.exp(0.3 * score), "labels": np.digitize(score, [-2.5, -1.0]), "numbers": score}[kind]
    model = make_pipeline(*steps, last)
    name = f"{type(last).__name__.lower()}__{'alpha' if kind == 'counts' else 'C'}"
    scoring = "neg_log_loss" if isinstance(last, LogisticRegression) else None
    options = {"cv": 3, "refit": False, "scoring": scoring}
    found = GridSearchCV(model, {name: [0.03, 0.3]}, **options).fit(there(X), there(y))
    assert found.report_.fits_done == 0
    wanted = sklearn_search(model, {name: [0.03, 0.3]}, **options).fit(X, y)
    for i in range(3):
        key = f"split{i}_test_score"
        np.testing.assert_allclose(found.cv_results_[key], wanted.cv_results_[key], rtol=2e-6)


def test_as_many_classes_as_rows_have_a_plan():
    X = np.random.default_rng(0).normal(size=(900, 3))
    y = np.arange(900) // 3  # more outputs than a Hessian may have coefficients
    search = GridSearchCV(LogisticRegression(max_iter=3), {"C": [1.0]}, cv=3, refit=False)
    assert search.plan(there(X), there(y)).fits_requested == 3
