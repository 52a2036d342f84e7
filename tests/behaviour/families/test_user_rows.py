"""A user's family that reads the rows of a fold: sparse ones, weights, and fits of its own."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
import scipy.sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import get_scorer, make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from manyfit.estimators import (
    FoldRows,
    Predictions,
)
from manyfit.model_selection import GridSearchCV
from tests._same_results import X, Y, both
from tests.behaviour.families._user_families import GRID, AverageFamily, ByAverage, Shrunk, ShrunkFamily

WEIGHTS = np.random.default_rng(0).uniform(0.5, 2.0, size=len(Y))


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_plan_and_report_count_the_fits_of_a_family(n_jobs, registered):
    registered(AverageFamily())
    search = both(ByAverage(), GRID, ours={"n_jobs": n_jobs}, return_train_score=True)
    plan, report = search.plan(X, Y), search.report_
    assert (plan.fits_planned, plan.fits_undecided) == (5, 15)
    made = "15 fits asked for, 5 to 15 to be made, up to 5 of them twice"
    assert f"{made}\n" in str(plan)  # and not 20 of 15
    again = "scikit-learn makes a fit again that shared work cannot use"
    assert f"{made}; decided when the rows of a split are seen; {again}" in str(plan)
    assert '<td data-name="fits to be made">5 to 15, up to 5 twice</td>' in plan._repr_html_()
    assert "─ fits of the last step shared where that pays\n" in str(plan)
    assert (report.fits_done, report.family_fits, report.fits_shared) == (5, 5, 15)
    assert re.search(r"made one by one +0\n.*made in shared work +5\n", str(report))


def test_fits_of_a_family_whose_scorer_fails_are_counted_apart(registered):
    """The family's own fits answer nothing, so scikit-learn makes every fit that was asked for."""

    def fails(y_true, y_pred):
        raise ValueError("this metric always fails")

    registered(AverageFamily())
    search = GridSearchCV(ByAverage(), GRID, scoring=make_scorer(fails), refit=False)
    with pytest.warns(UserWarning, match="Scoring failed|non-finite"):
        report = search.fit(X, Y).report_
    assert (report.family_fits, report.fits_shared, report.fits_done) == (5, 0, 20)
    plan = search.plan(X, Y)
    assert report.fits_done == plan.fits_planned + plan.fits_undecided
    assert re.search(r"shared work +0\n.*one by one +15\n.*in shared work +5\n", str(report))
    assert pickle.loads(pickle.dumps(report)) == report
    assert report.merged(report).family_fits == 10


def test_a_family_reads_sparse_rows(registered):
    class Dense(AverageFamily):
        reads = FoldRows()

    class Sparse(AverageFamily):
        def read(self, fold):
            assert scipy.sparse.issparse(fold.X_train) and scipy.sparse.issparse(fold.X_test)

    rows = scipy.sparse.csr_matrix(X)
    for family, made in ((Sparse(), 5), (Dense(), 15)):
        registered(family)
        report = GridSearchCV(ByAverage(), GRID).fit(rows, Y).report_
        assert report.fits_done == made


@pytest.mark.parametrize("model", [ByAverage(), make_pipeline(PolynomialFeatures(), ByAverage())])
def test_a_family_reads_weights(model, registered):
    registered(AverageFamily())
    prefix = "byaverage__" if hasattr(model, "steps") else ""
    grid, weights = {f"{prefix}factor": [0.5, 1.0, 2.0]}, {f"{prefix}sample_weight": WEIGHTS}
    search = GridSearchCV(model, grid, return_train_score=True).fit(X, Y, **weights)
    alone = GridSearchCV(model, grid, return_train_score=True, sharing="none").fit(X, Y, **weights)
    for key in ("mean_test_score", "mean_train_score"):
        np.testing.assert_allclose(search.cv_results_[key], alone.cv_results_[key], rtol=1e-12)
    assert (search.report_.fits_done, alone.report_.fits_done) == (5, 15)


def test_scores_are_weighted_by_routing(registered):
    registered(AverageFamily())
    with config_context(enable_metadata_routing=True):
        model = ByAverage().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(model, GRID).fit(X, Y, sample_weight=WEIGHTS)
        alone = GridSearchCV(model, GRID, sharing="none").fit(X, Y, sample_weight=WEIGHTS)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"], rtol=1e-12
    )
    assert (search.report_.fits_done, alone.report_.fits_done) == (5, 15)


