"""Which scorers read shared answers, and that they give scikit-learn's numbers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import (
    check_scoring,
    fbeta_score,
    get_scorer,
    make_scorer,
    mean_squared_error,
    r2_score,
)
from sklearn.metrics._scorer import _Scorer

from manyfit.folds import FoldArrays, Unsupported
from manyfit.folds._single_fold import moments_of_rows
from manyfit.metrics import LinearPredictors, SharedScoring, residuals_from_moments

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
COEF = np.array([1.0, -2.0, 0.5])
Y = np.exp(X @ COEF / 4 + 0.1 * rng.normal(size=60))  # positive, for the logarithmic scorers
BINARY = (X @ COEF + rng.normal(size=60) > 0).astype(int)


def responses(model):
    return {name: getattr(model, name)(X) for name in ("predict", "predict_proba", "decision_function")}


def test_text_labels_and_pos_label():
    y = np.where(BINARY, "yes", "no")
    model = LogisticRegression().fit(X, y)
    scorer = make_scorer(fbeta_score, beta=2, pos_label="yes")
    stub = SharedScoring(scorer, {}, Ridge()).stub(responses(model), model.classes_)
    assert scorer(stub, None, y) == scorer(model, X, y)


def test_a_response_that_no_family_gave_is_named():
    stub = SharedScoring(get_scorer("roc_auc"), {}, Ridge()).stub({"predict": BINARY}, np.array([0, 1]))
    with pytest.raises(AttributeError, match="has no 'predict_proba': no family gave that response"):
        stub.predict_proba(None)


@pytest.mark.invariant("A scorer that may read the estimator receives a fitted one")
@pytest.mark.parametrize(
    "scoring",
    [
        lambda estimator, X, y: 0.0,
        {"mine": lambda estimator, X, y: 0.0, "r2": "r2"},
    ],
    ids=["one", "among others"],
)
def test_callables_may_read_the_estimator(scoring):
    scorer = check_scoring(DummyRegressor(), scoring=scoring)
    name = "mine" if isinstance(scoring, dict) else "score"
    with pytest.raises(Unsupported, match=f"the scorer '{name}' is a callable that may read the fitted"):
        SharedScoring(scorer, {}, Ridge())


def test_a_subclass_of_sklearns_scorer_may_too():
    class Nosy(_Scorer):
        pass

    with pytest.raises(Unsupported, match="is a callable"):
        SharedScoring(Nosy(r2_score, 1, {}, "predict"), {}, Ridge())


def test_unknown_arguments_of_a_scorer_are_named():
    with pytest.raises(Unsupported, match=r"the scorer takes \['groups', 'sample_weight'\]"):
        SharedScoring(get_scorer("r2"), {"sample_weight": None, "groups": None}, Ridge())


def test_weights_that_only_some_scorers_take():
    scorer = check_scoring(DummyRegressor(), scoring=["r2", "neg_max_error"])
    SharedScoring(scorer, {}, Ridge())
    with pytest.raises(Unsupported, match="not every scorer is given the sample_weight"):
        SharedScoring(scorer, {"sample_weight": np.ones(3)}, Ridge())


READS_MOMENTS = {
    "none: the estimator's r2": (None, True),
    "r2": ("r2", True),
    "neg_mean_squared_error": ("neg_mean_squared_error", True),
    "neg_root_mean_squared_error": ("neg_root_mean_squared_error", True),
    "explained_variance": ("explained_variance", True),
    "several": (["r2", "explained_variance"], True),
    "neg_mean_absolute_error": ("neg_mean_absolute_error", False),
    "one of several does not": (["r2", "neg_mean_absolute_error"], False),
    "r2 with arguments": (make_scorer(r2_score, multioutput="variance_weighted"), False),
}


@pytest.mark.parametrize(("scoring", "reads"), READS_MOMENTS.values(), ids=READS_MOMENTS)
def test_what_reads_moments(scoring, reads):
    scoring = SharedScoring(check_scoring(Ridge(), scoring=scoring), {}, Ridge())
    assert scoring.reads_moments is reads
    linear = LinearPredictors(COEF[:, None, None], np.zeros((1, 1)), np.zeros(3))
    moments = moments_of_rows(X, Y[:, None], slice(0, 60))
    assert (scoring.from_moments(residuals_from_moments(linear, moments)) is not None) is reads


def test_signs_and_names_of_several():
    scorer = check_scoring(Ridge(), scoring={"a": "r2", "b": make_scorer(mean_squared_error)})
    model = Ridge().fit(X, Y)
    shared = SharedScoring(scorer, {}, Ridge())
    assert shared.multimetric
    linear = LinearPredictors(model.coef_[:, None, None], np.full((1, 1), model.intercept_), np.zeros(3))
    residuals = residuals_from_moments(linear, moments_of_rows(X, Y[:, None], slice(0, 60)))
    ours = shared.from_moments(residuals)
    theirs = scorer(model, X, Y)
    assert list(ours) == ["a", "b"]
    for name, values in ours.items():
        np.testing.assert_allclose(values, theirs[name], rtol=1e-11)
    negative = SharedScoring(get_scorer("neg_mean_squared_error"), {}, Ridge())
    assert not negative.multimetric
    np.testing.assert_allclose(negative.from_moments(residuals)["score"], -theirs["b"], rtol=1e-11)


def test_rows_without_weights_give_no_arguments():
    rows = FoldArrays(X, Y, X, Y, None, X, Y, Y)
    assert SharedScoring(get_scorer("r2"), {}, Ridge()).params_of(rows, "test") == {}


@pytest.mark.parametrize("response_method", ["predict", ["predict"], ("decision_function", "predict")])
def test_scorers_of_labels_name_their_method_as_a_text_or_in_a_list(response_method):
    scorers = {
        "labels": make_scorer(fbeta_score, beta=1, average="macro", response_method=response_method),
        "probabilities": get_scorer("neg_log_loss"),
    }
    scorer = check_scoring(LogisticRegression(), scorers)
    assert SharedScoring(scorer, {}, LogisticRegression()).label_scorers == {"labels"}
