"""Data for estimators that compute on a device: there once for each worker, and everything else as it is.

The device is the second one of array-api-strict, which refuses to become an array of the host.
"""

from __future__ import annotations

import threading
import types
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Any

import array_api_strict
import numpy as np
import pytest
import scipy.sparse
import sklearn
from distributed import Client, get_worker
from joblib import Parallel, delayed, parallel_config
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from manyfit.arrays import _default_gpu as _cuda
from manyfit.arrays import device, place_of
from manyfit.cluster.worker import fetch as _worker
from manyfit.cluster.worker.content_pickle import array_key
from manyfit.cluster.worker.fetch import get_store
from manyfit.joblib_backend import ManyfitBackend
from manyfit.joblib_backend import _device_arrays as _on_device
from tests._covering import spread
from tests.cluster._clusters import workers_with
from tests.cluster._processes import wait_for
from tests.joblib_backend._on_device import RNG, Told, X, Y, where

pytestmark = pytest.mark.slow

STRICT = array_api_strict.Device("device1")
PLACE = place_of(array_api_strict.zeros(1, device=STRICT))


@pytest.fixture(autouse=True)
def _scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")


@pytest.fixture(scope="module")
def _mixed() -> Iterator[Client]:
    """Two workers that declare a GPU, and one that does not."""
    gpu = {"nthreads": 1, "resources": {"GPU": 1}}
    with workers_with(host={"nthreads": 1}, first=gpu, second=gpu) as client:
        yield client


@pytest.fixture
def mixed(_mixed: Client) -> Iterator[Client]:
    with _mixed.as_current(), sklearn.config_context(array_api_dispatch=True):
        yield _mixed


@pytest.fixture
def uploads(watch: Any) -> dict[str, list[int]]:
    """Bytes of each array that was brought to a device, by worker."""
    found: dict[str, list[int]] = defaultdict(list)
    watch(_worker, "to_place", lambda host, place: found[str(get_worker().name)].append(host.nbytes))
    return found


def there(**options: Any) -> Any:
    return parallel_config(backend="manyfit", device=PLACE, **options)


def of(estimator: Any, *args: Any, **kwargs: Any) -> Any:
    return where(*args, kwargs)


# ------------------------------------------------------------------------------------------ once


@pytest.mark.invariant("The joblib backend gives device arrays only to estimators that accept them")
def test_arrays_are_brought_to_each_worker_once(mixed, uploads):
    X, y = RNG.normal(size=(1_000, 8)), RNG.normal(size=1_000)
    with there():
        for again in range(3):
            found = Parallel(batch_size=1)(delayed(of)(Told(), X, y, pause(0.01)) for _ in range(12))
            assert [seen[:2] for seen, _ in found] == [["device", "device"]] * 12
            assert {name for _, name in found} <= {"first", "second"}
            if again == 0:
                assert sorted(uploads) == ["first", "second"]
                assert all(sorted(sizes) == [y.nbytes, X.nbytes] for sizes in uploads.values())
                uploads.clear()
        assert not uploads
        X[3, 3] += 1.0
        Parallel(batch_size=1)(delayed(of)(Told(), X, y, pause(0.01)) for _ in range(12))
    assert {tuple(sizes) for sizes in uploads.values()} == {(X.nbytes,)}


