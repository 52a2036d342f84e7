"""The refit of a search on chunks reads them, or is refused before anything is read."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler as SklearnScaler

from manyfit.estimators import PCA as OwnPCA
from manyfit.estimators import GaussianNB as OwnGaussianNB
from manyfit.estimators import Lasso, LinearRegression, Ridge, StandardScaler
from manyfit.estimators import LogisticRegression as OwnLogistic
from manyfit.folds import as_chunk_rows
from manyfit.model_selection import GridSearchCV
from tests.behaviour.chunks._files import Dataset, given_as, limit_for
from tests.behaviour.chunks._searches import GRID, KINDS, LABELS, RIDGE, WEIGHTS, N, P, X, Y

every_kind = pytest.mark.parametrize("kind", KINDS)


# The refit


@pytest.mark.cases(2)
@every_kind
def test_our_estimators_are_refitted_and_predict_in_chunks(kind, tmp_path):
    given, more = given_as(kind, X, 40, tmp_path), {"ridge__sample_weight": WEIGHTS}
    model = make_pipeline(StandardScaler(), Ridge())
    search = GridSearchCV(model, GRID, memory_limit=limit_for(X, 90)).fit(given, Y, **more)
    expected = SklearnSearch(RIDGE, GRID).fit(X, Y, **more)
    assert search.best_params_ == expected.best_params_
    for name in ("coef_", "intercept_"):
        np.testing.assert_allclose(
            getattr(search.best_estimator_[-1], name), getattr(expected.best_estimator_[-1], name), rtol=1e-10
        )
    predicted = search.predict(given)
    assert isinstance(predicted, da.Array if kind == "dask" else np.ndarray)
    np.testing.assert_allclose(predicted, expected.predict(X), rtol=1e-10)
    np.testing.assert_allclose(search.score(given, Y), expected.score(X, Y), rtol=1e-10)
    if kind in ("h5py", "zarr"):
        assert max(given.reads) <= 120


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("own", "model", "grid", "y", "tol"),
    [
        (
            make_pipeline(StandardScaler(), OwnLogistic(tol=1e-6, max_iter=1000)),
            make_pipeline(SklearnScaler(), LogisticRegression(tol=1e-6, max_iter=1000)),
            {"logisticregression__C": [1e-3, 1e-1]}, LABELS, 1e-4,
        ),
        (
            make_pipeline(StandardScaler(), OwnPCA(), Ridge()),
            make_pipeline(SklearnScaler(), PCA(), SklearnRidge()),
            {"pca__n_components": [2, 4], "ridge__alpha": [1.0, 100.0]}, Y, 1e-9,
        ),
        (OwnGaussianNB(), GaussianNB(), {"var_smoothing": [1e-9, 1e-2]}, LABELS, 0.0),
    ],
    ids=["logistic", "pca", "nb"],
)  # fmt: skip
def test_our_estimators_are_refitted_by_sums_decompositions_and_iterations(own, model, grid, y, tol):
    file = Dataset(X, (40, P))
    search = GridSearchCV(own, grid, memory_limit=max(limit_for(X, 90), X.nbytes // 2)).fit(file, y)
    expected = SklearnSearch(model, grid).fit(X, y)
    assert search.report_.fits_done == 0 and search.best_params_ == expected.best_params_
    if tol:
        last, wanted = search.best_estimator_, expected.best_estimator_
        np.testing.assert_allclose(last[-1].coef_, wanted[-1].coef_, rtol=tol, atol=tol)
    np.testing.assert_allclose(
        search.predict(file) if y is Y else search.predict_proba(file),
        expected.predict(X) if y is Y else expected.predict_proba(X),
        atol=max(tol, 1e-10),
    )
    np.testing.assert_allclose(search.score(file, y), expected.score(X, y), rtol=max(tol, 1e-10))
    assert max(file.reads) < N


@pytest.mark.parametrize(
    ("model", "grid", "reason"),
    [
        (RIDGE, GRID, "StandardScaler is a class of sklearn"),
        (make_pipeline(StandardScaler(), SklearnRidge()), GRID, "Ridge is a class of sklearn"),
        (Lasso(), {"alpha": [0.1]}, "Lasso reads X whole"),
        (Ridge(), {"solver": ["auto", "sag"]}, r"Ridge\(solver='sag'\) iterates over rows"),
    ],
)
def test_a_refit_that_needs_x_in_memory_is_refused_before_anything_is_read(model, grid, reason):
    file = Dataset(X, (10, P))
    search = GridSearchCV(model, grid, memory_limit=limit_for(X, 90))
    for call in (search.plan, search.fit):
        with pytest.raises(TypeError, match=f"the refit cannot read: {reason}.* Set refit=False, or use est"):
            call(file, Y)
    assert not file.reads


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    ("own", "grid", "more"),
    [
        (make_pipeline(StandardScaler(), Ridge()), GRID, {}),
        (make_pipeline(StandardScaler(with_mean=False), OwnPCA(3, whiten=True), Ridge()), GRID, {}),
        (make_pipeline(OwnPCA(3), StandardScaler(with_std=False), LinearRegression()), {}, {}),
        (Ridge(), {"alpha": [1.0, 10.0]}, {"sample_weight": WEIGHTS}),
    ],
)
@pytest.mark.parametrize("cv", [3, KFold(3, shuffle=True, random_state=0)])
def test_a_refit_to_moments_takes_no_pass(own, grid, more, cv):
    file = Dataset(X, (10, P))
    search = GridSearchCV(own, grid, cv=cv, memory_limit=limit_for(X, 90)).fit(file, Y, **more)
    assert search.report_.passes == 1 + bool(more)
    assert sum(file.reads) == search.report_.bytes_read // X[0].nbytes + (len(own) - 1 if not more else 0)
    again = clone(search.best_estimator_).fit(X, Y, **more)  # by scikit-learn
    for own_step, step in zip(_steps(search.best_estimator_), _steps(again), strict=True):
        for name, value in vars(step).items():
            if name.endswith("_") and isinstance(value, np.ndarray):
                found = getattr(own_step, name)
                assert found.dtype == value.dtype and found.shape == value.shape
                np.testing.assert_allclose(found, value, rtol=1e-9, atol=1e-10, err_msg=name)
        assert getattr(own_step, "n_samples_seen_", 0) == getattr(step, "n_samples_seen_", 0)
    np.testing.assert_allclose(search.predict(file), again.predict(X), rtol=1e-9, atol=1e-9)


def _steps(model):
    return model[:] if hasattr(model, "steps") else [model]


def test_moments_of_other_targets_weights_or_rows_are_summed_anew():
    file = Dataset(X, (10, P))
    rows = as_chunk_rows(file, limit_for(X, 90))
    for y, weights in ((Y, None), (Y + 1.0, None), (Y, WEIGHTS), (Y, WEIGHTS + 1.0), (Y[::-1], None)):
        before = sum(file.reads)
        for _ in range(2):
            model = Ridge().fit(rows, y, sample_weight=weights)
        assert N <= sum(file.reads) - before <= N + 150  # the first fit reads, the second does not
        expected = SklearnRidge().fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    constant = np.c_[X, np.full(N, 7.0)]
    rows = as_chunk_rows(Dataset(constant, (10, P + 1)), limit_for(X, 90))
    PCA_of_all = OwnPCA().fit(rows)
    assert PCA_of_all.n_components_ == P + 1
    scaler = StandardScaler().fit(rows)
    assert scaler.scale_[-1] == 1.0 and scaler.var_[-1] == 0.0
