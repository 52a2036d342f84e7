"""Drop-in estimators that hold others: scikit-learn's numbers, on a device where their parts work there."""

from __future__ import annotations

import inspect
import pickle
import warnings
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.multioutput import RegressorChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import manyfit
from manyfit import estimators
from manyfit.arrays import container_kind, container_place, to_device, to_host, transfers
from manyfit.estimators import PCA, FeatureUnion, MinMaxScaler, Ridge, StandardScaler
from manyfit.estimators._catalog import META_ESTIMATORS
from manyfit.estimators._factory import WRAPPED_METHODS
from manyfit.estimators._method_call import RECORD
from manyfit.exceptions import HostFallbackError, HostFallbackWarning
from manyfit.introspection.class_names import sklearn_class_of
from manyfit.model_selection import GridSearchCV
from tests._covering import covering
from tests.behaviour.estimators.test_drop_ins import PLAIN
from tests.behaviour.metrics._crossings import there
from tests.device.estimators import _fake_cuml as fake
from tests.units.families._samples import LABELS, NUMBERS, X

NEW = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)
OTHERS = [
    pytest.param(name, marks=pytest.mark.gpu if name == "cupy" else ())
    for name in ("array_api_strict", "torch", "cupy")
    if find_spec(name)
]
quiet = pytest.mark.filterwarnings("ignore::manyfit.exceptions.HostFallbackWarning")
only_new = pytest.mark.skipif(not NEW, reason="scikit-learn before 1.9 joins columns on the host only")
# array-api-strict computes with NumPy, whose warnings scikit-learn silences for NumPy's own arrays only.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
REFUSED = {"host_fallback": "error"}
TWO = (LABELS > 0).astype(int)


def columns(of=estimators, **options):
    parts = [("wide", of.StandardScaler(), [0, -1]), ("slim", of.MinMaxScaler(), slice(1, 3))]
    return of.ColumnTransformer(parts, remainder="passthrough", **options)


class theirs:
    """scikit-learn's, by the same names."""

    ColumnTransformer, FeatureUnion = sklearn.compose.ColumnTransformer, sklearn.pipeline.FeatureUnion
    StandardScaler, MinMaxScaler = sklearn.preprocessing.StandardScaler, sklearn.preprocessing.MinMaxScaler


def made(name):
    """One of each, around drop-in estimators, with what it is fitted to."""
    cls = getattr(estimators, name)
    machine, trees = estimators.GaussianNB(), estimators.KNeighborsClassifier(3)
    several = [("a", Ridge(1.0)), ("b", Ridge(100.0))]
    classifiers = [("a", machine), ("b", trees)]
    some = np.where(np.arange(len(X)) % 3 == 0, -1, TWO)
    fewer = {"n_features_to_select": 2} if name == "RFE" else {}
    return {
        "ColumnTransformer": lambda: (columns(), None),
        "FeatureUnion": lambda: (cls([("a", StandardScaler()), ("b", PCA(2))]), None),
        "TransformedTargetRegressor": lambda: (cls(Ridge(), transformer=StandardScaler()), NUMBERS),
        "StackingClassifier": lambda: (cls(classifiers, final_estimator=machine, cv=3), LABELS),
        "StackingRegressor": lambda: (cls(several, final_estimator=Ridge(), cv=3), NUMBERS),
        "VotingClassifier": lambda: (cls(classifiers, voting="soft"), LABELS),
        "VotingRegressor": lambda: (cls(several), NUMBERS),
        "BaggingClassifier": lambda: (cls(machine, n_estimators=2, random_state=0), LABELS),
        "BaggingRegressor": lambda: (cls(Ridge(), n_estimators=2, random_state=0), NUMBERS),
        "CalibratedClassifierCV": lambda: (cls(machine, cv=3), LABELS),
        "OneVsRestClassifier": lambda: (cls(machine), LABELS),
        "OneVsOneClassifier": lambda: (cls(machine), LABELS),
        "MultiOutputClassifier": lambda: (cls(machine), np.stack([LABELS, TWO], axis=1)),
        "MultiOutputRegressor": lambda: (cls(Ridge()), np.stack([NUMBERS, NUMBERS[::-1]], axis=1)),
        "SelfTrainingClassifier": lambda: (cls(machine), some),
        "RFE": lambda: (cls(Ridge(), **fewer), NUMBERS),
        "RFECV": lambda: (cls(Ridge(), cv=3), NUMBERS),
        "SelectFromModel": lambda: (cls(Ridge()), NUMBERS),
    }[name]()