def test_weights_that_a_family_does_not_read_are_named(registered):
    class Unweighted(AverageFamily):
        reads = FoldRows()

    registered(Unweighted())
    search = GridSearchCV(ByAverage(), GRID).fit(X, Y, sample_weight=WEIGHTS)
    assert search.report_.fits_done == 15
    assert [group["reason"] for group in search.report_.groups] == ["Unweighted does not read weights"]


class Weightless(Shrunk):
    """Its fit takes no weights, as that of `Shrunk`."""


class AverageForWeightless(AverageFamily):
    """A family that reads weights, of an estimator that takes none."""

    serves = (Weightless,)

    def fit_many(self, estimator, settings, folded):
        for fold in map(folded.fold, range(folded.n_splits)):
            yield Predictions({"predict": np.zeros((len(settings), len(fold.y_test)))})


class WeightlessByMoments(ShrunkFamily):
    serves = (Weightless,)


@pytest.mark.parametrize("steps", [(), (StandardScaler(),), (PolynomialFeatures(),)], ids=str)
@pytest.mark.parametrize("family", [AverageForWeightless(), WeightlessByMoments()])
def test_weights_that_a_fit_does_not_take_are_refused_as_by_sklearn(family, steps, registered):
    registered(family)
    model = make_pipeline(*steps, Weightless()) if steps else Weightless()
    prefix = "weightless__" if steps else ""
    weights = {f"{prefix}sample_weight": WEIGHTS}
    search = GridSearchCV(model, {f"{prefix}factor": [0.5, 1.0]}, error_score="raise", refit=False)
    assert {group.kind for group in search.plan(X, Y, **weights).groups} <= {"shared steps", "one by one"}
    with pytest.raises(TypeError, match="unexpected keyword argument 'sample_weight'"):
        search.fit(X, Y, **weights)


class RequestsWeights(Weightless):
    """Requests weights through routing although its fit takes none."""

    __metadata_request__fit = {"sample_weight": True}  # noqa: RUF012


def test_routed_weights_that_a_fit_does_not_take_are_refused_as_by_sklearn(registered):
    class Serves(AverageForWeightless):
        serves = (RequestsWeights,)

    registered(Serves())
    with config_context(enable_metadata_routing=True):
        scoring = get_scorer("r2").set_score_request(sample_weight=False)
        for model, name in ((RequestsWeights(), ""), (make_pipeline(RequestsWeights()), "requestsweights__")):
            search = GridSearchCV(
                model, {f"{name}factor": [0.5, 1.0]}, scoring=scoring, error_score="raise", refit=False
            )
            plan = search.plan(X, Y, sample_weight=WEIGHTS)
            assert "the fit of RequestsWeights takes no sample_weight" in str(plan)
            with pytest.raises(TypeError, match="unexpected keyword argument 'sample_weight'"):
                search.fit(X, Y, sample_weight=WEIGHTS)


class ForestFamily(AverageFamily):
    serves, free = (RandomForestRegressor,), frozenset({"n_estimators"})

    def fit_many(self, estimator, settings, folded):
        for fold in map(folded.fold, range(folded.n_splits)):
            counts = [setting["n_estimators"] for setting in settings]
            forest = clone(estimator).set_params(n_estimators=max(counts)).fit(fold.X_train, fold.y_train)
            trees = np.stack([tree.predict(fold.X_test) for tree in forest.estimators_])
            yield Predictions({"predict": np.stack([trees[:n].mean(axis=0) for n in counts])}, fits_made=1)


@pytest.mark.parametrize(("seed", "made"), [(0, 3), (None, 6)])
def test_a_last_step_that_draws_is_not_shared(seed, made, registered):
    """Fits of one forest are no others' unless its seed is an integer."""
    registered(ForestFamily())
    search = GridSearchCV(
        RandomForestRegressor(random_state=seed), {"n_estimators": [3, 5]}, cv=3, refit=False
    )
    assert search.fit(X, Y).report_.fits_done == made
    reason = "RandomForestRegressor draws random numbers anew in each fit"
    assert (reason in str(search.plan(X, Y))) is (seed is None)
