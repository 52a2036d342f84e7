"""Fits of estimators to chunks, and classifiers of a search, on workers: the same bits for any number."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import product
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from sklearn.decomposition import TruncatedSVD as SklearnSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB as SklearnNB
from sklearn.pipeline import make_pipeline

from manyfit.cluster import chunk_workers
from manyfit.estimators import PCA, GaussianNB, MinMaxScaler, StandardScaler, TruncatedSVD
from manyfit.estimators.chunks import _decomposition, methods
from manyfit.folds import ChunkRows, Genotypes, as_chunk_rows
from manyfit.folds.rows.chunks._genotypes import MAGIC
from manyfit.introspection.class_names import sklearn_class_of
from manyfit.model_selection import GridSearchCV
from tests._covering import spread
from tests.cluster._clusters import within

rng = np.random.default_rng(0)
N, P, ROWS = 403, 6, 17  # 24 chunks, which are three groups of eight
LABELS = rng.choice(["a", "b", "c"], size=N, p=[0.5, 0.3, 0.2])
X = rng.normal(size=(N, P)) * [1.0, 3.0, 0.5, 1.0, 2.0, 1.0] + 3.0
X += (LABELS == "b")[:, None] * [1.0, 0.0, 2.0, 0.0, 0.5, 0.0]
LIMIT = 32 * ROWS * P * 8
FITS: dict[str, tuple[Any, Any]] = {
    "squares of columns": (PCA(3, svd_solver="covariance_eigh"), None),
    "products": (PCA(2, svd_solver="randomized", iterated_power=2, random_state=0), None),
    "TruncatedSVD": (TruncatedSVD(3, random_state=0), None),
    "StandardScaler": (StandardScaler(), None),
    "MinMaxScaler": (MinMaxScaler(), None),
    "GaussianNB": (GaussianNB(), LABELS),
    "pipeline": (make_pipeline(StandardScaler(), PCA(3, svd_solver="covariance_eigh")), None),
}


def rows_in_chunks() -> ChunkRows:
    """X in chunks that are computed anew in each pass."""
    rows = as_chunk_rows(da.from_array(X, chunks=(ROWS, P)).map_blocks(np.positive, dtype=float), LIMIT)
    assert rows is not None
    return rows


def fitted(name: str) -> dict[str, np.ndarray]:
    """The numbers that a fit finds."""
    estimator, y = FITS[name]
    estimator.fit(rows_in_chunks(), y)
    last = estimator[-1] if name == "pipeline" else estimator
    found = {key: np.asarray(value) for key, value in vars(last).items() if key.endswith("_")}
    return {key: value for key, value in found.items() if value.dtype.kind == "f"}


@pytest.fixture(scope="module")
def client():
    with within(3) as client:
        yield client


@pytest.fixture
def reads(monkeypatch):
    """Rows that are read by this process, and by tasks of workers."""
    found, load = {True: 0, False: 0}, ChunkRows.load

    def noted(self: Any, start: int, stop: int) -> Any:
        found[self.workers is not None] += stop - start  # the copy of a worker has none itself
        return load(self, start, stop)

    monkeypatch.setattr(ChunkRows, "load", noted)
    return found


@pytest.mark.invariant("fits to chunks on workers have the same bits for any number of workers")
@pytest.mark.parametrize("name", spread(list(FITS), 2))
def test_fits(name, client, reads, monkeypatch):
    if name == "products":  # squares do not fit memory
        monkeypatch.setattr(_decomposition, "matrix_bytes", lambda p: LIMIT)
    found = fitted(name)
    assert reads[False] >= N and reads[True] < N / 2, "this process looks at some rows"
    with within(1):
        again = fitted(name)
    for key, value in found.items():
        np.testing.assert_array_equal(again[key], value, err_msg=key)
    monkeypatch.setattr(methods, "chunk_workers", lambda X: nullcontext())
    reads |= {True: 0, False: 0}
    with dask.config.set(scheduler="synchronous"):
        alone = fitted(name)
    estimator, y = FITS[name]
    parts = [one for _, one in estimator.steps] if name == "pipeline" else [estimator]
    theirs = make_pipeline(*(sklearn_class_of(type(one))(**one.get_params()) for one in parts))
    expected = vars(theirs.fit(X, y)[-1])
    for key, value in found.items():
        np.testing.assert_allclose(alone[key], value, rtol=1e-12, atol=1e-14, err_msg=key)
        np.testing.assert_allclose(value, expected[key], rtol=1e-7, atol=1e-9, err_msg=key)


def test_genotypes_of_a_file(client, reads, tmp_path, monkeypatch):
    packed = rng.integers(0, 256, size=(N, 5), dtype=np.uint8)
    (tmp_path / "X.bed").write_bytes(MAGIC + packed.tobytes())
    monkeypatch.setattr(methods, "MEMORY", 16 * ROWS * 20 * 4)
    found = TruncatedSVD(3, random_state=0).fit(Genotypes(tmp_path / "X.bed", 20, standardize=True))
    assert reads[False] >= N and reads[True] < N / 2
    values = Genotypes(packed, 20, standardize=True)[:]
    expected = SklearnSVD(3, random_state=0).fit(values.astype(float))
    np.testing.assert_allclose(found.singular_values_, expected.singular_values_, rtol=1e-5)
    why = as_chunk_rows(Genotypes(packed, 20), 2**20).why_not_on_workers()
    assert why == "its bytes are in the memory of this process"


SEARCHES: dict[str, tuple[Any, dict[str, list[Any]], Any]] = {
    "labels": (SklearnNB(), {"var_smoothing": [1e-9, 1e-2, 1.0]}, "accuracy"),
    "probabilities": (SklearnNB(), {"var_smoothing": [1e-9, 1e-2]}, "neg_log_loss"),
    "LDA": (LinearDiscriminantAnalysis(solver="lsqr"), {"shrinkage": ["auto", 0.3, 0.9]}, "accuracy"),
    "LDA probabilities": (LinearDiscriminantAnalysis(), {"tol": [1e-4, 1e-5]}, "roc_auc_ovr"),
}


@pytest.mark.parametrize(("name", "shuffle"), spread([*product(SEARCHES, [False, True])], 2))
def test_classifiers_of_a_search(name, shuffle, client, reads):
    model, grid, scoring = SEARCHES[name]
    cv = StratifiedKFold(3, shuffle=shuffle, random_state=0 if shuffle else None)
    options = {"cv": cv, "scoring": scoring, "refit": False}
    limit = LIMIT // 2  # the rows take more
    lazy = da.from_array(X, chunks=(ROWS, P)).map_blocks(np.positive, dtype=float)
    search = GridSearchCV(model, grid, memory_limit=limit, client=client, **options).fit(lazy, LABELS)
    # The exact fit of GaussianNB, for probabilities, adds up the rows one by one.
    assert reads[False] >= N and (reads[True] < N / 2 or name == "probabilities")
    assert search.report_.fits_done == 0
    with dask.config.set(scheduler="synchronous"):
        alone = GridSearchCV(model, grid, memory_limit=limit, client=False, **options).fit(lazy, LABELS)
    expected = SklearnSearch(model, grid, **options).fit(X, LABELS)
    scores = [
        np.stack([one.cv_results_[f"split{i}_test_score"] for i in range(3)])
        for one in (search, alone, expected)
    ]
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_allclose(scores[0], scores[2], rtol=1e-12)


def test_a_search_without_a_client_is_refitted_without_one(client, monkeypatch):
    monkeypatch.setattr(chunk_workers, "ChunkWorkers", None)
    search = GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9]}, client=False, memory_limit=LIMIT)
    found = search.fit(rows_in_chunks(), LABELS).best_estimator_
    np.testing.assert_allclose(found.theta_, SklearnNB().fit(X, LABELS).theta_, rtol=1e-12)