def answers(model, X, y):
    methods = ("predict", "predict_proba", "decision_function", "transform")
    found = {method: getattr(model, method)(X) for method in methods if hasattr(model, method)}
    return found | ({"score": model.score(X, y)} if hasattr(model, "score") else {})


def home(value):
    return (
        [home(one) for one in value]
        if isinstance(value, list)
        else to_host(value)
        if container_kind(value)
        else value
    )


def close(found, wanted):
    """Alike; of each output where there are several."""
    pairs = zip(*(one if type(one) is list else [one] for one in (found, wanted)), strict=True)
    for one, other in pairs:
        np.testing.assert_allclose(home(one), other, rtol=1e-6, atol=1e-8)


def lies(value, place):
    if isinstance(value, list):
        return all(lies(one, place) for one in value)
    return np.ndim(value) == 0 or place.is_same(container_place(value))


@pytest.mark.parametrize("name", META_ESTIMATORS)
def test_it_is_scikit_learns_class(name):
    ours, twin = getattr(estimators, name), sklearn_class_of(getattr(estimators, name))
    assert ours.__mro__[1] is twin and ours.__name__ == twin.__name__ == name
    assert str(inspect.signature(ours)) == str(inspect.signature(twin)) and ours.__doc__ == twin.__doc__
    assert pickle.loads(pickle.dumps(ours)) is ours and type(clone(made(name)[0])) is ours
    for method in dir(twin):
        static = inspect.getattr_static(twin, method)
        callables = inspect.isfunction(static) or hasattr(static, "check")
        if callables and not method.startswith(("_", "set_")) and method not in PLAIN:
            assert method in WRAPPED_METHODS and inspect.getattr_static(ours, method) is not static, method


@pytest.mark.cases(6)
@pytest.mark.invariant("Drop-in estimators return results where the data lie")
@quiet
@pytest.mark.parametrize("xp", OTHERS, indirect=True)
@pytest.mark.parametrize("name", META_ESTIMATORS)
def test_every_holder_on_every_library(name, xp, device):
    model, y = made(name)
    wanted = clone(model).fit(X, y)
    rows, targets = (None if one is None else to_device(one, device, xp) for one in (X, y))
    assert type(clone(model)) is type(model)
    model.fit(rows, targets)
    away = NEW and META_ESTIMATORS[name].dispatch is not None
    assert vars(model)[RECORD].route == ("scikit-learn" if away else "host")
    expected = answers(wanted, X, y)
    for fitted in (model, pickle.loads(pickle.dumps(model))):
        found = answers(fitted, rows, targets)
        assert set(found) == set(expected)
        for method, value in expected.items():
            close(found[method], value)
            assert lies(found[method], container_place(rows)), method
    for method, value in answers(model, X, y).items():  # rows of the host, after a fit on a device
        close(value, expected[method])


@pytest.mark.parametrize("name", [name for name in META_ESTIMATORS if not META_ESTIMATORS[name].dispatch])
def test_what_works_on_the_host_says_so_once_or_is_refused(name):
    model, y = made(name)
    refused = pytest.raises(HostFallbackError, match=f"{name} works on the host.*host_fallback='warn'")
    with manyfit.config_context(**REFUSED), transfers() as counted, refused:
        model.fit(there(X), there(y))
    assert counted.bytes_to_host == 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(there(X), there(y))
    (one,) = [one for one in caught if issubclass(one.category, HostFallbackWarning)]
    assert one.filename == __file__ and f"{name} works on the host" in str(one.message)


