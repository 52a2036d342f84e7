"""Neighbours within a radius are scikit-learn's own, to the bit, also exactly at the radius."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.model_selection
from sklearn.base import clone, is_classifier
from sklearn.neighbors import RadiusNeighborsClassifier, RadiusNeighborsRegressor

from manyfit._compat import votes_need_plain_labels
from manyfit.estimators import family_of
from manyfit.families.neighbours import _radius_query
from manyfit.folds import FoldArrays, SingleFold, Unsupported
from manyfit.model_selection import GridSearchCV
from tests._covering import spread

rng = np.random.default_rng(0)
N, TRAIN = 120, 90
NUMBERS = rng.normal(size=(N, 3))
WIDE = rng.normal(size=(N, 20))
WHOLE = rng.integers(0, 4, size=(N, 20)).astype(float)
CODES = rng.integers(0, 3, N)
TARGETS = np.stack([rng.normal(size=N), rng.normal(size=N)], axis=1)
# Square roots and whole numbers: distances of whole numbers are equal to them.
RADII = [0, 2, float(np.sqrt(3)), float(np.sqrt(14)), 4.0, 40.0]
FORMS = {
    "a tree": NUMBERS,
    "a tree of whole numbers": WHOLE[:, :3],
    "products": WIDE,
    "whole numbers": WHOLE,
    "integers": WHOLE.astype(int),
    "float32": WIDE.astype(np.float32),
    "rows twice": np.repeat(WIDE[: N // 2], 2, axis=0)[rng.permutation(N)],
    "Fortran": np.asfortranarray(WIDE),
    "csr": sp.csr_matrix(WHOLE),
}


def fold_of(X, y, weights=None):
    return FoldArrays(X[:TRAIN], y[:TRAIN], X[TRAIN:], y[TRAIN:], weights, X[:TRAIN], y[:TRAIN], y[TRAIN:])


def settings_of(radii, weights=("uniform", "distance", None)):
    return [{"radius": radius, "weights": weight} for radius in radii for weight in weights]


def answers(estimator, settings, fold):
    family = family_of(type(estimator))
    family.check(estimator, settings)
    (out,) = family.fit_many(estimator, settings, SingleFold(fold))
    return out


def response(estimator, setting, method, fold, role):
    """scikit-learn's response, or None if it warns or raises."""
    fitted = clone(estimator).set_params(**setting).fit(fold.X_train, fold.y_train)
    return response_of(fitted, method, fold, role)


def response_of(fitted, method, fold, role):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return getattr(fitted, method)(fold.rows(role))
        except (ValueError, UserWarning):
            return None


def assert_same(estimator, settings, fold):
    """Every response is equal to the bit, or refused where scikit-learn warns; how many are equal."""
    out, equal = answers(estimator, settings, fold), 0
    methods = ("predict_proba", "predict") if is_classifier(estimator) else ("predict",)
    for j, setting in enumerate(settings):
        fitted = clone(estimator).set_params(**setting).fit(fold.X_train, fold.y_train)
        expected = {"test": [response_of(fitted, method, fold, "test") for method in methods]}
        assert (j in out.refused) == (expected["test"][0] is None)
        if j in out.refused:
            continue
        expected["train"] = [response_of(fitted, method, fold, "train") for method in methods]
        for role, wanted in expected.items():
            found = out.subset([j]).respond(role, fold)
            for method, one in zip(methods, wanted, strict=True):
                np.testing.assert_array_equal(found[method][0], one)
                equal += 1
    return equal


# "auto" is a tree for few columns, and else "brute".
ALGORITHMS = [(form, "auto") for form in FORMS] + [(form, "brute") for form in FORMS if "tree" in form]


