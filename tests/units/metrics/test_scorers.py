"""Scorers with metrics that work on a device, wherever scikit-learn takes a scoring."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
import sklearn.metrics
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LogisticRegression, Ridge

from manyfit import metrics
from manyfit._compat import scorer_parts, scorers_by_name
from tests.behaviour.metrics._crossings import there


@pytest.mark.parametrize(
    "scoring",
    [
        "f1",
        ["f1", "accuracy"],
        ("roc_auc", "neg_log_loss"),
        {"recall"},
        {"a": "precision", "b": sklearn.metrics.make_scorer(sklearn.metrics.fbeta_score, beta=2)},
        metrics.get_scorer("f1"),
        None,
    ],
    ids=str,
)
def test_a_checked_scoring_is_scikit_learns_but_for_the_metrics(scoring):
    ours = metrics.check_scoring(LogisticRegression(), scoring)
    theirs = sklearn.metrics.check_scoring(LogisticRegression(), scoring)
    assert isinstance(ours, type(theirs)) and list(scorers_by_name(ours)) == list(scorers_by_name(theirs))
    for name, scorer in scorers_by_name(theirs).items():
        mine, plain = scorer_parts(scorers_by_name(ours)[name]), scorer_parts(scorer)
        if plain is None:
            assert scoring is None
            continue
        assert mine[1:] == plain[1:]
        assert mine[0] is getattr(metrics, plain[0].__name__)


@pytest.mark.parametrize("raise_exc", [True, False])
def test_whether_one_of_several_may_raise(raise_exc):
    def fails(estimator, X, y):
        raise ValueError("no score")

    scorer = metrics.check_scoring(scoring={"good": "r2", "bad": fails}, raise_exc=raise_exc)
    X, y = [[0.0], [1.0], [3.0]], [0.0, 1.0, 2.0]
    model = Ridge().fit(X, y)
    if raise_exc:
        with pytest.raises(ValueError, match="no score"):
            scorer(model, X, y)
    else:
        scores = scorer(model, X, y)
        assert "no score" in scores["bad"] and scores["good"] == model.score(X, y)


def test_what_scikit_learn_refuses_or_leaves_open():
    assert metrics.check_scoring(None, None, allow_none=True) is None
    assert inspect.signature(metrics.check_scoring).parameters.keys() == (
        inspect.signature(sklearn.metrics.check_scoring).parameters.keys()
    )
    for arguments in ((Ridge(), "nonsense"), (Ridge(), ["r2", "r2"]), (Ridge(), 5), (object(), None)):
        with pytest.raises(Exception) as expected:
            sklearn.metrics.check_scoring(*arguments)
        with pytest.raises(type(expected.value)) as found:
            metrics.check_scoring(*arguments)
        assert str(found.value) == str(expected.value)


@pytest.mark.parametrize(
    "scoring",
    [
        metrics.f1_score,
        {"a": "r2", "b": metrics.roc_auc_score},
        metrics.f1_score.many,
        metrics.roc_curve,
        metrics.pairwise.cosine_similarity,
    ],
    ids=["alone", "one of several", "many", "a curve", "pairwise"],
)
def test_a_metric_is_no_scorer(scoring):
    with pytest.raises(ValueError, match=r"metric function rather than a scorer.*`make_scorer` of manyfit"):
        metrics.check_scoring(LogisticRegression(), scoring)


def test_metrics_of_scikit_learn_are_refused_as_ever():
    with pytest.raises(ValueError, match="looks like it is a metric function"):
        metrics.check_scoring(LogisticRegression(), sklearn.metrics.f1_score)


class Predicted(RegressorMixin, BaseEstimator):
    """Predicts what it is given."""

    def __sklearn_is_fitted__(self):
        return True

    def predict(self, X):
        return X


@pytest.mark.parametrize("scoring", ["r2", ["r2", "neg_max_error"]], ids=str)
def test_scores_at_home_are_numbers(scoring):
    y, predicted = np.array([1.0, 2.0, 4.0]), np.array([1.5, 2.0, 3.0])
    weights = {"sample_weight": np.array([1.0, 2.0, 1.0])} if scoring == "r2" else {}
    wanted = sklearn.metrics.check_scoring(scoring=scoring)(Predicted(), predicted, y, **weights)
    scorer = metrics.scores_on_host(metrics.check_scoring(scoring=scoring))
    weights_there = {name: there(weight) for name, weight in weights.items()}
    for one in (scorer, pickle.loads(pickle.dumps(scorer))):
        scores = one(Predicted(), there(predicted), there(y), **weights_there)
        if isinstance(wanted, dict):
            assert {type(score) for score in scores.values()} == {float}
        else:
            assert type(scores) is float
        assert scores == pytest.approx(wanted, rel=1e-12)


def test_scores_at_home_leave_other_scorers_alone():
    def own(estimator, X, y):
        return 1.0

    assert metrics.scores_on_host(own) is own
    scorer = metrics.scores_on_host(metrics.get_scorer("f1_macro"))
    assert repr(scorer) == repr(sklearn.metrics.get_scorer("f1_macro"))
