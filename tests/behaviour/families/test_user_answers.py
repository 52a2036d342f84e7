"""What a user's family answers: other classes, other shapes, or nothing."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from manyfit.estimators import (
    Family,
    LinearAnswers,
    Predictions,
    register_family,
)
from manyfit.metrics import LinearPredictors
from tests._same_results import both
from tests.behaviour.families._user_families import GRID, RowsFamily, Shrunk, ShrunkFamily


class PredictsFromMoments(ShrunkFamily):
    def fit_many(self, estimator, settings, folded):
        for answers in super().fit_many(estimator, settings, folded):
            yield Predictions({"predict": answers.linear.at_origin})


def test_a_family_of_moments_that_predicts_is_told_what_to_give(registered):
    registered(PredictsFromMoments())
    report = both(Shrunk(), {"factor": [0.5, 2.0]}, cv=3).report_
    why = "PredictsFromMoments reads moments, and has to give LinearAnswers, not Predictions"
    assert report.left_to_sklearn == {why: 6}


class DoubledAnswers(LinearAnswers):
    """Answers of a kind of its own, which predict the double."""

    reads_moments = False

    def respond(self, role, fold):
        return {"predict": 2.0 * super().respond(role, fold)["predict"]}


class Doubled(Shrunk):
    def predict(self, X):
        return 2.0 * super().predict(X)


class DoubledFamily(ShrunkFamily):
    serves = (Doubled,)

    def fit_many(self, estimator, settings, folded):
        for answers in super().fit_many(estimator, settings, folded):
            yield DoubledAnswers(answers.linear)


def test_answers_of_other_classes_are_scored_apart(registered):
    registered(ShrunkFamily())
    registered(DoubledFamily())
    grid = {"last": [Shrunk(), Doubled()], "last__factor": [0.5, 0.8]}
    model = Pipeline([("scale", StandardScaler()), ("last", Shrunk())])
    search = both(model, grid, scoring="neg_mean_squared_error", refit=False)
    assert search.report_.fits_done == 0


def _without_targets(found):
    linear = found.linear
    return LinearAnswers(LinearPredictors(linear.coef[:, :, 0], linear.at_origin, linear.origin))


def _flat_at_origin(found):
    linear = found.linear
    return LinearAnswers(LinearPredictors(linear.coef, linear.at_origin[:, 0], linear.origin))


@pytest.mark.parametrize(
    ("base", "change", "fact"),
    [
        (ShrunkFamily, _without_targets, r"coef of shape \(\d+, 3\), not \(\d+, 3, 1\)"),
        (ShrunkFamily, _flat_at_origin, r"at_origin of shape \(3,\), not \(3, 1\)"),
        (ShrunkFamily, lambda found: LinearAnswers(found.linear, {3: "late"}), "refused="),
        (RowsFamily, lambda found: Predictions({"predict": found.test["predict"].T}), "predict of shape"),
        (RowsFamily, lambda found: Predictions(found.test, found.test), "for the train rows"),
        (RowsFamily, lambda found: Predictions(found.test, classes=np.array([0, 1])), "classes="),
    ],
)
def test_answers_that_do_not_fit_the_fold_are_not_scored(base, change, fact, registered):
    class Wrong(base):
        def fit_many(self, estimator, settings, folded):
            for answers in super().fit_many(estimator, settings, folded):
                yield change(answers)

    registered(Wrong())
    report = both(Shrunk(), GRID, may_fail=True).report_
    assert report.fits_done == 15
    for why in report.left_to_sklearn:
        assert re.search(rf"^shared work failed \(ValueError: Wrong\.fit_many gave .*{fact}", why)


class NoAnswers(RowsFamily):
    def fit_many(self, estimator, settings, folded):
        yield {"predict": np.zeros((len(settings), 2))}


def test_what_is_no_answer_is_named(registered):
    registered(NoAnswers())
    report = both(Shrunk(), GRID, cv=3).report_
    assert report.left_to_sklearn == {"NoAnswers has to give Answers, not dict": 9}


def test_a_family_that_says_not_what_it_reads_is_refused():
    class Old:
        serves, free, result, needs = (Shrunk,), frozenset({"factor"}), "exact", "rows"

    class Silent(Family):
        serves, free, result, reads = (Shrunk,), frozenset({"factor"}), "exact", "rows"

    with pytest.raises(TypeError, match=r"^Old should inherit from manyfit\.estimators\.Family"):
        register_family(Old())
    with pytest.raises(TypeError, match=r"^Silent\.reads should be MomentSums\(\)"):
        register_family(Silent())
