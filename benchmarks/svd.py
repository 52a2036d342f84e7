"""Principal components of an X that is larger than the memory it may take."""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._benchmark import register
from benchmarks._memory import _high_water_marks, _start
from benchmarks._npy_file import File
from benchmarks._study import Column, Findings, Study, Tell
from benchmarks._verdict import at_least, at_most
from manyfit.estimators import PCA, TruncatedSVD
from manyfit.folds import Genotypes, as_chunk_rows
from manyfit.folds.rows.chunks._genotypes import MAGIC

_ROOT = Path(__file__).resolve().parents[1]
COMPONENTS, OVERSAMPLES, WIDTH = 10, 10, 20
# Memory of the estimator, and what the operating system lets the process have.
LIMIT, ALLOWED = 2**30, 4 * 10**9
# Rows and columns at full size, and quick; the headline of svd-20GB in seconds.
LARGE, SMALL = (1_000_000, 20_000), (5_000, 2_000)
STORED, FEW_STORED = (200_000, 1_000), (4_000, 200)
HEADLINE = 150.0
_COLUMNS = (
    Column("name", "components by"),
    Column("seconds", "time", "s"),
    Column("floor", "floor", "s"),
    Column("times", "times / floors", "number"),
    Column("passes", "passes", "number"),
    Column("bytes_read", "bytes read", "bytes"),
    Column("peak", "peak memory", "bytes"),
    Column("gap", "difference of singular values", "gap"),
)


