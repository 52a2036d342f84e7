"""What is known of the output of a transformer before it is fitted is what a fit makes."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.preprocessing
from sklearn.feature_selection import f_regression
from sklearn.pipeline import make_pipeline

from manyfit import estimators as E
from manyfit.model_selection.planning.steps._outputs import makes_sparse, n_columns

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4))
Y = X @ np.arange(4.0) + rng.normal(size=300)
LABELS = (Y > 0).astype(int)


@pytest.mark.parametrize(
    "step",
    [
        E.PolynomialFeatures(3), E.PolynomialFeatures((2, 3), include_bias=False),
        E.PolynomialFeatures((0, 2)), E.PolynomialFeatures(3, interaction_only=True),
        E.PolynomialFeatures((0, 0)), E.PCA(2), E.PCA(),
        E.SelectKBest(k=3), E.SelectKBest(k="all"), E.SimpleImputer(), E.TruncatedSVD(2),
        sklearn.preprocessing.KBinsDiscretizer(3, encode="ordinal", strategy="uniform"),
        E.QuantileTransformer(n_quantiles=10),
    ],
    ids=repr,
)  # fmt: skip
def test_columns_are_those_that_a_fit_makes(step):
    assert n_columns(step, 4) == step.fit_transform(X, LABELS).shape[1]


def union():
    parts = [("poly", E.PolynomialFeatures()), ("quant", E.QuantileTransformer(n_quantiles=50))]
    return E.FeatureUnion([*parts, ("imp", E.SimpleImputer()), ("pass", "passthrough"), ("none", "drop")])


def columns():
    both = make_pipeline(E.MinMaxScaler(), E.QuantileTransformer(n_quantiles=50))
    parts = [("imp", E.SimpleImputer(), [0, 1]), ("scale", E.StandardScaler(), slice(2, 3))]
    parts += [("both", both, [1, 2, 3]), ("none", "drop", [0]), ("empty", E.SimpleImputer(), [])]
    return E.ColumnTransformer(parts, remainder="passthrough")


def nested():
    """Parts that read y, that hold parts, that are chosen by a mask, and the rest."""
    inner = E.FeatureUnion([("a", E.SimpleImputer()), ("c", E.MinMaxScaler())])
    mask = np.array([True, False, True, False])
    parts = [("best", E.SelectKBest(f_regression, k=2), [0, 1, -2]), ("inner", inner, mask)]
    return E.ColumnTransformer(parts, remainder=E.RobustScaler())


@pytest.mark.parametrize("make", [union, columns, nested])
def test_columns_of_holders_are_those_that_a_fit_makes(make):
    wanted = make().fit_transform(X, Y).shape[1]
    assert n_columns(make(), 4) == wanted
    assert n_columns(make_pipeline(E.PCA(4), make()), 4) == wanted


def test_of_unknown_columns_nothing_is_said():
    assert n_columns(sklearn.preprocessing.OneHotEncoder(), 4) is None
    assert n_columns(E.PolynomialFeatures("two"), 4) is None
    assert n_columns(E.PCA(0.5), 4) is None and n_columns(E.PCA(2), None) is None


def test_sparse_output():
    assert makes_sparse(E.OneHotEncoder()) and not makes_sparse(E.OneHotEncoder(sparse_output=False))
    assert makes_sparse(E.FeatureUnion([("a", E.OneHotEncoder()), ("b", E.SimpleImputer())]))
    assert (
        makes_sparse(E.ColumnTransformer([("a", E.OneHotEncoder(), [0])])) is None
    )  # how dense it is decides
    assert makes_sparse(make_pipeline(E.MinMaxScaler(), E.TfidfTransformer()))
    assert makes_sparse("passthrough") is False
