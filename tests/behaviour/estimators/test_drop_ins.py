"""Drop-in estimators are scikit-learn's: same names, parameters, texts and, on host data, numbers."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV as Reference
from sklearn.pipeline import make_pipeline

from manyfit import estimators
from manyfit.estimators import Ridge, family_of
from manyfit.estimators._catalog import ESTIMATORS
from manyfit.estimators._factory import WRAPPED_METHODS
from manyfit.estimators._method_call import RECORD
from manyfit.introspection.class_names import sklearn_class_of
from manyfit.model_selection import GridSearchCV
from tests._covering import spread
from tests.units.families._samples import LABELS, NAMES, NUMBERS, OF_TEXTS, X, made, results, sample

HERE = [*NAMES, *sorted(OF_TEXTS)]
# Public methods that take no data and compute nothing of it; they are scikit-learn's as they are.
PLAIN = {
    "build_analyzer", "build_preprocessor", "build_tokenizer", "get_feature_names_out",
    "get_metadata_routing", "get_params", "get_stop_words", "get_support", "path",
}  # fmt: skip


def same(found, wanted, rtol=0.0):
    if isinstance(wanted, (tuple, list)):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            same(one, other, rtol)
    elif scipy.sparse.issparse(wanted):
        assert type(found) is type(wanted)
        np.testing.assert_array_equal(found.toarray(), wanted.toarray())
    else:
        assert type(found) is type(wanted)
        near = rtol and np.asarray(wanted).dtype.kind == "f"
        np.testing.assert_allclose(found, wanted, rtol, rtol) if near else np.testing.assert_array_equal(
            found, wanted
        )


@pytest.mark.parametrize("name", ESTIMATORS)
def test_it_is_scikit_learns_class(name):
    ours, twin = getattr(estimators, name), sklearn_class_of(getattr(estimators, name))
    assert ours.__mro__[1] is twin and ours.__name__ == twin.__name__ == name
    assert ours.__module__ == "manyfit.estimators" and ours.__doc__ == twin.__doc__
    assert str(inspect.signature(ours)) == str(inspect.signature(twin))
    assert repr(ours().get_params()) == repr(twin().get_params()) and repr(ours()) == repr(twin())
    assert name in dir(estimators) and name in estimators.__all__
    assert pickle.loads(pickle.dumps(ours)) is ours and type(clone(ours())) is ours


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_public_method_is_bridged_or_takes_no_data(name):
    ours = getattr(estimators, name)
    twin = sklearn_class_of(ours)
    for method in dir(twin):
        static = inspect.getattr_static(twin, method)
        if method.startswith(("_", "set_")) or isinstance(static, property | str) or method in PLAIN:
            continue
        assert method in WRAPPED_METHODS, method
        assert inspect.getattr_static(ours, method) is not static
        if inspect.isfunction(static):
            assert inspect.signature(getattr(ours, method)) == inspect.signature(static)
            assert getattr(ours, method).__doc__ == static.__doc__
        assert hasattr(ours(), method) == hasattr(twin(), method)


@pytest.mark.cases(7)
@pytest.mark.invariant("Drop-in estimators are scikit-learn's on data of the host")
@pytest.mark.filterwarnings("ignore")  # of both alike
@pytest.mark.parametrize("name", spread(HERE, 20))
def test_host_data_take_scikit_learns_own_way(name):
    given, y = sample(name)
    ours, twin = made(name), made(name, twin=True)
    arguments = (given,) if y is None else (given, y)
    for method in ("fit_transform", "fit_predict"):
        if hasattr(twin, method):
            same(getattr(clone(ours), method)(*arguments), getattr(clone(twin), method)(*arguments))
    assert ours.fit(*arguments) is ours
    twin.fit(*arguments)
    assert set(vars(ours)) == set(vars(twin))
    wanted = results(twin, given, y)
    for model in (ours, pickle.loads(pickle.dumps(ours))):
        found = results(model, given, y)
        assert set(found) == set(wanted)
        for method in wanted:
            # BLAS rounds by the alignment of memory, which is that of each array by chance.
            same(found[method], wanted[method], rtol=1e-12)


def test_frames_and_sparse_matrices_of_the_host():
    frame = pd.DataFrame(X, columns=list("abcde"))
    ours = estimators.StandardScaler().set_output(transform="pandas").fit(frame)
    theirs = sklearn.preprocessing.StandardScaler().set_output(transform="pandas")
    pd.testing.assert_frame_equal(ours.transform(frame), theirs.fit_transform(frame))
    assert list(ours.feature_names_in_) == list("abcde")
    with pytest.raises(ValueError, match="feature names should match"):
        ours.transform(frame[["b", "a", "c", "d", "e"]])
    sparse = scipy.sparse.csr_array(X)
    wanted = sklearn.linear_model.Ridge().fit(sparse, NUMBERS).predict(sparse)
    same(Ridge().fit(sparse, NUMBERS).predict(sparse), wanted)


def test_errors_are_scikit_learns():
    with pytest.raises(NotFittedError, match="This Ridge instance is not fitted yet"):
        Ridge().predict(X)
    with pytest.raises(TypeError, match=r"fit\(\) missing 1 required positional argument: 'y'"):
        Ridge().fit(X)
    with pytest.raises(ValueError, match="The 'alpha' parameter of Ridge must be"):
        Ridge(alpha="much").fit(X, NUMBERS)
    with pytest.raises(AttributeError, match="only available when using a linear kernel"):
        estimators.SVC().fit(X, LABELS).coef_  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'wrong_'"):
        Ridge().fit(X, NUMBERS).wrong_  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'Rigde'"):
        estimators.Rigde  # noqa: B018


def test_a_pickle_of_another_version_is_told():
    state = Ridge().fit(X, NUMBERS).__getstate__()
    assert state["_sklearn_version"] == sklearn.__version__
    with pytest.warns(InconsistentVersionWarning, match="Ridge from version 1.2.3 when using"):
        Ridge().__setstate__({**state, "_sklearn_version": "1.2.3"})


def test_metadata_requests():
    with sklearn.config_context(enable_metadata_routing=True):
        weighted = Ridge().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        assert weighted.get_metadata_routing().fit.requests == {"sample_weight": True}
        search = Reference(weighted, {"alpha": [1.0]}).fit(X, NUMBERS, sample_weight=LABELS + 1.0)
    twin = sklearn.linear_model.Ridge().fit(X, NUMBERS, sample_weight=LABELS + 1.0)
    same(search.best_estimator_.coef_, twin.coef_)


# In searches


def pipelines(room_scaler, room_ridge):
    return make_pipeline(room_scaler(), room_ridge())


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_search_is_planned_and_shared_as_over_scikit_learns(wrapped):
    scaler, ridge = sklearn.preprocessing.StandardScaler, sklearn.linear_model.Ridge
    theirs = make_pipeline(scaler(), ridge()) if wrapped else ridge()
    ours = make_pipeline(estimators.StandardScaler(), Ridge()) if wrapped else Ridge()
    grid = {"ridge__alpha" if wrapped else "alpha": [0.1, 1.0, 10.0]}
    found, wanted = GridSearchCV(ours, grid, cv=3), GridSearchCV(theirs, grid, cv=3)
    assert str(found.plan(X, NUMBERS)) == str(wanted.plan(X, NUMBERS))
    assert "shared through moments" in str(found.plan(X, NUMBERS))
    found.fit(X, NUMBERS)
    wanted.fit(X, NUMBERS)
    for key in (key for key in wanted.cv_results_ if "score" in key and "time" not in key):
        np.testing.assert_array_equal(found.cv_results_[key], wanted.cv_results_[key])
    assert found.report_.fits_shared == wanted.report_.fits_shared
    assert type(found.best_estimator_) is type(ours)


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("ours", "grid"),
    [
        (estimators.LogisticRegression(), {"C": [0.1, 1.0]}),
        (estimators.LinearSVC(), {"C": [0.1, 1.0]}),
        (estimators.PoissonRegressor(), {"alpha": [0.1, 1.0]}),
        (estimators.RandomForestClassifier(3, random_state=0), {"max_depth": [1, 2]}),
        (
            make_pipeline(estimators.PCA(2), estimators.GaussianNB()),
            {"gaussiannb__var_smoothing": [0.1, 1.0]},
        ),
        (make_pipeline(estimators.MinMaxScaler(), estimators.SVC()), {"svc__C": [1, 2]}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_searches_too(ours, grid):
    y = NUMBERS if isinstance(ours, estimators.PoissonRegressor) else LABELS
    twins = make_pipeline(*map(twin, dict(ours.steps).values())) if hasattr(ours, "steps") else twin(ours)
    found, wanted = (GridSearchCV(one, grid, cv=3).fit(X, y) for one in (ours, twins))
    assert str(found.plan(X, y)) == str(wanted.plan(X, y))
    np.testing.assert_array_equal(found.cv_results_["mean_test_score"], wanted.cv_results_["mean_test_score"])


def twin(estimator):
    return sklearn_class_of(type(estimator))(**estimator.get_params())


class Twice(Ridge):
    def predict(self, X):
        return 2 * super().predict(X)


def test_a_users_subclass_is_no_twin():
    assert sklearn_class_of(Twice) is Twice and family_of(sklearn_class_of(Twice)) is None
    plan = GridSearchCV(Twice(), {"alpha": [1.0, 2.0]}, cv=3).plan(X, NUMBERS)
    assert "shared through moments" not in str(plan)
    np.testing.assert_array_equal(Twice().fit(X, NUMBERS).predict(X), 2 * Ridge().fit(X, NUMBERS).predict(X))
    assert RECORD not in vars(Twice().fit(X, NUMBERS))