@quiet
@pytest.mark.parametrize("name", META_ESTIMATORS)
def test_scikit_learns_own_around_drop_in_estimators_raises(name):
    """As the page says: what cannot be mended from outside."""
    model, y = made(name)
    own = sklearn_class_of(type(model))(**model.get_params(deep=False))
    with pytest.raises((RuntimeError, IndexError, TypeError), match="array_api_strict|Array API"):
        answers(own.fit(there(X), None if y is None else there(y)), there(X), None)


OWN_FUNCTIONS = {
    "GridSearchCV": lambda rows, y: sklearn.model_selection.GridSearchCV(Ridge(), {"alpha": [1.0]}).fit(
        rows, y
    ),
    "cross_val_score": lambda rows, y: sklearn.model_selection.cross_val_score(Ridge(), rows, y),
    "cross_val_predict": lambda rows, y: sklearn.model_selection.cross_val_predict(Ridge(), rows, y),
    "learning_curve": lambda rows, y: sklearn.model_selection.learning_curve(Ridge(), rows, y),
    "AdaBoostRegressor": lambda rows, y: sklearn.ensemble.AdaBoostRegressor(Ridge()).fit(rows, y),
    "SequentialFeatureSelector": lambda rows, y: SequentialFeatureSelector(Ridge()).fit(rows, y),
    "RegressorChain": lambda rows, y: RegressorChain(Ridge()).fit(rows, there(np.stack([NUMBERS] * 2, 1))),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OWN_FUNCTIONS)
def test_scikit_learns_own_functions_raise(name):
    with pytest.raises((RuntimeError, IndexError, TypeError, ValueError), match="array_api_strict|Array API"):
        OWN_FUNCTIONS[name](there(X), there(NUMBERS))


def test_scikit_learns_own_pipeline_works():
    model = make_pipeline(FunctionTransformer(), MinMaxScaler(), Ridge())
    wanted = clone(model).fit(X, NUMBERS).predict(X)
    fitted = pickle.loads(pickle.dumps(clone(model).fit(there(X), there(NUMBERS))))
    np.testing.assert_allclose(to_host(fitted.predict(there(X))), wanted, rtol=1e-9)
    assert fitted.score(there(X), there(NUMBERS)) == pytest.approx(fitted.score(X, NUMBERS))


@pytest.mark.invariant("Drop-in estimators return results where the data lie")
@only_new
@pytest.mark.parametrize("jobs", [None, 2])
def test_columns_are_joined_where_they_lie(jobs):
    """Nothing of the rows crosses; also inside of each other, and at the front of a pipeline."""
    both = FeatureUnion(
        [("c", columns(n_jobs=jobs)), ("p", make_pipeline(MinMaxScaler(), PCA(2)))], n_jobs=jobs
    )
    alone = clone(both).set_params(n_jobs=None, c__n_jobs=None)  # no processes for the host's
    model, twin = make_pipeline(both, Ridge()), make_pipeline(alone, Ridge())
    twin.fit(X, NUMBERS)
    rows, y = there(X), there(NUMBERS)
    with manyfit.config_context(**REFUSED), transfers() as counted:
        predicted = model.fit(rows, y).predict(rows)
        widened = model[0].transform(rows)
    assert counted.bytes_to_host < X.nbytes
    np.testing.assert_allclose(to_host(predicted), twin.predict(X), rtol=1e-6)
    np.testing.assert_allclose(np.abs(to_host(widened)), np.abs(twin[0].transform(X)), rtol=1e-6, atol=1e-9)
    assert list(model[0].get_feature_names_out()) == list(twin[0].get_feature_names_out())


