"""Searches on Dask frames, unknown chunks, Parquet and blocks have the scores of a frame in memory."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler as SklearnScaler

from manyfit.estimators import Ridge, StandardScaler
from manyfit.folds import Blocks, as_chunk_rows
from manyfit.folds.rows.chunks import _rows
from manyfit.model_selection import GridSearchCV
from tests._covering import covering
from tests.behaviour.chunks._files import limit_for
from tests.behaviour.chunks._frames import blocks, given_as, parquet, partitions

rng = np.random.default_rng(0)
N = 499
FRAME = pd.DataFrame(
    {
        "a": rng.normal(size=N) + 3.0,
        "b": rng.normal(size=N) * 10.0,
        "c": rng.integers(0, 9, size=N),
        "d": rng.normal(size=N).astype(np.float32),
        "e": rng.uniform(size=N) < 0.3,
    }
)
X = FRAME.to_numpy(dtype=np.float64)
Y = X @ [1.0, 0.2, -1.0, 3.0, 0.5] + rng.normal(size=N)
LABELS = np.where(np.median(Y) < Y, "high", "low")
WEIGHTS = rng.uniform(0.5, 1.5, size=N)
RIDGE = make_pipeline(SklearnScaler(), SklearnRidge())
OWN = make_pipeline(StandardScaler(), Ridge())
GRID = {"ridge__alpha": [0.1, 10.0, 1e3]}
KINDS = ["dask", "unknown chunks", "parquet", "blocks of frames", "blocks of arrays"]
every_kind = pytest.mark.parametrize("kind", KINDS)
# Bytes of the frame's own dtypes, by which its parts are read.
ROW_BYTES = 8 + 8 + 8 + 4 + 1
LIMIT = limit_for(X, 22)  # a little less than the frame takes


def _scores(search):
    return search.cv_results_["mean_test_score"]


def _search(model=RIDGE, grid=GRID, limit=LIMIT, **options):
    return GridSearchCV(model, grid, memory_limit=limit, **{"refit": False, **options})


EXPECTED = SklearnSearch(RIDGE, GRID, refit=False).fit(FRAME, Y)


@pytest.mark.cases(2)
@pytest.mark.invariant("a search on frames in chunks has the scores of the same frame in memory")
@pytest.mark.parametrize(("kind", "rows"), covering(KINDS, [53, N, 1], strength=1))
def test_scores_are_those_of_a_frame(kind, rows, tmp_path):
    if rows == N:
        rows, limit = N // 2, N * ROW_BYTES - 1  # two chunks are in memory at a time
        limit = limit if "frames" in kind or kind in ("dask", "parquet") else X.nbytes - 1
    else:
        limit = max(limit_for(X, rows), 6000)  # which moments need
    search = _search(limit=limit).fit(given_as(kind, FRAME, rows, tmp_path), Y)
    assert search.report_.fits_done == 0 and search.report_.passes == 1
    np.testing.assert_allclose(_scores(search), _scores(EXPECTED), rtol=1e-12)


@pytest.mark.cases(1)
@every_kind
def test_shuffled_folds_iterations_and_predictions(kind, tmp_path):
    cv = KFold(3, shuffle=True, random_state=1)
    given = given_as(kind, FRAME, 151, tmp_path)
    search = _search(cv=cv, scoring="neg_mean_absolute_error").fit(given, Y)
    expected = SklearnSearch(RIDGE, GRID, cv=cv, scoring="neg_mean_absolute_error", refit=False).fit(X, Y)
    np.testing.assert_allclose(_scores(search), _scores(expected), rtol=1e-11)
    model = make_pipeline(SklearnScaler(), LogisticRegression(tol=1e-6))
    grid = {"logisticregression__C": [1e-3, 1e-1]}
    search = _search(model, grid, cv=cv, scoring="neg_log_loss").fit(given, LABELS)
    expected = SklearnSearch(model, grid, cv=cv, scoring="neg_log_loss", refit=False).fit(X, LABELS)
    assert search.report_.fits_done == 0
    np.testing.assert_allclose(_scores(search), _scores(expected), rtol=1e-5)  # as near as tol asks


@pytest.mark.cases(2)
@every_kind
def test_our_estimators_are_refitted_and_predict(kind, tmp_path):
    given = given_as(kind, FRAME, 40, tmp_path)
    search = GridSearchCV(OWN, GRID, memory_limit=LIMIT).fit(given, Y)
    expected = SklearnSearch(RIDGE, GRID).fit(X if "array" in kind or "chunks" in kind else FRAME, Y)
    best, theirs = search.best_estimator_, expected.best_estimator_
    np.testing.assert_allclose(best[-1].coef_, theirs[-1].coef_, rtol=1e-9)
    assert hasattr(best, "feature_names_in_") == hasattr(theirs, "feature_names_in_")
    np.testing.assert_allclose(search.predict(given), theirs.predict(expected_input(theirs)), rtol=1e-10)
    np.testing.assert_allclose(search.score(given, Y), expected.score(expected_input(theirs), Y), rtol=1e-10)


def expected_input(model):
    return FRAME if hasattr(model, "feature_names_in_") else X


@every_kind
def test_what_fits_memory_is_loaded(kind, tmp_path):
    search = GridSearchCV(RIDGE, GRID).fit(given_as(kind, FRAME, 53, tmp_path), Y)
    np.testing.assert_allclose(_scores(search), _scores(EXPECTED), rtol=1e-12)
    assert search.report_.bytes_read == 0 and hasattr(search.best_estimator_[-1], "coef_")


# Dask


def test_lengths_are_counted_within_the_first_pass():
    read = []

    def part(k):
        read.append(k)
        return FRAME.iloc[50 * k : 50 * k + 50]

    given = dask.dataframe.from_map(part, list(range(10)), meta=FRAME.iloc[:0])
    search = _search().fit(given, Y)
    # Two tell the size; the first is read for a point amid the rows, and all in one pass.
    assert read == [0, 5, 0, *range(1, 10)]
    np.testing.assert_allclose(_scores(search), _scores(EXPECTED), rtol=1e-12)


def test_empty_partitions_and_other_partitions_of_y():
    parts = [FRAME.iloc[:0], FRAME.iloc[:200], FRAME.iloc[:0], FRAME.iloc[200:], FRAME.iloc[:0]]
    given = dask.dataframe.from_map(lambda part: part, parts, meta=FRAME.iloc[:0])
    y = dask.dataframe.from_pandas(pd.Series(Y), npartitions=3)
    search = _search(limit=2 * 300 * ROW_BYTES).fit(given, y)
    assert search.report_.bytes_read  # the partitions with rows say that X is larger
    np.testing.assert_allclose(_scores(search), _scores(EXPECTED), rtol=1e-12)


def test_the_plan_says_that_dask_computes_partitions_anew():
    given = partitions(FRAME, 50)
    plan = str(_search().plan(given, Y))
    assert "X, a dask.dataframe.DataFrame, is read in chunks" in plan and "in 10 parts" in plan
    assert "Dask computes the partitions of X anew in each pass: persist X" in plan
    assert "anew" not in str(_search().plan(given.persist(), Y))


def test_nullable_and_arrow_dtypes():
    for dtype in ("Float64", "float64[pyarrow]"):
        frame = FRAME.assign(a=FRAME["a"].astype(dtype), c=FRAME["c"].astype("Int64"))
        search = _search().fit(partitions(frame, 50), Y)
        np.testing.assert_allclose(_scores(search), _scores(EXPECTED), rtol=1e-12)


# Parquet


def test_a_target_is_named_and_columns_are_projected(tmp_path):
    data = parquet(FRAME.assign(target=Y, city="x"), 50, tmp_path / "data")
    columns = [data.schema.field(name) for name in [*FRAME.columns, "target"]]
    search = GridSearchCV(OWN, GRID, memory_limit=LIMIT)
    search.fit(data.replace_schema(pa.schema(columns)), "target")
    np.testing.assert_allclose(_scores(search), _scores(EXPECTED), rtol=1e-12)
    expected = SklearnSearch(RIDGE, GRID).fit(FRAME, Y)
    # Of a data set with more columns those of the fit are read.
    np.testing.assert_allclose(search.predict(data), expected.predict(FRAME), rtol=1e-10)
    np.testing.assert_allclose(search.score(data, "target"), expected.score(FRAME, Y), rtol=1e-10)
    with pytest.raises(ValueError, match=r"y='price' is not among the columns of X: 'a', .*'city'\.$"):
        search.fit(data, "price")
    with pytest.raises(ValueError, match=r"Did you mean 'target'\?$"):
        search.fit(data, "targt")


@pytest.mark.parametrize("limit", [None, LIMIT])
def test_paths(tmp_path, limit):
    parquet(FRAME.assign(target=Y), 50, tmp_path / "data")
    for path in (tmp_path / "data", str(tmp_path / "data")):
        search = _search(limit=limit).fit(path, "target")
        np.testing.assert_allclose(_scores(search), _scores(EXPECTED), rtol=1e-12)
    with pytest.raises(ValueError, match=r"'trips.csv' is no folder, and does not end in .parquet"):
        _search(limit=limit).fit("trips.csv", "target")
    with pytest.raises(
        FileNotFoundError, match=r"X='.*none.parquet' is a path of Parquet files, and there is"
    ):
        _search().fit(str(tmp_path / "none.parquet"), "target")


def test_integers_with_gaps_and_other_formats(tmp_path):
    table = pa.table({"a": pa.array([1, None, 3] * 40), "b": np.arange(120.0), "y": np.arange(120) % 7})
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet", row_group_size=30)
    data = pyarrow.dataset.dataset(tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="Input X contains NaN or infinity, first in row 1 of 120"):
        _search(limit=1300).fit(data, "y")
    feather = pyarrow.dataset.dataset(pa.table({"a": np.arange(120.0) ** 2, "b": np.arange(120.0)}))
    y = np.arange(120.0)
    search = _search(limit=3840).fit(feather, y)
    expected = SklearnSearch(RIDGE, GRID, refit=False).fit(feather.to_table().to_pandas(), y)
    np.testing.assert_allclose(_scores(search), _scores(expected), rtol=1e-11)
    with pytest.raises(ValueError, match="filter"):
        _search().fit(data.filter(pyarrow.dataset.field("b") > 3.0), "y")


# Blocks


class Iter:
    """As an `xgboost.DataIter`."""

    def __init__(self):
        self._next = 0

    def next(self, input_data):
        own = slice(self._next, self._next + 60)
        self._next += 60
        if own.start >= N:
            return 0
        input_data(data=X[own], label=Y[own], weight=WEIGHTS[own])
        return 1

    def reset(self):
        self._next = 0


@pytest.mark.parametrize("source", ["function", "DataIter"])
@pytest.mark.parametrize("limit", [None, LIMIT])
def test_targets_and_weights_come_with_the_blocks(source, limit):
    given = blocks(X, 60, Y, WEIGHTS) if source == "function" else Blocks(Iter())
    options = {} if limit is None else {"memory_limit": limit}
    search = GridSearchCV(OWN, GRID, **options).fit(given)
    expected = SklearnSearch(RIDGE, GRID).fit(X, Y, ridge__sample_weight=WEIGHTS)
    np.testing.assert_allclose(_scores(search), _scores(expected), rtol=1e-11)
    np.testing.assert_allclose(
        search.best_estimator_[-1].coef_, expected.best_estimator_[-1].coef_, rtol=1e-9
    )
    np.testing.assert_allclose(search.score(given), expected.score(X, Y), rtol=1e-9)
    fitted = Ridge().fit(given)
    np.testing.assert_allclose(fitted.coef_, SklearnRidge().fit(X, Y, WEIGHTS).coef_, rtol=1e-9)
    with pytest.raises(ValueError, match="ridge__sample_weight was given, and the blocks of X come with"):
        search.fit(given, ridge__sample_weight=WEIGHTS)


def test_passes_over_blocks_and_frames_of_polars():
    calls = []
    search = _search().fit(blocks(pl.from_pandas(FRAME), 60, Y, calls=calls))
    # They are counted, the first is looked at, and all are summed.
    assert len(calls) <= 4 and search.report_.passes == 1
    np.testing.assert_allclose(_scores(search), _scores(EXPECTED), rtol=1e-12)
    assert "Each pass calls the function of Blocks anew" in str(_search().plan(blocks(FRAME, 60, Y)))


# Bad input


def _dask_parts(*parts):
    return dask.dataframe.from_map(lambda part: part, list(parts), meta=FRAME.iloc[:0])


def _with_nan(row):
    frame = FRAME.copy()
    frame.loc[row, "b"] = np.nan
    return frame


def _shrinking():
    calls = []

    def read():
        calls.append(0)
        stop = 340 - (len(calls) > 1)
        yield X[:170], Y[:170]
        yield X[170:stop], Y[170:stop]
        yield X[340:], Y[340:]

    return Blocks(read)


def _failing():
    def part(k):
        if k == 3:
            raise OSError("the disk is gone")
        return FRAME.iloc[100 * k : 100 * k + 100]

    return dask.dataframe.from_map(part, [0, 1, 2, 3, 4], meta=FRAME.iloc[:0])


ONE, TWO, REST = FRAME.iloc[:170], FRAME.iloc[170:340], FRAME.iloc[340:]


@pytest.mark.parametrize(
    ("given", "y", "error", "message"),
    [
        (lambda: partitions(_with_nan(407), 50), Y, ValueError, "first in row 407 of 499"),
        (lambda: partitions(FRAME, 50), Y[:-1], ValueError, "499 rows or more, and y has 498"),
        (lambda: partitions(FRAME, 50), [*Y, 1.0], ValueError, r"499 rows in 10 chunks, and y has 500"),
        (lambda: _dask_parts(ONE, TWO.drop(columns="b"), REST), Y, ValueError, "with columns .*'a', 'c'"),
        (lambda: _dask_parts(ONE, TWO.astype({"b": str}), REST), Y, ValueError, "column 'b' of dtype"),
        (lambda: _dask_parts(ONE, TWO.astype({"c": float}), REST), Y, None, ""),
        (lambda: _dask_parts(FRAME.iloc[:0], FRAME.iloc[:0]), Y, ValueError, "499|0 sample"),
        (lambda: partitions(FRAME, N), Y, MemoryError, "A chunk of rows of X, with all columns, takes"),
        (lambda: da.from_array(X, chunks=(50, 3))[da.ones(N, chunks=50) > 0][:, :2], Y, None, ""),
        (lambda: blocks(X, 60, Y[:-1]), None, ValueError, "Block 8 has 19 rows of X, and 18 of y"),
        (lambda: Blocks(lambda: iter([X[:300], X[300:, :2]])), Y, ValueError, "Block 1 of X has 2 columns"),
        (lambda: Blocks(lambda: iter([ONE, TWO[["a"]]])), Y, ValueError, r"Block 1 of X has columns \['a'\]"),
        (lambda: Blocks(lambda: iter([ONE, X[300:]])), Y, ValueError, "Block 1 of X has 5 columns"),
        (lambda: Blocks(lambda: iter([(ONE, Y[:170]), TWO])), None, ValueError, "Block 1 has no y"),
        (lambda: Blocks(lambda: iter([X[:, 0]])), Y, ValueError, "Block 0 of X is a ndarray of 1 dim"),
        (lambda: Blocks(lambda: iter([X.astype(str)])), Y, ValueError, "Block 0 of X is of dtype <U"),
        (lambda: Blocks(lambda: iter([])), Y, ValueError, "yields no block"),
        (lambda: Blocks(iter([X])), Y, TypeError, "An iterator can be read only once"),
        (_shrinking, None, ValueError, "Chunk 1 of X has 169 rows, and had 170"),
        (lambda: FRAME.pipe(partitions, 50).rename(columns={"a": 0}), Y, ValueError, "names that are str"),
        (lambda: partitions(FRAME.assign(city="x"), 50), Y, TypeError, "columns that are no numbers"),
    ],
)  # fmt: skip
def test_bad_input(given, y, error, message):
    search = _search(limit=LIMIT)
    if error is None:
        assert search.fit(given(), y).report_.fits_done == 0
        return
    with pytest.raises(error, match=message):
        search.fit(given(), y)


def test_a_partition_that_cannot_be_read_is_named():
    with pytest.raises(OSError, match="the disk is gone") as got:
        _search(limit=LIMIT).fit(_failing(), Y)
    note = "Chunk 3, from row 300 on, of X, a dask.dataframe.DataFrame, could not be read."
    assert note in got.value.__notes__


@pytest.mark.parametrize("n", [N - 1, N + 1])
def test_rows_are_counted_again_after_a_y_of_another_length(n):
    rows, search = as_chunk_rows(partitions(FRAME, 50), LIMIT), _search()
    with pytest.raises(ValueError, match=f"and y has {n}"):
        search.fit(rows, np.resize(Y, n))
    np.testing.assert_allclose(_scores(search.fit(rows, Y)), _scores(EXPECTED), rtol=1e-12)


def _blocks_that_fail(errors):
    def read():
        for start in range(0, N, 60):
            if start == 240 and errors and (error := errors.pop(0)) is not None:
                raise error
            yield X[start : start + 60], Y[start : start + 60]

    return Blocks(read)


@pytest.mark.parametrize("limit", [LIMIT, 2**30], ids=["in chunks", "in memory"])
@pytest.mark.parametrize("n_passes", [0, 1], ids=["counted", "summed"])
def test_a_block_is_tried_again_by_the_function_from_its_first_one_on(limit, n_passes, monkeypatch):
    monkeypatch.setattr(_rows, "RETRY_AFTER_S", (0.0,))
    errors = [None] * n_passes + [OSError("the disk is gone")]
    search = _search().set_params(memory_limit=limit).fit(_blocks_that_fail(errors))
    np.testing.assert_allclose(_scores(search), _scores(EXPECTED), rtol=1e-12)
    assert bool(errors) == (limit > LIMIT and n_passes == 1)  # an X in memory takes one pass


@pytest.mark.parametrize("limit", [LIMIT, 2**30], ids=["in chunks", "in memory"])
def test_a_function_that_yields_fewer_blocks_after_an_error_has_lost_them(limit, monkeypatch):
    monkeypatch.setattr(_rows, "RETRY_AFTER_S", (0.0,))
    once = iter(_blocks_that_fail([OSError("the disk is gone")]))
    with pytest.raises(OSError, match="the disk is gone"):
        _search().set_params(memory_limit=limit).fit(Blocks(lambda: once))


@pytest.mark.parametrize("limit", [LIMIT, 2**30], ids=["in chunks", "in memory"])
def test_a_block_that_cannot_be_read_is_named(limit, monkeypatch):
    monkeypatch.setattr(_rows, "RETRY_AFTER_S", (0.0,))
    for errors in ([ValueError("no number")], [OSError("the disk is gone")] * 2):
        with pytest.raises((ValueError, OSError)) as got:
            _search().set_params(memory_limit=limit).fit(_blocks_that_fail(errors))
        assert got.value.__notes__ == ["Block 4 of X could not be read."] and not errors


def test_targets_given_twice_are_refused():
    with pytest.raises(ValueError, match="The blocks of X have targets, and y is given, too"):
        GridSearchCV(Ridge(), {"alpha": [1.0]}).fit(Blocks(lambda: iter([(X, Y)])), Y)


def test_an_error_says_how_x_is_read():
    search = GridSearchCV(SklearnRidge(), {"solver": ["sag", "saga"]}, refit=False, memory_limit="10 kB")
    with pytest.raises(TypeError, match=r"a dask\.array\.Array that is read in chunks for shared fits"):
        search.fit(da.from_array(X, chunks=100), Y)


def test_the_point_that_sums_are_about_lies_amid_rows_of_unknown_lengths():
    lazy = da.from_array(X + 1e3, chunks=(90, X.shape[1]))
    given = as_chunk_rows(lazy[da.ones(len(X), chunks=90, dtype=bool)], 2**20)
    given.expect(len(X))
    freed = [np.full((15, X.shape[1]), 1e300) for _ in range(100)]
    del freed  # memory that is taken next holds what was there
    np.testing.assert_allclose(given.origin(), X.mean(axis=0) + 1e3, atol=5.0 * X.std())
    assert not given.is_counted
    np.testing.assert_array_equal(given.take(slice(100, 200)), X[100:200] + 1e3)
