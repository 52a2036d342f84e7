"""Fits of steps that were not made are counted where they are saved; with those made they are all."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import MinMaxScaler, QuantileTransformer, RobustScaler, StandardScaler

from manyfit.families.least_squares._ridge import RidgeFamily
from manyfit.folds import Unsupported
from manyfit.model_selection import GridSearchCV
from manyfit.model_selection.results._result_sink import ResultSink
from tests._covering import covering
from tests._same_results import X, Y

ALPHAS = [0.1, 1.0, 10.0]
CLIPPED = MinMaxScaler(clip=True)  # not linear: settings share it as a step
COLUMNS = ColumnTransformer(
    [("a", make_pipeline(CLIPPED, RobustScaler()), [0, 1]), ("b", StandardScaler(), [2])]
)
UNION = FeatureUnion([("a", CLIPPED), ("b", StandardScaler())])


@pytest.mark.parametrize(
    ("n_jobs", "last", "steps", "n_steps", "more"),
    covering(
        [None, 2],
        [Lasso, Ridge],
        [
            ((CLIPPED, RobustScaler()), 2, {}),
            ((CLIPPED, RobustScaler()), 2, {"robustscaler__with_centering": [True, False]}),
            ((COLUMNS, StandardScaler()), 4, {"columntransformer__b__with_mean": [True, False]}),
            ((UNION,), 2, {}),
        ],
        strength=1,
    ),
)
def test_made_and_saved_are_all(steps, n_steps, more, last, n_jobs):
    pipe = make_pipeline(*steps, last())
    grid = {f"{last.__name__.lower()}__alpha": ALPHAS, **more}
    report = GridSearchCV(pipe, grid, cv=4, n_jobs=n_jobs).fit(X, Y).report_
    assert 0 < report.transformer_fits < report.transformer_fits_saved + report.transformer_fits
    assert report.transformer_fits + report.transformer_fits_saved == n_steps * report.fits_requested
    assert re.search(rf"fits of transformers saved +{report.transformer_fits_saved}\n", str(report))


def test_steps_at_the_front_that_are_applied_to_all_rows_at_once():
    texts = ["a word", "an other word", "words", "no thing"] * 10
    pipe = make_pipeline(HashingVectorizer(n_features=16), TfidfTransformer(), Lasso())
    report = GridSearchCV(pipe, {"lasso__alpha": ALPHAS}, cv=4).fit(texts, np.arange(40.0)).report_
    assert report.transformer_fits == 1 + 4
    assert report.transformer_fits + report.transformer_fits_saved == 2 * 12


def test_nothing_is_saved_where_nothing_is_shared():
    for pipe in (Lasso(), make_pipeline(CLIPPED, Lasso())):
        grid = {f"{name}": ALPHAS for name in pipe.get_params() if name.endswith("alpha")}
        report = GridSearchCV(pipe, grid, cv=4, sharing="none").fit(X, Y).report_
        assert report.transformer_fits_saved == 0 and "saved" not in str(report)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("last", [Lasso, Ridge])
def test_the_bar_says_so(last, n_jobs, monkeypatch):
    kept = []
    monkeypatch.setattr(ResultSink, "__enter__", lambda self: kept.append(self) or self)
    pipe = make_pipeline(CLIPPED, RobustScaler(), last())
    grid = {f"{last.__name__.lower()}__alpha": ALPHAS}
    search = GridSearchCV(pipe, grid, cv=4, n_jobs=n_jobs, verbose=1).fit(X, Y)
    (arrivals,) = kept
    assert arrivals.steps_saved == search.report_.transformer_fits_saved == 16


TEXTS = [" ".join(np.random.default_rng(i).choice(list("abcdefghij"), 6)) * 2 for i in range(60)]
LABELS = np.arange(60) % 2
WORDS = TfidfVectorizer(token_pattern="[a-j]")


class LeavesSome(RidgeFamily):
    """Leaves the settings named by `left`, or refuses all; some only after it was asked."""

    left: tuple[float, ...] = ()
    fails = False

    def fit_many(self, prototype, settings, folded):
        if self.fails:
            raise Unsupported("not today")
        for answers in super().fit_many(prototype, settings, folded):
            refused = {j: "left" for j, one in enumerate(settings) if one["alpha"] in self.left}
            yield replace(answers, refused={**answers.refused, **refused})


@pytest.mark.parametrize(
    ("n_jobs", "steps", "left", "fails"),
    covering(
        [None, 2],
        [[MinMaxScaler(clip=True)], [COLUMNS, QuantileTransformer(n_quantiles=9)]],
        [((), False), ((1.0,), False), (tuple(ALPHAS), False), ((), True)],
        strength=1,
    ),
)
def test_made_and_saved_are_all_where_a_family_leaves_settings(left, fails, steps, n_jobs, registered):
    family = registered(LeavesSome())
    family.left, family.fails = left, fails
    pipe = make_pipeline(*steps, Ridge())
    report = GridSearchCV(pipe, {"ridge__alpha": ALPHAS}, cv=4, n_jobs=n_jobs).fit(X, Y).report_
    n_steps = {1: 1, 2: 4}[len(steps)]
    assert report.transformer_fits == n_steps * 4
    assert report.transformer_fits_saved == n_steps * 8


@pytest.mark.parametrize("steps", [(WORDS,), (WORDS, TfidfTransformer())])
def test_made_and_saved_are_all_where_a_family_declines(steps):
    pipe = make_pipeline(*steps, LogisticRegression())
    grid = {"logisticregression__C": [0.01, 0.1, 1.0, 10.0]}
    report = GridSearchCV(pipe, grid, cv=3).fit(TEXTS, LABELS).report_
    assert report.transformer_fits + report.transformer_fits_saved == len(steps) * 12


def test_nothing_is_saved_where_scikit_learn_fits_what_a_family_refused(tmp_path):
    """The family reads steps that no other setting shares, since the pipeline has a `memory`."""
    rows = X.copy()
    rows[0, 0] = np.nan
    pipe = make_pipeline(CLIPPED, Ridge(), memory=str(tmp_path))
    search = GridSearchCV(pipe, {"ridge__alpha": ALPHAS}, cv=4, refit=False)
    with warnings.catch_warnings(action="ignore"):  # fits and scores fail
        report = search.fit(rows, Y).report_
    assert sum(report.left_to_sklearn.values()) == report.fits_requested
    assert (report.transformer_fits, report.transformer_fits_saved) == (4, 0)
