"""Sums within classes, made once for all folds: GaussianNB and linear discriminants."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import LeaveOneOut, ShuffleSplit, StratifiedKFold, TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB

from manyfit.estimators import family_of
from manyfit.folds import ClassedFolds, FoldedMatrix, NumPyRows, Splits
from manyfit.model_selection import GridSearchCV
from tests._covering import covering
from tests.units.families._classes import NUMBERS, PRIORS, TEST, TRAIN, WEIGHTS, N, Y, both

GAUSSIAN = family_of(GaussianNB)
CONSTANT = np.c_[NUMBERS, np.full(N, 0.5)]
SPLITTERS = {
    "k folds": 4,
    "draws": ShuffleSplit(3, random_state=0),
    "growing windows": TimeSeriesSplit(3),
    "one row": LeaveOneOut(),
    "repeated rows": [(np.r_[np.arange(100), np.arange(60)], np.arange(100, N)), (TRAIN, TEST)],
}
SEARCHED = [
    (GaussianNB(), {"var_smoothing": [1e-9, 1e-3, 0.5], "priors": [None, PRIORS]}),
    (LinearDiscriminantAnalysis(solver="lsqr"), {"shrinkage": [None, 0.2, "auto"], "priors": [None, PRIORS]}),
]


@pytest.mark.cases(2)
@pytest.mark.parametrize(("splitter", "model", "grid"), covering(SPLITTERS, SEARCHED, strength=1))
def test_sums_within_classes_serve_all_folds(model, grid, splitter):
    X, cv = NUMBERS[:40] if splitter == "one row" else NUMBERS, SPLITTERS[splitter]
    report = both(model, grid, X, np.array(["a", "b", "c"])[Y[: len(X)]], cv)
    assert report.groups[0]["kind"] == "class moments"
    assert report.fits_done == 0, report
    # Two draws have few atoms together; the third one has its own.
    assert report.passes == (2.0 if splitter == "draws" else 1.0)


def folds_of(X, y, cv=3):
    splits = Splits.given(StratifiedKFold(cv).split(X, y), len(X))
    return ClassedFolds(FoldedMatrix(NumPyRows(X), y, splits, targets=np.zeros(len(y))))


@pytest.mark.parametrize("distance", [0.0, 1e3, 1e8])
def test_merged_sums_are_those_of_the_rows(distance):
    X, y = NUMBERS + distance, np.array(["a", "b", "c"])[Y]
    folds = folds_of(X, y)
    for i in range(3):
        fold, full, spread = folds.data.fold(i), *sums_of(folds.split(i))
        np.testing.assert_array_equal(full.labels, ["a", "b", "c"])
        for c, label in enumerate(full.labels):
            own = fold.X_train[fold.y_train == label] - distance
            assert full.counts[c] == spread.counts[c] == len(own)
            expected = (own - own.mean(axis=0)).T @ (own - own.mean(axis=0))
            atol = 1e-12 * (1.0 + distance)
            np.testing.assert_allclose(full.origin + full.offsets[c] - distance, own.mean(axis=0), atol=atol)
            np.testing.assert_allclose(spread.means[c] - distance, own.mean(axis=0), atol=atol)
            np.testing.assert_allclose(full.scatters[c], expected, rtol=1e-7, atol=1e-7)
            np.testing.assert_allclose(spread.squares[c], np.diagonal(expected), rtol=1e-7)
    assert folds.passes == 2.0


def sums_of(fold):
    return fold.class_moments(0), fold.class_spreads(0)


def test_a_row_that_is_left_out_may_hold_nan():
    """Sums of the splits that do not train on it stay finite."""
    X = NUMBERS.copy()
    X[0, 1] = np.nan
    folds = folds_of(X, Y)
    finite = [np.isfinite(folds.split(i).class_spreads(0).squares).all() for i in range(3)]
    assert finite == [np.isfinite(folds.data.fold(i).X_train).all() for i in range(3)] == [True, False, False]


@pytest.mark.parametrize(
    ("X", "kept"),
    [
        (NUMBERS, True),
        (NUMBERS + 1e2, True),
        (NUMBERS + 1e8, False),  # a mean loses too many digits
        (CONSTANT, False),  # without smoothing, scikit-learn warns
        (1e-155 * NUMBERS, False),  # squares are subnormal
    ],
    ids=["near zero", "away", "far", "constant", "tiny"],
)
def test_merged_sums_are_left_where_rounding_may_show(X, kept):
    settings = [{"var_smoothing": 0.0, "priors": None}]
    (out,) = GAUSSIAN.fit_many(GaussianNB(), settings, folds_of(X, Y).split(0))
    assert out.fits_made == int(not kept)


def test_rows_near_a_boundary_are_computed_by_a_fit():
    """Symmetric classes: rows in the middle are equally likely but for the rounding of merged sums."""
    X = np.array([[a, b] for a in range(-3, 4) for b in range(-3, 4)], dtype=float)
    X, y = (
        np.tile(np.r_[X + 0.3, -X - 0.3, np.zeros((2, 2))], (3, 1)),
        np.tile(np.repeat([0, 1, 0, 1], [49, 49, 1, 1]), 3),
    )
    settings = [{"var_smoothing": s, "priors": [0.5, 0.5]} for s in (1e-9, 0.5)]
    folds = folds_of(X, y)
    for i in range(3):
        fold = folds.data.fold(i)
        (out,) = GAUSSIAN.fit_many(GaussianNB(), settings, folds.split(i))
        assert not out.fits_made
        for j, setting in enumerate(settings):
            fitted = GaussianNB(**setting).fit(fold.X_train, fold.y_train)
            for role in ("test", "train"):
                got = out.respond(role, fold)
                np.testing.assert_array_equal(got["predict"][j], fitted.predict(fold.rows(role)))
                np.testing.assert_array_equal(got["predict_proba"][j], fitted.predict_proba(fold.rows(role)))


@pytest.mark.parametrize(
    ("model", "options", "why"),
    [
        (GaussianNB(), {"sample_weight": WEIGHTS}, "no weights"),
        (GaussianNB(), {"X": NUMBERS.astype(np.float32)}, "rounds to float32"),
    ],
)
def test_other_searches_are_answered_fold_by_fold(model, options, why):
    options = dict(options)
    X = options.pop("X", NUMBERS)
    search = GridSearchCV(model, {"var_smoothing": [1e-9, 0.1]}, cv=3).fit(X, Y, **options)
    assert search.report_.groups[0]["kind"] == "shared in folds"
    assert why in search.report_.groups[0]["reason"]
    alone = GridSearchCV(model, {"var_smoothing": [1e-9, 0.1]}, cv=3, sharing="none").fit(X, Y, **options)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])
