"""A search on an X in a file that is larger than the memory it may take."""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks._benchmark import register
from benchmarks._memory import _high_water_marks, _start
from benchmarks._npy_file import File
from benchmarks._study import Column, Findings, Study, Tell
from benchmarks._verdict import Verdict, at_most
from manyfit.folds import as_chunk_rows
from manyfit.model_selection import GridSearchCV

_ROOT = Path(__file__).resolve().parents[1]
COLUMNS, CHUNK = 100, 10_000
# The columns of the Parquet file, the numbers of their categories, and the rows of a row group.
NUMBERS, CATEGORIES = ("distance", "minutes", "tip"), {"zone": 200, "hour": 24, "day": 7, "payment": 4}
TRIPS = 100_000
# Memory that the search may take: its `memory_limit`, and what the operating system enforces beside the code.
LIMIT, ALLOWED = 2**28, 3 * 2**29
# Passes that a search of iterating fits may take, and times that the large file may be read.
MOST_PASSES, MOST_READS = 25.0, 1.5
LARGE_ROWS = 10_000_000
# Kinds of file that a solver reads again and again, and the formats of kinds that are not their own.
ITERATING = ("npy, logistic", "zarr, logistic")
_FORMATS = {"memmap": "npy", **{kind: kind.partition(",")[0] for kind in ITERATING}}
_COLUMNS = (
    Column("source", "X"),
    Column("size", "size of X", "bytes"),
    Column("read", "read once", "s"),
    Column("search", "search", "s"),
    Column("times", "searches / reads", "number"),
    Column("passes", "passes for sums", "number"),
    Column("bytes_read", "bytes read", "bytes"),
    Column("peak", "peak memory", "bytes"),
)


