"""Scores of many settings at once are scikit-learn's, or are left to scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import model_selection
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import (
    GammaRegressor,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    TweedieRegressor,
)
from sklearn.metrics import check_scoring, get_scorer, log_loss, make_scorer, mean_squared_error
from sklearn.metrics._scorer import _Scorer

from manyfit.folds import Unsupported
from manyfit.metrics import ScoredTargets, SharedScoring
from tests._covering import covering
from tests.behaviour.iterations._optimum import Optimum as GridSearchCV
from tests.units.metrics._shared_scores import shared_and_own

# What the order of summation may do to a score, or to 1 - score where the score is 1 minus a quotient.
EXACT = 1e-14
FLOAT32 = 1e-6  # scikit-learn's own sums are of float32 in one version and of float64 in another

rng = np.random.default_rng(0)


def scores(scoring, y, responses, classes=None, weight=None, estimator=None):
    """Our scores and scikit-learn's of a scorer by name, or of an estimator's own score."""
    estimator = estimator or (Ridge() if classes is None else DummyClassifier())
    return shared_and_own(check_scoring(estimator, scoring=scoring), estimator, y, responses, classes, weight)


def assert_same(ours, theirs, rel=EXACT, of_one=False):
    assert np.isfinite(theirs).all()
    scale = 1 - theirs if of_one else theirs
    assert np.all(np.abs(ours - theirs) <= rel * np.abs(scale)), (ours, theirs)


def assert_left(ours):
    assert np.isnan(ours).all(), ours


# Classification

LABELS = {
    "integers": np.array([0, 1]),
    "other integers": np.array([-3, 7], dtype=np.int8),
    "booleans": np.array([False, True]),
    "floats": np.array([1.0, 2.0]),
    "texts": np.array(["no", "yes"]),
    "objects": np.array(["no", "yes"], dtype=object),
    "three": np.array([1, 2, 5]),
    "three texts": np.array(["a", "b", "c"]),
    "ten": np.arange(10),
}


def labelled(classes, n=300, m=4):
    """Targets, and what m settings say of them."""
    local = np.random.default_rng(len(classes))
    y = classes[np.concatenate([np.arange(len(classes)), local.integers(0, len(classes), n - len(classes))])]
    P = local.random((m, n, len(classes)))
    P = P / P.sum(axis=2, keepdims=True)
    if len(classes) == 2:
        P[:, :, 0] = 1 - P[:, :, 1]
    return y, {"predict": classes[P.argmax(axis=2)], "predict_proba": P}


CLASS_SCORES = ["accuracy", "balanced_accuracy", "neg_log_loss", "neg_brier_score"]


@pytest.mark.invariant("A shared score is right, or scikit-learn computes it")
@pytest.mark.parametrize(
    ("weighted", "kind", "scoring"),
    covering({"": False, "weights": True}.items(), LABELS, CLASS_SCORES, strength=1),
)
def test_classification(scoring, kind, weighted):
    classes = LABELS[kind]
    y, responses = labelled(classes)
    weight = rng.integers(0, 3, len(y)) + rng.random(len(y)) if weighted else None
    ours, theirs = scores(scoring, y, responses, classes, weight)
    if scoring == "neg_brier_score" and kind in ("texts", "objects"):
        assert_left(ours)
    else:
        # A weighted confusion matrix is summed row by row, in any order of its cells.
        assert_same(ours, theirs, 1e-13 if scoring == "balanced_accuracy" else EXACT)


@pytest.mark.parametrize("scoring", CLASS_SCORES)
def test_a_class_that_is_no_target(scoring):
    y, responses = labelled(LABELS["three"])
    y = np.where(y == 5, 1, y)
    ours, theirs = scores(scoring, y, responses, LABELS["three"])
    if scoring == "accuracy":
        assert_same(ours, theirs)
    else:
        assert_left(ours)


@pytest.mark.parametrize("scoring", CLASS_SCORES)
def test_a_target_that_is_no_class(scoring):
    y, responses = labelled(LABELS["three"])
    y[0] = 9
    assert_left(scores(scoring, y, responses, LABELS["three"])[0])


def test_one_row():
    y, responses = labelled(LABELS["integers"])
    one = {name: of_all[:, :1] for name, of_all in responses.items()}
    assert_same(*scores("accuracy", y[:1], one, LABELS["integers"]))
    for scoring in CLASS_SCORES[1:]:
        assert_left(scores(scoring, y[:1], one, LABELS["integers"])[0])


@pytest.mark.parametrize("scoring", ["neg_log_loss", "neg_brier_score"])
def test_rows_that_do_not_sum_to_one(scoring):
    """Of two classes scikit-learn reads one column only."""
    y, responses = labelled(LABELS["three"])
    responses["predict_proba"][1] *= 1 - 1e-6
    ours, theirs = scores(scoring, y, responses, LABELS["three"])
    np.testing.assert_array_equal(np.isnan(ours), [False, True, False, False])
    np.testing.assert_array_equal(np.isnan(theirs), np.isnan(ours))
    y, responses = labelled(LABELS["integers"])
    responses["predict_proba"][1, :, 0] *= 0.5
    assert_same(*scores(scoring, y, responses, LABELS["integers"]))


def test_predictions_that_are_no_class():
    y, responses = labelled(LABELS["floats"])
    responses["predict"][0, 3] = 1.5
    ours, theirs = scores("accuracy", y, responses, LABELS["floats"])
    assert np.isnan(ours[0]) and np.isnan(theirs[0])
    assert_same(ours[1:], theirs[1:])
    y, responses = labelled(LABELS["objects"])
    responses["predict"][0, 3] = 7
    assert np.isnan(scores("accuracy", y, responses, LABELS["objects"])[0]).tolist() == [True] + [False] * 3


def test_what_1_7_may_warn_of_is_left():
    classes = np.arange(20)
    y, responses = labelled(classes, n=30)
    assert_left(scores("accuracy", y, responses, classes)[0])


def test_labels_in_another_order_or_of_another_kind_are_left():
    y, responses = labelled(LABELS["three"])
    for classes in (LABELS["three"][::-1], LABELS["three"].astype(float), np.array([1, 1, 2]), None):
        truth = ScoredTargets(y, None, classes, y.dtype)
        for name in CLASS_SCORES:
            shared = SharedScoring(get_scorer(name), {}, DummyClassifier())
            assert_left(shared.from_responses(responses, truth)["score"])


# Regression

NUMBER_SCORES = [
    "r2",
    "neg_mean_squared_error",
    "neg_root_mean_squared_error",
    "neg_mean_absolute_error",
    "neg_mean_poisson_deviance",
    "neg_mean_gamma_deviance",
]
PREDICTED = np.exp(rng.normal(size=(5, 400)) / 2)
Y = PREDICTED[0] * rng.gamma(2.0, 0.5, 400)
COUNTS = rng.poisson(PREDICTED[0])
WHOLE = COUNTS + 1
WEIGHT = rng.integers(0, 3, 400) + rng.random(400)


def possible(scoring, y):
    return scoring != "neg_mean_gamma_deviance" or y.min() > 0


@pytest.mark.invariant("A shared score is right, or scikit-learn computes it")
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])
@pytest.mark.parametrize("y", [Y, COUNTS, COUNTS + 1], ids=["floats", "counts", "positive counts"])
@pytest.mark.parametrize("scoring", NUMBER_SCORES)
def test_regression(scoring, y, weight):
    ours, theirs = scores(scoring, y, {"predict": PREDICTED}, weight=weight)
    if possible(scoring, y):
        assert_same(ours, theirs, of_one=scoring == "r2")
    else:
        assert_left(ours)


@pytest.mark.parametrize(
    ("weight", "y", "scoring"),
    covering(
        {"": None, "weights": WEIGHT}.items(),
        {"float32": Y.astype(np.float32), "float64": Y, "a list": Y.tolist(), "integers": WHOLE}.items(),
        NUMBER_SCORES,
        strength=1,
    ),
)
def test_float32_predictions(scoring, y, weight):
    ours, theirs = scores(scoring, y, {"predict": PREDICTED.astype(np.float32)}, weight=weight)
    if y is WHOLE and weight is None:  # scikit-learn computes in single precision, which y does not have
        assert_left(ours)
    else:
        assert_same(ours, theirs, rel=FLOAT32, of_one=scoring == "r2")


@pytest.mark.invariant("A shared score is right, or scikit-learn computes it")
@pytest.mark.parametrize("scoring", NUMBER_SCORES)
def test_values_that_scikit_learn_refuses(scoring):
    for value in (np.nan, np.inf, -np.inf):
        broken = PREDICTED.copy()
        broken[3, 5] = value
        ours, theirs = scores(scoring, Y, {"predict": broken})
        np.testing.assert_array_equal(np.isnan(ours), np.arange(5) == 3)
        np.testing.assert_array_equal(np.isnan(theirs), np.isnan(ours))
        assert_left(scores(scoring, np.r_[Y[1:], value], {"predict": PREDICTED})[0])


def test_r2_of_few_or_equal_targets_is_left():
    assert_left(scores("r2", Y[:1], {"predict": PREDICTED[:, :1]})[0])
    assert_left(scores("r2", np.full(400, 0.1), {"predict": PREDICTED})[0])
    only = np.zeros(400)
    only[7] = 1.0
    assert_left(scores("r2", Y, {"predict": PREDICTED}, weight=only)[0])
    assert_same(*scores("r2", Y, {"predict": np.stack([Y, np.full(400, Y.mean())])}), of_one=False, rel=1e-13)


@pytest.mark.parametrize("scoring", NUMBER_SCORES[1:])
def test_one_row_and_equal_targets(scoring):
    assert_same(*scores(scoring, Y[:1], {"predict": PREDICTED[:, :1]}))
    assert_same(*scores(scoring, np.full(400, 0.1), {"predict": PREDICTED}))


@pytest.mark.parametrize("scoring", NUMBER_SCORES)
def test_what_is_unusual_is_left(scoring):
    two = np.stack([Y, Y], axis=1)
    assert_left(scores(scoring, two, {"predict": np.stack([PREDICTED] * 2, axis=2)})[0])
    assert_left(scores(scoring, Y, {"predict": PREDICTED[:, :, None]})[0])
    assert_left(scores(scoring, Y, {"predict": PREDICTED}, weight=np.zeros(400))[0])
    assert_left(scores(scoring, Y, {"predict": np.ones((5, 400), dtype=int)})[0])
    assert_left(scores(scoring, Y.astype(object), {"predict": PREDICTED})[0])


@pytest.mark.parametrize("n", [1, 100, 20_000, 200_000])
def test_many_settings_and_rows_in_chunks(n):
    m = 200_000 // n
    P = np.random.default_rng(n).random((m, n)) + 0.5
    y = np.random.default_rng(1).random(n) + 0.5
    ours, _ = scores("neg_mean_squared_error", y, {"predict": P[:1]})
    shared = SharedScoring(get_scorer("neg_mean_squared_error"), {}, Ridge())
    all_scores = shared.from_responses({"predict": P}, ScoredTargets(y, given_dtype=y.dtype))["score"]
    np.testing.assert_allclose(all_scores, -((P - y) ** 2).mean(axis=1), rtol=1e-12)  # another formula
    assert all_scores[0] == ours[0]


# Which scorers


@pytest.mark.parametrize("scoring", CLASS_SCORES + NUMBER_SCORES)
def test_named_scorers_are_batched(scoring):
    shared = SharedScoring(get_scorer(scoring), {}, Ridge())
    assert not shared.calls_scorers


OTHERS = {
    "arguments": make_scorer(log_loss, response_method="predict_proba", normalize="no"),
    "their own": make_scorer(lambda y, p: 0.0),
}


@pytest.mark.parametrize("scorer", OTHERS.values(), ids=OTHERS)
def test_other_scorers_are_asked(scorer):
    shared = SharedScoring(scorer, {}, Ridge())
    assert shared.calls_scorers
    assert shared.from_responses({"predict": PREDICTED}, ScoredTargets(Y)) == {}


def test_the_sign_is_the_scorers():
    positive = SharedScoring(make_scorer(mean_squared_error), {}, Ridge())
    negative = SharedScoring(get_scorer("neg_mean_squared_error"), {}, Ridge())
    one, other = (
        s.from_responses({"predict": PREDICTED}, ScoredTargets(Y))["score"] for s in (positive, negative)
    )
    np.testing.assert_array_equal(one, -other)
    assert (one > 0).all()


# Scores of estimators' own

X = rng.normal(size=(300, 4))
MEAN = np.exp(X @ [0.3, -0.2, 0.1, 0.4])
GLMS = {
    "poisson": (PoissonRegressor(), rng.poisson(MEAN)),
    "poisson, floats": (PoissonRegressor(), MEAN * rng.gamma(2.0, 0.5, 300)),
    "gamma": (GammaRegressor(), MEAN * rng.gamma(2.0, 0.5, 300)),
    "tweedie 1": (TweedieRegressor(power=1), rng.poisson(MEAN)),
    "tweedie 1.5": (TweedieRegressor(power=1.5, link="log"), rng.poisson(MEAN) * 1.5),
    "tweedie 2": (TweedieRegressor(power=2), MEAN * rng.gamma(2.0, 0.5, 300)),
    "large": (PoissonRegressor(), rng.poisson(1e4 * MEAN)),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize(("estimator", "y"), GLMS.values(), ids=GLMS)
def test_the_score_of_a_generalised_linear_model(estimator, y, weighted):
    weight = WEIGHT[:300] if weighted else None
    models = [clone(estimator).set_params(alpha=alpha).fit(X, y, weight) for alpha in (0.01, 1.0, 100.0)]
    shared = SharedScoring(check_scoring(estimator), {}, estimator)
    predicted = {"predict": np.stack([model.predict(X) for model in models])}
    ours = shared.from_responses(predicted, ScoredTargets(y, weight, given_dtype=y.dtype))["score"]
    assert_same(ours, np.array([model.score(X, y, weight) for model in models]), rel=1e-13, of_one=True)


def test_the_score_of_a_generalised_linear_model_of_float32():
    y = rng.poisson(MEAN)
    model = PoissonRegressor().fit(X.astype(np.float32), y)
    # Of scikit-learn 1.7 the predictions are of float64.
    predicted = {"predict": model.predict(X.astype(np.float32))[None].astype(np.float32)}
    shared = SharedScoring(check_scoring(model), {}, model)
    ours = shared.from_responses(predicted, ScoredTargets(y, given_dtype=y.dtype))["score"]
    theirs = np.array([model.score(X.astype(np.float32), y)])
    assert_same(ours, theirs, rel=1e-5, of_one=True)  # scikit-learn subtracts sums of float32


def test_d2_that_digits_or_targets_do_not_allow_is_left():
    """Then the stub leaves it to the fitted estimator."""
    shared = SharedScoring(check_scoring(PoissonRegressor()), {}, PoissonRegressor())
    cases = [COUNTS[:1], np.ones(400), np.zeros(400), COUNTS - 5.0, 1e12 + COUNTS]
    for y in cases:
        predicted = PREDICTED[:, : len(y)]
        assert_left(shared.from_responses({"predict": predicted}, ScoredTargets(y))["score"])
    broken = PREDICTED.copy()
    broken[0, 0], broken[1, 1], broken[2, 2] = np.nan, np.inf, 0.0
    ours = shared.from_responses({"predict": broken}, ScoredTargets(COUNTS))["score"]
    np.testing.assert_array_equal(np.isnan(ours), np.arange(5) < 3)
    with pytest.raises(Unsupported, match="own score is not had from these predictions"):
        shared.scorer(shared.stub({"predict": PREDICTED[0]}, None), None, COUNTS)


class MyPoisson(PoissonRegressor):
    pass


@pytest.mark.parametrize(
    "estimator",
    [
        MyPoisson(),
        TweedieRegressor(power=0),
        TweedieRegressor(power=3),
        TweedieRegressor(power=1, link="identity"),
    ],
)
def test_other_scores_of_their_own_are_refused(estimator):
    with pytest.raises(Unsupported, match="has a score method of its own"):
        SharedScoring(check_scoring(estimator), {}, estimator)
    assert SharedScoring(get_scorer("r2"), {}, estimator).reads_moments


def test_a_classifier_scores_by_accuracy():
    y, responses = labelled(LABELS["texts"])
    model = LogisticRegression()
    assert_same(*scores(None, y, responses, LABELS["texts"], estimator=model))
    shared = SharedScoring(check_scoring(model), {}, model)
    assert not shared.reads_moments and not shared.calls_scorers


# In a search

X_CLASS, Y_CLASS = make_classification(200, 5, random_state=0)
TIGHT = {"tol": 1e-9, "max_iter": 1000}


@pytest.fixture
def asked(watch):
    """The metrics that scikit-learn's scorers compute, one by one."""
    calls = []
    watch(_Scorer, "_score", lambda self, *args, **kwargs: calls.append(self._score_func))
    return calls