@pytest.mark.cases(2)
@pytest.mark.parametrize(("form", "algorithm"), spread(ALGORITHMS, 5))
def test_to_the_bit_whatever_is_at_the_radius(form, algorithm):
    X = FORMS[form]
    settings = settings_of(RADII, ("uniform", "distance")) + settings_of(RADII[2:3], (None,))
    for label in (None, "most_frequent", 1):
        model = RadiusNeighborsClassifier(outlier_label=label, algorithm=algorithm)
        assert assert_same(model, settings, fold_of(X, CODES)) >= 8
    for y in (TARGETS[:, 0], TARGETS, TARGETS[:, :1]):
        model = RadiusNeighborsRegressor(algorithm=algorithm)
        assert assert_same(model, settings, fold_of(X, y)) >= 4


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    "params",
    spread(
        [
            {"p": 1},
            {"p": 3, "algorithm": "brute"},
            {"p": 1.5, "algorithm": "ball_tree", "leaf_size": 2},
            {"metric": "chebyshev", "algorithm": "kd_tree"},
            {"metric": "sqeuclidean", "algorithm": "brute"},
            {"metric": "cosine"},
            {"metric": "canberra"},
            {"metric": "hamming", "algorithm": "brute"},
            {"n_jobs": 2},
        ],
        5,
    ),
)
def test_metrics_and_algorithms(params):
    settings = settings_of([0.25, 1.0, 7.0, 100.0], ("uniform", "distance"))
    for X in (WHOLE[:, :4], WIDE, WIDE.astype(np.float32)):
        fits = (RadiusNeighborsClassifier(outlier_label=2), CODES), (RadiusNeighborsRegressor(), TARGETS)
        for model, y in fits:
            assert assert_same(model.set_params(**params), settings, fold_of(X, y)) > 0


def test_text_labels():
    y = np.array(["a", "b", "c"])[CODES]
    for label in (None, "most_frequent", "b"):
        for X in (NUMBERS, WHOLE):
            model = RadiusNeighborsClassifier(outlier_label=label)
            assert assert_same(model, settings_of([1.0, 4.0, 5.0, 20.0]), fold_of(X, y)) > 0
    model, fold = RadiusNeighborsClassifier(p=3, algorithm="brute"), fold_of(NUMBERS, y)
    if votes_need_plain_labels():
        with pytest.raises(Unsupported, match="counts votes"):
            answers(model, settings_of([9.0, 20.0]), fold)
    else:
        assert assert_same(model, settings_of([9.0, 20.0]), fold) > 0


def test_rows_come_in_blocks(monkeypatch):
    """Blocks change no bit, and a matrix of distances that could take too much is refused."""
    monkeypatch.setattr(_radius_query, "BLOCK_BYTES", 1)
    X, y = rng.normal(size=(600, 20)), np.arange(600) % 3
    fold = FoldArrays(X[:50], y[:50], X[50:], y[50:], None, X[:50], y[:50], y[50:])
    model, starts = RadiusNeighborsClassifier(outlier_label=0), []
    query = RadiusNeighborsClassifier.radius_neighbors
    monkeypatch.setattr(
        RadiusNeighborsClassifier,
        "radius_neighbors",
        lambda self, X, **params: starts.append(len(X)) or query(self, X, **params),
    )
    assert assert_same(model, settings_of([3.0, 5.0]), fold) > 0
    assert starts[:3] == [256, 256, 38]
    monkeypatch.setattr(_radius_query, "MATRIX_BYTES", 1)
    with pytest.raises(Unsupported, match="too much memory"):
        answers(RadiusNeighborsClassifier(metric="cosine"), settings_of([1.0, 2.0]), fold)


def test_only_rows_next_to_a_radius_are_asked_again(monkeypatch):
    asked = []
    ask = _radius_query.RadiusQuery.ask
    monkeypatch.setattr(
        _radius_query.RadiusQuery,
        "ask",
        lambda self, params, method, rows: asked.append(len(rows)) or ask(self, params, method, rows),
    )
    settings = settings_of([2.0, 3.0, 9.0], ["uniform"])
    fold = fold_of(WHOLE[:, :3], CODES)  # a tree, of which bounds are compared
    answers(RadiusNeighborsClassifier(), settings, fold).respond("test", fold)["predict"]
    assert asked
    asked.clear()
    fold = fold_of(WHOLE, CODES)  # squares are known without error
    answers(RadiusNeighborsClassifier(), settings_of([6.0, 7.0, 9.0]), fold).respond("test", fold)["predict"]
    assert not asked


