"""Who is lent rows does not write into them: every class of the list, with each of its options."""

from __future__ import annotations

import functools
import importlib

import numpy as np
import pytest
from sklearn import metrics, preprocessing
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import Lasso, LassoCV, LogisticRegression, MultiTaskLasso, Ridge
from sklearn.metrics import get_scorer, get_scorer_names, make_scorer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from manyfit import estimators
from manyfit.estimators._catalog import CATALOG
from manyfit.model_selection.sharing.rows._known_readers import (
    FUNCTIONS,
    READERS,
    any_of,
    strangers,
    strangers_among_scorers,
)
from tests._covering import spread
from tests.behaviour.steps._every_estimator import (
    KINDS,
    SLOW,
    classes,
    data,
    digest,
    instances,
    options,
    writes,
)

# Of classes and of metrics that are called as nobody should.
pytestmark = pytest.mark.filterwarnings("ignore")

NAMES = sorted(name for names in READERS.values() for name in names.split())


def read_only(estimator):
    return not any_of(strangers(estimator))


def settings(cls, every):
    """Instances of a class with each option by itself, where all of it is trusted; else without options."""
    for instance in instances(cls):
        for option in options(instance) if every else [{}]:
            estimator = clone(instance)
            if option:
                estimator.set_params(**option)
            if read_only(estimator):
                yield estimator


def check(name, kinds, every):
    fitted = 0
    for estimator in settings(classes()[name], every):
        for kind in kinds:
            found, went = writes(estimator, kind)
            assert not found, f"{estimator!r} on {kind} writes into {sorted(found)}"
            fitted += went
    return fitted


def test_every_class_of_scikit_learn_is_in_the_list():
    assert set(classes()) <= set(NAMES)


@pytest.mark.parametrize(
    "name", spread([name for name in NAMES if name in classes() and name not in SLOW], 50)
)
def test_who_is_in_the_list_writes_into_nothing(name):
    assert check(name, ("F",), every=False) or not any(map(read_only, instances(classes()[name])))


@pytest.mark.invariant("No estimator or scorer can change the data of another fit")
@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in NAMES if name in classes()])
def test_who_is_in_the_list_writes_into_nothing_with_any_option(name):
    kinds = KINDS if name not in SLOW else ("C", "F")
    assert check(name, kinds, every=name not in SLOW) or not any(map(read_only, instances(classes()[name])))


@pytest.mark.parametrize(
    "name", spread([name for name in CATALOG if name in classes() and name not in SLOW], 20)
)
def test_a_drop_in_writes_into_nothing_either(name):
    for theirs in settings(classes()[name], every=False):
        estimator = getattr(estimators, name)(**theirs.get_params(deep=False))
        assert read_only(estimator)
        found, _ = writes(estimator, "F")
        assert not found


class Own(StandardScaler):
    """A subclass may do anything."""


class Draws(TransformerMixin, BaseEstimator):
    pass


def own(X):
    return X


@pytest.mark.parametrize(
    "estimator",
    [
        Own(),
        Draws(),
        make_pipeline(StandardScaler(), Own(), Ridge()),
        make_union(StandardScaler(), Own()),
        ColumnTransformer([("a", Own(), [0])]),
        ColumnTransformer([("a", StandardScaler(), own)]),
        ColumnTransformer([("a", StandardScaler(), [0])], remainder=Own()),
        BaggingClassifier(Own()),
        VotingClassifier([("a", LogisticRegression()), ("b", Own())]),
        TransformedTargetRegressor(Ridge(), func=own, inverse_func=own),
        TransformedTargetRegressor(Ridge(), transformer=Own()),
        FunctionTransformer(own),
        FunctionTransformer(functools.partial(preprocessing.scale, copy=False)),
        FunctionTransformer(preprocessing.scale, kw_args={"copy": False}),
        FunctionTransformer(np.log1p, kw_args={"out": np.ones(3)}),
        FunctionTransformer(np.random.shuffle),
        FunctionTransformer(np.frompyfunc(own, 1, 1)),
        SelectKBest(own),
        KNeighborsClassifier(metric=own),
        SVC(kernel=own),
        GridSearchCV(Ridge(), {}, scoring=own),
        GridSearchCV(Ridge(), {}, cv=Draws()),
        LassoCV(fit_intercept=False),
        MultiTaskLasso(fit_intercept=False),
        Lasso(copy_X=False),
        Lasso(copy_X=np.False_),
        StandardScaler(copy=0),
        FunctionTransformer(preprocessing.scale, kw_args={"copy": np.array(False)}),
    ],
)
def test_strangers_are_found_at_any_depth(estimator):
    assert any_of(strangers(estimator))


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(StandardScaler(), make_union(StandardScaler(), "passthrough"), LassoCV(cv=KFold(3))),
        ColumnTransformer([("a", StandardScaler(), make_column_selector(dtype_include=float))]),
        TransformedTargetRegressor(Ridge(), func=np.log, inverse_func=np.exp),
        FunctionTransformer(functools.partial(preprocessing.scale, axis=1)),
        StandardScaler(copy=np.True_),
        SelectKBest(f_regression),
        GaussianProcessRegressor(RBF() + WhiteKernel()),
        TfidfVectorizer(tokenizer=own, dtype=np.float32),
        GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [1.0]}),
    ],
)
def test_scikit_learns_own_are_no_strangers(estimator):
    assert not list(strangers(estimator))


def test_a_name_alone_is_not_trusted():
    spoofed = type("Ridge", (Ridge,), {"__module__": Ridge.__module__})
    assert any_of(strangers(spoofed()))


@pytest.mark.parametrize("name", get_scorer_names())
def test_scorers_with_a_name_are_no_strangers(name):
    assert not list(strangers_among_scorers(get_scorer(name)))


def test_scorers_of_the_users_own_are_strangers():
    for scorer in (own, make_scorer(own), make_scorer(metrics.r2_score, multioutput=own)):
        assert any_of(strangers_among_scorers(scorer))


CALLS = [
    *(("targets", name) for name in sorted(metrics.__all__) if name.endswith(("_score", "_error", "_loss"))),
    *(("rows", name) for name in sorted(vars(metrics.pairwise)) if name.endswith(("_distances", "_kernel"))),
    *(
        ("rows", name)
        for name in ("scale", "minmax_scale", "normalize", "binarize", "robust_scale", "power_transform")
    ),
    *(
        ("selection", name)
        for name in ("chi2", "f_classif", "f_regression", "r_regression", "mutual_info_classif")
    ),
]


@pytest.mark.parametrize(("of", "name"), CALLS)
def test_functions_that_are_trusted_write_into_nothing(of, name):
    modules = map(importlib.import_module, FUNCTIONS)
    function = next(vars(module)[name] for module in modules if name in vars(module))
    X, labels = data(LogisticRegression(), "F")
    y = labels.astype(float)
    args = {"targets": (labels, 1 - labels), "rows": (X,), "selection": (X, labels)}[of]
    for given in (args, (y, y[::-1].copy()) if of == "targets" else args):
        before = list(map(digest, given))
        try:
            function(*given)
        except (TypeError, ValueError):
            continue
        assert list(map(digest, given)) == before


def test_what_writes_is_seen():
    found, _ = writes(StandardScaler(copy=False), "C")
    assert found == {"transform: X", "fit_transform: X"}
    assert writes(Lasso(copy_X=False), "F")[0] == {"fit: X"}