@only_new
@pytest.mark.parametrize(
    "spec",
    [[1, 2], np.array([1, 2]), slice(1, 3), [False, True, True, False, False], lambda X: [1, 2], 1, []],
    ids=["integers", "array", "slice", "mask", "function", "one", "none"],
)
def test_columns_are_chosen_as_of_an_array_of_the_host(spec):
    model = estimators.ColumnTransformer(
        [("a", "drop" if type(spec) is int else "passthrough", spec)], remainder=MinMaxScaler()
    )
    wanted = clone(model).fit_transform(X)
    with manyfit.config_context(**REFUSED):
        np.testing.assert_allclose(to_host(model.fit_transform(there(X))), wanted, rtol=1e-12)
    with pytest.raises(
        ValueError, match="Specifying the columns using strings is only supported for dataframes"
    ):
        estimators.ColumnTransformer([("a", StandardScaler(), ["a"])]).fit(there(X))


@only_new
def test_kinds_of_numbers_and_sparse_parts():
    counts = np.floor(X).astype(np.int64)
    mixed = [("f", StandardScaler(), [0]), ("i", "passthrough", [1, 2])]
    found = estimators.ColumnTransformer(mixed).fit_transform(there(counts))
    np.testing.assert_allclose(to_host(found), estimators.ColumnTransformer(mixed).fit_transform(counts))
    integers = estimators.ColumnTransformer([("i", "passthrough", [1, 2])]).fit_transform(there(counts))
    assert to_host(integers).dtype == np.int64
    with_sparse = [("h", estimators.OneHotEncoder(), [0, 1]), ("s", StandardScaler(), [2])]
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        for threshold in (0.0, 1.0):  # dense, sparse
            model = estimators.ColumnTransformer(with_sparse, sparse_threshold=threshold)
            wanted, found = (clone(model).fit_transform(rows) for rows in (counts, there(counts)))
            assert scipy.sparse.issparse(wanted) == scipy.sparse.issparse(found) == bool(threshold)
            wanted, found = (
                one.toarray() if hasattr(one, "toarray") else home(one) for one in (wanted, found)
            )
            np.testing.assert_allclose(found, wanted)
        union = FeatureUnion([("h", estimators.OneHotEncoder()), ("s", StandardScaler())])
        np.testing.assert_allclose(
            clone(union).fit_transform(there(counts)).toarray(), union.fit_transform(counts).toarray()
        )


@only_new
def test_a_part_that_is_scikit_learns_is_named():
    for model in (
        estimators.ColumnTransformer([("a", theirs.StandardScaler(), [0])], remainder=MinMaxScaler()),
        FeatureUnion([("b", MinMaxScaler()), ("a", make_pipeline(theirs.StandardScaler(), PCA(1)))]),
    ):
        with pytest.warns(HostFallbackWarning, match=r"part a\S*, a StandardScaler, is scikit-learn's"):
            found = model.fit_transform(there(X))
        np.testing.assert_allclose(to_host(found), clone(model).fit_transform(X), atol=1e-12)
    function = FeatureUnion(
        [("f", FunctionTransformer()), ("g", FunctionTransformer(lambda rows: rows * rows))]
    )
    with manyfit.config_context(**REFUSED):
        np.testing.assert_allclose(to_host(function.fit_transform(there(X))), np.hstack([X, X * X]))


@quiet
def test_frames_and_routing():
    model = columns().set_output(transform="pandas").fit(there(X))
    pd.testing.assert_frame_equal(
        model.transform(there(X)), columns(theirs).set_output(transform="pandas").fit(X).transform(X)
    )
    weights = np.linspace(0.1, 1.0, len(X))
    with sklearn.config_context(enable_metadata_routing=True):
        stack = estimators.VotingRegressor([("a", Ridge().set_fit_request(sample_weight=True))])
        stack.fit(there(X), there(NUMBERS), sample_weight=there(weights))
    wanted = sklearn.linear_model.Ridge().fit(X, NUMBERS, weights)
    np.testing.assert_allclose(to_host(stack.predict(there(X))), wanted.predict(X))