def write(path: Path, rows: int) -> None:
    """Write a file of normal numbers, a chunk at a time, in the format of its suffix."""
    shape, chunks = (rows, COLUMNS), (min(CHUNK, rows // 20), COLUMNS)
    if path.suffix == ".npy":
        X = np.lib.format.open_memmap(path, "w+", np.float64, shape)
    elif path.suffix == ".h5py":
        import h5py  # type: ignore[import-not-found, unused-ignore]

        X = h5py.File(path, "w").create_dataset("X", shape, np.float64, chunks=chunks)
    else:
        import zarr  # type: ignore[import-not-found, unused-ignore]

        X = zarr.create_array(str(path), shape=shape, dtype="float64", chunks=chunks)
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(COLUMNS, COLUMNS)) / 10.0
    for start in range(0, rows, CHUNK):
        size = min(CHUNK, rows - start)
        X[start : start + size] = rng.normal(size=(size, COLUMNS)) @ mixing + 3.0


def opened(path: Path) -> Any:
    """The file as the user would pass it."""
    if path.suffix == ".npy":
        return np.load(path, mmap_mode="r")
    if path.suffix == ".h5py":
        import h5py

        return h5py.File(path, "r")["X"]
    import zarr

    return zarr.open_array(str(path), mode="r")


def write_trips(path: Path, rows: int) -> None:
    """Write a Parquet file of 3 numbers with gaps, 4 categories and a target, a row group at a time."""
    import pyarrow as pa
    import pyarrow.parquet

    rng, writer = np.random.default_rng(0), None
    size = min(TRIPS, rows // 20)
    for start in range(0, rows, size):
        n = min(size, rows - start)
        numbers = {name: rng.exponential(size=n) for name in NUMBERS}
        columns: dict[str, Any] = {
            name: pa.array(one, mask=rng.uniform(size=n) < 0.05) for name, one in numbers.items()
        }
        for name, levels in CATEGORIES.items():
            columns[name] = np.array([f"{name} {k}" for k in range(levels)])[rng.integers(0, levels, n)]
        columns["target"] = sum(numbers.values()) + rng.normal(size=n)
        table = pa.table(columns)
        writer = writer or pyarrow.parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def search_trips(path: Path, limit: int, quick: bool) -> GridSearchCV:
    """The search on a Parquet file: imputed and scaled numbers beside one-hot categories, Ridge."""
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    encode = ColumnTransformer(
        [("numbers", numbers, list(NUMBERS)), ("categories", OneHotEncoder(), list(CATEGORIES))]
    )
    grid = {"ridge__alpha": list(np.logspace(-2, 4, 2 if quick else 20))}
    return GridSearchCV(make_pipeline(encode, Ridge()), grid, refit=False, memory_limit=limit).fit(
        path, "target"
    )


def search(X: Any, rows: int, quick: bool) -> GridSearchCV:
    """The search: 100 settings of three steps on five folds."""
    y = np.random.default_rng(1).normal(size=rows)
    n = 2 if quick else 10
    grid = {
        "pca__n_components": [int(k) for k in np.linspace(5, 95, n)],
        "ridge__alpha": list(np.logspace(-2, 4, n)),
    }
    model = make_pipeline(StandardScaler(), PCA(), Ridge())
    return GridSearchCV(model, grid, refit=False, memory_limit=min(LIMIT, X.nbytes // 2)).fit(X, y)


def search_logistic(path: Path, limit: int, quick: bool) -> GridSearchCV:
    """The search by a solver that iterates: 10 settings on five folds, of Zarr or a Dask array."""
    X, late = _logistic_data(path)
    X = opened(path) if path.suffix == ".zarr" else X
    y = np.where(late, "late", "early")
    grid = {"logisticregression__C": list(np.logspace(-4, 2, 2 if quick else 10))}
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=10_000))
    with dask.config.set(scheduler="synchronous"):
        return GridSearchCV(model, grid, refit=False, scoring="neg_log_loss", memory_limit=limit).fit(X, y)


def _logistic_data(path: Path) -> tuple[da.Array, Any]:
    """A Dask array of the file, and which of its rows are late."""
    file, rng = opened(path) if path.suffix == ".zarr" else File(path), np.random.default_rng(2)
    weights, n = rng.normal(size=COLUMNS), file.shape[0]
    y = np.concatenate([file[k : k + CHUNK, :] @ weights for k in range(0, n, CHUNK)])
    late = y + rng.normal(scale=3.0 * y.std(), size=n) > y.mean()
    return da.from_array(file, chunks=(min(CHUNK, n // 20), COLUMNS), meta=np.empty((0, 0))), late


def fit_dask_ml(path: Path) -> float:
    """Seconds of one fit of dask-ml's StandardScaler and LogisticRegression, by its quickest solver here."""
    from dask_ml.linear_model import LogisticRegression as Other  # type: ignore[import-not-found, unused-ignore]
    from dask_ml.preprocessing import StandardScaler as Scaler  # type: ignore[import-not-found, unused-ignore]

    X, late = _logistic_data(path)
    start = time.perf_counter()
    scaled = Scaler().fit_transform(X)
    Other(solver="newton").fit(scaled, da.from_array(late.astype(int), chunks=X.chunks[0]))
    return time.perf_counter() - start


def measure_here(path: Path, kind: str, rows: int, quick: bool) -> dict[str, Any]:
    """Measure in this process, which has done nothing else but a tiny search."""
    search(np.random.default_rng(0).normal(size=(1000, COLUMNS)), 1000, True)
    mixed = kind == "parquet"
    if mixed:
        _dataset(path).head(1).to_pandas()  # the pools of Arrow's threads take a GB of addresses
    if sys.platform == "linux":
        allowed = ALLOWED + (_data_size() if mixed else 0)
        resource.setrlimit(resource.RLIMIT_DATA, (allowed, allowed))
    X, reads, searches = path if mixed else opened(path), [], []
    iterates = kind in ITERATING
    for _ in range(1 if quick or iterates or rows == LARGE_ROWS else 3):
        source = as_chunk_rows(_dataset(path) if mixed else X, LIMIT)
        assert source is not None
        start = time.perf_counter()
        for _, block in source.frames():
            len(block)
        reads.append(time.perf_counter() - start)
        before = _start()[os.getpid()]
        start = time.perf_counter()
        limit = min(LIMIT, source.nbytes // 2)
        if iterates:
            found = search_logistic(path, limit, quick)
        else:
            found = search_trips(path, limit, quick) if mixed else search(X, rows, quick)
        searches.append(time.perf_counter() - start)
        peak = _high_water_marks()[os.getpid()] - before
    report = found.report_
    return {
        "source": kind, "size": source.nbytes, "read": min(reads), "search": min(searches),
        "times": min(searches) / min(reads), "passes": report.passes, "bytes_read": report.bytes_read,
        "peak": max(peak, 0), "fits_done": report.fits_done,
        "dask_ml": fit_dask_ml(path) if iterates and find_spec("dask_ml") else None,
    }  # fmt: skip


def _data_size() -> int:
    """Bytes of addresses that this process has for data, by which the operating system limits it."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmData:")[2].split()[0]) * 1024


def _dataset(path: Path) -> Any:
    import pyarrow.dataset

    return pyarrow.dataset.dataset(path)


def _measure_arrays(quick: bool, tell: Tell) -> Findings:
    kinds = ["memmap", *(kind for kind in ("h5py", "zarr") if find_spec(kind))]
    return _measure(kinds, 20_000 if quick else 1_250_000, quick, tell)


def _measure_large(quick: bool, tell: Tell) -> Findings:
    found = _measure(["zarr"], 20_000 if quick else LARGE_ROWS, quick, tell)
    times = max(row["times"] for row in found.rows)
    verdict = at_most("searches at most 1.5 times one read", times, MOST_READS, "times")
    return found if quick else replace(found, verdicts=[*found.verdicts, verdict])


def _measure_logistic(quick: bool, tell: Tell) -> Findings:
    kinds = [kind for kind in ITERATING if _FORMATS[kind] == "npy" or find_spec(_FORMATS[kind])]
    found = _measure(kinds, 40_000 if quick else 1_250_000, quick, tell, MOST_PASSES)
    times = [row["times"] for row in found.rows if row["source"] == "zarr, logistic"]
    if quick or not times:
        return found
    verdict = at_most("searches of Zarr at most 25 times one read", times[0], MOST_PASSES, "times")
    return replace(found, verdicts=[*found.verdicts, verdict])


def _measure_mixed(quick: bool, tell: Tell) -> Findings:
    return _measure(["parquet"], 200_000 if quick else 6_000_000, quick, tell)


def _measure(kinds: list[str], rows: int, quick: bool, tell: Tell, passes: float = 1.0) -> Findings:
    measured = []
    for kind in kinds:
        tell(kind)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"X.{_FORMATS.get(kind, kind)}"
            if kind == "parquet":
                write_trips(path, rows)
            else:
                write(path, rows)
            command = [sys.executable, "-m", "benchmarks.chunks", str(path), kind, str(rows)]
            path_of = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
            done = subprocess.run(
                [*command, "--quick"] if quick else command,
                env={**os.environ, "PYTHONPATH": path_of}, capture_output=True, text=True, timeout=1800,
            )  # fmt: skip
            if done.returncode:
                raise RuntimeError(done.stderr.strip().splitlines()[-1])
            measured.append(json.loads(done.stdout.strip().splitlines()[-1]))
    verdicts = [
        _most_passes(measured, passes),
        Verdict("no fit by scikit-learn", *_worst(measured, "fits_done", 0)),
    ]
    if not quick:
        largest = max(row["peak"] / row["size"] for row in measured)
        most = 0.3 if passes == 1.0 else 0.5  # with samples and Hessians
        verdicts.append(at_most(f"peak memory at most {most} of X", largest, most, "of X"))
    others = [_other_row(row) for row in measured if row["dask_ml"] is not None]
    return Findings([*measured, *others], _COLUMNS, verdicts=verdicts)


def _other_row(row: dict[str, Any]) -> dict[str, Any]:
    """The row of dask-ml's fit of one setting to all rows."""
    seconds = row["dask_ml"]
    unknown = dict.fromkeys(("passes", "bytes_read", "peak"))
    other = {"source": "one fit of dask-ml", "search": seconds, "times": seconds / row["read"]}
    return {**row, **unknown, **other}


def _most_passes(measured: list[dict[str, Any]], passes: float) -> Verdict:
    """One pass for sums, or a number of passes with those that samples take, which read whole chunks."""
    if passes == 1.0:
        return Verdict("one pass for sums", *_worst(measured, "passes", passes))
    read = max(row["bytes_read"] / row["size"] for row in measured)
    return at_most(f"{passes:g} times the file read at most", read, passes, "times")


def _worst(measured: list[dict[str, Any]], key: str, most: float) -> tuple[str, bool]:
    largest = max(row[key] for row in measured)
    return f"{largest:g}", largest <= most


def main() -> None:
    """Print the measurement of one file as JSON, in the fresh process."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chunks", description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("kind")
    parser.add_argument("rows", type=int)
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    print(json.dumps(measure_here(asked.path, asked.kind, asked.rows, asked.quick)))


if __name__ == "__main__":
    main()
else:
    register(
        Study(
            "chunks-affine",
            "StandardScaler > PCA > Ridge, 100 settings x 5 folds, r2, 1 GB in a file that is read in chunks",
            _measure_arrays,
        )
    )
    register(
        Study(
            "chunks-affine-8GB",
            "StandardScaler > PCA > Ridge, 100 settings x 5 folds, r2, 8 GB of Zarr",
            _measure_large,
        )
    )
    register(
        Study(
            "chunks-logistic",
            "StandardScaler > LogisticRegression, 10 settings x 5 folds, log loss, 1 GB in a file",
            _measure_logistic,
        )
    )
    register(
        Study(
            "chunks-mixed",
            "imputed and scaled numbers beside one-hot categories > Ridge, 20 settings x 5 folds, Parquet",
            _measure_mixed,
        )
    )
