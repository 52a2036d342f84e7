"""Neighbours are scikit-learn's own, whichever of equally far rows it takes; kernel ridge too."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from manyfit.estimators import family_of
from manyfit.families.neighbours._queries import Neighbors, distance_weights
from manyfit.folds import FoldArrays, SingleFold, Unsupported
from tests._same_results import both

rng = np.random.default_rng(0)
ROLES = ("test", "train")
N, TRAIN = 100, 70
NUMBERS = rng.normal(size=(N, 20))
WHOLE = rng.integers(0, 3, size=(N, 20)).astype(float)  # most rows have ties at most k
TWICE = np.repeat(NUMBERS[: N // 2], 2, axis=0)[rng.permutation(N)]
LABELS = np.array(["a", "b", "c"])[rng.integers(0, 3, N)]
TARGETS = np.stack([rng.normal(size=N), rng.integers(0, 9, N)], axis=1)
VOTES = [{"n_neighbors": k, "weights": w} for k in (70, 1, 2, 4, 36) for w in ("uniform", "distance")]


def fold_of(X, y, weights=None):
    X_train, y_train = X[:TRAIN], y[:TRAIN]
    return FoldArrays(X_train, y_train, X[TRAIN:], y[TRAIN:], weights, X_train, y_train, y[TRAIN:])


def answers(estimator, settings, fold):
    family = family_of(type(estimator))
    family.check(estimator, settings)
    (out,) = family.fit_many(estimator, settings, SingleFold(fold))
    return out


def assert_same(estimator, settings, fold, rtol=0.0, weights=None):
    out = answers(estimator, settings, fold)
    assert not out.refused
    methods = ("predict", "predict_proba") if is_classifier(estimator) else ("predict",)
    last = len(settings) - 1  # settings in two blocks, as scoring may ask for them
    blocks = {role: [out.subset(b).respond(role, fold) for b in (range(last), [last])] for role in ROLES}
    for j, setting in enumerate(settings):
        fitted = clone(estimator).set_params(**setting)
        fitted.fit(fold.X_train, fold.y_train, **({} if weights is None else {"sample_weight": weights}))
        for role in ROLES:
            for method in methods:
                found = blocks[role][j == last][method][0 if j == last else j]
                expected = getattr(fitted, method)(fold.rows(role))
                if method == "predict" and is_classifier(estimator):
                    np.testing.assert_array_equal(found, expected)
                else:
                    np.testing.assert_allclose(found, expected, rtol=0, atol=rtol or 1e-12)


FORMS = {
    "numbers": NUMBERS,
    "whole numbers": WHOLE,
    "integers": WHOLE.astype(int),
    "float32": WHOLE.astype(np.float32) / 16,
    "rows twice": TWICE,
    "a tree": WHOLE[:, :4],
    "Fortran": np.asfortranarray(TWICE),
    "csr": sp.csr_matrix(WHOLE),
    "all equal": np.ones((N, 2)),
}


@pytest.mark.cases(3)
@pytest.mark.parametrize("form", FORMS)
def test_labels_to_the_bit_whatever_is_equally_far(form):
    assert_same(KNeighborsClassifier(), VOTES, fold_of(FORMS[form], LABELS))


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    "params",
    [
        {"p": 1},
        {"metric": "cosine"},
        {"metric": "hamming", "algorithm": "brute"},
        {"algorithm": "ball_tree", "p": 3},
    ],
    ids=str,
)
def test_metrics_and_algorithms(params):
    codes = np.unique(LABELS, return_inverse=True)[1]  # scikit-learn 1.7 fails with texts and p=1
    for X in (WHOLE, TWICE):
        assert_same(KNeighborsClassifier(**params), VOTES[2:8], fold_of(X, codes))


@pytest.mark.parametrize("y", [TARGETS, TARGETS[:, 0], TARGETS[:, 1].astype(int)], ids=["2", "1", "integers"])
def test_regression(y):
    for X in (WHOLE, TWICE, NUMBERS[:, :3]):
        assert_same(KNeighborsRegressor(), VOTES, fold_of(X, y), rtol=1e-12)


COLUMNS = np.stack([LABELS, np.array(["x", "yes"])[rng.integers(0, 2, N)]], axis=1)


@pytest.mark.cases(4)
@pytest.mark.parametrize("form", ["numbers", "whole numbers", "rows twice", "a tree", "csr"])
@pytest.mark.parametrize("y", [COLUMNS, rng.integers(0, 2, (N, 3))], ids=["texts", "indicators"])
def test_columns_of_labels(form, y):
    fold = fold_of(FORMS[form], y)
    out = answers(KNeighborsClassifier(), VOTES, fold)
    for role in ROLES:
        found = out.respond(role, fold)["predict"]
        for j, setting in enumerate(VOTES):
            fitted = KNeighborsClassifier(**setting).fit(fold.X_train, fold.y_train)
            expected = fitted.predict(fold.rows(role))
            np.testing.assert_array_equal(found[j], expected)
            assert found[j].dtype == expected.dtype


@pytest.mark.cases(2)
@pytest.mark.parametrize("scoring", [None, "f1_macro", "roc_auc"])
def test_a_search_over_several_labels(scoring):
    y = (NUMBERS[:, :2] + 0.3 * rng.normal(size=(N, 2)) > 0).astype(int)
    grid = {"n_neighbors": [1, 4, 9], "weights": ["uniform", "distance"]}
    both(KNeighborsClassifier(), grid, NUMBERS, y, scoring=scoring)


def test_ties_are_seen_where_the_choice_matters():
    X, y = np.array([[0.0], [1.0], [-1.0], [2.0], [-2.0], [3.0]]), np.array([0, 1, 2, 1, 1, 0])
    near = Neighbors(KNeighborsRegressor(algorithm="brute").fit(X, y), np.zeros((1, 1)), y, 5)
    # 1 and -1 have other targets, 2 and -2 the same ones
    assert [len(near.open_rows(k)) for k in range(1, 7)] == [0, 1, 0, 0, 0, 0]
    cut = Neighbors(KNeighborsRegressor(algorithm="brute").fit(X, y), np.zeros((1, 1)), y, 4)
    assert [len(cut.open_rows(k)) for k in range(1, 5)] == [0, 1, 0, 1]  # more rows may be as far as 2


def test_few_rows_are_asked_again_in_whole_chunks(monkeypatch):
    """Without exact arithmetic, ties of products are decided on the same products again."""
    asked, X = [], rng.normal(size=(700, 20))
    X[rng.permutation(700)[:20]] = X[0]
    model = KNeighborsClassifier(algorithm="brute").fit(X, np.arange(700) % 2)
    near = Neighbors(model, X, np.arange(700) % 2, 3)
    predict = KNeighborsClassifier.predict

    def watched(self, rows):
        asked.append(len(rows))
        return predict(self, rows)

    monkeypatch.setattr(KNeighborsClassifier, "predict", watched)
    near.ask_at(3, "distance", "predict", np.array([300, 650]))
    assert asked == [256 + 700 - 512]


@pytest.mark.parametrize(
    ("estimator", "setting", "why"),
    [
        (KNeighborsClassifier(), {"weights": np.ones_like}, "weights is a function"),
        (KNeighborsClassifier(metric=lambda a, b: 0.0), {}, "metric is a function"),
        (KNeighborsClassifier(metric="precomputed"), {}, "precomputed"),
        (KNeighborsClassifier(), {"n_neighbors": 2.0}, "no integer|not an integer"),
        (KNeighborsRegressor(), {"n_neighbors": 0}, "not an integer from 1"),
        (KNeighborsRegressor(), {"n_neighbors": 71}, "larger than the number of training rows"),
        (KernelRidge(kernel="precomputed"), {}, "precomputed"),
        (KernelRidge(), {"alpha": np.ones(2)}, "alpha"),
        (KernelRidge(), {"alpha": 1e-9}, "too small for the kernel matrix"),
        (KernelRidge(kernel="sigmoid", gamma=9.0), {"alpha": 1e-3}, "too small for the kernel matrix"),
        (KernelRidge(kernel="chi2"), {"alpha": 1.0}, "the kernel gave ValueError"),
    ],
)
def test_what_is_left_to_scikit_learn(estimator, setting, why):
    free = family_of(type(estimator)).free
    given = {name: estimator.get_params()[name] for name in free} | setting
    y = LABELS if is_classifier(estimator) else TARGETS
    try:
        found = answers(estimator, [given], fold_of(NUMBERS, y)).refused[0]
    except Unsupported as error:
        found = str(error)
    assert re.search(why, found)


ALPHAS = [{"alpha": alpha} for alpha in (1, 0.05, 30.0, np.float32(2.0))]


@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian", "poly", "cosine"])
def test_kernel_ridge_to_rounding(kernel):
    for X, y in (
        (NUMBERS, TARGETS),
        (sp.csr_matrix(WHOLE), TARGETS[:, 0]),
        (WHOLE.astype(int), TARGETS[:, 1]),
    ):
        if kernel != "poly" or X is NUMBERS:
            assert_same(KernelRidge(kernel=kernel), ALPHAS, fold_of(X, y), rtol=1e-9)


def test_kernel_ridge_with_weights():
    weights = rng.random(TRAIN) * (rng.random(TRAIN) < 0.7)
    for y in (TARGETS, TARGETS[:, 0]):
        fold = fold_of(NUMBERS, y, weights)
        assert_same(KernelRidge(kernel="rbf", gamma=0.1), ALPHAS, fold, rtol=1e-10, weights=weights)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_rows_whose_label_no_choice_changes_are_not_asked_again(weights, monkeypatch):
    """A row is asked again only if two choices of equally far neighbours give two labels."""
    asked = set()
    ask = Neighbors.ask
    monkeypatch.setattr(
        Neighbors,
        "ask",
        lambda self, params, method, rows: asked.update(rows.tolist()) or ask(self, params, method, rows),
    )
    n_asked = n_open = 0
    for seed in range(60):
        draw = np.random.default_rng(seed)
        X, y, k = (
            draw.integers(0, 2, (24, 4)).astype(float),
            draw.integers(0, 3, 24),
            int(draw.integers(2, 8)),
        )
        fold = FoldArrays(X[:14], y[:14], X[14:], y[14:], None, X[:14], y[:14], y[14:])
        model = KNeighborsClassifier(algorithm="brute", weights=weights)
        # The largest number of neighbours sees all training rows, so every group of equal distances is whole.
        settings = [{"n_neighbors": k, "weights": weights}, {"n_neighbors": 14, "weights": weights}]
        asked.clear()
        answers(model, settings, fold).subset([0]).respond("test", fold)["predict"]
        for i, row in enumerate(X[14:]):
            distances = np.linalg.norm(X[:14] - row, axis=1)
            last = np.sort(distances)[k - 1]
            inner, tied = np.flatnonzero(distances < last), np.flatnonzero(distances == last)
            labels, close = set(), False
            for choice in combinations(tied, k - len(inner)):
                taken = np.concatenate([inner, choice]).astype(int)
                weight = distance_weights(distances[taken][None])[0] if weights == "distance" else None
                votes = np.bincount(y[:14][taken], weight, minlength=3)
                close |= weights == "distance" and bool(np.diff(np.sort(votes))[-1] < 1e-6)
                labels.add(int(votes.argmax()))
            n_open += len(y[:14][tied]) > k - len(inner) and len(set(y[:14][tied])) > 1
            n_asked += i in asked
            if not close and weights == "uniform":
                assert (i in asked) == (len(labels) > 1)
            elif not close and len(labels) > 1:
                assert i in asked
    assert 0 < n_asked < n_open
