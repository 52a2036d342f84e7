"""Shared prefixes: how often transformers are fitted, and that nothing else can be seen of it."""

from __future__ import annotations

import copy
import functools
import pickle
import warnings
from collections import Counter
from types import FunctionType, ModuleType

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import sklearn
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.datasets import load_diabetes
from sklearn.decomposition import PCA, KernelPCA, TruncatedSVD
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectFromModel, SelectKBest, f_regression, mutual_info_regression
from sklearn.frozen import FrozenEstimator
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    StandardScaler,
    TargetEncoder,
    scale,
)
from sklearn.random_projection import GaussianRandomProjection
from sklearn.svm import SVC, LinearSVC
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from manyfit.model_selection._lend import guard
from manyfit.model_selection._prefix import (
    FoldCache,
    Shared,
    has_shareable_prefix,
    share_prefixes,
    shareable,
    unshare,
    writes_in_place,
)
from manyfit.model_selection._prefix_key import Unkeyable, structural_key

CALLS: Counter[str] = Counter()
COPY_ON_WRITE = int(pd.__version__.split(".")[0]) >= 3


@pytest.fixture(autouse=True)
def _count_from_zero():
    CALLS.clear()


class Counting(TransformerMixin, BaseEstimator):
    """Shifts by the mean, and counts by name what it is asked to do."""

    def __init__(self, name="counting", shift=0.0):
        self.name = name
        self.shift = shift

    def fit(self, X, y=None, sample_weight=None):
        CALLS[f"{self.name}.fit"] += 1
        self.mean_ = np.average(np.asarray(X), axis=0, weights=sample_weight)
        self.n_features_in_ = np.shape(X)[1]
        return self

    def transform(self, X):
        CALLS[f"{self.name}.transform"] += 1
        return np.asarray(X) - self.mean_ + self.shift

    def get_feature_names_out(self, input_features=None):
        return np.asarray(input_features, dtype=object)


class OwnFitTransform(Counting):
    """fit_transform is not fit().transform()."""

    def fit_transform(self, X, y=None):
        return self.fit(X, y).transform(X) + 1000.0


class Exploding(Counting):
    def fit(self, X, y=None):
        CALLS["exploding.fit"] += 1
        raise ArithmeticError(f"shift {self.shift}")


class Mutating(Counting):
    """Changes its constructor parameter in fit, which it should not."""

    def fit(self, X, y=None):
        super().fit(X)
        self.shift = self.shift + 1
        return self


class Drawing(Counting):
    def __init__(self, name="drawing", random_state=None):
        self.name = name
        self.random_state = random_state
        self.shift = 0.0

    def fit(self, X, y=None):
        super().fit(X)
        self.shift = sklearn.utils.check_random_state(self.random_state).uniform()
        return self


class DrawingInTransform(Counting):
    """Its transform moves a generator that it keeps."""

    def __init__(self, name="moving", random_state=0):
        self.name = name
        self.random_state = random_state

    def fit(self, X, y=None):
        self.shift = 0.0
        self.generator_ = np.random.RandomState(self.random_state)
        return super().fit(X)

    def transform(self, X):
        return super().transform(X) + self.generator_.uniform()


def data(n=60, p=5, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n, p)) + 3.0
    return X, X @ rng.standard_normal(p) + rng.standard_normal(n)


def fold(X, y, at=40):
    return X[:at], y[:at], X[at:], y[at:]


def both(base, settings, X, y, X_test, cache=None, **fit_params):
    """Test and train predictions of each setting, shared and as scikit-learn does it by itself."""
    cache = FoldCache(None) if cache is None else cache
    for setting in settings:
        plain = clone(base).set_params(**clone(setting, safe=False))
        shared = share_prefixes(clone(base).set_params(**clone(setting, safe=False)), cache)
        plain.fit(copy.deepcopy(X), y, **fit_params)
        shared.fit(cache.lend(X), cache.lend(y), **fit_params)
        for part in (X_test, X):
            expected = np.asarray(plain.predict(copy.deepcopy(part)))
            # Bit for bit; but before 3, pandas rearranges the memory of a frame where it is copied.
            rtol = 0 if COPY_ON_WRITE else 1e-12
            assert_allclose(np.asarray(shared.predict(cache.lend(part))), expected, rtol=rtol, atol=rtol)
        yield plain, shared, cache


def agree(base, settings, X, y, X_test, cache=None, **fit_params):
    """Check that predictions are the same bit for bit; returns the cache."""
    results = list(both(base, settings, X, y, X_test, cache, **fit_params))
    assert len(results) == len(settings)
    return results[-1][2]


ALPHAS = [{"ridge__alpha": alpha} for alpha in (0.1, 1.0, 10.0)]


# How often things are done


def test_equal_steps_are_fitted_and_applied_once():
    X, y, X_test, _ = fold(*data())
    cache = agree(make_pipeline(Counting("a"), Counting("b"), Ridge()), ALPHAS, X, y, X_test)
    plain = 3  # of the three plain fits, which count too
    assert CALLS["a.fit"] == CALLS["b.fit"] == plain + 1
    # plain: at fit, on test, on train; shared: at fit, on test
    assert CALLS["a.transform"] == CALLS["b.transform"] == 3 * plain + 2
    assert cache.fits == 2 and cache.transforms == 2 and cache.hits > 0


def test_a_step_is_fitted_once_for_each_value_and_each_input():
    X, y, X_test, _ = fold(*data())
    base = Pipeline([("a", Counting("a")), ("b", Counting("b")), ("ridge", Ridge())])
    settings = [
        {"a__shift": a, "b__shift": b, "ridge__alpha": alpha}
        for a in (0.0, 1.0)
        for b in (0.0, 1.0, 2.0)
        for alpha in (1.0, 2.0)
    ]
    cache = agree(base, settings, X, y, X_test)
    assert cache.fits == 2 + 2 * 3
    assert CALLS["a.fit"] == len(settings) + 2 and CALLS["b.fit"] == len(settings) + 6


def test_types_of_values_are_told_apart():
    X, y, X_test, _ = fold(*data())
    base = Pipeline([("a", Counting("a")), ("ridge", Ridge())])
    cache = agree(
        base, [{"a__shift": s} for s in (1, 1.0, True, np.float64(1.0), np.float32(1.0))], X, y, X_test
    )
    assert cache.fits == 5


