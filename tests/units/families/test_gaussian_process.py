"""GaussianProcessRegressor with a fixed kernel beside scikit-learn's own fits: equal to the bit."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor, kernels
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from manyfit.estimators import Cost, family_of
from manyfit.families.kernels import _gaussian_process
from manyfit.model_selection import GridSearchCV
from tests._covering import covering

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 3))
Y = np.c_[X[:, 0] + 0.1 * rng.normal(size=90), 100 + X[:, 1] - X[:, 2]]
ALPHAS = [1e-10, 1e-3, 0.1, 3.0]
SCORERS = ["r2", "neg_mean_absolute_error"]


@pytest.fixture(autouse=True)
def _whatever_it_costs(monkeypatch):
    monkeypatch.setattr(type(family_of(GaussianProcessRegressor)), "cost", lambda *_: Cost(0.0, 1.0))


def searched(model, grid, data, y, **options):
    """A search of which all scores are scikit-learn's, and their warnings."""
    options = {"cv": 3, "refit": False, "return_train_score": True, "scoring": SCORERS} | options
    found = []
    for search in (GridSearchCV, SklearnSearch):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            fitted = search(model, grid, **options).fit(data, y)
            # The order of failures is that of the fits, and the trace of one names lines of code.
            lines = [line for one in seen for line in str(one.message).splitlines()]
            found.append((fitted, sorted(line for line in lines if not line.startswith("  File"))))
    (ours, our_warnings), (theirs, their_warnings) = found
    keys = [key for key in theirs.cv_results_ if key.startswith("split")]
    assert len(keys) == 12
    for key in keys:
        np.testing.assert_allclose(ours.cv_results_[key], theirs.cv_results_[key], rtol=1e-12, atol=1e-14)
    assert our_warnings == their_warnings
    return ours.report_


def regressor(kernel=None, **params):
    return GaussianProcessRegressor(kernel, optimizer=None, **params)


KERNELS = [
    None,
    RBF(3.0),
    ConstantKernel(7.0) * RBF([0.3, 1.0, 3.0]) + WhiteKernel(1e-5),
    Matern(nu=2.5),
    Matern(nu=0.7, length_scale_bounds="fixed"),
    RationalQuadratic(2, 0.3),
    DotProduct(0.7) ** 2,
    ExpSineSquared(3.0, 2.0) + DotProduct() + WhiteKernel(9.0),
]


TARGETS = {"flat": Y[:, 0], "column": Y[:, :1], "two columns": Y}


@pytest.mark.cases(3)
@pytest.mark.parametrize(("kernel", "y"), covering(KERNELS, TARGETS.values(), strength=1))
def test_scores(kernel, y):
    grid = {"alpha": ALPHAS, "normalize_y": [False, True]}
    report = searched(regressor(kernel), grid, X, y)
    assert report.fits_shared >= 18 and report.fits_done == 24 - report.fits_shared


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    "data",
    [np.asfortranarray(X), np.rint(10 * X).astype(int), pd.DataFrame(X), X.astype(np.float32)],
    ids=["F order", "integers", "frame", "float32"],
)
def test_layouts_of_rows(data):
    kernel = DotProduct(0.3) * RBF(2.0)
    assert searched(regressor(kernel), {"alpha": ALPHAS}, data, Y).fits_shared >= 9
    model = make_pipeline(StandardScaler(), regressor(kernel))
    assert searched(model, {"gaussianprocessregressor__alpha": ALPHAS}, data, Y).fits_shared >= 9


def test_predictions_are_equal_to_the_bit_however_ill_conditioned():
    class Fold:
        X_train, y_train, X_test = X[:60], Y[:60, 0], X[60:]

        def rows(self, role):
            return self.X_test

    class Folded:
        n_splits = 1

        def fold(self, i):
            return Fold()

    model = regressor(RBF(3.0))
    settings = [model.get_params() | {"alpha": alpha} for alpha in (1e-12, 1e-10, 1e-2)]
    (answers,) = family_of(GaussianProcessRegressor).fit_many(model, settings, Folded())
    assert not answers.refused
    found = answers.respond("test", Fold())["predict"]
    for setting, predicted in zip(settings, found, strict=True):
        fitted = regressor(RBF(3.0), alpha=setting["alpha"]).fit(Fold.X_train, Fold.y_train)
        np.testing.assert_array_equal(predicted, fitted.predict(Fold.X_test))
        assert fitted.alpha_.any()