@quiet
def test_labels_of_texts_beside_rows_of_a_device():
    words = np.array(["ant", "bee", "cat"])[LABELS]
    model = estimators.VotingClassifier([("a", estimators.GaussianNB())], voting="soft").fit(there(X), words)
    wanted = sklearn.naive_bayes.GaussianNB().fit(X, words).predict(X)
    np.testing.assert_array_equal(model.predict(there(X)), wanted)
    assert model.score(there(X), words) == np.mean(wanted == words)


def test_steps_inside_of_ours_are_shared_as_inside_of_scikit_learns():
    searches = []
    for of in (estimators, theirs):
        union = of.FeatureUnion([("c", columns(of)), ("s", of.MinMaxScaler())])
        model = make_pipeline(union, sklearn.tree.DecisionTreeRegressor(random_state=0))
        grid = {"decisiontreeregressor__max_depth": [1, 2, 3]}
        searches.append(GridSearchCV(model, grid, cv=3).fit(X, NUMBERS))
    ours, wanted = searches
    assert str(ours.plan(X, NUMBERS)) == str(wanted.plan(X, NUMBERS))
    assert ours.report_.transformer_fits == wanted.report_.transformer_fits
    np.testing.assert_array_equal(ours.cv_results_["mean_test_score"], wanted.cv_results_["mean_test_score"])


@quiet
@pytest.mark.parametrize(
    ("labels", "name", "grid", "scoring"),
    covering(
        ["there", "here"],
        [
            ("VotingClassifier", {"weights": [[1, 2], [2, 1]]}, "roc_auc_ovr"),
            ("StackingClassifier", {"passthrough": [True, False]}, "accuracy"),
            ("TransformedTargetRegressor", {"regressor__alpha": [0.1, 100.0]}, None),
        ],
        strength=1,
    ),
)
def test_searches_over_holders(name, grid, scoring, labels):
    model, y = made(name)
    wanted = GridSearchCV(model, grid, cv=3, scoring=scoring).fit(X, y)
    targets = there(y) if labels == "there" else y
    found = GridSearchCV(model, grid, cv=3, scoring=scoring, error_score="raise").fit(there(X), targets)
    np.testing.assert_allclose(
        found.cv_results_["mean_test_score"], wanted.cv_results_["mean_test_score"], rtol=1e-9
    )
    np.testing.assert_allclose(home(found.predict(there(X))), wanted.predict(X), rtol=1e-9)
    assert found.score(there(X), targets) == pytest.approx(wanted.score(X, y))


@only_new
def test_cudfs_frames_have_columns_by_name(monkeypatch):
    fake.install(monkeypatch, cuml=False)
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = estimators.ColumnTransformer([("s", StandardScaler(), ["a", "b"]), ("m", MinMaxScaler(), ["c"])])
    wanted = clone(model).fit_transform(frame)
    with pytest.warns(HostFallbackWarning, match="ColumnTransformer works on the host.*a cudf frame"):
        found = model.fit_transform(fake.DataFrame(frame))
    np.testing.assert_allclose(found.to_pandas().to_numpy(), wanted)
    assert list(model.get_feature_names_out()) == ["s__a", "s__b", "m__c"]


@only_new
def test_a_search_over_columns_keeps_to_the_device():
    model = make_pipeline(columns(), estimators.GaussianNB())
    grid = {"gaussiannb__var_smoothing": [1e-9, 1e-2], "columntransformer__slim": [MinMaxScaler(), "drop"]}
    wanted = GridSearchCV(model, grid, cv=3).fit(X, LABELS)
    with manyfit.config_context(**REFUSED):
        found = GridSearchCV(model, grid, cv=3).fit(there(X), there(LABELS))
        predicted = found.predict(there(X))
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], wanted.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(to_host(predicted), wanted.predict(X))
