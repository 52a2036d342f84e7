"""The bridge to cuML, against a stand-in: what is asked of it, and where its answers go. No GPU is needed."""

from __future__ import annotations

import pickle
import sys
import warnings
from types import ModuleType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

import manyfit
from manyfit import estimators
from manyfit.arrays import container_place
from manyfit.estimators._catalog import ESTIMATORS
from manyfit.estimators._method_call import RECORD
from manyfit.estimators.backends import _cuml as _with_cuml
from manyfit.estimators.backends import _native_registry as _own
from manyfit.estimators.backends.selection import find_fitting_place
from manyfit.exceptions import HostFallbackError, HostFallbackWarning
from tests.behaviour.metrics._crossings import here, there
from tests.device.estimators import _fake_cuml as fake
from tests.units.families._samples import LABELS, NUMBERS, WORDS, X


@pytest.fixture(autouse=True)
def _cuml(monkeypatch: pytest.MonkeyPatch) -> None:
    fake.install(monkeypatch)
    monkeypatch.setattr(_own, "_fitters", {})  # which would go first


def route(estimator):
    return vars(estimator)[RECORD].route


def alike(found, wanted):
    np.testing.assert_allclose(here(found), wanted, rtol=1e-9)


def test_fitted_by_cuml():
    ours = estimators.Ridge(alpha=2.0).fit(there(X), there(NUMBERS))
    twin = sklearn.linear_model.Ridge(alpha=2.0).fit(X, NUMBERS)
    assert route(ours) == "cuml" and ours.get_params() == twin.get_params()
    check_is_fitted(ours)
    assert ours.n_features_in_ == 5
    for fitted in (ours, pickle.loads(pickle.dumps(ours))):
        alike(fitted.coef_, twin.coef_)
        alike(fitted.predict(there(X)), twin.predict(X))
        assert type(fitted.predict(X)) is np.ndarray and type(fitted.predict(pd.DataFrame(X))) is np.ndarray
        assert fitted.score(there(X), there(NUMBERS)) == pytest.approx(twin.score(X, NUMBERS))
        assert fitted.score(there(X), NUMBERS) == pytest.approx(twin.score(X, NUMBERS))
    with pytest.raises(AttributeError, match="wrong_"):
        ours.wrong_  # noqa: B018
    assert RECORD not in vars(clone(ours))


@pytest.mark.invariant("Each step works where the plan says")
@pytest.mark.parametrize(
    ("model", "stays"),
    [
        (estimators.Ridge(alpha=2.0), True),
        (estimators.Ridge(positive=True), False),
        (estimators.KMeans(2, n_init=1), True),
        (estimators.Lasso(), False),
        (estimators.MinMaxScaler().set_output(transform="pandas"), False),
    ],
    ids=repr,
)
def test_what_a_plan_says_of_it_is_what_happens(model, stays):
    Xd = there(X)
    place, said = find_fitting_place(model, container_place(Xd))
    with manyfit.config_context(host_fallback="ignore"):
        (model.fit if not hasattr(model, "transform") or stays else model.fit_transform)(Xd, there(NUMBERS))
    assert (place == "device") == stays == (route(model) == "cuml")
    assert said == "cuML fits it" if stays else said.split(";")[0] in vars(model)[RECORD].reason


def test_what_is_no_fitted_attribute_is_not_converted_for():
    ours = estimators.KMeans(2, n_init=1).fit(there(X))
    for name in ("feature_names_in_", "decision_function", "_skl_callbacks", "_repr", "__len__"):
        assert not hasattr(ours, name)
    model = vars(ours)[RECORD].model
    assert "converted" not in vars(model) and ours.inertia_ > 0 and vars(model)["converted"]


def test_a_fit_on_the_host_forgets_cumls_and_the_other_way():
    ours = estimators.Ridge().fit(X, NUMBERS)
    ours.fit(there(X), there(NUMBERS))
    assert "coef_" not in vars(ours) and container_place(ours.coef_) is not None
    ours.fit(X, NUMBERS)
    assert RECORD not in vars(ours) and type(ours.coef_) is np.ndarray


