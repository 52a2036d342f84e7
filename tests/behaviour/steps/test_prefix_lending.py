"""Shared prefixes: what is lent cannot be changed, and what is kept stays within its limit."""

from __future__ import annotations

import copy
import functools
import sys
import threading
import time

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import PCA
from sklearn.linear_model import Lasso, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    StandardScaler,
    scale,
)
from sklearn.utils.validation import check_array

from manyfit.model_selection.sharing._fold_cache import FoldCache
from manyfit.model_selection.sharing.rows._known_readers import writes_in_place
from manyfit.model_selection.sharing.rows._own_rows import InputWritten, own_copy
from manyfit.model_selection.sharing.rows._read_only import read_only_view
from manyfit.model_selection.sharing.rows._same_data import unchanged
from manyfit.model_selection.sharing.transformers._cached_transformer import CachedTransformer
from manyfit.model_selection.sharing.transformers._step_wrappers import has_shareable_prefix, share_prefixes
from tests._covering import covering
from tests.behaviour.steps._prefixes import (
    ALPHAS,
    CALLS,
    COPY_ON_WRITE,
    Counting,
    agree,
    both,
    data,
    fold,
    wrappers,
)


def test_what_is_told_to_work_in_place_is_left_to_scikit_learn():
    X, y = data()
    for step in (
        StandardScaler(copy=False),
        StandardScaler(copy=np.False_),
        StandardScaler(copy=0),
        PCA(copy=False),
        make_union(MinMaxScaler(copy=False)),
        FunctionTransformer(functools.partial(scale, copy=False)),
        FunctionTransformer(scale, kw_args={"copy": False}),
    ):
        base = make_pipeline(step, Counting("a"), Ridge())
        assert writes_in_place(base) and not has_shareable_prefix(base)
        assert not wrappers(share_prefixes(clone(base), FoldCache(None)))
    assert writes_in_place(make_pipeline(Counting("a"), Lasso(copy_X=False)))
    assert not writes_in_place(make_pipeline(StandardScaler(), "passthrough", Ridge()))
    # The reason: the second part of the union reads what the first one left.
    union = make_union(StandardScaler(copy=False), Counting("a"))
    theirs = make_pipeline(union, Ridge()).fit(X.copy(), y)
    ours = share_prefixes(make_pipeline(clone(union), Ridge()), FoldCache(None)).fit(X.copy(), y)
    assert_array_equal(ours.predict(X.copy()), theirs.predict(X.copy()))
    assert abs(theirs[0].transformer_list[1][1].mean_).max() < 1e-12


class Secretly(TransformerMixin, BaseEstimator):
    """Writes into its input where scikit-learn lets it."""

    def fit(self, X, y=None):
        self.mean_ = np.asarray(X).mean(axis=0)
        return self

    def transform(self, X):
        X = check_array(X, copy=False, force_writeable=True)
        X -= self.mean_
        return X

    def get_feature_names_out(self, input_features=None):
        return np.asarray([f"x{j}" for j in range(len(self.mean_))], dtype=object)


def add_one_in_place(X):
    X += 1
    return X


def add_a_column(X):
    X["new"] = X["f0"] * 2
    return X


def make_writeable(X):
    X.setflags(write=True)
    X[0] = 0.0
    return X


def rebind(X):
    X.data = np.log1p(X.data)
    return X


def as_frame(X):
    return pd.DataFrame(X, columns=[f"f{j}" for j in range(5)])


def as_sparse(X):
    return scipy.sparse.csr_array(abs(X))


WRITERS = [
    (Secretly(), np.asarray),
    (Secretly(), as_frame),
    (FunctionTransformer(add_one_in_place), np.asarray),
    (FunctionTransformer(make_writeable), np.asarray),
    (FunctionTransformer(add_a_column), as_frame),
    (FunctionTransformer(rebind), as_sparse),
]


@pytest.mark.cases(2)
@pytest.mark.invariant("No estimator or scorer can change the data of another fit")
@pytest.mark.parametrize(("step", "make", "first"), covering(WRITERS, [True, False], strength=1))
def test_what_writes_into_its_input_is_found_out_and_changes_nobody_elses(step, make, first):
    X, y, X_test, _ = fold(*data())
    X, X_test = make(X), make(X_test)
    before, cache = copy.deepcopy(X), FoldCache(None)
    scaler = StandardScaler(with_mean=False).set_output(transform="pandas" if make is as_frame else None)
    steps = [("f", step), ("scaler", scaler), ("ridge", Ridge())]
    base = Pipeline(steps if first else [steps[1], steps[0], steps[2]])
    agree(base.set_params(f="passthrough"), ALPHAS, X, y, X_test, cache)
    fits = cache.fits
    with pytest.raises(InputWritten):
        share_prefixes(clone(base).set_params(f=clone(step)), cache).fit(cache.share(X), y)
    assert unchanged(before, X)
    # and the others are none the worse for it
    agree(base, ALPHAS, X, y, X_test, cache)
    assert cache.fits - fits <= 1


