"""libsvm takes the same steps on kernel matrices as on rows: fits, labels and ranks are equal to the bit."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.svm import SVC, SVR, NuSVC, NuSVR

from manyfit.estimators import family_of
from manyfit.families.kernels import _support_vectors
from manyfit.families.kernels._single_precision import KernelFunction, KernelRows, SparseKernelRows
from manyfit.folds import FoldArrays, SingleFold, Unsupported
from manyfit.model_selection import GridSearchCV
from tests._same_results import both

rng = np.random.default_rng(0)
ROLES = ("test", "train")
N, TRAIN = 90, 60
NUMBERS = rng.normal(size=(N, 7))
WHOLE = rng.integers(0, 3, size=(N, 7)).astype(np.float32)
TWICE = np.repeat(NUMBERS[: N // 2], 2, axis=0)[rng.permutation(N)]
# Most products are of rows without a column in common.
DISJOINT = np.where(rng.random((N, 30)) < 0.05, NUMBERS[:, :1], 0.0)
ROWS = {
    "numbers": NUMBERS,
    "whole": WHOLE,
    "twice": TWICE,
    "disjoint": DISJOINT,
    "one column": NUMBERS[:, :1],
    "sparse": sp.csr_matrix(DISJOINT),
    "sparse, whole": sp.csr_matrix(WHOLE),
    "sparse, twice": sp.csr_array(np.where(np.abs(TWICE) > 0.8, TWICE, 0.0)),
}
LABELS = np.array(["a", "b", "c"])[rng.integers(0, 3, N)]
TWO = np.where(NUMBERS[:, 0] > 0.1 * rng.normal(size=N), 1, -1)
TARGETS = NUMBERS[:, 0] + 0.1 * rng.normal(size=N)
SIGMOIDS = [SVC(kernel="sigmoid"), SVR(kernel="sigmoid", coef0=-0.3)]
KERNELS = [
    *(SVC(), SVC(kernel="linear"), SVC(kernel="poly", coef0=0.5), NuSVC(nu=0.3), SVR(), NuSVR()),
    *SIGMOIDS,
]


def settings_of(estimator, *changes):
    own = {name: estimator.get_params()[name] for name in family_of(type(estimator)).free}
    return [own | change for change in changes]


def answers(estimator, settings, fold):
    family = family_of(type(estimator))
    family.check(estimator, settings)
    (out,) = family.fit_many(estimator, settings, SingleFold(fold))
    return out


def fold_of(X, y, weights=None):
    return FoldArrays(X[:TRAIN], y[:TRAIN], X[TRAIN:], y[TRAIN:], weights, X[:TRAIN], y[:TRAIN], y[TRAIN:])


def assert_same(estimator, settings, fold):
    out = answers(estimator, settings, fold)
    assert not out.refused and out.fits_made == len(settings)
    weights = {} if fold.fit_weight is None else {"sample_weight": fold.fit_weight}
    methods = ("predict", "decision_function") if is_classifier(estimator) else ("predict",)
    for j, setting in enumerate(settings):
        fitted = clone(estimator).set_params(**setting).fit(fold.X_train, fold.y_train, **weights)
        for name in ("support_", "dual_coef_", "intercept_", "n_iter_"):
            expected = getattr(fitted, name)
            expected = expected.toarray() if sp.issparse(expected) else expected
            np.testing.assert_array_equal(getattr(out.models[j].model, name), expected)
        on_rows = out.models[j].on_rows()
        for role in ROLES:
            X = fold.rows(role)
            for method in methods:
                expected = getattr(fitted, method)(X)
                np.testing.assert_array_equal(getattr(on_rows, method)(X), expected)
                found = out.subset([j]).respond(role, fold)[method][0]
                if method == "predict" and is_classifier(estimator):
                    np.testing.assert_array_equal(found, expected)
                else:
                    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
                if method == "decision_function":
                    columns = found.reshape(X.shape[0], -1), expected.reshape(X.shape[0], -1)
                    np.testing.assert_array_equal(*(np.unique(c, axis=0).shape for c in columns))
                    np.testing.assert_array_equal(*(np.argsort(c, axis=0, kind="stable") for c in columns))


@pytest.mark.cases(22)
@pytest.mark.invariant("Support vector machines are fitted to the bit from kernel matrices")
@pytest.mark.parametrize("estimator", KERNELS, ids=repr)
@pytest.mark.parametrize("rows", ROWS)
def test_fits_are_equal_to_the_bit(estimator, rows):
    size = "nu" if type(estimator) is NuSVC else "C"
    changes = {size: 0.2, "gamma": 0.3}, {size: 0.4, "gamma": 0.3, "tol": 1e-4}, {size: 0.4, "gamma": "auto"}
    y = LABELS if is_classifier(estimator) else TARGETS
    assert_same(estimator, settings_of(estimator, *changes), fold_of(ROWS[rows], y))


@pytest.mark.parametrize(
    "options", [{"decision_function_shape": "ovo"}, {"class_weight": "balanced"}], ids=str
)
def test_options_and_weights_of_classifiers(options):
    weights = rng.random(TRAIN) + 0.1
    for y in (LABELS, TWO):
        estimator = SVC(**options)
        assert_same(estimator, settings_of(estimator, {"C": 10.0}, {"C": 0.1}), fold_of(NUMBERS, y, weights))


def test_labels_next_to_a_boundary_are_predicted_from_rows(monkeypatch):
    """A bound that leaves every row open changes nothing but the way."""
    fold = fold_of(TWICE, TWO)
    settings = settings_of(SVC(), {"C": 1.0})
    expected = answers(SVC(), settings, fold).respond("test", fold)
    expected = {method: expected[method] for method in expected}
    asked = []
    right = _support_vectors.svm_on_rows
    monkeypatch.setattr(_support_vectors, "svm_on_rows", lambda *args: asked.append(1) or right(*args))
    monkeypatch.setattr(_support_vectors.Fitted, "error", lambda self, X: 1e9)
    found = answers(SVC(), settings, fold).respond("test", fold)
    np.testing.assert_array_equal(found["predict"], expected["predict"])
    fitted = SVC().fit(fold.X_train, fold.y_train)
    np.testing.assert_array_equal(found["decision_function"][0], fitted.decision_function(fold.X_test))
    assert len(asked) == 2


def test_predictions_that_lose_digits_are_made_from_rows():
    estimator = SVR(gamma=1e-6)
    fold = fold_of(1e6 * np.round(NUMBERS, 1) + 1e6, 1e3 * TARGETS)
    out = answers(estimator, settings_of(estimator, {"C": 1e5, "gamma": 1e-14}), fold)
    fitted = SVR(C=1e5, gamma=1e-14).fit(fold.X_train, fold.y_train)
    np.testing.assert_allclose(
        out.respond("test", fold)["predict"][0], fitted.predict(fold.X_test), rtol=1e-10
    )


def sparse_rows(X):
    return SparseKernelRows(sp.csr_matrix(X))


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("make", "degree"),
    [*((KernelRows, degree) for degree in (None, 0, 1, 2, 3, 5)), (sparse_rows, None), (sparse_rows, 3)],
)
def test_kernel_matrices_round_to_those_of_single_products(make, degree):
    X = np.ascontiguousarray(np.concatenate([NUMBERS, DISJOINT[:, :7]]))
    rows = make(X)
    kernel = KernelFunction(0.3, -0.2, degree)
    products = rows.products()
    found = rows.matrix(kernel, products.copy(), out=np.empty_like(products))
    n = len(X)
    exact = [
        kernel.of_pair(rows.product(i, j), rows.squares[i] + rows.squares[j])
        for i in range(n)
        for j in range(n)
    ]
    exact = np.reshape(exact, (n, n))
    np.testing.assert_array_equal(found.astype(np.float32), exact.astype(np.float32))
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize(
    ("estimator", "setting", "why"),
    [
        (SVC(kernel=np.dot), {}, "kernel is a function"),
        (SVC(kernel="precomputed"), {}, "kernel is 'precomputed'"),
        (SVC(probability=True), {}, "probability=True"),
        (SVC(break_ties=True), {}, "break_ties=True"),
        (SVC(), {"C": 0.0}, "C=0.0 is not in the range"),
        (SVC(), {"gamma": "large"}, "gamma='large' is not known"),
        (SVC(kernel="poly"), {"degree": 2.5}, "degree=2.5 is not an integer"),
        (NuSVC(), {"nu": 0.99}, "a fit gave ValueError"),
        (SVR(max_iter=2), {}, "a fit gave ConvergenceWarning"),
        (SVR(gamma=1.0), {"gamma": 1e12}, "rounding leaves many kernel values open"),
    ],
)  # fmt: skip
def test_what_is_left_to_scikit_learn(estimator, setting, why):
    y = LABELS if is_classifier(estimator) else TARGETS
    X = NUMBERS if setting.get("gamma") != 1e12 else 1.0 + 1e-7 * NUMBERS
    try:
        found = answers(estimator, settings_of(estimator, setting), fold_of(X, y)).refused[0]
    except Unsupported as error:
        found = str(error)
    assert re.search(why, found)


LARGER = rng.normal(size=(400, 80))


def test_weights_of_zero_are_left_to_scikit_learn():
    weights = (rng.random(400) < 0.7).astype(float)
    search = both(SVR(), {"C": [0.1, 1.0]}, LARGER, LARGER[:, 0], fit_params={"sample_weight": weights})
    assert set(search.report_.left_to_sklearn) == {"some weights are not positive"}


def test_a_matrix_that_is_too_large_is_left_to_scikit_learn():
    grid, y = {"C": [0.1, 1.0]}, LARGER[:, 0]
    search = GridSearchCV(SVR(), grid, memory_limit="800kB", refit=False).fit(LARGER, y)
    (why,) = search.report_.left_to_sklearn
    assert re.fullmatch("shared fits would need .* more than memory_limit", why)
    assert GridSearchCV(SVR(), grid, refit=False).fit(LARGER, y).report_.fits_shared == 10


def test_few_rows_are_left_to_scikit_learn_by_the_plan():
    plan = GridSearchCV(SVR(), {"C": [0.1, 1.0]}).plan(NUMBERS, TARGETS)
    assert "one by one: sharing would take longer here" in str(plan)