def test_weights_and_other_arguments():
    weights = np.linspace(0.1, 1, len(X))
    ours = estimators.Ridge().fit(there(X), NUMBERS, sample_weight=there(weights))
    alike(ours.coef_, sklearn.linear_model.Ridge().fit(X, NUMBERS, weights).coef_)
    with pytest.raises(TypeError, match="unexpected keyword argument 'weights'"):
        ours.fit(there(X), NUMBERS, weights=weights)
    with pytest.raises(ValueError, match="The 'alpha' parameter of Ridge must be"):
        estimators.Ridge(alpha=-1.0).fit(there(X), there(NUMBERS))


@pytest.mark.parametrize("y", [WORDS, LABELS])
def test_labels_follow_y(y):
    twin = sklearn.linear_model.LogisticRegression().fit(X, y)
    ours = estimators.LogisticRegression().fit(there(X), y)
    assert route(ours) == "cuml"
    for data in (X, there(X)):
        assert type(ours.predict(data)) is np.ndarray
        np.testing.assert_array_equal(ours.predict(data), twin.predict(X))
    np.testing.assert_array_equal(ours.classes_, twin.classes_)
    alike(ours.predict_proba(there(X)), twin.predict_proba(X))
    assert ours.score(there(X), y) == twin.score(X, y)


def test_labels_of_a_device():
    ours = estimators.LogisticRegression().fit(there(X), there(LABELS))
    assert here(ours.predict(there(X))).dtype.kind == "i"
    assert container_place(ours.predict(X)) is not None


def test_what_cuml_refuses_goes_on_with_the_reason():
    with pytest.warns(HostFallbackWarning) as caught:
        ours = estimators.Ridge(solver="lsqr").fit(there(X), there(NUMBERS))
    assert route(ours) == "host"
    (told,) = caught
    assert (
        "cuML refuses: `solver='lsqr'` is not supported; scikit-learn does not support solver='lsqr'"
        in str(told.message)
    )
    with (
        manyfit.config_context(host_fallback="error"),
        pytest.raises(HostFallbackError, match="cuML refuses"),
    ):
        estimators.Ridge(solver="lsqr").fit(there(X), there(NUMBERS))


@pytest.mark.filterwarnings("ignore")
def test_a_method_that_cuml_lacks_is_scikit_learns():
    ours = estimators.KMeans(3, random_state=0, n_init=1).fit(there(X))
    twin = sklearn.cluster.KMeans(3, random_state=0, n_init=1).fit(X)
    assert route(ours) == "cuml"
    assert ours.inertia_ == pytest.approx(twin.inertia_)  # by as_sklearn
    alike(ours.cluster_centers_, twin.cluster_centers_)
    with warnings.catch_warnings():
        warnings.simplefilter("error", HostFallbackWarning)
        with pytest.raises(HostFallbackWarning, match="cuML's KMeans has no transform"):
            ours.transform(there(X))
    alike(ours.transform(there(X)), twin.transform(X))
    alike(estimators.KMeans(3, random_state=0, n_init=1).fit_predict(there(X)), twin.labels_)


def test_parameters_by_name():
    counts = np.floor(3 * X)
    ours = estimators.MultinomialNB(alpha=0.5).fit(there(counts), there(LABELS))
    assert route(ours) == "cuml"
    alike(
        ours.predict(there(counts)),
        sklearn.naive_bayes.MultinomialNB(alpha=0.5).fit(counts, LABELS).predict(counts),
    )
    with pytest.warns(HostFallbackWarning, match="MultinomialNB has no parameter fit_prior"):
        estimators.MultinomialNB(fit_prior=False).fit(there(counts), there(LABELS))
    with pytest.raises(AttributeError, match="does not convert it"):
        ours.theta_  # noqa: B018


def test_scikit_learns_dispatch_goes_before_what_does_not_convert():
    ours = estimators.MinMaxScaler().fit(there(X))
    assert route(ours) == "scikit-learn"
    ours = estimators.MinMaxScaler().fit(fake.DataFrame(pd.DataFrame(X)))
    assert route(ours) == "cuml"


def test_frames():
    frame = pd.DataFrame(X, columns=list("abcde"))
    ours = estimators.MinMaxScaler().fit(fake.DataFrame(frame))
    assert list(ours.feature_names_in_) == list("abcde")
    transformed = ours.transform(fake.DataFrame(frame))
    assert isinstance(transformed, fake.DataFrame)
    np.testing.assert_allclose(transformed.to_pandas(), sklearn.preprocessing.MinMaxScaler().fit_transform(X))
    with pytest.raises(ValueError, match="feature names should match"):
        ours.transform(fake.DataFrame(frame[list("bacde")]))


