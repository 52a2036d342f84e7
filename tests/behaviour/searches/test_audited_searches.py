"""Every kind of search is audited where its refit stops at max_iter, in this process and on workers."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from distributed import Client, LocalCluster
from sklearn import model_selection
from sklearn.exceptions import ConvergenceWarning

from manyfit.model_selection import GridSearchCV
from manyfit.model_selection.search._verify import REFIT_STOPPED
from tests._covering import covering
from tests.behaviour.iterations.test_sklearn_stops import same, searched
from tests.behaviour.searches._audits import (
    DATA,
    GRID,
    MODEL,
    PAIRS,
    SEARCHES,
    TARGET,
    adds_up,
    ours_of,
)
from tests.differential._subject import sharing_whatever_it_costs

pytestmark = pytest.mark.slow
ON_WORKERS = ["several metrics", "errors are raised", "behind other steps"]


@cache
def theirs_of(kind):
    """scikit-learn's search of a kind, and how many ConvergenceWarnings it gave."""
    estimator, grid, params = SEARCHES[kind]
    return searched(model_selection.GridSearchCV, estimator, grid, DATA, TARGET, **params)


@pytest.mark.cases(2)
@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
@pytest.mark.parametrize(
    "kind",
    [  # workers meet the others
        pytest.param(kind, marks=pytest.mark.thorough if kind in [*ON_WORKERS, "two jobs"] else ())
        for kind in SEARCHES
    ],
)
def test_scores_are_scikit_learns(kind, trust, tmp_path):
    trust()
    estimator, grid, params = SEARCHES[kind]
    ours, warned = ours_of(estimator, grid, **params, checkpoint=tmp_path / "file")
    theirs, expected = theirs_of(kind)
    results_are_equal(ours, theirs)
    if "n_jobs" not in params:  # other processes warn for themselves
        assert warned == expected > 1
    assert ours.report_.fits_done == PAIRS
    assert ours.report_.left_to_sklearn == {REFIT_STOPPED: PAIRS}
    again, _ = ours_of(estimator, grid, **params, checkpoint=tmp_path / "file")
    results_are_equal(again, theirs)
    assert again.report_.fits_restored == PAIRS


def results_are_equal(ours, theirs):
    for name, expected in theirs.cv_results_.items():
        if name.startswith(("split", "mean_test", "mean_train", "rank")):
            np.testing.assert_array_equal(ours.cv_results_[name], expected)
    assert ours.best_params_ == theirs.best_params_
    assert getattr(ours, "best_score_", None) == getattr(theirs, "best_score_", None)


def test_weights_reach_the_fits_of_the_audit(trust):
    trust()
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(TARGET))
    found = []
    for cls in (GridSearchCV, model_selection.GridSearchCV):
        with sharing_whatever_it_costs(), pytest.warns(ConvergenceWarning):
            found.append(cls(MODEL, GRID, cv=5).fit(DATA, TARGET, sample_weight=weights))
    same(*found)
    assert found[0].report_.left_to_sklearn == {REFIT_STOPPED: PAIRS}


# On workers


@pytest.fixture(scope="module")
def inside():
    """Workers in this process, which trust as it does."""
    options = {"processes": False, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(n_workers=2, **options) as cluster, Client(cluster) as client:
        yield client


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("kind", "refused"),
    covering(ON_WORKERS, [[], [2]], strength=1),
)
def test_workers_make_the_fits_of_the_audit(kind, refused, inside, trust, fits, tmp_path):
    trust(refused)
    estimator, grid, params = SEARCHES[kind]
    theirs, _ = theirs_of(kind)
    fits.made.clear()
    params = {**params, "checkpoint": tmp_path / "file"}
    ours, _ = ours_of(estimator, grid, **params, client=inside)
    results_are_equal(ours, theirs)
    report = ours.report_
    assert sum(report.left_to_sklearn.values()) == report.fits_done == PAIRS
    assert len(fits.made) in (PAIRS + 1, PAIRS + 2)
    assert "0 of 15 fits shared" in str(report)
    adds_up(report)
    for client in (inside, False):
        fits.made.clear()
        again, _ = ours_of(estimator, grid, **params, client=client)
        results_are_equal(again, theirs)
        assert len(fits.made) == 1
        assert again.report_.fits_restored == PAIRS
