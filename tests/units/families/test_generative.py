"""Naive Bayes, discriminant analysis and nearest centroids give scikit-learn's own answers."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manyfit.estimators import family_of
from manyfit.families.generative import _answers
from manyfit.folds import (
    FoldArrays,
    SingleFold,
    Unsupported,
    _blas_threads,
)
from tests._covering import covering
from tests.units.families._classes import COUNTS, NUMBERS, PRIORS, TEST, TRAIN, WEIGHTS, N, Y, both

GAUSSIAN = family_of(GaussianNB)
METHODS = ("predict", "predict_proba", "decision_function")

COUNTED = [MultinomialNB(), ComplementNB(), BernoulliNB(), CategoricalNB(min_categories=12)]
NUMERIC = [
    (GaussianNB(), [{"var_smoothing": s, "priors": p} for s in (0.0, 1e-9, 0.1) for p in (None, PRIORS)]),
    (
        QuadraticDiscriminantAnalysis(),
        [{"reg_param": r, "priors": p, "tol": 1e-4} for r in (0.0, 0.1, 1.0) for p in (None, PRIORS)],
    ),
    (
        NearestCentroid(),
        [
            {"shrink_threshold": s, "priors": p}
            for s in (None, 0.2, 2.0)
            for p in ("uniform", "empirical", PRIORS)
        ],
    ),
]
DISCRIMINANTS = [
    (
        LinearDiscriminantAnalysis(solver=solver),
        [
            {"shrinkage": s, "priors": p, "tol": 1e-4}
            for s in (None, 0.3, 1.0, "auto")
            for p in (None, PRIORS)
        ],
    )
    for solver in ("lsqr", "eigen")
] + [
    (
        LinearDiscriminantAnalysis(),
        [{"shrinkage": None, "priors": p, "tol": t} for t in (1e-4, 1e-2) for p in (None, PRIORS)],
    )
]


@pytest.fixture
def two_threads(monkeypatch):
    """Blocks of rows of any size by two threads, whatever the environment allows."""
    monkeypatch.setattr(_blas_threads, "blas_threads", lambda: 2)
    monkeypatch.setattr(_answers, "MIN_BLOCKS", 2)


def name_of(value):
    return type(value[0] if isinstance(value, tuple) else value).__name__


def fold_of(X, y, weights=None):
    train, test = np.flatnonzero(TRAIN), np.flatnonzero(TEST)
    own = None if weights is None else weights[train]
    return FoldArrays(X[train], y[train], X[test], y[test], own, X[train], y[train], y[test])


def answers(estimator, settings, fold):
    family = family_of(type(estimator))
    family.check(estimator, settings)
    (out,) = family.fit_many(estimator, settings, SingleFold(fold))
    return out


def assert_same(estimator, settings, fold, rtol=0.0):
    """Every response of every setting is that of scikit-learn's own fit."""
    out = answers(estimator, settings, fold)
    assert not out.refused
    weights = {} if fold.fit_weight is None else {"sample_weight": fold.fit_weight}
    for role in ("test", "train"):
        responses = out.subset(range(len(settings))).respond(role, fold)
        for j, setting in enumerate(settings):
            fitted = clone(estimator).set_params(**setting).fit(fold.X_train, fold.y_train, **weights)
            np.testing.assert_array_equal(out.classes, fitted.classes_)
            for method in METHODS:
                if not hasattr(fitted, method):
                    assert method not in responses
                    continue
                expected, got = getattr(fitted, method)(fold.rows(role)), responses[method][j]
                if method == "predict" or not rtol:
                    np.testing.assert_array_equal(got, expected, err_msg=method)
                else:
                    np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol, err_msg=method)


def count_settings(estimator):
    keys = [{"alpha": a, "force_alpha": True} for a in (1e-9, 0.3, 1.0, 20)]
    settings = [
        {**one, "fit_prior": prior, "class_prior": given}
        for one in keys
        for prior, given in ((True, None), (False, None), (True, PRIORS))
    ]
    if isinstance(estimator, ComplementNB):
        return [{**one, "norm": norm} for one in settings for norm in (False, True)]
    return settings


