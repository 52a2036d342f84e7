"""Work that takes a device goes to the workers that declare one; the caller's settings go with it."""

from __future__ import annotations

import threading
import time
import warnings
from collections import defaultdict
from typing import Any

import array_api_strict
import cloudpickle
import dask
import numpy as np
import pytest
import sklearn
from distributed import Client, Worker, get_worker
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import manyfit
from manyfit import estimators
from manyfit.arrays import array_namespace, device, to_device, to_host
from manyfit.arrays.transfer import _host_device as _transfer
from manyfit.cluster import local_cluster
from manyfit.cluster.worker.content_pickle import is_pickle, pack, place_array, unpack
from manyfit.cluster.worker.fetch import _stores
from manyfit.exceptions import HostFallbackError
from manyfit.model_selection import GridSearchCV, cross_validate
from tests.cluster import _settings
from tests.cluster._clusters import forking, meanwhile, workers_with

cloudpickle.register_pickle_by_value(_settings)

pytestmark = pytest.mark.slow

KFOLDS = StratifiedKFold(3)
STRICT = array_api_strict.Device("device1")
X = np.random.default_rng(0).normal(size=(1200, 4))
Y = (X[:, 0] > 0).astype(np.int64)
# Workers are threads of this process: who fitted what, and how many at a time.
RAN: dict[Any, list[str]] = defaultdict(list)
AT_A_TIME: dict[str, list[int]] = defaultdict(lambda: [0, 0])
LOCK = threading.Lock()


class Where(ClassifierMixin, BaseEstimator):
    """Leaves where it is fitted; predicts a class by a sum."""

    def __init__(self, value: Any = 0, device: str = "cpu", seconds: float = 0.02) -> None:
        self.value, self.device, self.seconds = value, device, seconds

    def fit(self, X: Any, y: Any) -> Where:
        name = str(get_worker().name)
        with LOCK:
            RAN[self.device, self.value].append(name)
            now = AT_A_TIME[name]
            now[0] += 1
            now[1] = max(now)
        time.sleep(self.seconds)
        with LOCK:
            now[0] -= 1
        self.classes_ = array_namespace(y).unique_values(y)
        self.on_ = str(device(X))
        return self

    def predict(self, X: Any) -> Any:
        xp = array_namespace(X)
        assert str(device(X)) == self.on_
        return xp.astype(xp.sum(X, axis=1) > self.value, xp.int64)


@pytest.fixture(autouse=True)
def _forget():
    RAN.clear()
    AT_A_TIME.clear()


ONE = {"nthreads": 1}
GPU = {"nthreads": 1, "resources": {"GPU": 1}}


@pytest.fixture
def mixed():
    with workers_with(host=ONE, device=GPU) as client:
        yield client


def fitted_by() -> set[str]:
    """The names of all workers that fitted something."""
    return {name for names in RAN.values() for name in names}


@pytest.mark.invariant("Work for a GPU runs on GPU workers, one task per slot")
def test_data_of_a_device_stay_with_workers_that_have_one(mixed, watch, monkeypatch):
    there, labels = to_device(X, STRICT, array_api_strict), to_device(Y, STRICT, array_api_strict)
    sent = []

    def note(client: Client, data: Any, *args: Any, **kwargs: Any) -> None:
        sent.extend(one.nbytes for one in data.values() if isinstance(one, np.ndarray))

    watch(Client, "scatter", note)
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with sklearn.config_context(array_api_dispatch=True):
        search = GridSearchCV(Where(), {"value": [0, 1, 2]}, cv=3, refit=False).fit(there, labels)
        assert fitted_by() == {"device"}
        assert sent == [X.nbytes]  # labels are small
        GridSearchCV(Where(), {"value": [3]}, cv=3, refit=False).fit(there, labels)
    assert sent == [X.nbytes]
    truth = [
        [((X.sum(axis=1) > value) == Y)[test].mean() for _, test in KFOLDS.split(X, Y)] for value in range(3)
    ]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], np.mean(truth, axis=1), rtol=1e-12)
    host = next(address for address, w in mixed.scheduler_info()["workers"].items() if w["name"] == "host")
    assert host not in {address for where in mixed.who_has().values() for address in where}
    assert host not in {worker.address for worker in _stores}