def test_frames_and_sparse_matrices_that_come_to_the_host():
    frame = pd.DataFrame(X, columns=list("abcde"))
    with pytest.warns(HostFallbackWarning, match="this version of cuML has no cuml.neighbors|not installed"):
        ours = estimators.KNeighborsRegressor().fit(fake.DataFrame(frame), there(NUMBERS))
    assert list(ours.feature_names_in_) == list("abcde")
    predicted = ours.predict(fake.DataFrame(frame))
    assert isinstance(predicted, fake.Series)
    twin = sklearn.neighbors.KNeighborsRegressor().fit(frame, NUMBERS)
    np.testing.assert_allclose(predicted.to_pandas(), twin.predict(frame))
    assert isinstance(ours.kneighbors_graph(fake.DataFrame(frame)), fake.csr_matrix)
    sparse = fake.csr_matrix(scipy.sparse.csr_matrix(X))
    with pytest.warns(HostFallbackWarning, match="does not support a cupy sparse"):
        ours = estimators.MaxAbsScaler().fit(sparse)
    found = ours.transform(sparse)
    assert isinstance(found, fake.csr_matrix)
    np.testing.assert_allclose(found.get().toarray(), sklearn.preprocessing.MaxAbsScaler().fit_transform(X))


@pytest.mark.filterwarnings("ignore::manyfit.exceptions.HostFallbackWarning")
@pytest.mark.parametrize("name", ["LogisticRegression", "LinearDiscriminantAnalysis", "SVC"])
def test_labels_of_series(name):
    """By cuML, by scikit-learn there, on the host: numbers stay on the device, texts come home."""
    frame, twin = fake.DataFrame(pd.DataFrame(X)), getattr(estimators, name)().fit(X, LABELS)
    for data in (frame, there(X)):
        ours = getattr(estimators, name)().fit(data, fake.Series(pd.Series(LABELS)))
        found = ours.predict(data)
        assert container_place(found) is not None
        np.testing.assert_array_equal(fake.home(found).ravel(), twin.predict(X))
        ours = getattr(estimators, name)().fit(data, fake.Series(pd.Series(WORDS)))
        assert type(ours.predict(data)) is np.ndarray
        np.testing.assert_array_equal(ours.predict(data), np.array(["ant", "bee", "cat"])[twin.predict(X)])


def test_sparse_matrices_that_cupy_has_not_stay_on_the_host():
    """It has none of integers, and four formats."""
    place, matrix = container_place(there(X)), scipy.sparse.csr_matrix(np.eye(3))
    assert isinstance(place.move(matrix), fake.csr_matrix)
    for other in (matrix.astype(np.int64), matrix.tolil(), scipy.sparse.coo_array([1.0, 2.0])):
        assert place.move(other) is other