def searched(estimator, grid, X, y, fits_done=0, **params):
    search = GridSearchCV(estimator, grid, refit=False, **params).fit(X, y)
    theirs = model_selection.GridSearchCV(estimator, grid, refit=False, **params).fit(X, y)
    assert search.report_.fits_done == fits_done
    for key in (key for key in theirs.cv_results_ if "_split" in key or key.startswith("split")):
        np.testing.assert_allclose(search.cv_results_[key], theirs.cv_results_[key], rtol=1e-6, err_msg=key)
    return search


@pytest.mark.invariant("Scores of many settings need no call of a scorer")
@pytest.mark.parametrize("train", [False, True])
def test_a_search_calls_no_scorer(asked, train):
    grid = {"C": [0.1, 1.0, 10.0]}
    params = {"scoring": "neg_log_loss", "return_train_score": train, "refit": False}
    search = GridSearchCV(LogisticRegression(), grid, **params).fit(X_CLASS, Y_CLASS)
    assert (search.report_.fits_done, asked) == (0, [])
    model_selection.GridSearchCV(LogisticRegression(), grid, **params).fit(X_CLASS, Y_CLASS)
    assert len(asked) == 15 * (1 + train)  # the counter counts


def test_of_several_scorers_only_some_are_asked(asked):
    grid = {"C": [0.1, 1.0, 10.0]}

    def own(y, p):
        return float(np.mean(y <= p))

    scoring = {"loss": "neg_log_loss", "own": make_scorer(own), "accuracy": "accuracy"}
    search = GridSearchCV(LogisticRegression(**TIGHT), grid, scoring=scoring, refit=False)
    search.fit(X_CLASS, Y_CLASS)
    assert asked == [own] * 15
    searched(LogisticRegression(**TIGHT), grid, X_CLASS, Y_CLASS, scoring=scoring)