@pytest.mark.parametrize(
    ("estimator", "setting", "y", "why"),
    [
        (RadiusNeighborsClassifier(), {"weights": np.ones_like}, CODES, "weights is a function"),
        (RadiusNeighborsClassifier(metric=lambda a, b: 0.0), {}, CODES, "metric is a function"),
        (RadiusNeighborsClassifier(metric="precomputed"), {}, CODES, "precomputed"),
        (RadiusNeighborsClassifier(), {"radius": None}, CODES, "not a number"),
        (RadiusNeighborsClassifier(), {"radius": -1.0}, CODES, "not between"),
        (RadiusNeighborsClassifier(p=9), {}, CODES, "not between 1 and 4"),
        (RadiusNeighborsClassifier(), {}, TARGETS.astype(int), "several columns"),
        (RadiusNeighborsRegressor(), {}, CODES, "not float64"),
        (RadiusNeighborsRegressor(), {"radius": 1e-3}, TARGETS, "a row without neighbours gave UserWarning"),
        (RadiusNeighborsClassifier(), {"radius": 1e-3}, CODES, "a row without neighbours gave ValueError"),
        (RadiusNeighborsClassifier(outlier_label=9), {"radius": 1e-3}, CODES, "gave UserWarning"),
    ],
)
def test_what_is_left_to_scikit_learn(estimator, setting, y, why):
    given = {"radius": 1.0, "weights": "uniform"} | setting
    try:
        found = answers(estimator, [given], fold_of(NUMBERS, y)).refused[0]
    except Unsupported as error:
        found = str(error)
    assert re.search(why, found)


def test_training_rows_without_neighbours_are_left_to_scikit_learn():
    """The distance of a row to itself is rounded, so it may be outside of its own radius."""
    X = 1e4 + rng.random((N, 20))
    X[TRAIN:] = X[: N - TRAIN]
    settings = settings_of([0.0, 50.0], ["uniform"])
    fold = fold_of(X, CODES)
    model = RadiusNeighborsClassifier(algorithm="brute")
    assert response(model, settings[0], "predict", fold, "train") is None
    out = answers(model, settings, fold)
    with pytest.raises(Unsupported, match="a row without neighbours"):
        out.subset([0]).respond("train", fold)


def test_training_rows_are_at_no_distance_from_themselves_if_rounding_leaves_some_to_equal_rows():
    # scikit-learn sets the distances of the fit's own array to zero: only a row itself then counts.
    rows = NUMBERS[np.arange(N) // 2 % 20] * np.repeat([1.0, 3.0], N // 2)[:, np.newaxis]
    estimator = RadiusNeighborsClassifier(metric="cosine", outlier_label="most_frequent")
    settings = settings_of([0.05, 0.5, 1.0], ("uniform", "distance"))
    train, known, later = rows[:TRAIN], CODES[:TRAIN], CODES[TRAIN:]
    fold = SingleFold(FoldArrays(train, known, rows[TRAIN:], later, None, train, known, later))
    family = family_of(type(estimator))
    (out,) = family.fit_many(estimator, settings, fold)
    found = out.respond("train", fold.fold(0))["predict_proba"]
    for j, setting in enumerate(settings):
        own = clone(estimator).set_params(**setting).fit(train, known)
        np.testing.assert_array_equal(found[j], own.predict_proba(train))


def test_a_search_scores_training_rows_by_their_own_labels():
    rows = NUMBERS[np.arange(N) // 2 % 20]
    grid = {"radius": [0.05, 0.5, 1.0], "weights": ["uniform", "distance"]}
    estimator = RadiusNeighborsClassifier(metric="cosine", outlier_label="most_frequent")
    own, shared = (
        search(estimator, grid, cv=3, return_train_score=True).fit(rows, CODES).cv_results_
        for search in (sklearn.model_selection.GridSearchCV, GridSearchCV)
    )
    for i in range(3):
        np.testing.assert_allclose(shared[f"split{i}_train_score"], own[f"split{i}_train_score"], rtol=1e-12)
