"""Shared prefixes within pipelines, column transformers and unions, of frames and sparse rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import sklearn
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.datasets import load_diabetes
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
    TargetEncoder,
)

from manyfit.model_selection.sharing._fold_cache import FoldCache
from manyfit.model_selection.sharing.transformers._step_wrappers import has_shareable_prefix, share_prefixes
from tests.behaviour.steps._prefixes import (
    ALPHAS,
    CALLS,
    Counting,
    agree,
    both,
    data,
    fold,
)

X, y, X_test, _ = fold(*data())


def test_nested_pipelines_share_what_is_inside():
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
    hashed = []
    content_key = "manyfit.model_selection.sharing._fold_cache.structural_key"
    monkeypatch.setattr(content_key, lambda X, **how: None if X is None else hashed.append(np.shape(X)))
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
    cache = FoldCache(None)
    model = share_prefixes(make_pipeline(branches(), Ridge()), cache).fit(cache.share(X), y)
    branch = model[0].named_transformers_["two"]
    assert_array_equal(branch.transform(X_test[:, 1:3]), X_test[:, 1:3] - X[:, 1:3].mean(axis=0))


def test_a_union_shares_its_parts():
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
    base = Pipeline([("a", Counting("a")), ("b", Counting("b")), ("ridge", Ridge())])
    settings = [{"a": nothing, "ridge__alpha": 1.0}, {"b": nothing}, {"a": nothing, "b": nothing}, {}]
    cache = agree(base, settings, X, y, X_test)
    assert cache.fits == 3  # b on X, a on X, b on what a gave


def test_estimators_as_parameter_values():
    base = Pipeline([("a", StandardScaler()), ("ridge", Ridge())])
    values = [StandardScaler(), MinMaxScaler(), StandardScaler(), Counting("a"), Counting("a")]
    cache = agree(base, [{"a": value} for value in values], X, y, X_test)
    assert cache.fits == 3


def test_a_transformed_target_is_part_of_the_input():
    target = np.exp(y / 10)
    base = TransformedTargetRegressor(make_pipeline(Counting("a"), SelectKBest(f_regression, k=2), Ridge()))
    settings = [
        {"func": f, "inverse_func": g, "regressor__ridge__alpha": alpha}
        for f, g in ((np.log, np.exp), (np.sqrt, np.square))
        for alpha in (1.0, 2.0)
    ]
    cache = agree(base, settings, X, target, X_test)
    assert cache.fits == 2 * 2


def test_target_encoder_does_not_read_its_training_output_again():
    rng = np.random.RandomState(0)
    X = rng.randint(0, 4, size=(60, 2)).astype(float)
    y = X[:, 0] + rng.standard_normal(60)
    cv = KFold(3, shuffle=True, random_state=0)
    encoder = TargetEncoder(cv=cv) if sklearn.__version__ >= "1.9" else TargetEncoder(random_state=0)
    cache = agree(make_pipeline(encoder, Ridge()), ALPHAS, X[:40], y[:40], X[40:])
    assert cache.fits == 1


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
    X = scipy.sparse.csr_array(scipy.sparse.random(60, 20, 0.2, random_state=rng)).asformat("csr")
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
    X = scipy.sparse.csr_array(
        scipy.sparse.random(6, 5, 0.5, random_state=np.random.RandomState(0))
    ).asformat(kind)
    before = X.toarray()
    cache = FoldCache(None)
    lent = cache.share(X)
    assert type(lent) is type(X) and cache.token(lent) == cache.token(cache.share(X)) and lent is not X
    assert_array_equal(lent.toarray(), before)
    with pytest.raises(ValueError, match="read-only"):
        lent.data[:] = 0
    lent.data = np.zeros_like(X.data)  # the lent object is the borrower's own, what it points to is not
    assert_array_equal(X.toarray(), before)
    assert_array_equal(cache.share(X).toarray(), before)


def test_metadata_routing():
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
    base = make_pipeline(Counting("a"), Ridge())
    cache = FoldCache(None)
    for weights in (np.ones(40), np.linspace(0, 1, 40), np.ones(40)):
        agree(base, ALPHAS[:2], X, y, X_test, cache, counting__sample_weight=weights)
    assert cache.fits == 2


def test_messages_are_printed_for_each_setting(capsys):
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

    base = Mine([("a", Counting("a")), ("ridge", Ridge())])
    assert agree(base, ALPHAS, X, y, X_test).fits == 0
    inside = make_pipeline(Mine([("a", Counting("a")), ("b", Counting("b"))]), Ridge())
    assert agree(inside, ALPHAS, X, y, X_test).fits == 1  # as a step it is one transformer


def test_a_pipeline_with_its_own_memory_is_left_alone(tmp_path):
    inner = Pipeline([("a", StandardScaler()), ("b", MinMaxScaler())], memory=str(tmp_path))
    base = Pipeline([("inner", inner), ("ridge", Ridge())], memory=str(tmp_path))
    assert not has_shareable_prefix(base)
    assert agree(base, ALPHAS, X, y, X_test).fits == 0
    assert agree(base.set_params(memory=None), ALPHAS, X, y, X_test).fits == 1
