"""Shared prefixes: which transformers are shareable, and which are the same."""

from __future__ import annotations

import functools
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA, KernelPCA
from sklearn.ensemble import RandomForestRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import SelectFromModel, SelectKBest, f_regression, mutual_info_regression
from sklearn.impute import IterativeImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Lasso, Ridge
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    QuantileTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.random_projection import GaussianRandomProjection

from manyfit.introspection.randomness import Sizes, find_random_parameter, is_deterministic
from manyfit.introspection.structural_key import Unkeyable, structural_key
from manyfit.model_selection import GridSearchCV
from manyfit.model_selection.sharing._fold_cache import FoldCache
from manyfit.model_selection.sharing.transformers._cached_transformer import CachedTransformer
from manyfit.model_selection.sharing.transformers._step_wrappers import (
    has_shareable_prefix,
    share_prefixes,
    unshare,
)
from tests.behaviour.steps._prefixes import (
    ALPHAS,
    CALLS,
    Counting,
    Drawing,
    DrawingInTransform,
    agree,
    data,
    fold,
)


@pytest.mark.invariant("A random step is shared only if its random_state is an integer")
@pytest.mark.parametrize(
    ("state", "shared"),
    [(None, False), (0, True), (np.int64(3), True), (np.random.RandomState(0), False)],
    ids=["None", "int", "int64", "instance"],
)
def test_only_an_integer_random_state_is_shared(state, shared):
    X, y = data()
    cache = FoldCache(None)
    base = make_pipeline(Drawing(random_state=state), Counting("after"), Ridge())
    assert has_shareable_prefix(base) is is_deterministic(base[0]) is shared
    for _ in range(3):
        share_prefixes(clone(base), cache).fit(cache.share(X), y)
    assert CALLS["drawing.fit"] == CALLS["after.fit"] == (1 if shared else 3)


def test_what_comes_before_a_random_step_is_shared():
    X, y = data()
    cache = FoldCache(None)
    for _ in range(3):
        model = make_pipeline(Counting("before"), Drawing(), Counting("after"), Ridge())
        share_prefixes(model, cache).fit(cache.share(X), y)
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
        share_prefixes(model, cache).fit(cache.share(X), y)
        model.predict(cache.share(X))
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
        (SelectFromModel(RandomForestRegressor()), (50, 3), False),
        (SelectFromModel(RandomForestRegressor(random_state=1)), (50, 3), True),
        (SelectFromModel(PCA(2)), (50, 3), False),  # it depends on a shape that is not known
        (SelectKBest(functools.partial(mutual_info_regression, random_state=None)), (50, 3), False),
        (SelectKBest(f_regression), (50, 3), True),
        (FunctionTransformer(lambda X: X), (50, 3), True),
        (make_pipeline(StandardScaler(), make_union(RBFSampler(random_state=1))), (50, 3), True),
    ],
    # No addresses: the processes of pytest-xdist must agree on the names.
    ids=lambda value: None if isinstance(value, bool) else re.sub(r"\n| at 0[xX]\w+", "", repr(value)),
)
def test_rules(transformer, shape, expected):
    assert (is_deterministic(transformer, Sizes(*shape)) is True) is expected


def test_rules_for_sparse_input_and_unknown_shapes():
    assert is_deterministic(PCA(2), Sizes(50, 5, sparse=True)) is False
    assert is_deterministic(PCA(2), Sizes(50, 5)) is True
    assert is_deterministic(PCA(2)) is None and has_shareable_prefix(make_pipeline(PCA(2), Ridge()))
    assert is_deterministic(PCA(2, svd_solver="randomized")) is False


def test_the_tag_for_what_is_not_deterministic():
    class Tagged(Counting):
        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.non_deterministic = True
            return tags

    assert is_deterministic(Tagged()) is False and is_deterministic(Counting()) is True
    assert is_deterministic(make_pipeline(Counting(), Tagged())) is False