AS = {
    "integers": np.asarray,
    "float64": lambda X: X.astype(np.float64),
    "float32": lambda X: X.astype(np.float32),
    "fractions": lambda X: 0.3 * X,
    "bools": lambda X: X > 0,
    "Fortran": lambda X: np.asfortranarray(X, dtype=np.float64),
    "csr": lambda X: sp.csr_array(0.3 * X),
    "csr of float32": lambda X: sp.csr_array(X.astype(np.float32)),
}


@pytest.mark.cases(3)
@pytest.mark.parametrize(("form", "estimator"), covering(AS, COUNTED, strength=1))
def test_no_bit_of_counting_classifiers_differs(estimator, form):
    if "csr" in form and isinstance(estimator, CategoricalNB):
        pytest.skip("scikit-learn refuses sparse categories")
    assert_same(estimator, count_settings(estimator), fold_of(AS[form](COUNTS), Y))


@pytest.mark.cases(3)
@pytest.mark.parametrize("y", [np.array(["a", "b", "c"])[Y], Y > 0], ids=["texts", "bools"])
@pytest.mark.parametrize("estimator", COUNTED, ids=name_of)
def test_counting_classifiers_with_weights_and_other_labels(estimator, y):
    settings = [one for one in count_settings(estimator) if one["class_prior"] is None]
    assert_same(estimator, settings, fold_of(COUNTS, y, WEIGHTS))


def test_bernoulli_cuts_at_its_threshold():
    for binarize, X in ((1.5, COUNTS), (None, COUNTS > 1), (0.2, sp.csr_array(0.3 * COUNTS))):
        assert_same(BernoulliNB(binarize=binarize), count_settings(BernoulliNB()), fold_of(X, Y))


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("form", "estimator", "settings"),
    covering([form for form in AS if "csr" not in form], NUMERIC, strength=1),
)
def test_no_bit_of_numeric_classifiers_differs(estimator, settings, form):
    if form == "bools" and isinstance(estimator, NearestCentroid):
        pytest.skip("scikit-learn's fit raises")
    X = AS[form](NUMBERS if form != "integers" else np.rint(3 * NUMBERS).astype(int))
    assert_same(estimator, settings, fold_of(X, Y))


@pytest.mark.cases(2)
@pytest.mark.parametrize(("estimator", "settings"), DISCRIMINANTS, ids=name_of)
@pytest.mark.parametrize("distance", [0.0, 30.0])
def test_linear_discriminants_to_rounding(estimator, settings, distance):
    assert_same(estimator, settings, fold_of(NUMBERS + distance, np.array(["a", "b", "c"])[Y]), rtol=1e-10)
    two = [one for one in settings if one["priors"] is None]
    assert_same(estimator, two, fold_of(np.rint(9 * NUMBERS).astype(int), Y > 0), rtol=1e-10)


def test_one_feature():
    for estimator, settings in [*NUMERIC, *DISCRIMINANTS]:
        if isinstance(estimator, LinearDiscriminantAnalysis):
            if estimator.solver != "svd":
                continue
            settings = settings[:1]
        assert_same(estimator, settings, fold_of(NUMBERS[:, :1], Y), rtol=1e-10)


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("y", [Y, Y > 0, Y.astype(np.uint8)], ids=["integers", "bools", "bytes"])
def test_gaussian_classes_of_any_type(order, y):
    settings = [one for one in NUMERIC[0][1] if one["priors"] is None]
    assert_same(GaussianNB(), settings, fold_of(np.asarray(NUMBERS, order=order), y))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_what_scikit_learn_raises_or_warns_for_is_refused(value):
    X = NUMBERS.copy()
    X[-1, 2] = value  # a training row
    assert refused(GaussianNB(), {}, X)


@pytest.mark.parametrize(
    ("estimator", "settings"), [NUMERIC[0], *DISCRIMINANTS], ids=["gaussian", "lsqr", "eigen", "svd"]
)
def test_rows_are_scored_in_blocks_by_threads(monkeypatch, two_threads, estimator, settings):
    monkeypatch.setattr(_answers, "BLOCK_VALUES", 1)
    monkeypatch.setattr(_answers, "MIN_BLOCK_ROWS", 7)  # 40 rows to score, and 110: the last block is short
    blocks = _answers.in_row_blocks(len, NUMBERS[TEST], 5)
    assert blocks == [7, 7, 7, 7, 7, 5]
    assert_same(estimator, settings, fold_of(NUMBERS, np.array(["a", "b", "c"])[Y]), rtol=1e-10)