def test_another_fold_or_target_is_another_fit():
    X, y = data()
    cache = FoldCache(None)
    base = make_pipeline(Counting("a"), Ridge())
    agree(base, [{}], X[:40], y[:40], X[40:], cache)
    agree(base, [{}], X[20:], y[20:], X[:20], cache)
    agree(base, [{}], X[:40], -y[:40], X[40:], cache)
    assert cache.fits == 3


def test_a_training_score_reads_the_output_of_fit_transform_only_where_it_is_inherited():
    X, y, X_test, _ = fold(*data())
    cache = agree(make_pipeline(OwnFitTransform("own"), Ridge()), ALPHAS, X, y, X_test)
    assert cache.fits == 1 and cache.transforms == 2  # on test and on train
    cache = agree(make_pipeline(Counting("a"), Ridge()), ALPHAS, X, y, X_test)
    assert cache.fits == 1 and cache.transforms == 1  # on test


def test_lookups_by_fit_and_by_fit_transform_are_separate():
    X, _ = data()
    cache = FoldCache(None)
    first, second = (Shared(OwnFitTransform("own"), cache) for _ in range(2))
    lent = cache.lend(X)
    assert_array_equal(first.fit_transform(lent), second.fit(lent).transform(lent) + 1000.0)
    assert cache.fits == 2


def test_a_failed_fit_is_not_kept_and_its_exception_passes():
    X, y = data()
    cache = FoldCache(None)
    for _ in range(2):
        model = share_prefixes(make_pipeline(Counting("a"), Exploding(shift=7), Ridge()), cache)
        with pytest.raises(ArithmeticError, match=r"^shift 7$"):
            model.fit(cache.lend(X), y)
    assert CALLS["exploding.fit"] == 2 and CALLS["a.fit"] == 1 and cache.fits == 1


def test_a_transformer_that_changes_its_own_parameters():
    X, y, X_test, _ = fold(*data())
    cache = agree(make_pipeline(Mutating(), Ridge()), ALPHAS, X, y, X_test)
    assert cache.fits == 1


def test_data_that_was_not_lent_is_found_by_content():
    X, y = data()
    cache = FoldCache(None)
    for _ in range(3):
        share_prefixes(make_pipeline(Counting("a"), Ridge()), cache).fit(X.copy(), y.copy())
    assert CALLS["a.fit"] == 1
    X[0, 0] += 1
    share_prefixes(make_pipeline(Counting("a"), Ridge()), cache).fit(X, y)
    assert CALLS["a.fit"] == 2


def test_text_is_found_by_content():
    texts = ["aa bb cc", "bb cc dd", "cc dd ee", "aa dd"] * 5
    y = np.arange(20) % 2
    base = make_pipeline(TfidfVectorizer(), LogisticRegression())
    cache = agree(base, [{"logisticregression__C": c} for c in (1.0, 2.0)], texts, y, texts[:7])
    assert cache.fits == 1 and cache.transforms == 2  # on test and on train


# Composites


def test_nested_pipelines_share_what_is_inside():
    X, y, X_test, _ = fold(*data())
    inner = Pipeline([("a", Counting("a")), ("b", Counting("b"))])
    base = Pipeline([("inner", inner), ("c", Counting("c")), ("last", make_pipeline(Counting("d"), Ridge()))])
    settings = [
        {"inner__b__shift": b, "last__ridge__alpha": alpha} for b in (0.0, 1.0) for alpha in (1.0, 2.0)
    ]
    cache = agree(base, settings, X, y, X_test)
    n = len(settings)
    assert CALLS["a.fit"] == n + 1 and CALLS["b.fit"] == n + 2
    assert CALLS["c.fit"] == n + 2 and CALLS["d.fit"] == n + 2
    assert cache.fits == 7


def branches(**remainder):
    return ColumnTransformer(
        [
            ("one", Pipeline([("a", Counting("a")), ("b", Counting("b"))]), [0, 1]),
            ("two", Counting("two"), slice(1, 3)),
            ("kept", "passthrough", [3]),
            ("gone", "drop", [0]),
            ("none", Counting("none"), []),
        ],
        **remainder,
    )


@pytest.mark.parametrize("at_the_end", [False, True])
def test_branches_of_a_column_transformer_are_shared(at_the_end):
    X, y, X_test, _ = fold(*data())
    columns = branches(remainder=Counting("rest"))
    last = make_pipeline(columns, Ridge())
    base = Pipeline([("a0", Counting("a0")), ("last", last)]) if at_the_end else last
    name = "last__columntransformer" if at_the_end else "columntransformer"
    settings = [{f"{name}__two__shift": s, f"{name}__one__b__shift": b} for s in (0, 1, 2) for b in (0, 1)]
    cache = agree(base, settings, X, y, X_test)
    done = {key: count - len(settings) for key, count in CALLS.items() if key.endswith(".fit")}
    expected = {"a.fit": 1, "b.fit": 2, "two.fit": 3, "rest.fit": 1}
    assert done == (expected | {"a0.fit": 1} if at_the_end else expected)
    assert cache.fits == sum(done.values())


def test_slices_of_columns_are_known_without_hashing_them(monkeypatch):
    X, y, X_test, _ = fold(*data())
    hashed = []
    content_key = "manyfit.model_selection._lend.content_key"
    monkeypatch.setattr(content_key, lambda X: None if X is None else hashed.append(np.shape(X)))
    settings = [{"columntransformer__two__shift": s} for s in (0, 1, 2)]
    cache = agree(make_pipeline(branches(), Ridge()), settings, X, y, X_test)
    assert cache.fits == 1 + 1 + 3 and not hashed


def test_the_same_columns_of_other_data_are_other_input():
    X, y = data()
    cache = FoldCache(None)
    base = make_pipeline(branches(), Ridge())
    agree(base, [{}], X[:40], y[:40], X[40:], cache)
    agree(base, [{}], X[20:], y[20:], X[:20], cache)
    assert cache.fits == 6