class pause:
    """Takes time to arrive, so that both workers get tasks."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __reduce__(self) -> Any:
        return _paused, (self.seconds,)


def _paused(seconds: float) -> pause:
    threading.Event().wait(seconds)
    return pause(seconds)


@pytest.mark.invariant("The joblib backend gives device arrays only to estimators that accept them")
def test_a_changed_array_is_not_served_stale(mixed):
    X = np.ones((1_000, 8))
    with there():
        for expected in (8_000.0, 8_010.0):
            assert Parallel()(delayed(_total)(Told(), X) for _ in range(4)) == [expected] * 4
            X[0, 0] = 11.0


def _total(estimator: Any, X: Any) -> float:
    assert device(X) == STRICT
    return float(array_api_strict.sum(X))


def test_what_is_on_the_device_goes_with_its_part(mixed):
    X = RNG.normal(size=(1_000, 8))
    with there():
        Parallel()(delayed(of)(Told(), X) for _ in range(4))

    key = array_key(X)

    def kept() -> set[str]:
        held = mixed.run(lambda dask_worker: get_store(dask_worker).keys()).values()
        return {one for keys in held for one in keys if one.startswith(key)}

    assert len(kept()) == 2
    del X
    wait_for(lambda: not kept())


def test_a_store_counts_what_is_on_the_device(mixed):
    X = RNG.normal(size=(1_000, 8))
    with there(workers="first"):
        Parallel()(delayed(len)(X) for _ in range(2))
        before = _stored(mixed)
        Parallel()(delayed(of)(Told(), X) for _ in range(2))
    assert _stored(mixed) == before + X.nbytes


def _stored(client: Client) -> int:
    address = next(a for a, w in client.scheduler_info()["workers"].items() if w["name"] == "first")
    return int(client.run(lambda dask_worker: get_store(dask_worker).nbytes, workers=[address])[address])


# ------------------------------------------------------------------------------------------ which


@pytest.mark.invariant("The joblib backend gives device arrays only to estimators that accept them")
def test_arrays_with_the_rows_of_the_data_arrive_on_the_device(mixed):
    n = len(X)
    weights = {"sample_weight": np.ones(n)}
    with there():
        ((seen, _),) = Parallel()(
            [
                delayed(of)(
                    Told(),
                    X,
                    (Y > 0),
                    Y.astype(np.int32),
                    [X, (Y, None)],
                    fit_params=weights,
                    train=np.arange(n - 300),
                    few=np.ones((4, 5)),
                    number=np.float64(3.0),
                    strings=np.array(["a", "b", "c"])[np.arange(n) % 3],
                    objects=np.full(n, None),
                    halves=X.astype(np.float16),
                    complex_=X + 1j,
                    sparse=scipy.sparse.csr_array(X),
                )
            ]
        )
    assert seen[:4] == ["device", "device", "device", ["device", ["device", "NoneType"]]]
    assert seen[4] == {
        "fit_params": {"sample_weight": "device"},
        "train": "host",
        "few": "host",
        "number": "host",
        "strings": "host",
        "objects": "host",
        "halves": "host",
        "complex_": "host",
        "sparse": "csr_array",
    }


@pytest.mark.invariant("The joblib backend gives device arrays only to estimators that accept them")
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: delayed(of)(Told(), X), "device"),
        (lambda: delayed(Told().seen)(X), "device"),
        (lambda: delayed(partial(of, Told()))(X), "device"),
        (lambda: delayed(partial(of, Told(), X))(), "device"),
        (lambda: delayed(of)(make_pipeline(MinMaxScaler(), "passthrough", Ridge()), X), "device"),
        (lambda: delayed(of)([Told()], X), "device"),
        (lambda: delayed(of)(None, X), "host"),
        (lambda: delayed(of)(Told(support=False), X), "host"),
        (lambda: delayed(of)([Told(), Told(support=False)], X), "host"),
        (lambda: delayed(of)(make_pipeline(StandardScaler(), KNeighborsRegressor()), X), "host"),
        (lambda: delayed(of)(LogisticRegression(solver="liblinear"), X), "host"),
        (lambda: delayed(of)(Ridge().fit(X, Y), X), "host"),
        (lambda: delayed(of)(Pipeline([("a", StandardScaler()), ("b", Ridge())]).fit(X, Y), X), "host"),
        (lambda: delayed(of)(Told, X), "host"),
        (lambda: delayed(of)(Told(), X[:10]), "host"),
    ],
)
def test_only_estimators_that_take_them_are_given_device_data(call, expected, mixed):
    with there():
        ((seen, name),) = Parallel()([call()])
    assert seen[0] == expected
    assert name in ("first", "second")


def test_calls_of_both_kinds_in_one_batch(mixed):
    calls = [delayed(of)(Told(support=i % 2 == 0), X) for i in range(8)]
    with there():
        found = Parallel(batch_size=8)(calls)
    assert [seen[0] for seen, _ in found] == ["device", "host"] * 4


def test_arguments_that_hold_themselves(mixed):
    holds: list[Any] = [X]
    holds.append(holds)
    with there():
        ((seen, _),) = Parallel()([delayed(lambda estimator, holds: where(holds[0]))(Told(), holds)])
    assert seen == ["device"]


# ------------------------------------------------------------------------------------------ scikit-learn


@pytest.mark.parametrize(
    "estimator", spread([Ridge(solver="svd"), make_pipeline(MinMaxScaler(), Ridge(solver="svd"))], 1)
)
def test_a_search_has_the_scores_of_the_host(estimator, mixed, uploads):
    X, Y = RNG.normal(size=(1_500, 5)), RNG.normal(size=1_500)
    grid = {("ridge__" if isinstance(estimator, Pipeline) else "") + "alpha": [0.1, 1.0, 10.0]}
    found = []
    for _ in range(2):
        search = GridSearchCV(estimator, grid, cv=KFold(4), return_train_score=True)
        with there():
            search.fit(X, Y)
        found.append([n for sizes in uploads.values() for n in sizes])
        uploads.clear()
    assert 1 <= found[0].count(X.nbytes) <= 2
    assert found[1].count(X.nbytes) <= 1  # a worker that had no task of the first
    assert set(found[0]) == {X.nbytes, Y.nbytes}
    with parallel_config(backend="loky", n_jobs=1):
        expected = GridSearchCV(estimator, grid, cv=KFold(4), return_train_score=True).fit(X, Y)
    for key in ("split0_test_score", "mean_test_score", "mean_train_score"):
        np.testing.assert_allclose(search.cv_results_[key], expected.cv_results_[key], rtol=1e-12)
    np.testing.assert_allclose(search.predict(X), expected.predict(X), rtol=1e-9)


def test_estimators_and_predictions_come_home(mixed):
    """So that the caller needs no device."""
    model = Ridge(solver="svd")
    with there():
        fitted = cross_validate(model, X, Y, cv=3, return_estimator=True)["estimator"]
        predicted = cross_val_predict(model, X, Y, cv=3)
        ((mine, own),) = Parallel()([delayed(_gives)(Told(), X, array_api_strict.asarray(Y, device=STRICT))])
    assert all(isinstance(one.coef_, np.ndarray) and one.predict(X).shape == Y.shape for one in fitted)
    np.testing.assert_allclose(predicted, cross_val_predict(model, X, Y, cv=3), rtol=1e-9)
    np.testing.assert_array_equal(mine, X)
    np.testing.assert_array_equal(own, Y)


def _gives(estimator: Any, X: Any, y: Any) -> Any:
    assert device(X) == device(y) == STRICT
    return X, y


def test_meta_estimators_that_keep_to_the_host_work(mixed):
    labels = np.arange(len(X)) % 3
    with there():
        found = OneVsRestClassifier(LogisticRegression(), n_jobs=2).fit(X, labels).predict(X)
    np.testing.assert_array_equal(found, OneVsRestClassifier(LogisticRegression()).fit(X, labels).predict(X))


# ------------------------------------------------------------------------------------------ errors


def test_without_dispatch_it_says_so(mixed):
    with (
        there(),
        sklearn.config_context(array_api_dispatch=False),
        pytest.raises(ValueError, match=r"has Ridge compute on the device.*array_api_dispatch=True"),
    ):
        cross_validate(Ridge(solver="svd"), X, Y, cv=3)


def test_workers_without_scipys_switch_are_named(mixed, monkeypatch):
    monkeypatch.delenv("SCIPY_ARRAY_API")
    with there(), pytest.raises(RuntimeError, match=r"SCIPY_ARRAY_API=1 in their environment.*inproc"):
        Parallel()([delayed(of)(Told(), X)])


def test_cuda_is_cupys_or_torchs(mixed, monkeypatch):
    """As far as that can be seen without a GPU."""
    runtime = types.SimpleNamespace(getDeviceCount=lambda: 1, CUDARuntimeError=OSError)
    there, cuda = set(), types.SimpleNamespace(is_available=lambda: True, runtime=runtime)
    monkeypatch.setattr(_cuda, "find_spec", lambda name: name in there or None)
    monkeypatch.setattr(_cuda, "import_module", lambda name: types.SimpleNamespace(cuda=cuda))
    with parallel_config(backend="manyfit", device="cuda"):
        with pytest.raises(ImportError, match=r"On inproc.*needs CuPy or torch, and neither is installed"):
            Parallel()([delayed(of)(Told(), X)])
        there.add("torch")
        cuda.is_available = lambda: False
        with pytest.raises(RuntimeError, match=r"On inproc.*needs a GPU, and torch finds none"):
            Parallel()([delayed(of)(Told(), X)])
    asked: list[Any] = []

    def note(worker: Any, key: Any, host: Any, place: Any) -> Any:
        asked.append(place)
        return host

    monkeypatch.setattr(_on_device, "to_worker_device", note)
    with parallel_config(backend="manyfit", device="cuda"):
        cuda.is_available = lambda: True
        Parallel()([delayed(of)(Told(), X)])
        there.add("cupy")
        Parallel()([delayed(of)(Told(), X)])
    assert asked == [("torch", "cuda"), ("cupy", "cuda")]


def test_a_device_that_the_worker_lacks_is_named(mixed):
    with (
        parallel_config(backend="manyfit", device=("array_api_strict", "device9")),
        pytest.raises(ValueError, match="array_api_strict has no device 'device9'"),
    ):
        Parallel()([delayed(of)(Told(), X)])


@pytest.mark.parametrize("wrong", ["gpu", "cpu", 0, ("torch",), ("torch", 1), ["torch", "cuda"]])
def test_wrong_devices(wrong, mixed):
    with pytest.raises(ValueError, match="device must be 'cuda', None, or a library and a kind"):
        ManyfitBackend(device=wrong)


def test_a_device_implies_a_gpu(mixed):
    calls = [delayed(of)(None, i) for i in range(12)]
    with there():
        assert {name for _, name in Parallel(batch_size=1)(calls)} <= {"first", "second"}
    with there(resources={}, workers="host"):
        assert {name for _, name in Parallel(batch_size=1)(calls)} == {"host"}
    with (
        there(resources={"FPGA": 1}, wait_for_workers_timeout=0.2),
        pytest.raises(TimeoutError, match="1 of FPGA"),
    ):
        Parallel()(calls)