def test_training_scores_that_are_rounding_are_those_of_a_copy_of_the_rows():
    """BLAS multiplies a matrix by itself in another order than two that are equal."""
    rows = np.random.default_rng(0).normal(size=(11, 11)) + 1e5
    model = make_pipeline(MaxAbsScaler(), regressor(DotProduct() ** 2))
    cv = KFold(3, shuffle=True, random_state=690)
    grid = {"gaussianprocessregressor__alpha": [1e-10, 0.1]}
    assert searched(model, grid, rows, rows[:, 0] - 1e5, cv=cv).fits_shared == 6


def test_kernels_of_a_grid_have_a_matrix_each(monkeypatch):
    calls = []
    call = RBF.__call__
    monkeypatch.setattr(
        _gaussian_process.kernels.RBF,
        "__call__",
        lambda self, X, Y=None, eval_gradient=False: (
            calls.append(Y is None),
            call(self, X, Y, eval_gradient),
        )[1],
    )
    grid = {"alpha": ALPHAS[1:], "kernel": [RBF(1.0), RBF(2.0)], "normalize_y": [True, False]}
    search = GridSearchCV(regressor(), grid, cv=3, refit=False).fit(X, Y)
    assert search.report_.fits_shared == 36
    assert (calls.count(True), calls.count(False)) == (6, 6)


def test_hyperparameters_of_a_kernel_share_each_matrix():
    grid = {"alpha": ALPHAS[1:], "kernel__length_scale": [0.5, 3.0, 3]}
    assert searched(regressor(RBF()), grid, X, Y).fits_shared == 27


@pytest.mark.parametrize("y", [Y[:, 0], Y], ids=["flat", "two columns"])
def test_matrices_that_are_not_positive_definite_fail_as_in_scikit_learn(y):
    repeated = np.repeat(X[:30], 3, axis=0)
    report = searched(regressor(RBF()), {"alpha": [0.0, 1.0]}, repeated, y, error_score=-7.0)
    assert report.fits_shared == 3
    with pytest.raises(np.linalg.LinAlgError, match="not returning a positive definite matrix"):
        GridSearchCV(regressor(RBF()), {"alpha": [0.0, 1.0]}, error_score="raise").fit(repeated, y)


class Half(RBF):
    """A kernel of a user's own."""

    def __call__(self, X, Y=None, eval_gradient=False):
        return 0.5 * super().__call__(X, Y, eval_gradient)


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (GaussianProcessRegressor(RBF(1.0, "fixed")), "optimizer is not None"),
        (regressor(Half() + RBF()), "kernels with Half"),
        (regressor(PairwiseKernel()), "kernels with PairwiseKernel"),
        (regressor(kernels.CompoundKernel([RBF(), RBF()])), "kernels with CompoundKernel"),
        (regressor(WhiteKernel()), "not one of rows of numbers"),
        (regressor(RBF(), n_targets=1), "n_targets"),
        (regressor(RBF(), copy_X_train=False), "copy_X_train"),
    ],
)
def test_what_is_left_to_scikit_learn(model, why):
    plan = GridSearchCV(model, {"alpha": [0.1, 1.0]}).plan(X, Y)
    assert why in str(plan)


@pytest.mark.parametrize(
    ("data", "y"),
    [
        (X, Y.astype(np.float32)),
        (np.where(X > 2.5, np.nan, X), Y),
        (X, np.c_[Y[:, 0], np.ones(90)]),
        (X, 1e160 * Y),
    ],
    ids=["float32 targets", "gaps", "a constant target", "huge targets"],
)
def test_awkward_data(data, y):
    grid = {"alpha": [0.1, 1.0], "normalize_y": [True]}
    assert searched(regressor(DotProduct()), grid, data, y).fits_shared == 0