def test_a_branch_used_by_itself_after_the_fit_reads_what_it_is_given():
    X, y, X_test, _ = fold(*data())
    cache = FoldCache(None)
    model = share_prefixes(make_pipeline(branches(), Ridge()), cache).fit(cache.lend(X), y)
    branch = model[0].named_transformers_["two"]
    assert_array_equal(branch.transform(X_test[:, 1:3]), X_test[:, 1:3] - X[:, 1:3].mean(axis=0))


def test_a_union_shares_its_parts():
    X, y, X_test, _ = fold(*data())
    union = FeatureUnion(
        [("a", Counting("a")), ("b", Counting("b")), ("same", "passthrough"), ("gone", "drop")],
        transformer_weights={"a": 2.0},
    )
    settings = [{"featureunion__b__shift": s} for s in (0, 1, 2)]
    cache = agree(make_pipeline(Counting("first"), union, Ridge()), settings, X, y, X_test)
    assert CALLS["first.fit"] == 3 + 1 and CALLS["a.fit"] == 3 + 1 and CALLS["b.fit"] == 3 + 3
    assert cache.fits == 5


@pytest.mark.parametrize("nothing", ["passthrough", None])
def test_steps_that_are_switched_off(nothing):
    X, y, X_test, _ = fold(*data())
    base = Pipeline([("a", Counting("a")), ("b", Counting("b")), ("ridge", Ridge())])
    settings = [{"a": nothing, "ridge__alpha": 1.0}, {"b": nothing}, {"a": nothing, "b": nothing}, {}]
    cache = agree(base, settings, X, y, X_test)
    assert cache.fits == 3  # b on X, a on X, b on what a gave


def test_estimators_as_parameter_values():
    X, y, X_test, _ = fold(*data())
    base = Pipeline([("a", StandardScaler()), ("ridge", Ridge())])
    values = [StandardScaler(), MinMaxScaler(), StandardScaler(), Counting("a"), Counting("a")]
    cache = agree(base, [{"a": value} for value in values], X, y, X_test)
    assert cache.fits == 3


def test_a_transformed_target_is_part_of_the_input():
    X, y, X_test, _ = fold(*data())
    y = np.exp(y / 10)
    base = TransformedTargetRegressor(make_pipeline(Counting("a"), SelectKBest(f_regression, k=2), Ridge()))
    settings = [
        {"func": f, "inverse_func": g, "regressor__ridge__alpha": alpha}
        for f, g in ((np.log, np.exp), (np.sqrt, np.square))
        for alpha in (1.0, 2.0)
    ]
    cache = agree(base, settings, X, y, X_test)
    assert cache.fits == 2 * 2


def test_target_encoder_does_not_read_its_training_output_again():
    rng = np.random.RandomState(0)
    X = rng.randint(0, 4, size=(60, 2)).astype(float)
    y = X[:, 0] + rng.standard_normal(60)
    cv = KFold(3, shuffle=True, random_state=0)
    encoder = TargetEncoder(cv=cv) if sklearn.__version__ >= "1.9" else TargetEncoder(random_state=0)
    cache = agree(make_pipeline(encoder, Ridge()), ALPHAS, X[:40], y[:40], X[40:])
    assert cache.fits == 1 and cache.transforms == 2


def test_feature_names_of_a_frame():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X, y, X_test, _ = fold(X.iloc[:80], y.iloc[:80], 60)
    columns = ColumnTransformer(
        [("scaled", StandardScaler(), ["age", "bmi"]), ("poly", PolynomialFeatures(), ["bp", "s1"])],
        remainder=make_pipeline(SimpleImputer(), MinMaxScaler()),
    )
    base = make_pipeline(columns, SelectKBest(f_regression, k=4), Ridge()).set_output(transform="pandas")
    settings = [{"columntransformer__poly__degree": d, "ridge__alpha": a} for d in (1, 2) for a in (1.0, 2.0)]
    cache = FoldCache(None)
    for plain, shared, _ in both(base, settings, X, y, X_test, cache):
        for last in (1, 2):
            theirs, ours = plain[:last], shared[:last]
            pd.testing.assert_frame_equal(ours.transform(X_test), theirs.transform(X_test))
            assert_array_equal(ours.get_feature_names_out(), theirs.get_feature_names_out())
        assert_array_equal(shared.feature_names_in_, plain.feature_names_in_)
    assert cache.fits == 1 + 2 + 2 + 2  # scaled, poly, remainder's two, selection


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_frames_come_out_of_the_cache_as_they_went_in(container):
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame}[container]
    X, y = data()
    names = [f"f{j}" for j in range(5)]
    X_train, X_test = (frame(dict(zip(names, part.T, strict=True))) for part in (X[:40], X[40:]))
    union = make_union(StandardScaler(), make_pipeline(MinMaxScaler(), PCA(2)))
    base = make_pipeline(StandardScaler(), union, Ridge()).set_output(transform=container)
    cache = FoldCache(None)
    for plain, shared, _ in both(base, ALPHAS, X_train, y[:40], X_test, cache):
        theirs, ours = plain[:-1].transform(X_test), shared[:-1].transform(X_test)
        assert type(ours) is type(theirs) is frame
        assert list(ours.columns) == list(theirs.columns)
        assert_array_equal(ours.to_numpy(), theirs.to_numpy())
    assert cache.fits == 4


def test_callable_column_selectors():
    X = pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40.0) ** 2, "c": list("xyzw") * 10})
    y = np.arange(40.0)
    columns = ColumnTransformer(
        [
            ("number", StandardScaler(), make_column_selector(dtype_include="number")),
            ("word", OneHotEncoder(handle_unknown="ignore"), ["c"]),
        ]
    )
    settings = [{"columntransformer__word__drop": d} for d in (None, "first", None)]
    cache = agree(make_pipeline(columns, Ridge()), settings, X, y, X.iloc[3:9])
    assert cache.fits == 3