def test_a_row_on_a_boundary_is_found_in_any_block(monkeypatch, two_threads):
    monkeypatch.setattr(_answers, "BLOCK_VALUES", 1)
    monkeypatch.setattr(_answers, "MIN_BLOCK_ROWS", 2)
    X = np.array([[-2.0, 1.0], [-1.0, -1.0], [-3.0, 0.0], [2.0, -1.0], [1.0, 1.0], [3.0, 0.0]])
    y, rows = np.array([0, 0, 0, 1, 1, 1]), np.tile(X, (2, 1))
    rows[7] = 0.0
    fold = FoldArrays(X, y, rows, np.tile(y, 2), None, X, y, np.tile(y, 2))
    out = answers(LinearDiscriminantAnalysis(solver="lsqr"), [DISCRIMINANTS[0][1][0]], fold)
    with pytest.raises(Unsupported, match="boundary"):
        out.respond("test", fold)["predict"]
    assert_same(GaussianNB(), [{"var_smoothing": 0.5, "priors": None}], fold)


def test_gaussian_weights():
    for dtype in (np.float64, np.float32):
        assert_same(*NUMERIC[0], fold_of(NUMBERS.astype(dtype), Y, WEIGHTS))


def test_rows_on_a_boundary_get_scikit_learns_label():
    """Integers in symmetric classes: likelihoods that are equal but for rounding."""
    X = np.array([[a, b] for a in range(-3, 4) for b in range(-3, 4)] * 4, dtype=float)[:N]
    X, y = np.r_[X, -X], np.repeat([0, 1], len(X))
    train = np.r_[X + 0.1 * y[:, None], np.zeros((3, 2)), X[:9] / 3]
    labels = np.r_[y, [0, 1, 1], y[:9]]
    fold = replace(fold_of(NUMBERS[:, :2], Y), X_train=train, y_train=labels, X_test=X, y_test=y)
    fold = replace(fold, X_train_score=train)
    assert_same(GaussianNB(), [{"var_smoothing": s, "priors": [0.5, 0.5]} for s in (1e-9, 0.5)], fold)


def test_a_row_on_the_boundary_of_a_linear_discriminant_is_left_alone():
    X = np.array([[-2.0, 1.0], [-1.0, -1.0], [-3.0, 0.0], [2.0, -1.0], [1.0, 1.0], [3.0, 0.0]])
    y = np.array([0, 0, 0, 1, 1, 1])
    fold = FoldArrays(X, y, np.zeros((1, 2)), y[:1], None, X, y, y[:1])
    out = answers(LinearDiscriminantAnalysis(solver="lsqr"), [DISCRIMINANTS[0][1][0]], fold)
    for method in ("predict", "decision_function"):
        with pytest.raises(Unsupported, match="boundary"):
            out.respond("test", fold)[method]


def refused(estimator, setting, X, y=Y, weights=None):
    """The reason why a setting of a fold is refused."""
    family, fold = family_of(type(estimator)), fold_of(X, y, weights)
    defaults = {name: clone(estimator).get_params()[name] for name in family.free}
    try:
        out = answers(estimator, [{**defaults, **setting}], fold)
        if not out.refused:
            out.respond("test", fold)
    except Unsupported as why:
        return str(why)
    return out.refused.get(0)


CONSTANT = np.c_[NUMBERS, np.full(N, 0.5)]
COLLINEAR = np.c_[NUMBERS, NUMBERS[:, 0]]
CUBE = np.array(list(product([-1.0, 1.0], repeat=3)))[np.arange(N) % 8]
RARE = np.r_[np.zeros(N - 1, dtype=int), 1]
NAN = NUMBERS.copy()
NAN[3, 2] = np.nan  # a row to score