class Views(TransformerMixin, BaseEstimator):
    """Returns its own state, and overwrites it the next time."""

    def fit(self, X, y=None):
        self.state_ = np.empty((100, X.shape[1]))
        return self

    def transform(self, X):
        self.state_[: len(X)] = X
        return self.state_[: len(X)]


def test_what_returns_its_own_state_is_found_out():
    """The training rows that a nearest-neighbours machine keeps change under scikit-learn, too."""
    X, y = data()
    cache = FoldCache(None)
    model = share_prefixes(make_pipeline(Views(), KNeighborsRegressor()), cache)
    with pytest.raises(InputWritten, match="keeps what it returns"):
        model.fit(cache.share(X), y)


class Profiled(TransformerMixin, BaseEstimator):
    """Another thread holds the frame of each call for a moment, as the profiler of Dask's workers does."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        output = X + 1.0
        threading.Thread(target=self.hold, args=(sys._getframe(),)).start()
        return output

    @staticmethod
    def hold(frame):
        time.sleep(0.01)


def test_an_output_that_a_profiler_holds_for_a_moment_is_not_kept():
    X, y, X_test, _ = fold(*data())
    agree(make_pipeline(Profiled(), Counting("a"), Ridge()), ALPHAS, X, y, X_test)


def first_columns(X):
    return X[:, :3][::-1][::-1]


def test_an_output_that_is_a_view_is_copied():
    X, y, X_test, _ = fold(*data())
    cache = agree(
        make_pipeline(FunctionTransformer(first_columns), Counting("a"), Ridge()), ALPHAS, X, y, X_test
    )
    assert cache.fits == 2


@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, as_frame, as_sparse, pl.DataFrame, list])
def test_a_copy_is_one_and_is_compared_by_its_content(make):
    X = make(data()[0])
    own = own_copy(X)
    assert type(own) is type(X) and own is not X and unchanged(X, own)
    if isinstance(X, np.ndarray):
        assert own.strides == X.strides and own.flags.writeable
        own.flat[-1] = np.nan
        assert unchanged(own, own_copy(own))  # NaN is no change
    elif as_sparse is make:
        own.data[-1] = 7.0
        assert X.data[-1] != 7.0
    elif isinstance(X, pd.DataFrame):
        own.iloc[0, 0] = 7.0
    elif isinstance(X, pl.DataFrame):
        own[0, "column_0"] = 7.0
    else:
        own[0] = own[0].copy()
    assert not unchanged(X, own)


@pytest.mark.parametrize("library", [pd, pl])
@pytest.mark.parametrize("kind", ["DataFrame", "Series"])
def test_lent_frames_have_the_same_token_and_are_not_changed(library, kind):
    values = {"a": [1.0, 2.0], "b": [3.0, 4.0]} if kind == "DataFrame" else [1.0, 2.0]
    X = getattr(library, kind)(values)
    before = X.to_numpy().copy()
    cache = FoldCache(None)
    lent, again = cache.share(X), cache.share(X)
    assert type(lent) is type(X) and lent is not X and lent is not again
    assert cache.token(lent) == cache.token(again) == cache.token(cache.share(lent))
    assert cache.token(lent) != cache.token(cache.share(copy.deepcopy(X)))
    if kind == "Series":
        lent[0] = 7.0
    elif library is pd:
        lent["a"] = 7.0
        lent.iloc[0, 1] = 7.0
    else:
        lent[0, "a"] = 7.0
    assert lent.to_numpy().max() == 7.0
    for other in (X, again, cache.share(X)):
        assert_array_equal(other.to_numpy(), before)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_lent_frame_has_the_layout_of_the_original(order):
    X = pd.DataFrame(np.asarray(np.arange(12.0).reshape(4, 3), order=order), copy=False, index=list("abcd"))
    X.attrs["note"] = 1
    blocks = pd.concat([X, X.add_prefix("more")], axis=1)
    for frame in (X, blocks, blocks.astype({"more0": "category"}), X.take([2, 0]), X.astype("Float64")):
        lent = FoldCache(None).share(frame)
        pd.testing.assert_frame_equal(lent, frame)
        assert lent.attrs == frame.attrs == {"note": 1}
        for ours, theirs in (
            (lent, frame),
            (lent[[0, 1]], frame[[0, 1]]),
            (lent.iloc[:, 1:3], frame.iloc[:, 1:3]),
        ):
            assert ours.to_numpy().strides == theirs.to_numpy().strides


@pytest.mark.skipif(not COPY_ON_WRITE, reason="without copy-on-write every borrower gets a copy")
def test_frames_of_several_types_are_locked_column_by_column():
    X = pd.DataFrame({"a": [1.0, 2.0], "b": [1, 2], "c": ["x", "y"], "d": [3.0, 4.0]})
    lent = FoldCache(None).share(X)
    for part in (lent["a"], lent[["a"]], lent["b"], lent[["d"]]):
        with pytest.raises(ValueError, match="WRITEABLE"):
            part.to_numpy().flags.writeable = True
    X["a"].to_numpy().flags.writeable = True  # what the lock is for; the user's own frame is not locked


def test_what_is_lent_twice_is_the_same_view():
    X, _ = data()
    cache = FoldCache(None)
    lent = cache.share(X)
    assert cache.share(X) is lent and cache.share(lent) is lent
    assert not lent.flags.writeable and X.flags.writeable and lent.base is X
    for other in (("a",), {"a": 1}, None, scipy.sparse.lil_array((2, 2)), np.ma.masked_array([1.0])):
        assert cache.share(other) is other and read_only_view(other) is other
    rows = [[1], [2]]
    own = cache.share(rows)
    assert own == rows and own is not rows and cache.share(rows) is not own


# The limit


@pytest.mark.invariant("The cache of shared steps keeps to its limit")
def test_a_limit_of_bytes_is_kept_and_results_stay():
    X, y, X_test, _ = fold(*data(200, 20), at=150)
    settings = [{"a__shift": s, "b__shift": t} for s in (0.0, 1.0, 2.0) for t in (0.0, 1.0)] * 2
    base = Pipeline([("a", Counting("a")), ("b", Counting("b")), ("ridge", Ridge())])
    fits = {}
    for limit in (None, 3 * X.nbytes, X.nbytes // 2, 0):
        cache = FoldCache(limit)
        for _ in both(base, settings, X, y, X_test, cache):
            assert limit is None or cache.bytes <= limit
        fits[limit] = cache.fits
    assert fits[None] == 9 and fits[0] == 24
    assert 9 < fits[3 * X.nbytes] <= fits[X.nbytes // 2] <= 24


def test_bytes_are_those_of_the_outputs_and_memory_counts_once():
    X, y = data(100, 10)
    cache = FoldCache(None)
    model = Pipeline([("inner", make_pipeline(Counting("a"), Counting("b"))), ("ridge", Ridge())])
    share_prefixes(model, cache).fit(cache.share(X), y)
    means = 2 * X[0].nbytes
    assert cache.bytes == 2 * X.nbytes + means  # the outputs of a and b; the pipeline's is that of b
    share_prefixes(make_pipeline(FunctionTransformer(), Ridge()), cache).fit(cache.share(X), y)
    assert cache.bytes == 2 * X.nbytes + means  # what was lent is not the cache's
    assert cache.fits == 3


def test_least_recently_used_goes_first():
    X, _ = data(100, 10)
    cache = FoldCache(5 * X.nbytes // 2)
    lent = cache.share(X)
    for shift in (0, 1, 0, 2, 0, 1):  # there is room for two
        CachedTransformer(Counting("a", shift), cache).fit_transform(lent)
    assert CALLS["a.fit"] == 4  # only 1 was dropped and came again


def test_what_follows_a_dropped_output_is_found_again():
    X, y = data(100, 10)
    cache = FoldCache(3 * X.nbytes)
    model = make_pipeline(Counting("a"), Counting("b"), Ridge())
    share_prefixes(clone(model), cache).fit(cache.share(X), y)
    b = next(key for key in reversed(cache._entries))
    for key in [key for key in cache._entries if key != b]:
        cache._drop(key)
    share_prefixes(clone(model), cache).fit(cache.share(X), y)
    assert CALLS["a.fit"] == 2 and CALLS["b.fit"] == 1