def test_sparse_outputs_and_inputs():
    rng = np.random.RandomState(0)
    X = scipy.sparse.random_array((60, 20), density=0.2, rng=rng, format="csr")
    y = rng.standard_normal(60)
    union = make_union(
        TruncatedSVD(3, algorithm="randomized", random_state=0), StandardScaler(with_mean=False)
    )
    base = make_pipeline(StandardScaler(with_mean=False), union, Ridge())
    cache = agree(base, ALPHAS, X[:40], y[:40], X[40:])
    assert cache.fits == 3
    onehot = make_pipeline(OneHotEncoder(handle_unknown="ignore"), Ridge())
    X = rng.randint(0, 5, (60, 3))
    assert agree(onehot, ALPHAS, X[:40], y[:40], X[40:]).fits == 1


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
def test_a_lent_sparse_matrix_cannot_be_changed(kind):
    X = scipy.sparse.random_array((6, 5), density=0.5, rng=np.random.RandomState(0), format=kind)
    before = X.toarray()
    cache = FoldCache(None)
    lent = cache.lend(X)
    assert type(lent) is type(X) and cache.token(lent) == cache.token(cache.lend(X)) and lent is not X
    assert_array_equal(lent.toarray(), before)
    with pytest.raises(ValueError, match="read-only"):
        lent.data[:] = 0
    lent.data = np.zeros_like(X.data)  # the lent object is the borrower's own, what it points to is not
    assert_array_equal(X.toarray(), before)
    assert_array_equal(cache.lend(X).toarray(), before)


def test_metadata_routing():
    X, y, X_test, _ = fold(*data())
    weights = np.linspace(1, 2, 40)
    with sklearn.config_context(enable_metadata_routing=True):
        a = Counting("a").set_fit_request(sample_weight=True)
        inner = make_pipeline(a, StandardScaler().set_fit_request(sample_weight=False))
        columns = ColumnTransformer([("in", inner, [0, 1])])
        base = make_pipeline(columns, Ridge().set_fit_request(sample_weight=True))
        cache = agree(base, ALPHAS, X, y, X_test, sample_weight=weights)
        assert cache.fits == 2
        agree(base, ALPHAS, X, y, X_test, cache, sample_weight=weights[::-1])
        assert cache.fits == 4
        other = clone(base)
        other[0].transformers[0][1][1].set_fit_request(sample_weight=True)
        agree(other, ALPHAS, X, y, X_test, cache, sample_weight=weights)
        assert cache.fits == 5


def test_fit_parameters_without_routing():
    X, y, X_test, _ = fold(*data())
    base = make_pipeline(Counting("a"), Ridge())
    cache = FoldCache(None)
    for weights in (np.ones(40), np.linspace(0, 1, 40), np.ones(40)):
        agree(base, ALPHAS[:2], X, y, X_test, cache, counting__sample_weight=weights)
    assert cache.fits == 2


def test_messages_are_printed_for_each_setting(capsys):
    X, y, X_test, _ = fold(*data())
    base = Pipeline([("a", Counting("a")), ("ridge", Ridge())], verbose=True)
    agree(base, ALPHAS, X, y, X_test)
    assert capsys.readouterr().out.count("(step 1 of 2) Processing a, total=") == 2 * len(ALPHAS)


def test_invalid_steps_get_the_messages_of_scikit_learn():
    X, y = data()
    for steps in (
        [("a", Ridge()), ("b", Ridge())],
        [("a", StandardScaler)],
        [("a__b", StandardScaler())],
        3,
        [],
    ):
        seen = []
        for model in (Pipeline(steps), share_prefixes(Pipeline(steps), FoldCache(None))):
            with pytest.raises((TypeError, ValueError, AttributeError)) as error:
                model.fit(X, y)
            seen.append((error.type, str(error.value)))
        assert seen[0] == seen[1]


def test_composites_of_other_types_are_left_alone():
    class Mine(Pipeline):
        pass

    X, y, X_test, _ = fold(*data())
    base = Mine([("a", Counting("a")), ("ridge", Ridge())])
    assert agree(base, ALPHAS, X, y, X_test).fits == 0
    inside = make_pipeline(Mine([("a", Counting("a")), ("b", Counting("b"))]), Ridge())
    assert agree(inside, ALPHAS, X, y, X_test).fits == 1  # as a step it is one transformer


def test_a_pipeline_with_its_own_memory_is_left_alone(tmp_path):
    X, y, X_test, _ = fold(*data())
    inner = Pipeline([("a", StandardScaler()), ("b", MinMaxScaler())], memory=str(tmp_path))
    base = Pipeline([("inner", inner), ("ridge", Ridge())], memory=str(tmp_path))
    assert not has_shareable_prefix(base)
    assert agree(base, ALPHAS, X, y, X_test).fits == 0
    assert agree(base.set_params(memory=None), ALPHAS, X, y, X_test).fits == 1


# What writes into its input


