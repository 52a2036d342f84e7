"""Data that Dask has not computed: loaded once, by the library that Dask is configured for."""

import dask
import dask.array as da
import dask.bag
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.array.backends import NumpyBackendEntrypoint, array_creation_dispatch
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manyfit.arrays import compute_dask_inputs
from manyfit.model_selection import (
    GridSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    validation_curve,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 4))
Y = X @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=90)
NAMES = ["a", "b", "c", "d"]


class Counted:
    """Makes the chunks of an array, and counts how often."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.n = array, 0

    def lazy(self, rows: int = 30) -> da.Array:
        def block(of: np.ndarray) -> np.ndarray:
            self.n += 1
            return of

        with dask.config.set(scheduler="synchronous"):
            return da.from_array(self.array, chunks=(rows, *self.array.shape[1:])).map_blocks(
                block, meta=self.array[:0], dtype=self.array.dtype
            )


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def _search(**options):
    return GridSearchCV(Ridge(), {"alpha": [0.1, 1.0, 10.0]}, cv=3, **options)


def test_a_search_on_lazy_arrays_is_the_one_on_arrays_and_computes_each_chunk_once() -> None:
    lazy, labels = Counted(X), Counted(Y)
    search, other = _search(), _search().fit(X, Y)
    search.fit(lazy.lazy(), labels.lazy())
    assert (lazy.n, labels.n) == (3, 3)
    for key, values in other.cv_results_.items():
        if "time" not in key:
            assert_array_equal(search.cv_results_[key], values)
    assert_array_equal(search.best_estimator_.coef_, other.best_estimator_.coef_)
    assert search.report_.fits_shared == 9  # as on arrays


def test_a_plan_of_lazy_arrays_shares_what_that_of_arrays_shares() -> None:
    search = _search()
    assert str(search.plan(Counted(X).lazy(), Y)) == str(_search().plan(X, Y))
    assert search.fit(Counted(X).lazy(), Y).best_params_ == _search().fit(X, Y).best_params_


def test_a_search_on_lazy_frames_with_weights_and_groups() -> None:
    frame = pd.DataFrame(X, columns=NAMES)
    weights = rng.uniform(0.5, 2.0, 90)
    lazy = dd.from_pandas(frame, npartitions=4)
    target = dd.from_pandas(pd.Series(Y), npartitions=4)
    search = _search(refit=True).fit(lazy, target, sample_weight=da.from_array(weights, chunks=20))
    other = _search(refit=True).fit(frame, pd.Series(Y), sample_weight=weights)
    assert_array_equal(search.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"])
    assert list(search.feature_names_in_) == NAMES


def test_rows_of_unknown_number_sparse_chunks_and_text_labels() -> None:
    labels = np.where(Y > 0, "yes", "no")
    kept = X[:, 0] > -1.0
    lazy = da.from_array(X, chunks=(25, 4))
    some, of_them = lazy[lazy[:, 0] > -1.0], da.from_array(labels, chunks=25)[lazy[:, 0] > -1.0]
    assert np.isnan(some.shape[0])
    grid = {"C": [0.1, 1.0]}
    ours = GridSearchCV(LogisticRegression(), grid, cv=3).fit(some, of_them)
    same = GridSearchCV(LogisticRegression(), grid, cv=3).fit(X[kept], labels[kept])
    assert_array_equal(ours.cv_results_["mean_test_score"], same.cv_results_["mean_test_score"])
    in_chunks = lazy.map_blocks(sparse.csr_array, meta=sparse.csr_array((0, 0)))
    (came,) = compute_dask_inputs([in_chunks], "a test")
    assert sparse.issparse(came)
    assert_array_equal(came.toarray(), X)


def test_validation_functions_load_once() -> None:
    lazy = Counted(X)
    got = cross_validate(Ridge(), lazy.lazy(), da.from_array(Y, chunks=40), cv=3)["test_score"]
    assert_array_equal(got, cross_validate(Ridge(), X, Y, cv=3)["test_score"])
    assert lazy.n == 3
    assert_array_equal(cross_val_predict(Ridge(), lazy.lazy(), Y), cross_val_predict(Ridge(), X, Y))
    assert lazy.n == 6
    alphas = {"param_name": "alpha", "param_range": [0.1, 1.0]}
    of_lazy, of_array = (validation_curve(Ridge(), data, Y, **alphas) for data in (lazy.lazy(), X))
    assert_array_equal(of_lazy[1], of_array[1])
    of_lazy, of_array = (learning_curve(Ridge(), data, Y) for data in (lazy.lazy(), X))
    assert_array_equal(of_lazy[2], of_array[2])
    assert lazy.n == 12


def test_weights_of_validation_functions_are_loaded_once() -> None:
    for function in (cross_validate, cross_val_score, validation_curve, learning_curve):
        more = {"param_name": "alpha", "param_range": [0.1, 1.0]} if function is validation_curve else {}
        weights = Counted(rng.uniform(0.5, 2.0, 90))
        found, wanted = (
            function(Ridge(), X, Y, cv=3, params={"sample_weight": one}, **more)
            for one in (weights.lazy(), weights.array)
        )
        assert weights.n == 3
        scores = (lambda got: got["test_score"]) if function is cross_validate else (lambda got: got)
        for one, other in zip(scores(found), scores(wanted), strict=True):
            assert_array_equal(one, other)


def test_errors_name_the_function_that_was_called() -> None:
    huge = da.zeros(10**12, chunks=10**11)
    with pytest.raises(MemoryError, match="learning_curve loads"):
        learning_curve(Ridge(), X, huge)


def test_delayed_values_and_bags_are_loaded() -> None:
    """A delayed value has every attribute that it is asked for."""
    with dask.config.set({"array.backend": "cupy", "dataframe.backend": "cudf"}):
        rows, words = compute_dask_inputs([dask.delayed(X), dask.bag.from_sequence(["a", "b"])], "a test")
    assert_array_equal(rows, X)
    assert words == ["a", "b"]


def test_groups_and_weights_of_predictions_are_computed_once() -> None:
    groups, weights = Counted(np.arange(90) % 7), Counted(rng.uniform(0.5, 2.0, 90))
    lazy = {"groups": groups.lazy(), "params": {"sample_weight": weights.lazy()}}
    given = {"groups": groups.array, "params": {"sample_weight": weights.array}}
    found, wanted = (cross_val_predict(Ridge(), X, Y, cv=GroupKFold(3), **one) for one in (lazy, given))
    assert_array_equal(found, wanted)
    assert (groups.n, weights.n) == (3, 3)


class Marked(np.ndarray):
    """Stands for the arrays of another library."""


class MarkedBackend(NumpyBackendEntrypoint):
    """Stands for the backend of another library."""

    @classmethod
    def to_backend(cls, data, **kwargs):
        return data.map_blocks(lambda block: block.view(Marked), meta=data._meta.view(Marked), **kwargs)


def test_the_backends_of_dask_are_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(array_creation_dispatch._lookup, "marked", MarkedBackend())
    lazy, text = da.from_array(X), da.from_array(np.array(["a", "b"]), chunks=1)
    assert type(compute_dask_inputs([lazy], "a test")[0]) is np.ndarray
    with dask.config.set({"array.backend": "marked"}):
        there, labels, here = compute_dask_inputs([lazy, text, X], "a test")
    assert type(there) is Marked
    assert type(labels) is np.ndarray  # there are no strings there
    assert here is X  # was not loaded
    with dask.config.set({"array.backend": "no such"}), pytest.raises(ValueError, match="no such"):
        _search().fit(lazy, Y)
    frame = dd.from_pandas(pd.DataFrame(X, columns=NAMES), npartitions=2)
    with dask.config.set({"dataframe.backend": "no such"}), pytest.raises(ValueError, match="no such") as got:
        _search().fit(frame, Y)
    assert "GridSearchCV loads Dask's data by dataframe.backend='no such'" in got.value.__notes__[0]


def test_more_than_the_memory_is_refused_before_anything_is_computed() -> None:
    large = da.zeros((2**40, 1), chunks=(2**27, 1))
    with pytest.raises(MemoryError, match=r"GridSearchCV loads .*\(1099511627776,\).* 8\.00 TiB"):
        _search().fit(large, large[:, 0])  # X would be read in chunks


def test_an_error_of_a_chunk_is_raised_as_it_is() -> None:
    def broken(block):
        raise OSError("no such file")

    lazy = da.from_array(X, chunks=(40, 4)).map_blocks(broken, meta=X[:0])
    with pytest.raises(OSError, match="no such file"):
        _search().fit(lazy, Y)


def test_lengths_that_differ_are_refused_as_by_scikit_learn() -> None:
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        _search().fit(da.from_array(X, chunks=(40, 4)), Y[:-1])


def test_a_fitted_search_is_asked_about_lazy_data() -> None:
    frame = pd.DataFrame(X, columns=NAMES)
    columns = ColumnTransformer([("scaled", StandardScaler(), ["a", "c"])], remainder="passthrough")
    search = GridSearchCV(make_pipeline(columns, Ridge()), {"ridge__alpha": [0.1, 1.0]}, cv=3).fit(frame, Y)
    lazy = dd.from_pandas(frame, npartitions=2)
    unknown = dd.from_pandas(pd.Series(Y), npartitions=2).to_dask_array()
    assert search.score(lazy, y=unknown) == search.score(frame, Y)
    assert_array_equal(search.predict(lazy), search.predict(frame))
