"""RidgeClassifier from moments of indicators has scikit-learn's labels and decision values."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import KFold, LeaveOneOut
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import LabelBinarizer, PolynomialFeatures, StandardScaler

from manyfit.estimators import family_of
from manyfit.folds import FoldArrays, SingleFold, Unsupported, class_indicators
from manyfit.model_selection import GridSearchCV
from tests._covering import covering

rng = np.random.default_rng(0)
N, P = 120, 5
X = rng.normal(size=(N, P)) @ rng.normal(size=(P, P)) + 3.0
CODES = np.digitize(X @ rng.normal(size=P) + rng.normal(size=N), [-2.0, 2.0])
LABELS = {
    "three": CODES,
    "two": CODES > 0,
    "texts": np.array(["a", "b", "c"])[CODES],
    "objects": np.array(["a", "b", "b"], dtype=object)[CODES],
}
W = rng.random(N) * (np.arange(N) % 4 > 0)
ALPHAS = [1e-3, 1.0, 1e4]


@pytest.mark.parametrize("name", LABELS)
def test_indicators_are_those_of_label_binarizer(name):
    y = LABELS[name]
    np.testing.assert_array_equal(
        class_indicators(y, np.unique(y)), LabelBinarizer(neg_label=-1).fit_transform(y)
    )


@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", LABELS)
def test_labels_and_decisions_are_scikit_learns(name, intercept, weights):
    y = LABELS[name]
    model = RidgeClassifier(fit_intercept=intercept)
    data = SingleFold(FoldArrays(X, y, X, y, weights, X, y, y), np.unique(y))
    (out,) = family_of(RidgeClassifier).fit_many(model, [{"alpha": a} for a in ALPHAS], data)
    responses = out.respond("test", data.fold(0))
    assert not out.refused
    for j, alpha in enumerate(ALPHAS):
        fitted = RidgeClassifier(alpha, fit_intercept=intercept, solver="svd").fit(X, y, weights)
        np.testing.assert_array_equal(out.classes, fitted.classes_)
        np.testing.assert_array_equal(responses["predict"][j], fitted.predict(X))
        expected = fitted.decision_function(X)
        np.testing.assert_allclose(responses["decision_function"][j], expected, rtol=1e-9, atol=1e-9)


def both(model, grid, y, **params):
    ours = GridSearchCV(model, grid, refit=False, **params).fit(X, y)
    theirs = SklearnSearch(model, grid, refit=False, **params).fit(X, y)
    for key, expected in theirs.cv_results_.items():
        if key.startswith(("split", "mean_test", "mean_train")):
            np.testing.assert_allclose(ours.cv_results_[key], expected, rtol=1e-12)
    return ours.report_


BEHIND_SQUARES = make_pipeline(PolynomialFeatures(2), StandardScaler(), RidgeClassifier())


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("name", "model"),
    covering(LABELS, [make_pipeline(StandardScaler(), RidgeClassifier()), BEHIND_SQUARES], strength=1),
)
def test_searches_make_no_fits(model, name):
    scoring = ["accuracy", "f1_macro"] if name != "two" else ["roc_auc", "neg_mean_squared_error"]
    grid = {"ridgeclassifier__alpha": ALPHAS}
    report = both(model, grid, LABELS[name], scoring=scoring, return_train_score=True)
    assert report.fits_done == 0


def test_regressors_and_classifiers_of_one_search_have_moments_of_their_own():
    model = Pipeline([("scale", StandardScaler()), ("last", Ridge())])
    grid = [{"last": [Ridge()], "last__alpha": ALPHAS}, {"last": [RidgeClassifier()], "last__alpha": ALPHAS}]
    report = both(model, grid, CODES, scoring="neg_mean_squared_error")
    assert report.fits_done == 0
    assert report.passes == pytest.approx(2.0, abs=0.1)


@pytest.mark.invariant("Labels that depend on rounding are left to scikit-learn")
def test_ties_are_left_to_scikit_learn():
    y, Z = np.arange(N) % 2, np.c_[np.repeat([-1.0, 1.0], N // 2), np.zeros(N)]
    data = SingleFold(FoldArrays(Z, y, Z, y, None, Z, y, y), np.unique(y))
    (out,) = family_of(RidgeClassifier).fit_many(RidgeClassifier(), [{"alpha": 1.0}], data)
    with pytest.raises(Unsupported, match="decision values tie within rounding"):
        out.respond("test", data.fold(0))


def test_what_is_not_served_is_named():
    family = family_of(RidgeClassifier)
    with pytest.raises(Unsupported, match="class_weight weighs the rows"):
        family.check(RidgeClassifier(class_weight="balanced"), [{"alpha": 1.0}])
    Z = X.astype(np.float32)
    data = SingleFold(FoldArrays(Z, CODES, Z, CODES, None, Z, CODES, CODES), np.unique(CODES))
    with pytest.raises(Unsupported, match="the rounding of float32"):
        next(iter(family.fit_many(RidgeClassifier(), [{"alpha": 1.0}], data)))


@pytest.mark.parametrize("n_classes", [3, 4])
@pytest.mark.parametrize("more", [{}, {"return_train_score": True}], ids=["test", "train"])
def test_a_class_that_a_training_part_lacks(n_classes, more):
    y = np.where(np.arange(N) < N // 5, n_classes - 1, np.arange(N) % (n_classes - 1))
    cv = [(np.arange(N // 5, N), np.arange(N // 5)), (np.arange(N // 2), np.arange(N // 2, N))]
    assert both(RidgeClassifier(), {"alpha": ALPHAS}, y, cv=cv, **more).left_to_sklearn == {}
    report = both(BEHIND_SQUARES, {"ridgeclassifier__alpha": ALPHAS}, y, cv=cv, scoring="f1_macro", **more)
    assert report.left_to_sklearn == {}
    one_by_one = OneVsRestClassifier(RidgeClassifier())
    assert both(one_by_one, {"estimator__alpha": ALPHAS}, y, cv=cv, **more).left_to_sklearn == {}
    alone = LeaveOneOut() if n_classes == 3 else KFold(N // 2)
    y[0] = n_classes
    assert both(RidgeClassifier(), {"alpha": ALPHAS}, y, cv=alone).left_to_sklearn == {}


def test_a_training_part_of_one_class():
    cv = [(np.arange(N // 2), np.arange(N // 2, N)), (np.arange(N // 4, N), np.arange(N // 4))]
    report = both(RidgeClassifier(), {"alpha": ALPHAS}, np.arange(N) >= N // 2, cv=cv)
    assert report.left_to_sklearn == {"the training rows have one class": 3}


@pytest.mark.parametrize(
    ("y", "reason"),
    [
        (np.full(N, 2), "y has one class"),
        (np.c_[CODES, CODES], "y has several columns"),
    ],
    ids=["one", "two columns"],
)
def test_labels_that_are_not_served_are_named(y, reason):
    cv = [(np.arange(N // 5, N), np.arange(N // 5)), (np.arange(N // 2), np.arange(N // 2, N))]
    plan = GridSearchCV(RidgeClassifier(), {"alpha": ALPHAS}, cv=cv).plan(X, y)
    assert reason in str(plan)


def test_a_step_that_reads_labels_is_not_affine():
    """f_regression fails for texts, and moments of indicators do not tell."""
    model = make_pipeline(SelectKBest(f_regression, k=2), RidgeClassifier())
    search = GridSearchCV(model, {"ridgeclassifier__alpha": ALPHAS}, cv=3)
    assert "reads labels" in str(search.plan(X, LABELS["two"]))
    with pytest.raises(ValueError, match="All the 9 fits failed"):
        search.fit(X, LABELS["texts"])