def test_what_is_told_to_work_in_place_is_left_to_scikit_learn():
    X, y = data()
    for step in (
        StandardScaler(copy=False),
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


@pytest.mark.parametrize("as_frame", [False, True])
def test_what_works_in_place_secretly_cannot_change_what_is_lent(as_frame):
    X, y, X_test, _ = fold(*data())
    if as_frame:
        X, X_test = pd.DataFrame(X), pd.DataFrame(X_test)
        if COPY_ON_WRITE:  # this is what happens to a frame that is only a shallow copy
            other = X.copy()
            Secretly().fit_transform(other.copy(deep=False))
            assert abs(other.to_numpy().mean()) < 1e-12
    before, before_test = np.array(X), np.array(X_test)
    columns = ColumnTransformer([("a", Secretly(), slice(0, 3))], remainder="passthrough")
    for container in ("default", "pandas"):
        base = make_pipeline(Secretly(), columns, StandardScaler(), Ridge())
        base.set_output(transform=container)
        settings = [
            {"standardscaler__with_std": s, "ridge__alpha": a} for a in (1.0, 2.0) for s in (False, True)
        ]
        cache = agree(base, settings, X, y, X_test)
        assert cache.fits == 1 + 1 + 2
    assert_array_equal(X, before)
    assert_array_equal(X_test, before_test)


def add_one_in_place(X):
    X += 1
    return X


def test_a_function_that_writes_into_a_lent_array_raises():
    X, y, X_test, _ = fold(*data())
    before = X.copy()
    cache = FoldCache(None)
    base = Pipeline([("a", Counting("a")), ("f", FunctionTransformer(add_one_in_place)), ("ridge", Ridge())])
    for steps in (base, base[1:]):
        with pytest.raises(ValueError, match="read-only"):
            share_prefixes(clone(steps), cache).fit(cache.lend(X), y)
    assert_array_equal(X, before)
    # and the others are none the worse for it
    agree(make_pipeline(Counting("a"), Counting("b"), Ridge()), ALPHAS, X, y, X_test, cache)


def add_a_column(X):
    X["new"] = X["f0"] * 2
    return X


def test_a_function_that_changes_a_frame_has_its_own():
    X, y, X_test, _ = fold(*data())
    names = [f"f{j}" for j in range(5)]
    X, X_test = pd.DataFrame(X, columns=names), pd.DataFrame(X_test, columns=names)
    base = make_pipeline(StandardScaler(), FunctionTransformer(add_a_column), StandardScaler(), Ridge())
    base.set_output(transform="pandas")
    base.set_params(functiontransformer=FunctionTransformer(add_a_column))
    cache = agree(base, ALPHAS, X, y, X_test)
    assert cache.fits == 3 and list(X.columns) == names


def rebind(X):
    X.data = np.log1p(X.data)
    return X


def test_a_function_that_rebinds_the_data_of_a_sparse_matrix_has_its_own():
    X = scipy.sparse.random_array((60, 8), density=0.5, rng=np.random.RandomState(0), format="csr")
    y = np.arange(60.0)
    first = StandardScaler(with_mean=False)
    base = Pipeline([("a", first), ("f", FunctionTransformer(rebind)), ("b", first), ("ridge", Ridge())])
    settings = [{"ridge__alpha": 1.0}, {"f": "passthrough"}, {"ridge__alpha": 2.0}]
    assert agree(base, settings, abs(X[:40]), y[:40], abs(X[40:])).fits == 4


@pytest.mark.parametrize("library", [pd, pl])
@pytest.mark.parametrize("kind", ["DataFrame", "Series"])
def test_lent_frames_have_the_same_token_and_are_not_changed(library, kind):
    values = {"a": [1.0, 2.0], "b": [3.0, 4.0]} if kind == "DataFrame" else [1.0, 2.0]
    X = getattr(library, kind)(values)
    before = X.to_numpy().copy()
    cache = FoldCache(None)
    lent, again = cache.lend(X), cache.lend(X)
    assert type(lent) is type(X) and lent is not X and lent is not again
    assert cache.token(lent) == cache.token(again) == cache.token(cache.lend(lent))
    assert cache.token(lent) != cache.token(cache.lend(copy.deepcopy(X)))
    if kind == "Series":
        lent[0] = 7.0
    elif library is pd:
        lent["a"] = 7.0
        lent.iloc[0, 1] = 7.0
    else:
        lent[0, "a"] = 7.0
    assert lent.to_numpy().max() == 7.0
    for other in (X, again, cache.lend(X)):
        assert_array_equal(other.to_numpy(), before)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_lent_frame_has_the_layout_of_the_original(order):
    X = pd.DataFrame(np.asarray(np.arange(12.0).reshape(4, 3), order=order), copy=False, index=list("abcd"))
    X.attrs["note"] = 1
    blocks = pd.concat([X, X.add_prefix("more")], axis=1)
    for frame in (X, blocks, blocks.astype({"more0": "category"}), X.take([2, 0]), X.astype("Float64")):
        lent = FoldCache(None).lend(frame)
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
    lent = FoldCache(None).lend(X)
    for part in (lent["a"], lent[["a"]], lent["b"], lent[["d"]]):
        with pytest.raises(ValueError, match="WRITEABLE"):
            part.to_numpy().flags.writeable = True
    X["a"].to_numpy().flags.writeable = True  # what the lock is for; the user's own frame is not locked


def test_what_is_lent_twice_is_the_same_view():
    X, _ = data()
    cache = FoldCache(None)
    lent = cache.lend(X)
    assert cache.lend(X) is lent and cache.lend(lent) is lent
    assert not lent.flags.writeable and X.flags.writeable and lent.base is X
    for other in ([1, 2], ("a",), {"a": 1}, None, scipy.sparse.lil_array((2, 2)), np.ma.masked_array([1.0])):
        assert cache.lend(other) is other and guard(other) is other


# Randomness


@pytest.mark.parametrize(
    ("state", "shared"),
    [(None, False), (0, True), (np.int64(3), True), (np.random.RandomState(0), False)],
    ids=["None", "int", "int64", "instance"],
)
def test_only_an_integer_random_state_is_shared(state, shared):
    X, y = data()
    cache = FoldCache(None)
    base = make_pipeline(Drawing(random_state=state), Counting("after"), Ridge())
    assert has_shareable_prefix(base) is shareable(base[0]) is shared
    for _ in range(3):
        share_prefixes(clone(base), cache).fit(cache.lend(X), y)
    assert CALLS["drawing.fit"] == CALLS["after.fit"] == (1 if shared else 3)


def test_what_comes_before_a_random_step_is_shared():
    X, y = data()
    cache = FoldCache(None)
    for _ in range(3):
        model = make_pipeline(Counting("before"), Drawing(), Counting("after"), Ridge())
        share_prefixes(model, cache).fit(cache.lend(X), y)
    assert CALLS["before.fit"] == 1 and CALLS["drawing.fit"] == CALLS["after.fit"] == 3


def test_branches_beside_a_random_one_are_shared():
    X, y = data()
    cache = FoldCache(None)
    for _ in range(3):
        columns = ColumnTransformer(
            [("a", Counting("a"), [0, 1]), ("b", Drawing(), [2])], remainder="passthrough"
        )
        model = make_pipeline(columns, Counting("after"), Ridge())
        assert has_shareable_prefix(model)
        share_prefixes(model, cache).fit(cache.lend(X), y)
        model.predict(cache.lend(X))
    assert CALLS["a.fit"] == 1 and CALLS["drawing.fit"] == CALLS["after.fit"] == 3
    assert CALLS["a.transform"] == 1 and CALLS["drawing.transform"] == 6


def test_results_of_a_random_instance_are_those_of_scikit_learn():
    X, y, X_test, _ = fold(*data())
    state = np.random.RandomState(3)
    projection = make_pipeline(GaussianRandomProjection(3, random_state=state), StandardScaler(), Ridge())
    agree(projection, ALPHAS, X, y, X_test)
    columns = ColumnTransformer([("a", GaussianRandomProjection(2, random_state=state), [0, 1, 2])])
    agree(make_pipeline(StandardScaler(), columns, Ridge()), ALPHAS, X, y, X_test)


def test_a_transform_that_draws_starts_from_the_same_state_for_every_setting():
    X, y, X_test, _ = fold(*data())
    for first in (DrawingInTransform(), make_pipeline(Counting("a"), DrawingInTransform())):
        agree(make_pipeline(first, StandardScaler(), Ridge()), ALPHAS, X, y, X_test)
        assert CALLS["moving.fit"] == len(ALPHAS) + 1
        CALLS.clear()
    X[::7, 0] = np.nan
    imputer = IterativeImputer(sample_posterior=True, random_state=0, max_iter=2, tol=100.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it does not converge
        assert agree(make_pipeline(imputer, Ridge()), ALPHAS, X, y, X_test).fits == 1


@pytest.mark.parametrize(
    ("transformer", "shape", "expected"),
    [
        (PCA(2, svd_solver="full"), (50, 5), True),
        (PCA(2, svd_solver="covariance_eigh"), (50, 5), True),
        (PCA(2, svd_solver="arpack"), (50, 5), False),
        (PCA(2, svd_solver="randomized"), (50, 5), False),
        (PCA(2, svd_solver="randomized", random_state=0), (50, 5), True),
        (PCA(2), (1000, 100), True),
        (PCA(2), (999, 100), False),
        (PCA(80), (999, 100), True),
        (PCA(79), (999, 100), False),
        (PCA(0.5), (999, 100), True),
        (PCA(), (999, 100), True),
        (PCA("mle"), (999, 100), True),
        (PCA(2), (500, 500), True),
        (PCA(2), (501, 500), False),
        (KernelPCA(5), (200, 3), True),
        (KernelPCA(5), (201, 3), False),
        (KernelPCA(10), (201, 3), True),
        (KBinsDiscretizer(subsample=50), (50, 3), True),
        (KBinsDiscretizer(subsample=50), (51, 3), False),
        (KBinsDiscretizer(subsample=None), (51, 3), True),
        (QuantileTransformer(subsample=50), (50, 3), True),
        (QuantileTransformer(subsample=50), (51, 3), False),
        (TargetEncoder(), (51, 3), False),
        (IterativeImputer(), (51, 3), True),
        (IterativeImputer(imputation_order="random"), (51, 3), False),
        (IterativeImputer(RandomForestRegressor()), (51, 3), False),
        (RBFSampler(), (50, 3), False),
        (SelectFromModel(Lasso()), (50, 3), True),
        (SelectFromModel(Lasso(selection="random")), (50, 3), False),
        (SelectFromModel(Ridge()), (50, 3), True),
        (SelectFromModel(Ridge(solver="saga")), (50, 3), False),
        (SelectFromModel(LogisticRegression()), (50, 3), True),
        (SelectFromModel(LogisticRegression(solver="liblinear")), (50, 3), False),
        (SelectFromModel(LinearSVC(dual=False)), (50, 3), True),
        (SelectFromModel(LinearSVC(dual=True)), (50, 3), False),
        (SelectFromModel(SVC(kernel="linear")), (50, 3), True),
        (SelectFromModel(RandomForestRegressor()), (50, 3), False),
        (SelectFromModel(RandomForestRegressor(random_state=1)), (50, 3), True),
        (SelectFromModel(PCA(2)), (50, 3), False),  # it depends on a shape that is not known
        (SelectKBest(mutual_info_regression), (50, 3), False),
        (SelectKBest(functools.partial(mutual_info_regression, random_state=0)), (50, 3), True),
        (SelectKBest(functools.partial(mutual_info_regression, random_state=None)), (50, 3), False),
        (SelectKBest(f_regression), (50, 3), True),
        (FunctionTransformer(np.random.RandomState(0).permutation), (50, 3), False),
        (FunctionTransformer(lambda X: X), (50, 3), True),
        (FunctionTransformer(kw_args={"random_state": None}), (50, 3), False),
        (make_pipeline(StandardScaler(), make_union(RBFSampler())), (50, 3), False),
        (make_pipeline(StandardScaler(), make_union(RBFSampler(random_state=1))), (50, 3), True),
        (FrozenEstimator(RBFSampler()), (50, 3), True),
    ],
    ids=lambda value: None if isinstance(value, bool) else repr(value).replace("\n", ""),
)
def test_rules(transformer, shape, expected):
    assert shareable(transformer, *shape) is expected


def test_rules_for_sparse_input_and_unknown_shapes():
    assert not shareable(PCA(2), 50, 5, sparse=True) and shareable(PCA(2), 50, 5)
    assert shareable(PCA(2)) and has_shareable_prefix(make_pipeline(PCA(2), Ridge()))
    assert not shareable(PCA(2, svd_solver="randomized"))


def test_the_tag_for_what_is_not_deterministic():
    class Tagged(Counting):
        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.non_deterministic = True
            return tags

    assert not shareable(Tagged()) and shareable(Counting())
    assert not shareable(make_pipeline(Counting(), Tagged()))


def test_the_solver_that_auto_stands_for_is_found_when_the_shape_is_known():
    rng = np.random.RandomState(0)
    for n, once in ((500, True), (520, False)):
        X, y = rng.standard_normal((n, 60)), rng.standard_normal(n)
        cache = FoldCache(None)
        fitted = [
            share_prefixes(make_pipeline(StandardScaler(), PCA(3), Ridge(alpha)), cache).fit(cache.lend(X), y)
            for alpha in (1.0, 2.0)
        ]
        assert {model[1]._fit_svd_solver for model in fitted} == {"full" if once else "randomized"}
        assert cache.fits == (2 if once else 3)


def test_a_nested_pipeline_is_shared_where_all_of_it_turns_out_to_be():
    X, y, X_test, _ = fold(*data())
    columns = ColumnTransformer(
        [("a", make_pipeline(Counting("a"), PCA(1)), [0, 1]), ("b", PCA(2), [2, 3, 4])]
    )
    cache = agree(make_pipeline(columns, Counting("after"), Ridge()), ALPHAS, X, y, X_test)
    assert cache.fits == 4


def test_a_nested_pipeline_is_not_shared_where_a_part_of_it_turns_out_to_draw():
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((520, 60)), rng.standard_normal(520)
    cache = FoldCache(None)
    columns = ColumnTransformer([("a", make_pipeline(StandardScaler(), PCA(3)), slice(0, 60))])
    models = [
        share_prefixes(make_pipeline(clone(columns), Ridge()), cache).fit(cache.lend(X), y) for _ in range(2)
    ]
    components = [unshare(model)[0].named_transformers_["a"][1].components_ for model in models]
    assert cache.fits == 1 + 2 and not np.array_equal(*components)


# Keys


def test_functions_are_known_by_identity():
    X, y, X_test, _ = fold(*data())

    def double(X):
        return 2 * X

    def triple(X):
        return 3 * X

    base = Pipeline([("f", FunctionTransformer()), ("ridge", Ridge())])
    functions = [
        double,
        triple,
        double,
        np.exp,
        np.exp,
        functools.partial(np.add, 1),
        functools.partial(np.add, 1),
    ]
    cache = agree(base, [{"f__func": f} for f in functions], X, y, X_test)
    assert cache.fits == 4
    lambdas = [{"f__func": lambda X: X + 1}, {"f__func": lambda X: X + 1}]
    assert agree(base, lambdas * 2, X, y, X_test).fits == 2


def test_keys():
    with sklearn.config_context(enable_metadata_routing=True):
        weighted = Counting("a").set_fit_request(sample_weight=True)
        unweighted = Counting("a").set_fit_request(sample_weight=False)
    same = [
        (StandardScaler(), clone(StandardScaler().fit([[1.0]]))),
        (weighted, clone(clone(weighted))),
        (FunctionTransformer(kw_args={"a": [1, (2,)]}), FunctionTransformer(kw_args={"a": [1, (2,)]})),
        (np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3)),
        (make_column_selector("a"), make_column_selector("a")),
        (KFold(3), KFold(3)),
        ({1, "a"}, {"a", 1}),
        (slice(1, 3), slice(1, 3)),
        (np.float32(1), np.float32(1)),
        (pd.Series([1, 2]), pd.Series([1, 2])),
        (Shared(StandardScaler(), FoldCache(None)), StandardScaler()),
    ]
    for one, other in same:
        assert structural_key(one) == structural_key(other)
        assert hash(structural_key(one)) == hash(structural_key(other))
    different = [
        (StandardScaler(), MinMaxScaler()),
        (StandardScaler(), StandardScaler(copy=False)),
        (StandardScaler(), StandardScaler().set_output(transform="pandas")),
        (Counting("a"), weighted),
        (weighted, unweighted),
        (Counting("a", 0.0), Counting("a", -0.0)),
        (Counting("a", [1]), Counting("a", (1,))),
        (Counting("a", np.arange(3)), Counting("a", np.arange(3.0))),
        (Counting("a", np.ones((2, 3))), Counting("a", np.ones((3, 2)))),
        (np.asfortranarray(np.ones((2, 3))), np.ones((2, 3))),
        (np.ones((4, 4))[::2], np.ones((8, 4))[::4]),
        (KFold(3), KFold(4)),
        (slice(1, 3), slice(1, 4)),
        (np.float32(1), np.float64(1)),
        (Counting, Counting()),
    ]
    for one, other in different:
        assert structural_key(one) != structural_key(other)


def test_what_has_no_key_is_fitted_for_each_setting():
    X, y = data()
    cache = FoldCache(None)
    for _ in range(2):
        step = Counting("a")
        step.note = (x for x in "ab")
        with pytest.raises(Unkeyable):
            structural_key(step)
        share_prefixes(make_pipeline(step, Counting("b"), Ridge()), cache).fit(cache.lend(X), y)
    assert CALLS["a.fit"] == CALLS["b.fit"] == 2


def test_a_structure_that_contains_itself():
    loop: list[object] = []
    loop.append(loop)
    assert structural_key(Counting(loop)) == structural_key(Counting(copy.deepcopy(loop)))  # as pickles
    assert not shareable(Counting(loop))


def test_the_configuration_of_scikit_learn_is_part_of_the_key():
    X, y = data()
    cache = FoldCache(None)
    for container in ("default", "pandas", "default"):
        with sklearn.config_context(transform_output=container):
            model = share_prefixes(make_pipeline(StandardScaler(), Ridge()), cache)
            model.fit(cache.lend(X), y)
            assert isinstance(model[0].transform(cache.lend(X)), pd.DataFrame) is (container == "pandas")
    assert cache.fits == 2


@pytest.mark.parametrize(
    "kind", [lambda X: X[:], pd.DataFrame, scipy.sparse.csr_array], ids=["view", "frame", "csr"]
)
def test_the_identity_of_an_array_that_is_gone_is_not_taken_for_another(kind):
    cache = FoldCache(None)
    first = kind(np.ones((3, 2)))
    reused = 0
    for i in range(20):
        lent = cache.present(first, 10**6)
        identity = id(lent)
        assert cache.token(lent) == 10**6
        del lent
        others = [kind(np.full((3, 2), float(i))) for _ in range(50)]
        reused += identity in map(id, others)
        assert len({cache.token(other) for other in others}) == 1
        assert cache.token(others[0]) != 10**6 and not any(map(cache.is_known, others))
    assert reused  # the hazard is real


def test_a_name_that_is_out_of_date_is_not_believed():
    cache = FoldCache(None)
    lent, other = cache.present(np.ones(3), 5), np.zeros(3)
    cache._names[id(other)] = cache._names[id(lent)]
    assert cache.token(lent) == 5 and cache.token(other) not in (5, None)


def test_arrays_of_other_libraries_are_not_shared_and_not_hashed():
    class Opaque:
        shape = (3, 2)

        def __array__(self, dtype=None, copy=None):
            return np.ones((3, 2))

    X = Opaque()
    cache = FoldCache(None)
    assert cache.lend(X) is X and cache.token(X) is None
    for _ in range(2):
        Shared(Counting("a"), cache).fit(X)
    assert CALLS["a.fit"] == 2


# The limit


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
    share_prefixes(model, cache).fit(cache.lend(X), y)
    means = 2 * X[0].nbytes
    assert cache.bytes == 2 * X.nbytes + means  # the outputs of a and b; the pipeline's is that of b
    share_prefixes(make_pipeline(FunctionTransformer(), Ridge()), cache).fit(cache.lend(X), y)
    assert cache.bytes == 2 * X.nbytes + means  # what was lent is not the cache's
    cache.clear()
    assert cache.bytes == 0 and cache.fits == 3


def test_least_recently_used_goes_first():
    X, _ = data(100, 10)
    cache = FoldCache(5 * X.nbytes // 2)
    lent = cache.lend(X)
    for shift in (0, 1, 0, 2, 0, 1):  # there is room for two
        Shared(Counting("a", shift), cache).fit_transform(lent)
    assert CALLS["a.fit"] == 4  # only 1 was dropped and came again


def test_what_follows_a_dropped_output_is_found_again():
    X, y = data(100, 10)
    cache = FoldCache(3 * X.nbytes)
    model = make_pipeline(Counting("a"), Counting("b"), Ridge())
    share_prefixes(clone(model), cache).fit(cache.lend(X), y)
    b = next(key for key in reversed(cache._items))
    for key in [key for key in cache._items if key != b]:
        cache._drop(key)
    share_prefixes(clone(model), cache).fit(cache.lend(X), y)
    assert CALLS["a.fit"] == 2 and CALLS["b.fit"] == 1


# The wrapper


def fitted_wrapper():
    X, _ = data()
    cache = FoldCache(None)
    return Shared(StandardScaler(), cache).fit(cache.lend(X)), cache, X


def test_clone_of_a_wrapper_is_an_unfitted_wrapper_with_the_same_cache():
    wrapper, cache, X = fitted_wrapper()
    other = clone(wrapper)
    assert type(other) is Shared and other._shared_cache is cache
    assert other._shared_inner is not wrapper._shared_inner
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        check_is_fitted(other)
    with pytest.raises(NotFittedError, match="This StandardScaler instance is not fitted yet"):
        other.transform(X)
    check_is_fitted(wrapper)
    other.set_params(with_mean=False).fit(cache.lend(X))
    assert cache.fits == 2 and wrapper.get_params()["with_mean"] is True


def test_copies_and_pickles_of_a_wrapper():
    wrapper, _, X = fitted_wrapper()
    for other in (pickle.loads(pickle.dumps(wrapper)), copy.deepcopy(wrapper)):
        assert type(other) is StandardScaler and other is not wrapper._shared_target
        assert_array_equal(other.transform(X), wrapper.transform(X))
    assert type(copy.copy(wrapper)) is Shared
    assert type(pickle.loads(pickle.dumps(Shared(MinMaxScaler(), FoldCache(None))))) is MinMaxScaler


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
    wrapper = Shared(Partly(), cache)
    assert not hasattr(wrapper, "fit_transform") and not hasattr(wrapper, "inverse_transform")
    assert not hasattr(wrapper, "set_output") and hasattr(Shared(Partly(True), cache), "inverse_transform")
    X, y, X_test, _ = fold(*data())
    assert agree(make_pipeline(Partly(), Ridge()), ALPHAS, X, y, X_test).fits == 1


def test_set_output_after_the_fit_is_for_one_setting_only():
    wrapper, cache, X = fitted_wrapper()
    other = Shared(StandardScaler(), cache).fit(cache.lend(X))
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
        shared = share_prefixes(clone(base).set_params(**setting), cache).fit(cache.lend(X), cache.lend(y))
        for part in (X_test, X):
            assert_array_equal(shared.predict(cache.lend(part)), plain.predict(part))
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(40)))
    held = sum(sum(item.memory.values()) for item in cache._items.values())
    assert 0 <= cache.bytes <= min(held, 6 * X.nbytes)