@pytest.mark.invariant("Work for a GPU runs on GPU workers, one task per slot")
def test_each_to_its_own(mixed):
    """On a cluster of both, fits on the host leave the slot of the device free."""
    grid = {"device": ["cpu", "cuda"], "value": [0, 1, 2, 3]}
    search = GridSearchCV(Where(), grid, cv=3, refit=False).fit(X, Y)
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()
    on_host = [name for (kind, _), names in RAN.items() for name in names if kind == "cpu"]
    on_device = [name for (kind, _), names in RAN.items() for name in names if kind == "cuda"]
    assert len(on_host) == len(on_device) == 12
    assert set(on_device) == {"device"}
    # The device's worker helps when its own work is done, not before.
    assert on_host.count("host") >= 6


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (make_pipeline(Where(device="cuda:0")), {"where__value": [0, 1]}),
        (make_pipeline("passthrough"), {"passthrough": [Where(device="gpu"), Where(1, device="cuda")]}),
    ],
    ids=["within a pipeline", "in the grid"],
)
def test_estimators_say_it(estimator, grid, mixed):
    GridSearchCV(estimator, grid, cv=2, refit=False, scoring="accuracy").fit(X, Y)
    assert fitted_by() == {"device"}


def test_an_estimator_that_is_replaced_says_nothing(mixed):
    estimator = Pipeline([("where", Where(device="cuda"))])
    GridSearchCV(estimator, {"where": [Where(), Where(1)]}, cv=4, refit=False).fit(X, Y)
    assert "host" in fitted_by()


def test_the_user_says_it(mixed):
    with dask.annotate(resources={"GPU": 1}):
        GridSearchCV(Where(), {"value": [0, 1, 2, 3]}, cv=2, refit=False).fit(X, Y)
    assert fitted_by() == {"device"}


@pytest.mark.invariant("Work for a GPU runs on GPU workers, one task per slot")
@pytest.mark.parametrize("k", [1, 2])
def test_as_many_at_a_time_as_there_are_slots(k):
    with workers_with(device={"nthreads": 4, "resources": {"GPU": k}}):
        GridSearchCV(Where(device="cuda"), {"value": range(8)}, cv=2, refit=False).fit(X, Y)
    assert AT_A_TIME["device"][1] == k


def test_it_waits_for_a_device(monkeypatch):
    monkeypatch.setattr("manyfit.cluster.pool.worker_monitor.NO_WORKER_S", 0.3)
    monkeypatch.setattr("manyfit.cluster.pool.task_pool.CHECK_S", 0.1)
    with workers_with(host=ONE) as client:
        search = GridSearchCV(Where(device="cuda"), {"value": [0, 1]}, cv=2, refit=False)

        def join() -> None:
            client.cluster.worker_spec["device"] = {"cls": Worker, "options": GPU}
            client.cluster.sync(client.cluster._correct_state)

        joined = meanwhile(1.5, join)
        with pytest.warns(RuntimeWarning, match="a worker that declares the resources 1 of GPU"):
            search.fit(X, Y)
        joined.join()
    assert fitted_by() == {"device"}


# ------------------------------------------------------------------------------------------ arrays


@pytest.mark.parametrize("n", [4, 2000])
def test_arrays_of_a_device_arrive_on_one(n):
    sent = to_device(X[:n].copy(), STRICT, array_api_strict)
    package = pack({"X": sent, "again": sent})
    arrays = {key: part for key, part in package.parts.items() if not is_pickle(key)}
    assert len(arrays) == (n * X.itemsize * 4 > 2**15)
    there = {key: place_array(key, array) for key, array in arrays.items()}
    arrived = unpack(package.parts[package.key], there.__getitem__)
    assert arrived["X"] is arrived["again"]
    assert device(arrived["X"]) == STRICT
    np.testing.assert_array_equal(to_host(arrived["X"]), X[:n])
    # The same content on the host is another array.
    on_host = pack(array_api_strict.asarray(X[:n].copy()))
    assert not set(on_host.parts) & set(arrays)