def random_values(rows: int, p: int) -> da.Array:
    """A matrix of random whole numbers from 0 to 3 in float32, which Dask makes when it is read."""
    size = max(1, 2**25 // (4 * p))
    sizes = tuple(stop - start for start, stop in pairwise([*range(0, rows, size), rows]))

    def make(block_info: Any = None) -> np.ndarray[Any, Any]:
        (start, stop), _ = block_info[None]["array-location"]
        return random_block(start, stop - start, p)

    return da.map_blocks(make, chunks=(sizes, (p,)), dtype=np.float32, meta=np.empty((0, 0), np.float32))


def random_block(seed: int, rows: int, p: int) -> np.ndarray[Any, Any]:
    """Some rows of it, from a byte each of the raw numbers of a generator."""
    raw = np.random.PCG64(seed).random_raw(-(-rows * p // 8)).view(np.uint8)[: rows * p]
    raw &= 3
    return raw.reshape(rows, p).astype(np.float32)


def write_bed(path: Path, rows: int, p: int) -> None:
    """Write a .bed file of random genotypes."""
    stride = -(-p // 4)
    with path.open("wb") as file:
        file.write(MAGIC)
        for start in range(0, rows, 2_000):
            size = min(2_000, rows - start) * stride
            file.write(np.random.PCG64(start).random_raw(-(-size // 8)).tobytes()[:size])


def write_factors(path: Path, rows: int, p: int) -> None:
    """Write a matrix of ten factors and noise, a block at a time."""
    X = np.lib.format.open_memmap(path, "w+", np.float64, (rows, p))
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(COMPONENTS, p)) * np.linspace(5.0, 1.0, COMPONENTS)[:, None]
    for start in range(0, rows, 10_000):
        size = min(10_000, rows - start)
        X[start : start + size] = rng.normal(size=(size, COMPONENTS)) @ factors + rng.normal(size=(size, p))
        X.flush()


def products_floor(
    X_block: np.ndarray[Any, Any], passes: float, make: Callable[[], Any], cores: int
) -> float:
    """Seconds of a block in so many passes on all cores: to make it, and two products with few vectors."""
    Q = np.random.default_rng(0).normal(size=(X_block.shape[1], WIDTH)).astype(X_block.dtype)
    best = [np.inf, np.inf]
    with threadpool_limits(1):
        for _ in range(5):
            start = time.process_time()
            make()
            middle = time.process_time()
            X_block.T @ (X_block @ Q)
            best = [min(best[0], middle - start), min(best[1], time.process_time() - middle)]
    return passes * sum(best) / cores


def measure_large(kind: str, rows: int, p: int, path: Path, exact: bool) -> dict[str, Any]:
    """Measure `svd-20GB` or `svd-packed` in this process."""
    cores = os.cpu_count() or 1
    if kind == "random":
        source: Any = random_values(rows, p)
        size = source.chunks[0][0]
        block = random_block(0, size, p)
        model: Any = PCA(COMPONENTS, svd_solver="randomized", iterated_power=1, random_state=0)
    else:
        source = Genotypes(path, p, standardize=True)
        size = min(rows, max(1, 2**25 // (4 * p)))
        block = source[:size]
        model = TruncatedSVD(COMPONENTS, n_iter=1, random_state=0)
    _limit_memory()
    chunks = as_chunk_rows(source, LIMIT)
    assert chunks is not None
    before = _start()[os.getpid()]
    start = time.perf_counter()
    with dask.config.set(scheduler="synchronous"):  # the rows are made beside the products
        model.fit(chunks)
    seconds = time.perf_counter() - start
    peak = _high_water_marks()[os.getpid()] - before
    passes = chunks.bytes_read / chunks.nbytes
    make = (lambda: random_block(0, size, p)) if kind == "random" else (lambda: source[:size])
    floor = products_floor(block, passes, make, cores) * rows / size
    gap = None
    if exact:
        X = np.asarray(source) if kind == "random" else source[:]
        expected = type(model).__mro__[1](**model.get_params()).fit(X)
        gap = float(np.abs(model.singular_values_ / expected.singular_values_ - 1.0).max())
    stored = chunks.nbytes // (4 if kind == "random" else 16)  # a byte a value is made, or two bits are read
    return {
        "name": f"manyfit {type(model).__name__}", "seconds": seconds, "floor": floor,
        "times": seconds / floor, "passes": passes, "bytes_read": int(stored * passes),
        "peak": max(peak, 0), "gap": gap,
    }  # fmt: skip


def _own(**params: Any) -> Callable[[Any], Any]:
    def fit(X: Any) -> Any:
        return PCA(COMPONENTS, random_state=0, **params).fit(as_chunk_rows(X, LIMIT)).singular_values_

    return fit


def _compressed(n_power_iter: int) -> Callable[[Any], Any]:
    def fit(X: Any) -> Any:
        Z = X - X.mean(axis=0).compute()
        _, s, v = da.linalg.svd_compressed(
            Z, COMPONENTS, n_power_iter=n_power_iter, n_oversamples=OVERSAMPLES, seed=0, compute=True
        )
        return dask.compute(s, v)[0]

    return fit


def _dask_ml(X: Any) -> Any:
    from dask_ml.decomposition import PCA as DaskPCA  # type: ignore[import-not-found, unused-ignore]

    model = DaskPCA(COMPONENTS, svd_solver="randomized", iterated_power=1, random_state=0)
    return np.asarray(model.fit(X).singular_values_)


STORED_BY: dict[str, Callable[[Any], Any]] = {
    "manyfit PCA": _own(),
    "manyfit PCA, randomized, 1 power": _own(svd_solver="randomized", iterated_power=1),
    "dask svd_compressed, 0 powers": _compressed(0),
    "dask svd_compressed, 1 power": _compressed(1),
    "dask-ml PCA, randomized, 1 power": _dask_ml,
}


def measure_stored(name: str, path: Path) -> dict[str, Any]:
    """Measure a way to find the components of a stored matrix in this process."""
    file = File(path)
    n, p = file.shape
    rows = max(1, 2**25 // (8 * p))
    X = da.from_array(file, chunks=(rows, p), meta=np.empty((0, 0)))
    STORED_BY[name](da.random.RandomState(0).normal(size=(500, 50), chunks=(100, 50)))
    _limit_memory()
    start = time.perf_counter()
    for first in range(0, n, rows):
        file[first : first + rows, :]
    read, file.bytes_read = time.perf_counter() - start, 0
    before = _start()[os.getpid()]
    start = time.perf_counter()
    found = STORED_BY[name](X)
    seconds = time.perf_counter() - start
    peak = _high_water_marks()[os.getpid()] - before
    scatter, sums = np.zeros((p, p)), np.zeros(p)
    passes, nbytes = file.bytes_read / (8 * n * p), file.bytes_read
    for first in range(0, n, rows):
        block = file[first : first + rows, :]
        scatter += block.T @ block
        sums += block.sum(axis=0)
    exact = np.linalg.eigvalsh(scatter - np.outer(sums, sums) / n)[::-1][:COMPONENTS] ** 0.5
    return {
        "name": name, "seconds": seconds, "floor": read, "times": seconds / read, "passes": passes,
        "bytes_read": nbytes, "peak": max(peak, 0), "gap": float(np.abs(found / exact - 1.0).max()),
    }  # fmt: skip


def _limit_memory() -> None:
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_DATA, (ALLOWED, ALLOWED))


def _run(*arguments: Any) -> dict[str, Any]:
    """A measurement in a fresh process."""
    path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.svd", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=3600,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _measure_large(kind: str, quick: bool, tell: Tell, shape: tuple[int, int] | None = None) -> Findings:
    n, p = shape or (SMALL if quick else LARGE)
    tell(f"{n:,} x {p:,}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.bed"
        if kind == "packed":
            write_bed(path, n, p)
        row = _run(kind, n, p, path, *(["--exact"] if quick else []))
    verdicts = [at_most("at most 3 passes", row["passes"], 3.1, "passes")]
    if quick:
        verdicts.append(at_most("scikit-learn's singular values", row["gap"], 1e-4, "of them"))
    else:
        verdicts.append(at_most(f"{HEADLINE:g} s at most", row["seconds"], HEADLINE, "s"))
        verdicts.append(at_most("4 GB at most", row["peak"] / 1e9, 4.0, "GB"))
    notes = [
        "The floor is to make the rows in each pass, and to multiply them with 20 vectors twice, in float32 "
        "on all cores."
    ]
    return Findings([row], _COLUMNS, verdicts=verdicts, notes=notes)


def _measure_stored(quick: bool, tell: Tell) -> Findings:
    rows, notes = [], ["The floor is to read the file once, block by block."]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        write_factors(path, *(FEW_STORED if quick else STORED))
        for name in STORED_BY:
            if name.startswith("dask-ml") and not find_spec("dask_ml"):
                continue
            tell(name)
            try:
                rows.append(_run("stored", 0, 0, path, "--by", name))
            except RuntimeError as error:
                if "dask" not in name or "MemoryError" not in str(error):
                    raise
                notes.append(f"{name}: fails within the {ALLOWED / 1e9:.1f} GB that each may take.")
    by = {row["name"]: row for row in rows}
    own, alike = by["manyfit PCA"], by["manyfit PCA, randomized, 1 power"]
    others = min(row["seconds"] for name, row in by.items() if name.startswith("dask") and "1 power" in name)
    verdicts = [
        at_most("one pass", own["passes"], 1.1, "passes"),
        at_most("exact singular values", own["gap"], 1e-10, "of them"),
    ]
    if not quick:
        verdicts.append(
            at_least("faster than others of as many powers", others / alike["seconds"], 1.0, "times as fast")
        )
    return Findings(rows, _COLUMNS, verdicts=verdicts, notes=notes)


def main() -> None:
    """Print a measurement as JSON, in the fresh process."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.svd", description=__doc__)
    parser.add_argument("kind", choices=["random", "packed", "stored"])
    parser.add_argument("rows", type=int)
    parser.add_argument("columns", type=int)
    parser.add_argument("path", type=Path)
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--by")
    asked = parser.parse_args()
    if asked.kind == "stored":
        print(json.dumps(measure_stored(asked.by, asked.path)))
    else:
        print(json.dumps(measure_large(asked.kind, asked.rows, asked.columns, asked.path, asked.exact)))


if __name__ == "__main__":
    main()
else:
    register(
        Study(
            "svd-20GB",
            "PCA of 1,000,000 x 20,000 random numbers of a byte each, made in each of two passes",
            lambda quick, tell: _measure_large("random", quick, tell),
        )
    )
    register(
        Study(
            "svd-packed",
            "TruncatedSVD of 1,000,000 variants x 20,000 samples of two bits each, standardized when read",
            lambda quick, tell: _measure_large("packed", quick, tell),
        )
    )
    register(
        Study(
            "chunks-svd",
            "ten components of 200,000 x 1,000 numbers in a file, beside Dask's svd_compressed and dask-ml",
            _measure_stored,
        )
    )