# Back to scikit-learn's own


def wrappers(thing, seen=None):
    """All wrappers that can be reached from something."""
    seen = {} if seen is None else seen
    if id(thing) in seen or isinstance(thing, (str, bytes, np.ndarray, type, ModuleType, FunctionType)):
        return []
    seen[id(thing)] = thing
    found = [thing] if type(thing) is Shared else []
    items = (
        thing.values() if isinstance(thing, dict) else thing if isinstance(thing, (list, tuple, set)) else ()
    )
    for item in (*items, *(vars(thing).values() if hasattr(thing, "__dict__") else ())):
        found += wrappers(item, seen)
    return found


def everything():
    columns = ColumnTransformer(
        [
            (
                "a",
                Pipeline([("x", StandardScaler()), ("y", make_union(MinMaxScaler(), "passthrough"))]),
                [0, 1],
            ),
            ("b", PCA(1), [2]),
            ("c", "drop", [0]),
            ("e", MinMaxScaler(), []),
        ],
        remainder=make_pipeline(SimpleImputer(), StandardScaler()),
    )
    union = FeatureUnion([("p", StandardScaler()), ("q", make_pipeline(MinMaxScaler(), PCA(1)))])
    inner = Pipeline([("first", columns), ("nothing", None), ("union", union), ("ridge", Ridge())])
    return Pipeline([("s", StandardScaler()), ("t", TransformedTargetRegressor(inner))])


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
            one.fit(cache.lend(X), cache.lend(y))
    before = len(wrappers(others[0]))
    bare = unshare(model)
    assert bare is model and not wrappers(bare)
    assert repr(bare) == repr(plain) and len(wrappers(others[0])) == before
    if fitted:
        assert cache.fits == 9
        for part in (X_test, X):
            assert_array_equal(bare.predict(part), plain.predict(part))
            assert others[0].predict(cache.lend(part)).shape == (
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
    assert len(wrappers(share_prefixes(clone(model), FoldCache(None), is_transformer=True))) == 2


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
    class Logging:
        max_propagation_depth = None

        def __init__(self):
            self.seen = []

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context, **kwargs):
            self.seen.append((type(estimator).__name__, str(context.task_name)))

        def on_fit_task_end(self, estimator, context, **kwargs):
            pass

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
                model.set_callbacks(log).fit(cache.lend(X), y)
            assert not hasattr(model[0], "_parent_callback_ctx")
        logs.append(log.seen)
    assert logs[0] == logs[1] and len(logs[0]) > 8