def test_memory_maps_travel_as_arrays(tmp_path):
    mapped = np.memmap(tmp_path / "x", dtype=float, mode="w+", shape=X.shape)
    mapped[:] = X
    package = pack(mapped)
    assert len(package.parts[package.key]) < 1000
    assert package.parts.keys() - {package.key} == pack(X).parts.keys() - {pack(X).key} != set()


# ------------------------------------------------------------------------------------------ settings


@pytest.mark.invariant("Workers use the caller's configuration and warning filters")
def test_configuration_and_filters_go_along():
    """To a real process, which has none of this one's settings."""
    steps, ones = make_pipeline(StandardScaler(), _settings.Tells()), np.ones(len(X))
    with forking(), local_cluster(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = cross_validate(steps, X, ones, cv=2)
        with sklearn.config_context(transform_output="pandas"):
            frames = cross_validate(steps, X, ones, cv=2)
        warnings.simplefilter("error", FutureWarning)
        with pytest.raises(ValueError, match="All the 2 fits failed(.|\n)*FutureWarning: it is a habit"):
            cross_validate(steps, X, ones, cv=2)
    assert [plain["test_score"].tolist(), frames["test_score"].tolist()] == [[0, 0], [1, 1]]


def test_what_may_not_come_to_the_host_may_not_on_a_worker_either(mixed):
    there = to_device(X, STRICT, array_api_strict)
    search = GridSearchCV(
        estimators.KNeighborsClassifier(), {"n_neighbors": [3, 5]}, cv=2, refit=False, error_score="raise"
    )
    with manyfit.config_context(host_fallback="error"), pytest.raises(HostFallbackError, match="KNeighbors"):
        search.fit(there, Y)
    with manyfit.config_context(host_fallback="ignore"):
        search.fit(there, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("classes", [True, False])
def test_what_crosses_on_the_way_has_its_label(mixed, classes, watch):
    """The report has the crossings of this process; a worker that takes part sends X to its device once."""
    there, y = to_device(X, STRICT, array_api_strict), to_device(Y, STRICT, array_api_strict)
    model = estimators.GaussianNB() if classes else estimators.Ridge()
    grid = {"var_smoothing": [1e-9, 1e-3]} if classes else {"alpha": [0.1, 1.0]}
    search = GridSearchCV(model, grid, cv=3, refit=False)
    (place,) = search.plan(there, y).places
    assert (place.what, place.where) == (type(model).__name__, "workers")
    del search._frozen  # else the fit reads the data once more, to tell if they are those of the plan
    arrived = []
    watch(_transfer, "count", lambda **crossed: arrived.append(crossed.get("to_device")))
    with manyfit.config_context(host_fallback="ignore"):  # before scikit-learn 1.9 workers fit on the host
        search.fit(there, y)
    report = search.report_
    sent = report.transfers.pop("data for workers")
    assert sent == (0, 0, 2, X.nbytes + Y.nbytes)
    assert report.transfers == ({"y": (0, 0, 1, Y.nbytes)} if classes else {})
    assert (report.bytes_to_device, report.synchronisations) == (0, 2 + classes)
    assert arrived.count(X.nbytes) == 1


def test_the_refit_of_data_on_a_cluster_is_in_the_plan(mixed):
    there = to_device(X, STRICT, array_api_strict)
    plan = GridSearchCV(estimators.SVR(), {"C": [0.1, 1.0]}, cv=3).plan(there, Y)
    assert [(place.what, place.where) for place in plan.refit_places] == [("SVR", "host")]
