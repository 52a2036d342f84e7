"""Any estimator on an X in chunks: fitted block by block, or in memory and then predicting block by block."""

from __future__ import annotations

from itertools import pairwise

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import PoissonRegressor, Ridge, SGDClassifier, SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, PolynomialFeatures, StandardScaler

from manyfit.estimators import Incremental, ParallelPostFit
from manyfit.folds import as_chunk_rows
from tests.behaviour.chunks._files import Dataset, limit_for

rng = np.random.default_rng(0)
N, P = 211, 4
X = rng.normal(size=(N, P))
Y = X[:, 0] + rng.normal(size=N)
LABELS = np.where(Y > 1.0, "rare", np.where(Y > 0.0, "high", "low"))
ROWS = [*range(0, N, 30), N]


def _rows(values=X):
    return as_chunk_rows(Dataset(values, (30, P)), limit_for(X, 30))


def test_predictions_of_a_forest_are_made_block_by_block():
    forest = RandomForestClassifier(10, random_state=0)
    model, alone = ParallelPostFit(forest).fit(X, LABELS), clone(forest).fit(X, LABELS)
    lazy = da.from_array(X, chunks=(50, 2))
    for given in (X, lazy, _rows(), lazy[da.ones(N, chunks=50, dtype=bool)]):
        for name in ("predict", "predict_proba", "predict_log_proba"):
            with np.errstate(divide="ignore"):
                found = getattr(model, name)(given)
                np.testing.assert_array_equal(found, getattr(alone, name)(X))
            assert type(found) is (da.Array if isinstance(given, da.Array) else np.ndarray)
        assert model.score(given, LABELS) == alone.score(X, LABELS)
        weight = np.arange(N)
        found = model.score(given, da.from_array(LABELS), sample_weight=weight)
        assert found == alone.score(X, LABELS, weight)
    assert model.classes_.tolist() == ["high", "low", "rare"] and not hasattr(model, "decision_function")
    fitted = ParallelPostFit(alone, scoring="neg_log_loss")
    assert fitted.score(_rows(), LABELS) == pytest.approx(
        ParallelPostFit(alone, scoring="neg_log_loss").score(X, LABELS)
    )


def test_probabilities_of_several_targets_are_a_list_of_arrays():
    targets = np.column_stack([Y > 0.0, Y > 1.0])
    forest = RandomForestClassifier(3, random_state=0).fit(X[:180], targets[:180])
    parts = zip(
        ParallelPostFit(forest).predict_proba(_rows(X[:180])), forest.predict_proba(X[:180]), strict=True
    )
    for found, expected in parts:
        np.testing.assert_array_equal(found, expected)


def test_a_frame_keeps_its_names():
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = ParallelPostFit(PolynomialFeatures()).fit(frame)
    rows = model.transform(dd.from_pandas(frame, npartitions=3))
    np.testing.assert_array_equal(rows[20:100], PolynomialFeatures().fit_transform(X)[20:100])


@pytest.mark.parametrize("columns", [[0, P], [0, 3, P]])
@pytest.mark.parametrize("kind", ["csr_matrix", "csr_array"])
def test_sparse_chunks_stay_sparse(kind, columns):
    matrix, cuts = getattr(scipy.sparse, kind)(np.where(X > 0.5, X, 0.0)), [0, 50, 120, N]

    def part(start, stop, left, right):
        own = dask.delayed(matrix[start:stop, left:right])
        return da.from_delayed(own, (stop - start, right - left), meta=matrix[:0, :0])

    lazy = da.block([[part(*rows, *own) for own in pairwise(columns)] for rows in pairwise(cuts)])
    scaler, svd = MaxAbsScaler().fit(matrix), TruncatedSVD(2, random_state=0).fit(matrix)
    found = ParallelPostFit(scaler).transform(lazy)
    expected = scaler.transform(matrix)
    assert scipy.sparse.issparse(found._meta) and found.chunks == (lazy.chunks[0], (P,))
    for k, (start, stop) in enumerate(pairwise(cuts)):
        one = found.blocks[k].compute()
        assert type(one) is type(matrix)
        np.testing.assert_array_equal(one.toarray(), expected[start:stop].toarray())
    np.testing.assert_array_equal(found.compute().toarray(), expected.toarray())
    np.testing.assert_array_equal(ParallelPostFit(svd).transform(lazy), svd.transform(matrix))
    np.testing.assert_array_equal(ParallelPostFit(svd).transform(found), svd.transform(expected))
    with pytest.raises(ValueError, match="Cannot center sparse matrices"):
        ParallelPostFit(StandardScaler().fit(X)).transform(lazy)


