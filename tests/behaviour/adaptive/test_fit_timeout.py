"""With `fit_timeout` a fit that takes too long is ended, and counts as a failed one."""

from __future__ import annotations

import os
import time
import warnings
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.datasets import make_regression
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV as SklearnGridSearchCV
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manyfit.model_selection import GridSearchCV, RandomizedSearchCV
from manyfit.model_selection.sharing import _timed_fits

pytestmark = pytest.mark.filterwarnings("ignore:One or more of the test scores")
X, Y = make_regression(60, 3, noise=1.0, random_state=0)


class OddError(Exception):
    """pickle cannot restore it."""

    def __init__(self, text: str, more: int) -> None:
        super().__init__(text)


class SlowToRead:
    """Takes three seconds to be restored by pickle."""

    def __reduce__(self) -> Any:
        return time.sleep, (3.0,)


class Slow(RegressorMixin, BaseEstimator):
    """Takes `seconds` for a fit, or does what `what` says."""

    def __init__(self, seconds: float = 0.0, what: str = "") -> None:
        self.seconds, self.what = seconds, what

    def fit(self, X: Any, y: Any) -> Slow:
        if self.what == "fork" and hasattr(os, "fork") and os.fork() == 0:
            time.sleep(600.0)  # and keeps all files of its parent open
            os._exit(0)
        time.sleep(self.seconds)
        if self.what == "die":
            os._exit(3)
        if self.what == "raise":
            raise ArithmeticError("as asked")
        if self.what == "odd":
            raise OddError("as odd", 1)
        if self.what == "warn":
            warnings.warn("from the fit", stacklevel=1)
            print("printed by the fit")
        self.mean_ = y.mean() + np.random.normal()
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.mean_)


def splits_of(search: Any) -> Any:
    return np.array([search.cv_results_[f"split{i}_test_score"] for i in range(search.n_splits_)])


@pytest.mark.slow
def test_a_fit_that_takes_too_long_is_ended_and_the_others_are_scikit_learns() -> None:
    grid, split = {"seconds": [0.0, 600.0]}, [(np.arange(40), np.arange(40, 60))]
    with pytest.warns(
        FitFailedWarning, match="(?s)1 fits failed.*took more than fit_timeout=2 seconds"
    ) as caught:
        search = GridSearchCV(Slow(what="fork"), grid, cv=split, fit_timeout=2, refit=False).fit(X, Y)
    (text,) = [str(one.message) for one in caught if one.category is FitFailedWarning]
    assert "{'seconds': 600.0} on split 0" in text and "another exception" not in text
    assert np.isfinite(splits_of(search)).tolist() == [[True, False]]
    assert search.best_params_ == {"seconds": 0.0} and search.report_.seconds["total"] < 300


@pytest.mark.slow
@pytest.mark.thorough
def test_scores_draws_warnings_and_prints_are_those_of_fits_in_this_process(capfd: Any) -> None:
    np.random.seed(0)
    theirs = SklearnGridSearchCV(Slow(), {"seconds": [0.0, 0.001]}, cv=2).fit(X, Y)
    np.random.seed(0)
    ours = GridSearchCV(Slow(), {"seconds": [0.0, 0.001]}, cv=2, fit_timeout=60).fit(X, Y)
    np.testing.assert_array_equal(splits_of(ours), splits_of(theirs))
    with pytest.warns(UserWarning, match="from the fit"):
        GridSearchCV(Slow(), {"what": ["warn"]}, cv=2, fit_timeout=60, refit=False, verbose=3).fit(X, Y)
    out = capfd.readouterr().out
    assert out.count("printed by the fit") == 2 and out.count("[CV 1/2] END") == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        options: dict[str, Any] = {"refit": False, "error_score": "raise"}
        with pytest.raises(UserWarning, match="from the fit"):
            GridSearchCV(Slow(), {"what": ["warn"]}, cv=2, fit_timeout=60, **options).fit(X, Y)


