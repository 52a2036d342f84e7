"""A scorer of the user's reads copies of shared steps: they answer as scikit-learn's own do, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.model_selection
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
from sklearn.datasets import load_diabetes
from sklearn.decomposition import (
    NMF,
    PCA,
    FactorAnalysis,
    FastICA,
    IncrementalPCA,
    KernelPCA,
    TruncatedSVD,
)
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import manyfit.model_selection
from tests._covering import covering, spread

X, Y = load_diabetes(return_X_y=True)

STEPS = {
    "PCA": PCA(2, svd_solver="full"),
    "PCA of the covariance": PCA(3, svd_solver="covariance_eigh"),
    "IncrementalPCA": IncrementalPCA(2),
    "TruncatedSVD": TruncatedSVD(2, random_state=0),
    "TruncatedSVD by arpack": TruncatedSVD(2, algorithm="arpack", random_state=0),
    "KernelPCA": KernelPCA(2, eigen_solver="dense"),
    "FactorAnalysis": FactorAnalysis(2),
    "FastICA": FastICA(2, random_state=0),
    "NMF": make_pipeline(MinMaxScaler(clip=True), NMF(2, random_state=0, tol=0.1)),
    "LinearDiscriminantAnalysis": LinearDiscriminantAnalysis(n_components=2, solver="eigen"),
}


def own_score(model, X, y):
    return float(model.score(X, y))


def of_steps(model, X, y):
    """A sum, in which all bits count."""
    return float(np.asarray(model[:-1].transform(X)).sum())


def of_attributes(model, X, y):
    """What BLAS makes of the fitted arrays, which depends on where their rows lie."""
    state = vars(model[0]) if not hasattr(model[0], "steps") else vars(model[0][-1])
    rows = np.ones((4, X.shape[1]))
    arrays = [v for v in state.values() if isinstance(v, np.ndarray) and v.ndim == 2]
    products = [float((rows @ v.T).sum()) for v in arrays if v.shape[1] == X.shape[1]]
    return float(sum(products) + sum(sum(v.strides) for v in arrays))


def both_searched(model, grid, X, y, **options):
    """scikit-learn's search and ours, of which all scores are the same to the last bit."""
    theirs, ours = (
        module.GridSearchCV(model, grid, cv=3, return_train_score=True, **options).fit(X, y)
        for module in (sklearn.model_selection, manyfit.model_selection)
    )
    for name in (name for name in theirs.cv_results_ if name.startswith(("mean_test", "mean_train"))):
        assert np.isfinite(theirs.cv_results_[name]).all()
        np.testing.assert_array_equal(ours.cv_results_[name], theirs.cv_results_[name])
    return ours


@pytest.mark.cases(2)
@pytest.mark.invariant("Equal steps on equal input are fitted once per fold, and only equal ones")
@pytest.mark.parametrize("step", spread(STEPS, 5))
def test_scores_are_equal_to_the_bit(step):
    y = np.digitize(Y, [100, 200]) if step == "LinearDiscriminantAnalysis" else Y
    last = KNeighborsClassifier() if y is not Y else KNeighborsRegressor(weights="distance")
    model = make_pipeline(STEPS[step], last)
    grid = {f"{type(last).__name__.lower()}__n_neighbors": [1, 5]}
    scoring = {"own": own_score, "steps": of_steps, "attributes": of_attributes}
    ours = both_searched(model, grid, X, y, scoring=scoring, refit=False)
    assert ours.report_.transformer_fits < 3 * 4


def strides(model, X, y):
    return float(sum(X.strides) if isinstance(X, np.ndarray) else X.indices.dtype.itemsize)


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    "rows",
    [np.asfortranarray(X), X[:, ::-1], X[:, ::2], np.repeat(X, 2, 0)[::2], X.astype("f4"), sp.csr_array(X)],
    ids=["Fortran", "backwards", "gaps", "every second row", "float32", "sparse"],
)
def test_a_scorer_finds_rows_as_they_lie_under_scikit_learn(rows):
    model = make_pipeline(TruncatedSVD(2, random_state=0), KNeighborsRegressor())
    for scoring in (strides, of_steps):
        both_searched(model, {"kneighborsregressor__n_neighbors": [1, 5]}, rows, Y, scoring=scoring)


class Cuts(TransformerMixin, BaseEstimator):
    """Its output is a part of a larger array, with gaps between columns or backwards."""

    def __init__(self, part=None):
        self.part = part

    def fit(self, X, y=None):
        self.n_features_in_ = np.shape(X)[1]
        return self

    def transform(self, X):
        self.names_ = np.arange(np.shape(X)[1])[self.part].astype(str).astype(object)
        return np.array(X, order="C")[:, self.part]

    def get_feature_names_out(self, input_features=None):
        return self.names_


class Strides(RegressorMixin, BaseEstimator):
    """Predicts how its rows lie in memory."""

    def __init__(self, shift=0):
        self.shift = shift

    def fit(self, X, y):
        self.strides_ = sum(np.asarray(X).strides)
        return self

    def predict(self, X):
        return np.full(len(X), self.shift + self.strides_ + 0.5 * sum(np.asarray(X).strides))


@pytest.mark.parametrize(
    ("part", "container"),
    covering(
        [slice(None, None, 2), slice(None, None, -1), slice(2, 5), [1, 3]],
        ["default", "pandas", "polars"],
        strength=1,
    ),
)
def test_outputs_of_shared_steps_lie_as_under_scikit_learn(container, part):
    model = make_pipeline(Cuts(part).set_output(transform=container), Strides())
    assert both_searched(model, {"strides__shift": [0, 1]}, X, Y).report_.transformer_fits == 3
