"""cross_validate and its kin give what scikit-learn's functions give."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
from sklearn import model_selection as sk
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge, SGDRegressor
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from manyfit import model_selection as ours
from tests._same_results import LABELS, WEIGHTS, X_CLASS, X, Y
from tests._search_fixtures import RANDOM_LASSO

MODELS = [Ridge(), make_pipeline(StandardScaler(), Ridge()), make_pipeline(MinMaxScaler(), RANDOM_LASSO)]
models = pytest.mark.parametrize("model", MODELS, ids=["ridge", "affine", "steps"])


def assert_same(a, b):
    if isinstance(b, dict):
        assert list(a) == list(b)
        for name in b:
            if not name.endswith("_time") and name != "estimator":
                assert_same(a[name], b[name])
    elif isinstance(b, tuple | list):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            assert_same(one, other)
    else:
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def compare(name, *args, **kwargs):
    mine, theirs = getattr(ours, name)(*args, **kwargs), getattr(sk, name)(*args, **kwargs)
    assert_same(mine, theirs)
    return mine


@pytest.mark.cases(5)
@models
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"cv": KFold(3), "return_train_score": True, "scoring": ["r2", "neg_mean_absolute_error"]},
        {"params": {"groups": np.arange(80) // 9}, "cv": GroupKFold(3)},
        {"return_indices": True, "n_jobs": 2},
        {"scoring": lambda e, X, y: float(len(y))},
    ],
)
def test_cross_validate(model, params):
    if "params" in params:
        groups = params["params"]["groups"]
        params = {"groups": groups, "cv": params["cv"]}
    compare("cross_validate", model, X, Y, **params)


def test_cross_validate_gives_fitted_estimators():
    fitted = compare("cross_validate", MODELS[1], X, Y, return_estimator=True)["estimator"]
    reference = sk.cross_validate(MODELS[1], X, Y, return_estimator=True)["estimator"]
    for a, b in zip(fitted, reference, strict=True):
        np.testing.assert_allclose(a.predict(X), b.predict(X))
        assert [type(step) for _, step in a.steps] == [StandardScaler, Ridge]


def test_cross_validate_with_weights():
    compare("cross_validate", Ridge(), X, Y, params={"sample_weight": WEIGHTS})


@models
def test_cross_val_score(model):
    compare("cross_val_score", model, X, Y, cv=4)
    compare("cross_val_score", model, X, Y, cv=4, scoring="neg_mean_squared_error", n_jobs=2)


@models
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_cross_val_predict(model, n_jobs):
    compare("cross_val_predict", model, X, Y, cv=4, n_jobs=n_jobs)


def test_cross_val_predict_methods():
    for method in ("predict_proba", "decision_function"):
        compare("cross_val_predict", LogisticRegression(), X_CLASS, LABELS, method=method)


@pytest.mark.cases(2)
@models
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_validation_curve(model, n_jobs):
    name = next(n for n in model.get_params() if n.endswith("alpha"))
    compare("validation_curve", model, X, Y, param_name=name, param_range=[0.1, 1.0, 1.0, 10], n_jobs=n_jobs)


@pytest.mark.cases(3)
@models
@pytest.mark.parametrize(
    "params", [{}, {"shuffle": True, "random_state": 0}, {"n_jobs": 2, "return_times": False}]
)
def test_learning_curve(model, params):
    compare("learning_curve", model, X, Y, train_sizes=[0.3, 0.6, 1.0], cv=3, **params)


def test_repeated_splits_and_values_are_fitted_again():
    """Fits that draw differ, and estimators that are asked for are not one object."""
    split, other = next(KFold(3).split(X)), next(KFold(4).split(X))
    drawing = ExtraTreesRegressor(2, max_features=1)
    scores = ours.cross_val_score(drawing, X, Y, cv=[split, other, split, split])
    assert len(set(scores)) == 4
    _, test = ours.validation_curve(
        drawing, X, Y, param_name="max_depth", param_range=[3, 4, 3], cv=[split, split, other]
    )
    assert len(set(test.ravel())) == 9
    first, second = ours.cross_validate(Ridge(), X, Y, cv=[split] * 2, return_estimator=True)["estimator"]
    assert first is not second
    repeated = {"param_name": "alpha", "param_range": [0.1, 10, 0.1], "cv": [split, other, split]}
    compare("validation_curve", Ridge(), X, Y, **repeated)
    compare("cross_val_score", Ridge(), X, Y, cv=[split, other, split])


def test_learning_curve_that_learns_on():
    from sklearn.linear_model import SGDRegressor

    model = SGDRegressor(random_state=0, max_iter=5, tol=None)
    compare("learning_curve", model, X, Y, exploit_incremental_learning=True, cv=3)


BAD_CALLS = {
    "lengths": (Ridge(), X, Y[:-1], {}, "inconsistent numbers of samples"),
    "all fits fail": (Ridge(alpha=-1), X, Y, {}, "All the 5 fits failed"),
    "raised": (Ridge(alpha=-1), X, Y, {"error_score": "raise"}, "The 'alpha' parameter of .* Got -1 instead"),
    "n_jobs": (Ridge(), X, Y, {"n_jobs": 0.5}, "The 'n_jobs' parameter of cross_val.* must be"),
    "scorer": (Ridge(), X, Y, {"scoring": "best"}, "'best'"),
}


@pytest.mark.parametrize("name", ["cross_validate", "cross_val_score"])
@pytest.mark.parametrize(("model", "X", "y", "params", "message"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_errors_are_sklearns(name, model, X, y, params, message):
    with pytest.raises(ValueError, match=message) as theirs:
        getattr(sk, name)(model, X, y, **params)
    with pytest.raises(type(theirs.value), match=message) as ours_raised:
        getattr(ours, name)(model, X, y, **params)
    if "All the" not in str(theirs.value):  # which quotes tracebacks
        assert str(ours_raised.value) == str(theirs.value)


@pytest.mark.invariant("manyfit changes nothing in scikit-learn's modules")
def test_sklearn_itself_is_left_as_it_was():
    assert sk.cross_validate.__module__ == "sklearn.model_selection._validation"
    assert sk.cross_validate is not ours.cross_validate
    text, note, rest = ours.cross_validate.__doc__.partition("Notes\n")
    head, added, tail = text.partition("engine : {")
    assert added and "return_predictions : bool or str" in tail
    text = head + tail[tail.index("Returns\n") :]
    assert note and text + rest[rest.index("Examples\n") :] == inspect.cleandoc(sk.cross_validate.__doc__)


@pytest.mark.parametrize(
    "name", ["cross_validate", "cross_val_score", "cross_val_predict", "validation_curve", "learning_curve"]
)
def test_our_functions_are_pickled_by_name(name):
    function = getattr(ours, name)
    assert pickle.loads(pickle.dumps(function)) is function
    assert pickle.loads(pickle.dumps(getattr(sk, name))) is getattr(sk, name)


class Refuses(BaseEstimator):
    """Refuses 1, and 0 on all splits but the first."""

    def __init__(self, a=0):
        self.a = a

    def fit(self, X, y):
        if self.a == 1 or X[0, 0] == FIRST:
            raise ValueError(f"a = {self.a} is refused")
        return self

    def score(self, X, y):
        return 0.0


FIRST = X[0, 0]


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeRegressor(max_features=2),
        make_pipeline(StandardScaler(), DecisionTreeRegressor(max_features=2)),
        make_pipeline(MinMaxScaler(), SGDRegressor(max_iter=5, tol=None)),
        make_pipeline(PCA(2, svd_solver="randomized"), DecisionTreeRegressor(random_state=0)),
    ],
)
@pytest.mark.parametrize("error_score", [np.nan, "raise"])
def test_what_is_drawn_is_drawn_split_by_split(model, error_score):
    name = next(one for one in model.get_params() if one.endswith(("max_depth", "alpha")))
    found = []
    for module in (sk, ours):
        np.random.seed(0)
        options = {"param_name": name, "param_range": [1, 3, 5], "cv": 3, "error_score": error_score}
        found.append(module.validation_curve(model, X, Y, **options))
    np.testing.assert_array_equal(*found)


def test_the_first_error_is_raised_first():
    for module in (sk, ours):
        with pytest.raises(ValueError, match="a = 1 is refused"):
            module.validation_curve(
                Refuses(), X, Y, param_name="a", param_range=[0, 1], cv=3, error_score="raise"
            )


class _CountedTree(DecisionTreeRegressor):
    """A tree that counts its clones."""

    clones = 0

    def __sklearn_clone__(self):
        type(self).clones += 1
        return super().__sklearn_clone__()


@pytest.mark.parametrize("name", ["cross_val_score", "validation_curve", "learning_curve"])
def test_clones_are_no_more_than_in_sklearn(name):
    varied = {"param_name": "max_depth", "param_range": range(1, 4)} if name == "validation_curve" else {}
    made = []
    for library in (ours, sk):
        _CountedTree.clones = 0
        getattr(library, name)(_CountedTree(random_state=0), X, Y, cv=4, **varied)
        made.append(_CountedTree.clones)
    assert made[0] <= made[1] + 1


def test_a_frozen_estimator_is_validated_as_it_is():
    """Its `set_params` returns nothing, and scikit-learn does not call it."""
    frozen = FrozenEstimator(LogisticRegression().fit(X_CLASS, LABELS))
    found = ours.cross_val_score(frozen, X_CLASS, LABELS, cv=3)
    np.testing.assert_array_equal(found, sk.cross_val_score(frozen, X_CLASS, LABELS, cv=3))