@pytest.mark.slow
def test_a_fit_that_ends_its_process_has_failed_and_one_that_raises_says_so() -> None:
    grid, split = {"what": ["", "die", "raise"]}, [(np.arange(40), np.arange(40, 60))]
    with pytest.warns(FitFailedWarning, match="2 fits failed") as caught:
        search = GridSearchCV(Slow(), grid, cv=split, fit_timeout=60, error_score=-5.0, verify=6).fit(X, Y)
    (verified,) = search.report_.verification
    assert verified["params"] == {"what": ""}  # not the fit that dies
    text = str(next(one.message for one in caught if one.category is FitFailedWarning))
    assert "ended its process, with exit code 3" in text and "ArithmeticError: as asked" in text
    assert splits_of(search)[:, 1:].tolist() == [[-5.0, -5.0]]
    with pytest.raises(ArithmeticError, match="as asked"):
        GridSearchCV(Slow(what="raise"), {"seconds": [0]}, fit_timeout=60, error_score="raise").fit(X, Y)
    with pytest.raises(RuntimeError, match="OddError: as odd"):
        GridSearchCV(Slow(what="odd"), {"seconds": [0]}, fit_timeout=60, error_score="raise").fit(X, Y)


def test_steps_are_not_shared_and_shared_fits_have_no_limit() -> None:
    pipe = make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(2,), max_iter=3, random_state=0))
    grid = {"mlpregressor__alpha": [0.1, 1.0]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = SklearnGridSearchCV(pipe, grid, cv=2).fit(X, Y)
        ours = GridSearchCV(pipe, grid, cv=2, fit_timeout=60).fit(X, Y)
    np.testing.assert_array_equal(splits_of(ours), splits_of(theirs))
    assert ours.report_.transformer_fits_saved == 0
    assert GridSearchCV(Ridge(), {"alpha": [1, 2]}, fit_timeout=1e-9).fit(X, Y).report_.fits_done == 0


@pytest.mark.thorough
def test_what_a_fit_has_to_import_does_not_count() -> None:
    split = [(np.arange(40), np.arange(40, 60))]
    grid = {"what": [SlowToRead()]}
    search = GridSearchCV(Slow(), grid, cv=split, fit_timeout=2, error_score="raise", refit=False)
    assert np.isfinite(search.fit(X, Y).best_score_)


@pytest.mark.thorough
def test_threads_have_a_process_each_and_an_error_ends_the_search() -> None:
    with pytest.raises(TimeoutError, match=r"'seconds': 60.* on split 0 took more than fit_timeout=1"):
        GridSearchCV(Slow(), {"seconds": [60]}, cv=2, fit_timeout=1, error_score="raise").fit(X, Y)
    grid = {"seconds": [0.0, 30.0, 0.01]}
    with parallel_config(backend="threading"), pytest.warns(FitFailedWarning, match="2 fits failed"):
        search = GridSearchCV(Slow(), grid, cv=2, n_jobs=2, fit_timeout=1, refit=False).fit(X, Y)
    assert np.isnan(splits_of(search)).any(axis=0).tolist() == [False, True, False]


@pytest.mark.thorough
def test_processes_and_a_cluster_end_fits_too() -> None:
    from distributed import Client, LocalCluster

    grid = {"seconds": [0.0, 60.0, 0.01]}
    cluster = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client:
        for options in ({"n_jobs": 2}, {"client": client}):
            with pytest.warns(FitFailedWarning, match="2 fits failed"):
                search = GridSearchCV(Slow(), grid, cv=2, fit_timeout=1, refit=False, **options).fit(X, Y)
            assert np.isnan(splits_of(search)).any(axis=0).tolist() == [False, True, False]


@pytest.mark.thorough
def test_an_idle_process_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_timed_fits, "_IDLE_S", 0.05)
    GridSearchCV(Slow(), {"seconds": [0.0]}, cv=2, fit_timeout=60, refit=False).fit(X, Y)
    process = _timed_fits._LOCAL.process
    until = time.perf_counter() + 10
    while process._process is not None and time.perf_counter() < until:
        time.sleep(0.01)
    assert process._process is None
    GridSearchCV(Slow(), {"seconds": [0.0]}, cv=2, fit_timeout=60, refit=False).fit(X, Y)


@pytest.mark.parametrize("wrong", [0, -1, True, "1"])
def test_what_is_no_limit(wrong: Any) -> None:
    with pytest.raises(ValueError, match="'fit_timeout' parameter of RandomizedSearchCV"):
        RandomizedSearchCV(Slow(), {"seconds": [1]}, n_iter=1, fit_timeout=wrong).fit(X, Y)
