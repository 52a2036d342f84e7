"""Searches of scikit-learn's own classes under `install`, against the same searches without."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
import weakref
from contextlib import nullcontext

import cloudpickle
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV, GroupKFold, RandomizedSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import manyfit
from manyfit._compat import SklearnHalvingGridSearchCV as HalvingGridSearchCV
from manyfit._compat import SklearnHalvingRandomSearchCV as HalvingRandomSearchCV
from manyfit.installation import _settings
from manyfit.installation._searches import shadow_of
from manyfit.installation._settings import Settings
from tests.installation._searches import ALPHAS, OwnScore, same


def second(results):
    return 1


CASES = {
    "grid": lambda: GridSearchCV(Ridge(), ALPHAS),
    "pipeline": lambda: GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [1.0, 2.0]}),
    "randomized": lambda: RandomizedSearchCV(
        Ridge(), {"alpha": np.arange(1.0, 9.0)}, n_iter=4, random_state=1
    ),
    "generator": lambda: RandomizedSearchCV(
        Ridge(), {"alpha": np.arange(1.0, 9.0)}, n_iter=4, random_state=np.random.RandomState(3)
    ),
    "train scores": lambda: GridSearchCV(Ridge(), ALPHAS, return_train_score=True, cv=3),
    "metrics": lambda: GridSearchCV(
        Ridge(), ALPHAS, scoring=["r2", "neg_mean_squared_error"], refit="r2", cv=3
    ),
    "no refit": lambda: GridSearchCV(
        Ridge(), ALPHAS, scoring=["r2", "neg_mean_squared_error"], refit=False, cv=3
    ),
    "callable refit": lambda: GridSearchCV(Ridge(), ALPHAS, refit=second, cv=3),
    "joblib": lambda: GridSearchCV(Ridge(), ALPHAS, n_jobs=2, cv=3),
    "halving": lambda: HalvingGridSearchCV(
        make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [0.1, 1.0, 10.0]}, cv=3, random_state=0
    ),
    "halving, a parameter": lambda: HalvingRandomSearchCV(
        RandomForestRegressor(random_state=0, max_depth=3),
        {"ccp_alpha": np.array([0.0, 5.0, 50.0, 500.0])},
        cv=3,
        random_state=1,
        factor=2,
        resource="n_estimators",
        max_resources=8,
        min_resources=2,
    ),
    "unshared": lambda: GridSearchCV(
        DecisionTreeClassifier(random_state=0), {"min_samples_leaf": [1, 5]}, cv=3, scoring="accuracy"
    ),
}


@pytest.mark.cases(4)
@pytest.mark.parametrize("name", CASES)
def test_attributes_are_scikit_learns(name, regression):
    X, y = regression
    y = (y > 100).astype(int) if name == "unshared" else y
    expected = CASES[name]().fit(X, y)
    with manyfit.installed():
        found = CASES[name]()
        assert found.fit(X, y) is found
        same(expected, found)
        same(expected, found.fit(X, y)) if name != "generator" else None  # again
        assert manyfit.report_of(found) is manyfit.last_report()
        assert manyfit.report_of(found).fits_requested == len(found.cv_results_["params"]) * found.n_splits_
        assert (manyfit.report_of(found).fits_shared > 0) == (name != "unshared")
    np.testing.assert_allclose(found.predict(X), expected.predict(X)) if found.refit else None


def test_frames_groups_and_weights(regression):
    X, y = pd.DataFrame(regression[0]).add_prefix("f"), pd.Series(regression[1])
    given = {"groups": np.arange(len(y)) % 6, "sample_weight": np.linspace(1, 2, len(y))}
    searches = [GridSearchCV(Ridge(), ALPHAS, cv=GroupKFold(3)) for _ in range(2)]
    searches[0].fit(X, y, **given)
    with manyfit.installed():
        searches[1].fit(X, y, **given)
    same(*searches)
    assert manyfit.report_of(searches[1]).fits_shared == 9
    assert list(searches[1].feature_names_in_) == list(X.columns)


# What is left to scikit-learn


class Array(np.ndarray):
    """A class of arrays that only its own project knows."""


def test_foreign_data_are_left_to_scikit_learn(regression):
    X, y = regression[0].view(Array), regression[1]
    with manyfit.installed():
        search = GridSearchCV(Ridge(), ALPHAS).fit(X, y)
    (why,) = manyfit.report_of(search).left_to_sklearn
    assert why.startswith("data of the type ") and why.endswith(".Array")


@pytest.mark.skipif(
    not hasattr(GridSearchCV, "set_callbacks"), reason="scikit-learn before 1.9 has no callbacks"
)
def test_a_callback_of_ones_own_sees_the_search_itself(regression):
    seen = []

    class Sees:
        def setup(self, estimator, context):
            seen.append(estimator)

        def teardown(self, estimator, context):
            seen.append(estimator)

        def on_fit_task_begin(self, estimator, context, **_):
            seen.append(estimator)

        def on_fit_task_end(self, estimator, context, **_):
            seen.append(estimator)

    search = GridSearchCV(Ridge(), ALPHAS, cv=2).set_callbacks(Sees())
    with manyfit.installed():
        search.fit(*regression)
    assert seen and all(one is search for one in seen)
    assert "callbacks that are not scikit-learn's" in manyfit.report_of(search).left_to_sklearn


# Searches within others


def test_a_search_within_cross_validate(regression):
    def run():
        return cross_validate(GridSearchCV(Ridge(), ALPHAS, cv=3), *regression, cv=3, return_estimator=True)

    expected = run()
    with manyfit.installed():
        found = run()
        assert all(manyfit.report_of(inner).fits_shared == 9 for inner in found["estimator"])
    np.testing.assert_allclose(found["test_score"], expected["test_score"])
    for one, other in zip(expected["estimator"], found["estimator"], strict=True):
        assert type(other) is GridSearchCV
        same(one, other)


def test_a_search_in_worker_processes(regression):
    search = GridSearchCV(Ridge(), ALPHAS, cv=3)
    with manyfit.installed():
        found = cross_validate(search, *regression, cv=2, n_jobs=2, return_estimator=True)
    for one in found["estimator"]:
        # The time of a shared fit is divided evenly.
        assert len(set(one.cv_results_["mean_fit_time"])) == 1


def test_processes_that_make_fits_get_the_settings(regression):
    with manyfit.installed(sharing="exact", client=object()):
        assert _settings.current().fits_within(make_pipeline(StandardScaler(), Ridge())) is nullcontext
        within = pickle.loads(pickle.dumps(_settings.current().fits_within(GridSearchCV(Ridge(), ALPHAS))))
        installed = GridSearchCV.fit
        with within():
            assert GridSearchCV.fit is installed and _settings.current().client is not False
    before = GridSearchCV.fit
    with within():
        assert GridSearchCV.fit is not before
        assert (_settings.current().sharing, _settings.current().client) == ("exact", False)
    assert GridSearchCV.fit is before


def test_searches_inside_scikit_learn(regression):
    X, y = regression
    selector = SequentialFeatureSelector(Ridge(), n_features_to_select=2, cv=3)
    expected = RidgeCV([0.1, 1.0], cv=3).fit(X, y), clone(selector).fit(X, y).get_support()
    with manyfit.installed():
        ridge = RidgeCV([0.1, 1.0], cv=3).fit(X, y)
        assert manyfit.last_report().fits_shared == 6
        support = selector.fit(X, y).get_support()
        assert manyfit.last_report().fits_shared == 3
    np.testing.assert_allclose(ridge.coef_, expected[0].coef_)
    assert (ridge.alpha_, list(support)) == (expected[0].alpha_, list(expected[1]))


def test_manyfits_own_classes_are_as_before(regression):
    from manyfit.model_selection import GridSearchCV as Ours

    expected = Ours(Ridge(), ALPHAS).fit(*regression)
    with manyfit.installed(sharing="none"):
        found = Ours(Ridge(), ALPHAS).fit(*regression)
    assert found.report_ == expected.report_
    assert manyfit.report_of(found) is None


# Pickles and lifetimes

READ = """
import pickle, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "manyfit":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocked())
search, scores = pickle.load(sys.stdin.buffer)
kind = type(search)
print(kind.__module__, kind.__name__, search.best_params_, len(vars(search)), scores["fit_time"].shape)
assert not any(name.partition(".")[0] == "manyfit" for name in sys.modules)
"""


@pytest.mark.invariant("Pickles made under install() are read without manyfit")
def test_pickles_are_read_without_manyfit(regression):
    with manyfit.installed():
        search = GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [1.0, 9.0]})
        search.fit(*regression)
        written = pickle.dumps((search, cross_validate(Ridge(), *regression, return_estimator=True)))
    done = subprocess.run([sys.executable, "-c", READ], input=written, capture_output=True, check=True)
    shown = f"{type(search).__module__} GridSearchCV {search.best_params_} {len(vars(search))} (5,)"
    assert done.stdout.decode().strip() == shown


@pytest.mark.parametrize("cls", [GridSearchCV, OwnScore])
def test_whoever_pickles_a_shadow_gets_the_search(cls):
    """As joblib does with a search that has callbacks."""
    search = cls(Ridge(), ALPHAS)
    for pickler in (pickle, cloudpickle):
        copy = pickle.loads(pickler.dumps(shadow_of(search, GridSearchCV, Settings())))
        assert type(copy) is cls and vars(copy).keys() == vars(search).keys()


def test_a_report_goes_with_its_search(regression):
    with manyfit.installed():
        search = GridSearchCV(Ridge(), ALPHAS).fit(*regression)
    assert manyfit.report_of(clone(search)) is None
    gone = weakref.ref(search)
    del search
    gc.collect()
    assert gone() is None
