"""Shared prefixes: the wrapper looks like what it wraps, and is gone when asked."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    MinMaxScaler,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from manyfit.model_selection.sharing._fold_cache import FoldCache
from manyfit.model_selection.sharing.transformers._cached_transformer import CachedTransformer
from manyfit.model_selection.sharing.transformers._step_wrappers import (
    has_shareable_prefix,
    share_prefixes,
    unshare,
)
from tests._callback_recorder import Deaf
from tests.behaviour.steps._prefixes import (
    ALPHAS,
    Counting,
    agree,
    data,
    fold,
    wrappers,
)


def fitted_wrapper():
    X, _ = data()
    cache = FoldCache(None)
    return CachedTransformer(StandardScaler(), cache).fit(cache.share(X)), cache, X


def test_clone_of_a_wrapper_is_an_unfitted_wrapper_with_the_same_cache():
    wrapper, cache, X = fitted_wrapper()
    other = clone(wrapper)
    assert type(other) is CachedTransformer and other._shared_cache is cache
    assert other._shared_inner is not wrapper._shared_inner
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        check_is_fitted(other)
    with pytest.raises(NotFittedError, match="This StandardScaler instance is not fitted yet"):
        other.transform(X)
    check_is_fitted(wrapper)
    other.set_params(with_mean=False).fit(cache.share(X))
    assert cache.fits == 2 and wrapper.get_params()["with_mean"] is True


@pytest.mark.invariant("Users never see the wrapper around a shared step")
def test_copies_and_pickles_of_a_wrapper():
    wrapper, _, X = fitted_wrapper()
    for other in (pickle.loads(pickle.dumps(wrapper)), copy.deepcopy(wrapper)):
        assert type(other) is StandardScaler and other is not wrapper._shared_target
        assert_array_equal(other.transform(X), wrapper.transform(X))
    assert type(copy.copy(wrapper)) is CachedTransformer
    assert (
        type(pickle.loads(pickle.dumps(CachedTransformer(MinMaxScaler(), FoldCache(None))))) is MinMaxScaler
    )


def test_a_wrapper_looks_like_what_it_wraps():
    wrapper, _, X = fitted_wrapper()
    plain = StandardScaler().fit(X)
    assert repr(wrapper) == repr(plain) and isinstance(wrapper, StandardScaler)
    assert get_tags(wrapper) == get_tags(plain) and wrapper.get_params() == plain.get_params()
    assert_array_equal(wrapper.get_feature_names_out(), plain.get_feature_names_out())
    assert_array_equal(wrapper.inverse_transform(X), plain.inverse_transform(X))
    assert repr(wrapper.get_metadata_routing()) == repr(plain.get_metadata_routing())
    assert not hasattr(wrapper, "predict") and wrapper.n_features_in_ == 5
    names = wrapper.set_output(transform="pandas").transform(X).columns
    assert list(names) == [f"x{j}" for j in range(5)]
    with pytest.raises(AttributeError, match="'StandardScaler' object has no attribute 'nothing'"):
        wrapper.nothing  # noqa: B018


def test_a_wrapper_has_the_methods_of_what_it_wraps():
    class Partly(BaseEstimator):
        def __init__(self, inverse=False):
            self.inverse = inverse

        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return np.asarray(X)

        @available_if(lambda self: self.inverse)
        def inverse_transform(self, X):
            return X

    cache = FoldCache(None)
    wrapper = CachedTransformer(Partly(), cache)
    assert not hasattr(wrapper, "fit_transform") and not hasattr(wrapper, "inverse_transform")
    assert not hasattr(wrapper, "set_output") and hasattr(
        CachedTransformer(Partly(True), cache), "inverse_transform"
    )
    X, y, X_test, _ = fold(*data())
    assert agree(make_pipeline(Partly(), Ridge()), ALPHAS, X, y, X_test).fits == 1


def test_set_output_after_the_fit_is_for_one_setting_only():
    wrapper, cache, X = fitted_wrapper()
    other = CachedTransformer(StandardScaler(), cache).fit(cache.share(X))
    assert other._shared_target is wrapper._shared_target
    wrapper.set_output(transform="pandas")
    assert isinstance(wrapper.transform(X), pd.DataFrame) and isinstance(other.transform(X), np.ndarray)


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_branches_in_parallel(backend):
    X, y, X_test, _ = fold(*data(200, 6), at=150)
    parts = [(f"p{i}", make_pipeline(StandardScaler(), PolynomialFeatures(i)), [i, i + 1]) for i in (1, 2, 3)]
    union = make_union(*(part for _, part, _ in parts), n_jobs=2)
    base = make_pipeline(StandardScaler(), union, ColumnTransformer(parts, n_jobs=2), Ridge())
    with parallel_config(backend=backend):
        cache = agree(base, ALPHAS[:2], X, y, X_test)
    # Two threads may do the same work at the same time; other processes count for themselves.
    assert 1 + 4 + 6 <= cache.fits <= 1 + 5 + 6 if backend == "threading" else cache.fits == 1


def test_many_threads_on_one_cache():
    from concurrent.futures import ThreadPoolExecutor

    X, y, X_test, _ = fold(*data(120, 6), at=100)
    cache = FoldCache(6 * X.nbytes)
    columns = ColumnTransformer(
        [("a", Counting("a"), [0, 1, 2]), ("b", PCA(1), [3, 4])], remainder="passthrough"
    )
    base = make_pipeline(StandardScaler(), columns, Ridge())

    def run(i):
        setting = {"columntransformer__a__shift": i % 5}
        plain = clone(base).set_params(**setting).fit(X, y)
        shared = share_prefixes(clone(base).set_params(**setting), cache).fit(cache.share(X), cache.share(y))
        for part in (X_test, X):
            assert_array_equal(shared.predict(cache.share(part)), plain.predict(part))
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(40)))
    held = sum(sum(item.memory.values()) for item in cache._entries.values())
    assert 0 <= cache.bytes <= min(held, 6 * X.nbytes)


# Back to scikit-learn's own


def everything():
    steps = Pipeline([("x", StandardScaler()), ("y", make_union(MinMaxScaler(), "passthrough"))])
    columns = ColumnTransformer(
        [("a", steps, [0, 1]), ("b", PCA(1), [2]), ("c", "drop", [0]), ("e", MinMaxScaler(), [])],
        remainder=make_pipeline(SimpleImputer(), StandardScaler()),
    )
    union = FeatureUnion([("p", StandardScaler()), ("q", make_pipeline(MinMaxScaler(), PCA(1)))])
    inner = Pipeline([("first", columns), ("nothing", None), ("union", union), ("ridge", Ridge())])
    return Pipeline([("s", StandardScaler()), ("t", TransformedTargetRegressor(inner))])


@pytest.mark.invariant("Users never see the wrapper around a shared step")
@pytest.mark.parametrize("fitted", [False, True])
def test_unshare_leaves_no_wrapper(fitted):
    X, y, X_test, _ = fold(*data())
    cache = FoldCache(None)
    plain = everything()
    others = [share_prefixes(everything().set_params(t__regressor__ridge__alpha=2.0), cache)]
    model = share_prefixes(everything(), cache)
    assert len(wrappers(model)) == len(wrappers(others[0])) > 8
    if fitted:
        plain.fit(X, y)
        for one in (*others, model):
            one.fit(cache.share(X), cache.share(y))
    before = len(wrappers(others[0]))
    bare = unshare(model)
    assert bare is model and not wrappers(bare)
    assert repr(bare) == repr(plain) and len(wrappers(others[0])) == before
    if fitted:
        assert cache.fits == 9
        for part in (X_test, X):
            assert_array_equal(bare.predict(part), plain.predict(part))
            assert others[0].predict(cache.share(part)).shape == (
                len(part),
            )  # those who share are as they were
        assert not wrappers(unshare(others[0]))
        assert len(pickle.dumps(bare)) < 1.2 * len(pickle.dumps(plain))
    assert not wrappers(clone(bare))
    assert_array_equal(clone(bare).fit(X, y).predict(X), clone(plain).fit(X, y).predict(X))


def test_unshare_of_what_was_never_shared():
    model = make_pipeline(StandardScaler(), Ridge())
    steps = model.steps
    assert unshare(model) is model and model.steps is steps
    ridge = Ridge()
    assert unshare(ridge) is ridge and share_prefixes(ridge, FoldCache(None)) is ridge


def test_the_last_step_is_wrapped_only_in_a_transformer():
    model = make_pipeline(StandardScaler(), MinMaxScaler())
    assert len(wrappers(share_prefixes(clone(model), FoldCache(None)))) == 1
    assert len(wrappers(share_prefixes(clone(model), FoldCache(None), ends_in_transformer=True))) == 2


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (Ridge(), False),
        (StandardScaler(), False),
        (make_pipeline(Ridge()), False),
        (make_pipeline("passthrough", Ridge()), False),
        (make_pipeline(None, StandardScaler(), Ridge()), True),
        (make_pipeline(RBFSampler(), StandardScaler(), Ridge()), False),
        (make_pipeline(make_pipeline(StandardScaler(), RBFSampler()), Ridge()), True),
        (make_pipeline(make_union(RBFSampler(), StandardScaler()), Ridge()), True),
        (make_pipeline(make_union(RBFSampler()), Ridge()), False),
        (make_pipeline(ColumnTransformer([("a", "drop", [0])], remainder=StandardScaler()), Ridge()), True),
        (make_pipeline("passthrough", make_pipeline(StandardScaler(), Ridge())), True),
        (TransformedTargetRegressor(make_pipeline(StandardScaler(), Ridge())), True),
        (TransformedTargetRegressor(Ridge(), transformer=StandardScaler()), False),
        (TransformedTargetRegressor(), False),
        (Pipeline(3), False),
    ],
    ids=lambda value: None if isinstance(value, bool) else repr(value).replace("\n", ""),
)
def test_has_shareable_prefix(estimator, expected):
    assert has_shareable_prefix(estimator) is expected


@pytest.mark.skipif(not hasattr(Pipeline, "set_callbacks"), reason="callbacks came with scikit-learn 1.9")
def test_callbacks_see_every_fit():
    class Logging(Deaf):
        max_propagation_depth = None

        def __init__(self):
            self.seen = []

        def on_fit_task_begin(self, estimator, context, **kwargs):
            self.seen.append((type(estimator).__name__, str(context.task_name)))

    X, y = data()
    logs = []
    for share in (False, True):
        cache, log = FoldCache(None), Logging()
        for alpha in (1.0, 2.0):
            inner = make_pipeline(Counting("a"), make_pipeline(Counting("b"), Counting("c")))
            model = make_pipeline(inner, Counting("d"), Ridge(alpha))
            if share:
                share_prefixes(model, cache)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # most steps have no callbacks
                model.set_callbacks(log).fit(cache.share(X), y)
            assert not hasattr(model[0], "_parent_callback_ctx")
        logs.append(log.seen)
    assert logs[0] == logs[1] and len(logs[0]) > 8


def test_work_under_another_configuration_of_sklearn_is_other_work():
    """A step that sets a configuration for what it fits, say frames as output, must not get other results."""
    cache = FoldCache(None)
    plain = cache.work_key("fit", 1)
    with config_context(transform_output="pandas"):
        assert cache.work_key("fit", 1) != plain
    assert cache.work_key("fit", 1) == plain
