"""Scores of fits made one by one: scikit-learn's, to the bit, whatever the targets and the scorers are."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.model_selection
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import HuberRegressor, PoissonRegressor
from sklearn.metrics import (
    accuracy_score,
    f1_score,
    get_scorer,
    make_scorer,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
    root_mean_squared_error,
)
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit
from sklearn.multiclass import OutputCodeClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from manyfit.model_selection import GridSearchCV
from manyfit.model_selection.sharing import _plain_scores
from manyfit.model_selection.sharing._plain_scores import CheckedTargets, plain_scorer

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4))
CODES = (X[:, 0] + rng.normal(size=120) > 0).astype(int) + (X[:, 1] > 1)
NUMBERS = X @ rng.normal(size=4) + rng.normal(size=120)
TEXTS = np.array(["no", "yes", "perhaps"])[CODES]
FOUR = KFold(4)
FEW = [LeaveOneOut(), KFold(60), ShuffleSplit(3, test_size=30, random_state=0)]

LABELS = {
    "integers": CODES,
    "small integers": CODES.astype(np.int8),
    "bools": CODES > 0,
    "texts": TEXTS,
    "objects": TEXTS.astype(object),
    "floats": CODES.astype(float),
    "list": CODES.tolist(),
    "series": pd.Series(CODES),
    "series of texts": pd.Series(TEXTS),
    "series of categories": pd.Series(TEXTS, dtype="category"),
    "nullable series": pd.Series(CODES, dtype="Int64"),
    "column": CODES[:, None],
    "almost all different": np.r_[np.arange(100), np.arange(20)],
    "masked": np.ma.array(CODES, mask=X[:, 2] > 0),
}
TARGETS = {
    "numbers": NUMBERS,
    "single precision": NUMBERS.astype(np.float32),
    "integers": np.rint(10 * NUMBERS).astype(int),
    "bools": NUMBERS > 0,
    "series": pd.Series(NUMBERS),
    "list": NUMBERS.tolist(),
    "column": NUMBERS[:, None],
    "two columns": np.c_[NUMBERS, -NUMBERS],
    "constant": np.full(120, 3.0),
    "far from zero": NUMBERS + 1e9,
    "huge": NUMBERS * 1e160,
    "some huge": np.where(NUMBERS > 1, NUMBERS * 1e200, NUMBERS),
    "tiny": NUMBERS * 1e-170,
    "masked": np.ma.array(NUMBERS, mask=X[:, 2] > 0),
}
TREE = DecisionTreeClassifier(max_depth=2, random_state=0)
CLASSIFIER = OutputCodeClassifier(TREE, random_state=0)
REGRESSOR = TransformedTargetRegressor(
    DecisionTreeRegressor(max_depth=2, random_state=0), func=np.negative, inverse_func=np.negative
)
OF_LABELS = [None, "accuracy", ["accuracy", "f1_macro"], make_scorer(accuracy_score, normalize=False)]
OF_NUMBERS = [
    None,
    "r2",
    ["r2", "neg_mean_squared_error", "neg_root_mean_squared_error", "neg_mean_absolute_error"],
    {"worse": make_scorer(mean_squared_error), "rmse": make_scorer(root_mean_squared_error)},
    ["r2", "max_error"],
    make_scorer(r2_score, force_finite=False),
]  # fmt: skip


def same_as_sklearn(estimator, y, scoring, cv=FOUR, X=X, params=None, **options):
    """Compare scores, to the bit, warnings and errors of searches of both libraries.

    They have two settings, since scikit-learn's own function makes the fits of a single one. No family knows
    the estimators, or their fits would be shared.
    """
    found = []
    for Search in (sklearn.model_selection.GridSearchCV, GridSearchCV):
        search = Search(clone(estimator), [{}, {}], scoring=scoring, cv=cv, refit=False, **options)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                out = search.fit(X, y, **(params or {})).cv_results_
            except (ValueError, FloatingPointError) as error:
                out = {"error": str(error).partition("\n")[0]}
        scores = {name: value for name, value in out.items() if not name.endswith("_time")}
        found.append((scores, sorted((str(w.message), w.category.__name__) for w in caught)))
    (theirs, warned), (ours, also) = found
    assert theirs.keys() == ours.keys()
    for name, value in theirs.items():
        np.testing.assert_array_equal(value, ours[name], err_msg=name)
    assert warned == also


def test_searches_use_the_formulas(monkeypatch):
    monkeypatch.setitem(_plain_scores._FORMULAS, accuracy_score, lambda *_: 0.125)
    search = GridSearchCV(CLASSIFIER, [{}, {}], refit=False).fit(X, CODES)
    assert search.cv_results_["mean_test_score"].tolist() == [0.125, 0.125]


@pytest.mark.parametrize("scoring", OF_LABELS, ids=str)
@pytest.mark.parametrize("y", LABELS.values(), ids=LABELS)
def test_labels(y, scoring):
    same_as_sklearn(CLASSIFIER, y, scoring, return_train_score=True)


@pytest.mark.parametrize("scoring", OF_NUMBERS, ids=str)
@pytest.mark.parametrize("y", TARGETS.values(), ids=TARGETS)
def test_numbers(y, scoring):
    same_as_sklearn(REGRESSOR, y, scoring, return_train_score=True)


@pytest.mark.parametrize(
    "cv", [LeaveOneOut(), KFold(60), ShuffleSplit(3, test_size=30, random_state=0)], ids=str
)
def test_few_rows_to_score(cv):
    some = slice(0, 60) if cv.get_n_splits(X) > 3 else slice(None)
    same_as_sklearn(HuberRegressor(), NUMBERS[some], "r2", cv, X[some])
    same_as_sklearn(GaussianNB(), CODES[some], "accuracy", cv, X[some])


@pytest.mark.parametrize("settings", [{"under": "warn"}, {"all": "raise"}, {"all": "ignore"}], ids=str)
@pytest.mark.parametrize("scale", [1e-170, 1.0, 1e160])
def test_what_numpy_warns_of(scale, settings):
    with np.errstate(**settings):
        same_as_sklearn(REGRESSOR, NUMBERS * scale, OF_NUMBERS[2])


class _OwnScore(DecisionTreeClassifier):
    def score(self, X, y, sample_weight=None):
        return 0.25


class _Halved(HuberRegressor):
    def predict(self, X):
        return super().predict(X) / 2


@pytest.mark.parametrize(
    "estimator",
    [
        _OwnScore(random_state=0),
        make_pipeline(StandardScaler(), _OwnScore(random_state=0)),
        make_pipeline(StandardScaler(), DecisionTreeClassifier(random_state=0)),
        make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), GaussianNB())),
        VotingClassifier([("tree", DecisionTreeClassifier(random_state=0)), ("nb", GaussianNB())]),
        KNeighborsClassifier(p=1.5),
    ],
    ids=lambda one: type(one).__name__,
)
def test_classifiers(estimator):
    same_as_sklearn(estimator, CODES, None)
    same_as_sklearn(estimator, CODES, "accuracy")


@pytest.mark.parametrize(
    "estimator",
    [_Halved(), PoissonRegressor(), MultiOutputRegressor(HuberRegressor()), HuberRegressor(max_iter=1)],
    ids=lambda one: type(one).__name__,
)
def test_regressors(estimator):
    y = np.exp(NUMBERS / 4)
    y = y[:, None] if isinstance(estimator, MultiOutputRegressor) else y
    same_as_sklearn(estimator, y, None)
    same_as_sklearn(estimator, y, ["r2", "neg_mean_squared_error"])


def test_weights_of_scores_are_left_to_the_scorer():
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = get_scorer("accuracy").set_score_request(sample_weight=True)
        params = {"sample_weight": rng.random(120)}
        same_as_sklearn(DecisionTreeClassifier(random_state=0), CODES, scorer, params=params)


@pytest.mark.invariant("A fit that is made by itself predicts once for a plain score")
def test_predictions_that_draw_are_made_once():
    # Its labels are objects, which go through scikit-learn's metric.
    estimator = DummyClassifier(strategy="uniform", random_state=np.random.RandomState(0))
    for y in (CODES, TEXTS.astype(object)):
        same_as_sklearn(estimator, y, "accuracy", return_train_score=True)


def test_which_scorers_are_plain():
    tree, passed = DecisionTreeClassifier(), sklearn.metrics.check_scoring(DecisionTreeClassifier())
    assert plain_scorer(passed, tree) is not None
    assert plain_scorer(passed, make_pipeline(StandardScaler(), tree)) is not None
    assert plain_scorer(get_scorer("accuracy"), tree) is not None
    assert plain_scorer(passed, _OwnScore()) is None
    assert plain_scorer(passed, make_pipeline(_OwnScore())) is None
    assert plain_scorer(passed, PoissonRegressor()) is None
    assert plain_scorer(get_scorer("roc_auc"), tree) is None
    assert plain_scorer(make_scorer(f1_score, average="macro"), tree) is None
    assert plain_scorer(make_scorer(accuracy_score, response_method="predict_proba"), tree) is None
    assert plain_scorer(lambda *_: 1.0, tree) is None


@pytest.mark.parametrize(
    ("y", "predicted", "metric", "covered"),
    [
        (CODES, CODES[::-1], accuracy_score, True),
        (TEXTS, TEXTS[::-1], accuracy_score, True),
        (CODES, CODES[::-1].astype(np.int32), accuracy_score, False),
        (TEXTS.astype(object), TEXTS.astype(object), accuracy_score, False),
        (np.arange(100), np.arange(100), accuracy_score, False),
        (np.ma.array(CODES), CODES[::-1], accuracy_score, False),
        (np.ma.array(NUMBERS), NUMBERS[::-1], r2_score, False),
        (1e160 * NUMBERS, NUMBERS[::-1], mean_squared_error, False),
        (1e160 * NUMBERS, NUMBERS[::-1], mean_absolute_error, True),
        (np.array([0.0, 1e-160]), np.array([1.0, 1e150]), r2_score, False),
        (NUMBERS, NUMBERS[::-1], r2_score, True),
        (NUMBERS, NUMBERS, r2_score, False),
        (NUMBERS, NUMBERS[::-1].astype(np.float32), r2_score, False),
        (np.ones(4), np.arange(4.0), r2_score, False),
        (np.ones(1), np.zeros(1), r2_score, False),
        (np.ones(1), np.zeros(1), mean_squared_error, True),
        (NUMBERS, np.where(NUMBERS > 0, np.nan, 1.0), mean_squared_error, False),
    ],
)
def test_what_the_formulas_cover(y, predicted, metric, covered):
    found = _plain_scores._FORMULAS[metric](CheckedTargets(y), predicted)
    assert (found is not None) == covered
    if covered:
        assert found == metric(y, predicted)