def test_the_solver_that_auto_stands_for_is_found_when_the_shape_is_known():
    rng = np.random.RandomState(0)
    for n, once in ((500, True), (520, False)):
        X, y = rng.standard_normal((n, 60)), rng.standard_normal(n)
        cache = FoldCache(None)
        models = [make_pipeline(StandardScaler(), PCA(3), Ridge(alpha)) for alpha in (1.0, 2.0)]
        fitted = [share_prefixes(model, cache).fit(cache.share(X), y) for model in models]
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
        share_prefixes(make_pipeline(clone(columns), Ridge()), cache).fit(cache.share(X), y) for _ in range(2)
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
    functions = [double, triple, double, np.exp, np.exp, *(functools.partial(np.add, 1) for _ in "ab")]
    cache = agree(base, [{"f__func": f} for f in functions], X, y, X_test)
    assert cache.fits == 4
    lambdas = [{"f__func": lambda X: X + 1}, {"f__func": lambda X: X + 1}]
    assert agree(base, lambdas * 2, X, y, X_test).fits == 2


def test_metadata_requests_and_wrappers_in_keys():
    with sklearn.config_context(enable_metadata_routing=True):
        weighted = Counting("a").set_fit_request(sample_weight=True)
        unweighted = Counting("a").set_fit_request(sample_weight=False)
    assert structural_key(weighted) == structural_key(clone(clone(weighted)))
    assert len({structural_key(one) for one in (Counting("a"), weighted, unweighted)}) == 3
    for one, other in (
        (StandardScaler(), clone(StandardScaler().fit([[1.0]]))),
        (make_column_selector("a"), make_column_selector("a")),
        (CachedTransformer(StandardScaler(), FoldCache(None)), StandardScaler()),
    ):
        assert structural_key(one) == structural_key(other)


def test_what_has_no_key_is_fitted_for_each_setting():
    X, y = data()
    cache = FoldCache(None)
    for _ in range(2):
        step = Counting("a")
        step.note = (x for x in "ab")
        assert structural_key(step) != structural_key(clone(step))
        with pytest.raises(Unkeyable):
            structural_key(step, by_identity=False)
        share_prefixes(make_pipeline(step, Counting("b"), Ridge()), cache).fit(cache.share(X), y)
    assert CALLS["a.fit"] == CALLS["b.fit"] == 2


def test_a_structure_that_contains_itself():
    loop: list[object] = []
    loop.append(loop)
    assert is_deterministic(Counting(loop)) is False


def test_the_configuration_of_scikit_learn_is_part_of_the_key():
    X, y = data()
    cache = FoldCache(None)
    for container in ("default", "pandas", "default"):
        with sklearn.config_context(transform_output=container):
            model = share_prefixes(make_pipeline(StandardScaler(), Ridge()), cache)
            model.fit(cache.share(X), y)
            assert isinstance(model[0].transform(cache.share(X)), pd.DataFrame) is (container == "pandas")
    assert cache.fits == 2


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    "kind", [lambda X: X[:], pd.DataFrame, scipy.sparse.csr_array], ids=["view", "frame", "csr"]
)
def test_the_identity_of_an_array_that_is_gone_is_not_taken_for_another(kind):
    cache = FoldCache(None)
    first = kind(np.ones((3, 2)))
    reused = 0
    for i in range(20):
        lent = cache.protected(first, 10**6)
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
    lent, other = cache.protected(np.ones(3), 5), np.zeros(3)
    cache._tokens[id(other)] = cache._tokens[id(lent)]
    assert cache.token(lent) == 5 and cache.token(other) not in (5, None)


def test_arrays_of_other_libraries_are_not_shared_and_not_hashed():
    class Opaque:
        shape = (3, 2)

        def __array__(self, dtype=None, copy=None):
            return np.ones((3, 2))

    X = Opaque()
    cache = FoldCache(None)
    assert cache.share(X) is X and cache.token(X) is None
    for _ in range(2):
        CachedTransformer(Counting("a"), cache).fit(X)
    assert CALLS["a.fit"] == 2


def test_the_random_state_of_a_grid_search_draws_rows_of_a_sample_only():
    search = GridSearchCV(Ridge(), {"alpha": [1.0]})
    assert find_random_parameter(search) is None
    assert find_random_parameter(search.set_params(sample=3)).name == "random_state"
    assert find_random_parameter(search.set_params(random_state=0)) is None