def test_a_fold_without_a_class_is_scikit_learns(asked):
    """Log loss raises if the targets have one class: the error score and its warning are scikit-learn's."""
    y = np.zeros(60, dtype=int)
    y[::4] = 1
    cv = [(np.arange(60), np.flatnonzero(y == 0)), (np.arange(60), np.arange(60))]
    params = {"scoring": "neg_log_loss", "cv": cv, "refit": False}
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, **params)
    with (
        pytest.warns(UserWarning, match="y_true contains only one label"),
        pytest.warns(UserWarning, match="scores are non-finite"),
    ):
        search.fit(X_CLASS[:60], y)
    assert search.report_.fits_done == 2
    assert np.isnan(search.cv_results_["split0_test_score"]).all()
    assert np.isfinite(search.cv_results_["split1_test_score"]).all()


@pytest.mark.thorough
@pytest.mark.parametrize("scoring", [None, "r2"])
@pytest.mark.parametrize(("estimator", "y"), GLMS.values(), ids=GLMS)
def test_generalised_linear_models_in_a_search(estimator, y, scoring, asked):
    model = clone(estimator).set_params(tol=1e-7, max_iter=1000)
    GridSearchCV(model, {"alpha": [0.01, 1.0]}, scoring=scoring, refit=False).fit(X, y)
    assert asked == []
    searched(model, {"alpha": [0.01, 1.0]}, X, y, scoring=scoring)


def test_each_group_has_the_score_of_its_own_power():
    model = TweedieRegressor(tol=1e-7, max_iter=1000)
    grid = {"power": [1, 1.5, 2], "alpha": [0.01, 1.0]}
    searched(model, grid, X, MEAN * rng.gamma(2.0, 0.5, 300))


def test_a_subclass_scores_itself():
    searched(MyPoisson(), {"alpha": [0.01, 1.0]}, X, COUNTS[:300], fits_done=10)


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:.*non-finite:UserWarning")
@pytest.mark.parametrize(("scoring", "fits_done"), [("r2", 0), (None, 2)])
def test_a_fold_of_equal_targets(scoring, fits_done):
    """R2 is left to the scorer in that fold only; D2 to the fitted estimator."""
    y = rng.poisson(MEAN).astype(float)
    y[:60] = 2.0
    model = PoissonRegressor(tol=1e-7)
    searched(model, {"alpha": [0.01, 1.0]}, X, y.tolist(), scoring=scoring, fits_done=fits_done)