def test_without_cuml(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuml.linear_model", None)  # as if it were not installed
    with pytest.warns(
        HostFallbackWarning, match="cuML is not installed; scikit-learn does not support solver='lsqr'"
    ):
        estimators.Ridge(solver="lsqr").fit(there(X), there(NUMBERS))
    assert route(estimators.Ridge(solver="svd").fit(there(X), there(NUMBERS))) == "scikit-learn"


def test_hdbscan_is_asked_for_what_scikit_learn_means():
    ours = estimators.HDBSCAN(min_cluster_size=7, max_cluster_size=20, copy=True).fit(there(X))
    params = vars(ours)[RECORD].model.params
    assert params["min_samples"] == 6 and params["min_cluster_size"] == 7 and params["max_cluster_size"] == 20
    with pytest.raises(ValueError, match="does not support"):
        ESTIMATORS["HDBSCAN"].cuml.changes(estimators.HDBSCAN(metric="manhattan"))
    assert not hasattr(ours, "probabilities_")  # of a package that is not there, by as_sklearn
    with pytest.raises(AttributeError, match="HDBSCAN was fitted by cuML, which does not convert it"):
        ours.dbscan_clustering(0.5)


def test_defaults_that_are_not_scikit_learns():
    """What cuML would do by its own default is not what scikit-learn was asked for."""
    asked = estimators.AgglomerativeClustering(3, linkage="single")
    assert vars(asked.fit(there(X)))[RECORD].model.params == {
        "n_clusters": 3, "linkage": "single", "connectivity": "pairwise",
    }  # fmt: skip
    with pytest.warns(HostFallbackWarning, match="cuML refuses: Only single linkage"):
        ours = estimators.AgglomerativeClustering(3).fit(there(X))
    twin = sklearn.cluster.AgglomerativeClustering(3).fit(X)
    assert route(ours) == "host" and (ours.labels_ == twin.labels_).all()
    with pytest.warns(HostFallbackWarning, match="has no parameter distance_threshold"):
        estimators.AgglomerativeClustering(None, distance_threshold=1.0).fit(there(X))


def test_what_from_sklearn_makes_another_problem_of():
    model = vars(estimators.LinearSVR(C=3.0).fit(there(X), there(NUMBERS)))[RECORD].model
    assert model.params == {
        "C": 3.0, "loss": "epsilon_insensitive", "penalty": "l2", "penalized_intercept": True,
    }  # fmt: skip


def test_texts():
    """Their argument has another name with cuML, and counts another dtype with CuPy."""
    texts = pd.Series(["a dog runs", "the dog sleeps", "a cat runs fast"])
    ours = estimators.CountVectorizer(binary=True)
    found = ours.fit_transform(fake.Series(texts))
    assert route(ours) == "cuml" and isinstance(found, fake.csr_matrix)
    twin = sklearn.feature_extraction.text.CountVectorizer(binary=True).fit(texts)
    for counts in (found, ours.transform(fake.Series(texts))):
        assert counts.get().dtype == np.float64
        np.testing.assert_array_equal(counts.get().toarray(), twin.transform(texts).toarray())


def test_what_nobody_else_can_say_cuml_says():
    ours = estimators.MinMaxScaler().fit(fake.DataFrame(pd.DataFrame(X)))
    with pytest.raises(ValueError, match="X has 2 features, as cuML says it"):
        ours.transform(fake.DataFrame(pd.DataFrame(X[:, :2])))


def test_a_users_subclass_is_not_cumls():
    class Mine(estimators.Ridge):
        pass

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert route(Mine(solver="svd").fit(there(X), there(NUMBERS))) == "scikit-learn"


def test_every_line_names_a_class_of_cuml():
    paths = [export.cuml.path for export in ESTIMATORS.values() if export.cuml]
    assert len(paths) == len(set(paths)) > 35
    assert {path.rpartition(".")[2] for path in paths} <= set(ESTIMATORS)
    assert all(path.startswith("cuml.") for path in paths)
    with pytest.raises(Exception, match="this version of cuML has no cuml.linear_model.Lasso"):
        _with_cuml.make_model(estimators.Lasso(), ESTIMATORS["Lasso"].cuml)


# UMAP


def test_umap_by_cuml():
    ours = estimators.UMAP(n_neighbors=5)
    alike(ours.fit_transform(there(X)), X[:, :2])
    alike(ours.embedding_, X[:, :2])
    assert vars(ours)[RECORD].model.params == {"n_neighbors": 5}


def test_umap_without_umap_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(ImportError, match="pip install umap-learn, or install cuML and pass a CuPy array"):
        estimators.UMAP().fit(X)


def test_umap_by_umap_learn(monkeypatch):
    class Theirs:
        def __init__(self, **params):
            self.params = params

        def fit(self, X, y=None):
            self.embedding_ = X[:, : self.params["n_components"]]
            return self

        def transform(self, X):
            return X[:, : self.params["n_components"]]

        inverse_transform = staticmethod(np.asarray)

    module = ModuleType("umap")
    module.UMAP = Theirs
    monkeypatch.setitem(sys.modules, "umap", module)
    monkeypatch.setitem(sys.modules, "cuml.manifold", None)
    ours = estimators.UMAP(n_components=3)
    np.testing.assert_array_equal(ours.fit_transform(X), X[:, :3])
    np.testing.assert_array_equal(ours.transform(X), ours.embedding_)
    assert list(ours.get_feature_names_out()) == ["umap0", "umap1", "umap2"]
    assert ours._model.params == ours.get_params()
    with pytest.warns(HostFallbackWarning, match="cuML is not installed"):
        ours.fit(there(X))
    alike(ours.transform(there(X)), X[:, :3])
    assert SimpleNamespace(**ours.get_params()).n_components == 3
