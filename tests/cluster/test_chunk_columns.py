"""Workers that read frames of numbers, gaps and categories in chunks: the bits of a local run."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np
import pandas as pd
import pytest
from distributed import wait
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from manyfit.estimators import Ridge as OwnRidge
from manyfit.folds.rows.chunks._frames import FrameRows
from manyfit.model_selection import GridSearchCV
from tests.behaviour.chunks._frames import parquet, partitions
from tests.cluster._clusters import within

rng = np.random.default_rng(0)
N, ROWS = 801, 47  # 18 parts, which are three groups of eight
FRAME = pd.DataFrame(
    {
        "age": np.where(rng.uniform(size=N) < 0.1, np.nan, rng.normal(size=N) * 10.0 + 40.0),
        "city": [
            f"the city that has the number {k} among all the cities"
            for k in np.sort(rng.integers(0, 8, size=N))[::-1]
        ],  # others in each part
        "fare": rng.exponential(size=N) + 0.5,
        "day": pd.Series(rng.choice(["mo", "tu", None], size=N)),
        "level": np.where(rng.uniform(size=N) < 0.1, np.nan, rng.integers(1, 4, size=N)),
    }
)
Y = FRAME["fare"].to_numpy() * 3.0 + FRAME["age"].fillna(50.0).to_numpy() / 10.0 + rng.normal(size=N)
LABELS = np.where(np.median(Y) < Y, "high", "low")
LONG = pd.concat([FRAME, FRAME], ignore_index=True)
LIMIT = 60_000
SHUFFLED = KFold(3, shuffle=True, random_state=0)
SEARCHES: dict[str, tuple[Any, Any, dict[str, list[Any]], Any, dict[str, Any]]] = {
    "moments": (
        make_pipeline(SimpleImputer(), StandardScaler()), OneHotEncoder(handle_unknown="ignore"),
        {"ridge__alpha": [0.1, 10.0]}, Y, {},
    ),
    "medians": (
        SimpleImputer(strategy="median"), OrdinalEncoder(encoded_missing_value=-1),
        {"ridge__alpha": [0.1, 10.0]}, Y, {"cv": SHUFFLED, "scoring": "neg_mean_absolute_error"},
    ),
    "iterations": (
        make_pipeline(StandardScaler(), SimpleImputer()), OneHotEncoder(handle_unknown="ignore"),
        {"logisticregression__C": [1e-3, 1e-2]}, LABELS, {"scoring": "neg_log_loss", "cv": 2},
    ),
}  # fmt: skip


def model_of(name: str, last: Any = None) -> Any:
    """The pipeline of a search."""
    numbers, texts, _, y, _ = SEARCHES[name]
    columns = [("numbers", numbers, ["age", "fare"]), ("texts", texts, ["city", "day", "level"])]
    last = last or (Ridge() if y is Y else LogisticRegression())
    return make_pipeline(ColumnTransformer(columns, sparse_threshold=0), last)


def fit(name: str, given: Any, limit: int = LIMIT, last: Any = None, **options: Any) -> GridSearchCV:
    """The search of a name on the frame in parts."""
    *_, grid, y, more = SEARCHES[name]
    search = GridSearchCV(
        model_of(name, last), grid, memory_limit=limit, **{"refit": False, **more, **options}
    )
    return search.fit(given, y)


def scores(search: Any) -> np.ndarray:
    """All scores of a search."""
    return np.stack([v for k, v in sorted(search.cv_results_.items()) if k.startswith("split")])


def given_as(kind: str, folder: Any) -> Any:
    """The frame in parts of a kind."""
    if kind == "parquet":
        return parquet(FRAME, ROWS, folder / "X")
    lazy = partitions(FRAME, ROWS)
    if kind == "persisted":
        lazy = lazy.persist()
        wait(lazy)
    return lazy


@pytest.fixture(scope="module")
def client():
    with within(3) as client:
        yield client


@pytest.fixture
def reads(monkeypatch):
    """How many rows each read has, and whether this process makes it, not a task of a worker."""
    found, load = [], FrameRows.load_columns

    def noted(self: Any, start: int, stop: int, columns: Any) -> Any:
        found.append((stop - start, self.workers is not None))  # the copy of a worker has none itself
        return load(self, start, stop, columns)

    monkeypatch.setattr(FrameRows, "load_columns", noted)
    return found


CASES = [("parquet", "moments"), ("partitions", "medians"), ("persisted", "moments"), ("parquet", "medians")]
CASES += [(kind, "iterations") for kind in ("parquet", "partitions", "persisted")]


@pytest.mark.invariant("workers that read frames of categories give the bits of a search in one process")
@pytest.mark.parametrize(
    ("kind", "name"),
    [pytest.param(*case, marks=[pytest.mark.thorough] if k > 1 else []) for k, case in enumerate(CASES)],
)
def test_the_bits_of_a_local_run(kind, name, client, reads, tmp_path):
    search = fit(name, given_as(kind, tmp_path), client=client)
    assert all(n == 1 for n, here in reads if here), "this process has a look at single rows"
    assert sum(n for n, here in reads if not here) >= 2 * N
    assert search.report_.fits_done == 0
    with dask.config.set(scheduler="synchronous"):
        alone = fit(name, given_as("parquet" if kind == "parquet" else "partitions", tmp_path), client=False)
    np.testing.assert_array_equal(scores(search), scores(alone))
    *_, grid, y, more = SEARCHES[name]
    expected = SklearnSearch(model_of(name), grid, refit=False, **more).fit(FRAME, y)
    np.testing.assert_allclose(scores(search), scores(expected), rtol=1e-3 if y is LABELS else 1e-11)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["partitions", "parquet"])
def test_a_refit_behind_columns(kind, client, tmp_path):
    given, y = (
        parquet(LONG, ROWS, tmp_path / "X") if kind == "parquet" else partitions(LONG, ROWS),
        np.tile(Y, 2),
    )
    model, options = model_of("moments", OwnRidge()), {"memory_limit": 2 * LIMIT}
    search = GridSearchCV(model, {"ridge__alpha": [10.0]}, client=client, **options).fit(given, y)
    with dask.config.set(scheduler="synchronous"):
        alone = GridSearchCV(model, {"ridge__alpha": [10.0]}, client=False, **options).fit(given, y)
    np.testing.assert_array_equal(search.best_estimator_[-1].coef_, alone.best_estimator_[-1].coef_)
    expected = model_of("moments", Ridge(10.0)).fit(LONG, y)
    np.testing.assert_allclose(search.best_estimator_[-1].coef_, expected[-1].coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(search.predict(LONG), expected.predict(LONG), rtol=1e-9)