@pytest.mark.parametrize(
    ("estimator", "setting", "X", "why"),
    [
        (MultinomialNB(), {"alpha": 0.0}, COUNTS, "alpha=0.0 is less"),
        (MultinomialNB(), {"alpha": np.ones(5)}, COUNTS, "not one number of a usual type"),
        (MultinomialNB(), {}, -COUNTS, "a fit gave ValueError"),
        (MultinomialNB(), {"class_prior": [0.5, 0.5]}, COUNTS, "not one float for each class"),
        (MultinomialNB(), {"class_prior": [0.0, 0.5, 0.5]}, COUNTS, "not positive numbers of sum 1"),
        (MultinomialNB(), {"class_prior": "even"}, COUNTS, "priors of type str"),
        (BernoulliNB(), {"alpha": 1e-10}, np.ones((N, 2)) * 1e9, None),
        (CategoricalNB(), {}, np.r_[np.full((40, 1), 5), np.zeros((N - 40, 1), int)], "categories that the"),
        (GaussianNB(), {"var_smoothing": 0.0}, CONSTANT, "makes scikit-learn warn"),
        (GaussianNB(), {}, NAN, "X holds NaN"),
        (QuadraticDiscriminantAnalysis(), {}, COLLINEAR, "full rank"),
        (QuadraticDiscriminantAnalysis(), {"tol": 0.5}, 0.1 * NUMBERS, "full rank"),
        (NearestCentroid(metric="manhattan"), {}, NUMBERS, "medians"),
        (NearestCentroid(), {}, CONSTANT, "a fit gave UserWarning"),
        (LinearDiscriminantAnalysis(solver="lsqr"), {}, COLLINEAR, "singular"),
        (LinearDiscriminantAnalysis(solver="lsqr"), {"shrinkage": "auto"}, CONSTANT, "constant within"),
        (LinearDiscriminantAnalysis(solver="eigen"), {"shrinkage": "best"}, NUMBERS, "not one number"),
        (LinearDiscriminantAnalysis(solver="lsqr"), {"shrinkage": 0.1}, NUMBERS[:, :1], "leaves one column"),
        (LinearDiscriminantAnalysis(solver="lsqr"), {}, NUMBERS + 1e6, "scales of the columns"),
        (LinearDiscriminantAnalysis(solver="lsqr"), {}, NUMBERS.astype(np.float32), "float32"),
        (LinearDiscriminantAnalysis(), {}, CONSTANT, "constant within"),
        (LinearDiscriminantAnalysis(), {"tol": 0.99}, NUMBERS, "within the classes"),
        (LinearDiscriminantAnalysis(), {"shrinkage": 0.5}, NUMBERS, "does not shrink"),
        (LinearDiscriminantAnalysis(n_components=3), {}, NUMBERS, "n_components=3 is larger than 2"),
    ],
)
def test_refusals(estimator, setting, X, why):
    found = refused(estimator, setting, X)
    assert found is None if why is None else why in found


def test_shrinkage_of_independent_columns_is_scikit_learns():
    """It is zero over zero but for rounding."""
    cubes = np.arange(N) // 8 % 3
    assert "nearly independent" in refused(
        LinearDiscriminantAnalysis(solver="lsqr"), {"shrinkage": "auto"}, CUBE, cubes
    )


def test_one_class_a_class_of_one_row_and_no_weight():
    assert "one class" in refused(MultinomialNB(), {}, COUNTS, np.zeros(N, dtype=int))
    assert "one class" in refused(LinearDiscriminantAnalysis(), {}, NUMBERS, np.zeros(N, dtype=int))
    assert refused(MultinomialNB(), {}, COUNTS, weights=np.zeros(N))  # by scikit-learn, from 1.8
    assert "one row" in refused(LinearDiscriminantAnalysis(solver="eigen"), {}, NUMBERS, RARE)
    assert refused(QuadraticDiscriminantAnalysis(), {}, NUMBERS, RARE) == "a fit gave ValueError"


def test_a_class_is_missing_in_one_training_part():
    y = np.where(np.arange(N) < 30, 2, Y % 2)
    splits = [(np.arange(30, N), np.arange(30)), (np.arange(100), np.arange(100, N))]
    for model, grid, fits in (
        (GaussianNB(), {"var_smoothing": [1e-9, 0.1]}, 0),
        (LinearDiscriminantAnalysis(solver="lsqr"), {"shrinkage": [0.1, 0.5]}, 0),
        (MultinomialNB(), {"alpha": [0.1, 1]}, 2),
    ):
        report = both(model, grid, COUNTS, y, splits)
        assert report.fits_done == fits, report


def test_behind_a_step_the_moments_of_its_output_are_read():
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(StandardScaler(), LinearDiscriminantAnalysis(solver="eigen"))
    report = both(model, {"lineardiscriminantanalysis__shrinkage": [0.1, 0.5, "auto", None]}, X, y)
    assert report.fits_done == 0, report
