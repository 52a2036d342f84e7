"""With `race` settings that are clearly worse on the first splits are not fitted on the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator
from sklearn.datasets import make_classification
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV as SklearnGridSearchCV
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from manyfit.model_selection import GridSearchCV, RandomizedSearchCV
from manyfit.model_selection.running._race import RULES, Race, margin

X, Y = make_classification(300, 8, n_informative=3, flip_y=0.2, random_state=0)
GRID = {"max_depth": [1, 2, 3, 5, 8], "min_samples_leaf": [1, 100]}
TREE = DecisionTreeClassifier(random_state=0)


class Fixed(BaseEstimator):
    """Scores `quality`, plus what the first row says of the split; it counts its fits."""

    fits: list[Any] = []  # noqa: RUF012

    def __init__(self, quality: float = 0.0) -> None:
        self.quality = quality

    def fit(self, X: Any, y: Any = None) -> Fixed:
        Fixed.fits.append(self.quality)
        if self.quality == "fails":
            raise ValueError("as asked")
        self.fitted_ = True
        return self

    def score(self, X: Any, y: Any = None) -> float:
        return self.quality + X[0, 0] % 0.7

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.quality)


@pytest.mark.cases(2)
@pytest.mark.parametrize("race", ["wilcoxon", "t-test", 0.1])
def test_scores_that_are_made_are_those_of_a_full_search_and_the_best_setting_has_all(race: Any) -> None:
    full = SklearnGridSearchCV(TREE, GRID, cv=10).fit(X, Y)
    search = GridSearchCV(TREE, GRID, cv=10, race=race, return_train_score=True).fit(X, Y)
    theirs = np.array([full.cv_results_[f"split{i}_test_score"] for i in range(10)])
    ours = np.array([search.cv_results_[f"split{i}_test_score"] for i in range(10)])
    made = np.isfinite(ours)
    np.testing.assert_array_equal(ours[made], theirs[made])
    assert made[:, search.best_index_].all()
    assert search.best_score_ == np.nanmax(search.cv_results_["mean_test_score"])
    assert search.best_params_ == full.best_params_
    report = search.report_
    assert report.dropped, "bad settings among these are clearly worse"
    for one in report.dropped:
        c = one["candidate"]
        assert one["fits"] == made[:, c].sum() == 10 - one["fits_not_made"]
        assert one["params"] == search.cv_results_["params"][c]
        assert search.cv_results_["rank_test_score"][c] > made.all(axis=0).sum() - 1
    assert report.fits_requested == made.sum()
    assert f"{sum(one['fits_not_made'] for one in report.dropped)} fits were not made" in str(report)


def test_a_setting_is_compared_on_the_same_splits_only_and_dropped_early() -> None:
    Fixed.fits.clear()
    rows = np.random.default_rng(0).normal(size=(60, 1))
    grid = {"quality": [0.0, 0.5, 0.1, 0.49]}
    search = GridSearchCV(Fixed(), grid, cv=6, race=0.2, refit=False).fit(rows)
    assert [one["fits"] for one in search.report_.dropped] == [2, 2]
    assert Fixed.fits.count(0.0) == Fixed.fits.count(0.1) == 2
    assert Fixed.fits.count(0.5) == Fixed.fits.count(0.49) == 6


@pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.FitFailedWarning", "ignore:One or more of the test scores"
)
def test_a_setting_whose_fit_fails_is_out() -> None:
    rows = np.random.default_rng(0).normal(size=(60, 1))
    search = GridSearchCV(Fixed(), {"quality": ["fails", 1.0]}, cv=6, race="t-test").fit(rows)
    assert [(one["candidate"], one["fits"]) for one in search.report_.dropped] == [(0, 3)]
    assert search.best_index_ == 1


def test_shared_fits_do_not_race() -> None:
    plain = GridSearchCV(Ridge(), {"alpha": [1e-3, 1e6]}).fit(X, Y)
    search = GridSearchCV(Ridge(), {"alpha": [1e-3, 1e6]}, race=0.0).fit(X, Y)
    assert search.report_.dropped == []
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"])


def test_a_family_that_makes_a_fit_for_each_setting_races_with_what_its_fits_share(tmp_path: Any) -> None:
    grid = {"C": [1e-4, 1e-3, 1.0, 2.0], "gamma": [0.01, 10.0]}
    full = SklearnGridSearchCV(SVC(), grid, cv=8).fit(X, Y)
    search = GridSearchCV(SVC(), grid, cv=8, race="wilcoxon", checkpoint=tmp_path / "fits").fit(X, Y)
    ours = np.array([search.cv_results_[f"split{i}_test_score"] for i in range(8)])
    theirs = np.array([full.cv_results_[f"split{i}_test_score"] for i in range(8)])
    made = np.isfinite(ours)
    np.testing.assert_array_equal(ours[made], theirs[made])
    report = search.report_
    assert report.fits_done == report.fits_requested == made.sum() < 64 and report.dropped
    assert report.family_fits > 24 and f"of {made.sum()} fits" in str(report)
    assert search.best_params_ == full.best_params_
    again = GridSearchCV(SVC(), grid, cv=8, race="wilcoxon", checkpoint=tmp_path / "fits").fit(X, Y)
    assert again.report_.dropped == report.dropped and again.report_.fits_restored == made.sum()


def test_restored_fits_and_a_time_budget(tmp_path: Any) -> None:
    one = GridSearchCV(TREE, GRID, cv=6, race="t-test").fit(X, Y)
    path = tmp_path / "fits"
    for options in ({"checkpoint": path}, {"checkpoint": path}, {"time_budget": 1e6}):
        search = GridSearchCV(TREE, GRID, cv=6, race="t-test", **options).fit(X, Y)
        assert search.best_params_ == one.best_params_ and search.report_.stopped is None
        if "checkpoint" in options:
            assert search.report_.dropped == one.report_.dropped
    assert GridSearchCV(TREE, GRID, cv=6, race="t-test", checkpoint=path).fit(X, Y).report_.fits_done == 0


def test_workers_race_too() -> None:
    alone = GridSearchCV(TREE, GRID, cv=6, race="t-test").fit(X, Y)
    with parallel_config(backend="threading"):
        search = GridSearchCV(TREE, GRID, cv=6, race="t-test", n_jobs=2).fit(X, Y)
    assert search.report_.dropped == alone.report_.dropped and search.best_params_ == alone.best_params_


def test_several_metrics_need_one_that_decides() -> None:
    scoring = ["accuracy", "roc_auc"]
    search = GridSearchCV(TREE, GRID, cv=5, race="t-test", scoring=scoring, refit="roc_auc").fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_roc_auc"][search.best_index_])
    Fixed.fits.clear()
    for given in (scoring, lambda model, X, y: {"a": model.score(X, y), "b": 0.0}):
        search = GridSearchCV(Fixed(), {"quality": [0.0, 1.0]}, race="t-test", scoring=given, refit=False)
        with pytest.raises(ValueError, match="race compares settings by one score.*Set `refit` to the name"):
            search.fit(X, Y)
        assert len(Fixed.fits) == (0 if given is scoring else 6)  # of a function they are known later


@pytest.mark.parametrize("wrong", [-0.1, "anova", True])
def test_what_is_no_race(wrong: Any) -> None:
    with pytest.raises(ValueError, match="'race' parameter of GridSearchCV"):
        GridSearchCV(TREE, GRID, race=wrong).fit(X, Y)


def test_too_few_splits() -> None:
    with pytest.raises(ValueError, match="race='wilcoxon' compares settings after 4 splits.*has 3"):
        RandomizedSearchCV(TREE, GRID, cv=3, race="wilcoxon", n_iter=4).fit(X, Y)


def test_rules_by_hand() -> None:
    best, own = np.array([0.5, 0.6, 0.7, 0.8]), np.array([0.4, 0.5, 0.55, 0.7])
    wilcoxon, t_test = RULES["wilcoxon"], RULES["t-test"]
    assert wilcoxon.worse(best, own) and not wilcoxon.worse(best[:3], own[:3])  # 2**-4 < 0.1 < 2**-3
    assert t_test.worse(best, own) and not t_test.worse(best, own[::-1])
    assert margin(0.1).worse(best, own) and not margin(0.2).worse(best, own)
    assert not wilcoxon.worse(best, best) and not t_test.worse(best, best)


def test_at_least_one_setting_stays_whatever_splits_a_checkpoint_has() -> None:
    results = {(0, 0): 1.0, (0, 1): 0.0, (0, 2): 0.0, (1, 1): 1.0, (1, 2): 0.5, (1, 3): 0.0}
    race = Race(margin(0.1), None)
    kept = {pair: {"test_scores": score} for pair, score in results.items()}
    pairs = [(c, i) for c in range(2) for i in range(5) if (c, i) not in kept]
    for stage in race.stages(pairs, kept, 1):
        for c, i in stage:
            kept[c, i] = {"test_scores": float(i % 2 == c)}
    complete = [c for c in range(2) if all((c, i) in kept for i in range(5))]
    assert complete