def test_dense_chunks_become_sparse():
    codes = np.digitize(X, [0.0, 1.0])
    encoder = OneHotEncoder().fit(codes)
    model, lazy = ParallelPostFit(encoder), da.from_array(codes, chunks=(50, 2))
    np.testing.assert_array_equal(
        model.transform(lazy).compute().toarray(), encoder.transform(codes).toarray()
    )
    with pytest.raises(TypeError, match="become sparse, .* Transform block by block, or give X as a Dask"):
        model.transform(_rows(codes.astype(float)))


@pytest.mark.parametrize("given", ["file", "dask", "unknown lengths"])
def test_partial_fits_in_order(given):
    lazy = da.from_array(X, chunks=(30, P))
    sources = {"file": _rows(), "dask": lazy, "unknown lengths": lazy[da.ones(N, chunks=30, dtype=bool)]}
    rows = as_chunk_rows(sources[given], limit_for(X, 30))
    weights = rng.uniform(size=N)
    model = Incremental(SGDClassifier(random_state=0), shuffle_blocks=False)
    model.fit(rows, LABELS, sample_weight=weights)
    alone = SGDClassifier(random_state=0)
    for start, stop in pairwise(ROWS):
        own = slice(start, stop)
        alone.partial_fit(X[own], LABELS[own], classes=np.unique(LABELS), sample_weight=weights[own])
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    np.testing.assert_array_equal(model.predict(rows), alone.predict(X))
    model.partial_fit(rows, LABELS)
    assert model.t_ == 2 * N + 1 and model.score(rows, LABELS) > 0.5


def test_shuffled_blocks_and_those_without_targets():
    first, second, other = (
        Incremental(SGDRegressor(random_state=0), random_state=seed).fit(_rows(), Y).coef_
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()
    # In order: the last block has one row, of which three clusters cannot be begun.
    model = Incremental(MiniBatchKMeans(3, random_state=0, n_init=1), shuffle_blocks=False).fit(_rows())
    assert model.predict(_rows()).shape == (N,)
    with pytest.raises(TypeError, match=r"MiniBatchKMeans.score reads X whole. Set scoring"):
        model.score(_rows())
    in_memory = Incremental(SGDRegressor(random_state=0)).fit(X, Y)
    np.testing.assert_array_equal(in_memory.coef_, SGDRegressor(random_state=0).partial_fit(X, Y).coef_)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ParallelPostFit(SGDRegressor()).predict(X), NotFittedError, "not fitted"),
        (lambda: Incremental(SGDRegressor()).fit(_rows(), Y[1:]), ValueError, "inconsistent numbers"),
        (
            lambda: Incremental(SGDRegressor()).fit(_rows(), Y, sample_weight=Y[1:]),
            ValueError,
            "inconsistent",
        ),
        (lambda: Incremental(PoissonRegressor()).fit(_rows(), Y), AttributeError, "partial_fit"),
        (lambda: ParallelPostFit(SGDRegressor()).transform(X), AttributeError, "transform"),
        (lambda: ParallelPostFit(SGDRegressor()).coef_, AttributeError, "has no attribute 'coef_'"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_clones_and_parameters():
    model = clone(Incremental(SGDRegressor(alpha=0.1), shuffle_blocks=False, random_state=3))
    assert model.get_params()["estimator__alpha"] == 0.1 and model.random_state == 3
    assert not hasattr(model, "estimator_")


def test_a_row_of_ones_that_an_encoder_does_not_know_and_several_targets():
    codes, lazy = rng.integers(5, 9, size=(N, P)), da.from_array(X, chunks=50)
    model = ParallelPostFit(make_pipeline(OneHotEncoder(), Ridge())).fit(codes, Y)
    given = da.from_array(codes, chunks=50)
    np.testing.assert_array_equal(model.predict(given), model.predict(codes))
    with pytest.raises(ValueError, match="unknown categories"):
        model.predict(given + 4)
    forest = ParallelPostFit(RandomForestClassifier(2, random_state=0)).fit(X, np.c_[LABELS, LABELS == "low"])
    for found, expected in zip(forest.predict_proba(lazy), forest.predict_proba(X), strict=True):
        assert type(found) is da.Array
        np.testing.assert_array_equal(found, expected)
