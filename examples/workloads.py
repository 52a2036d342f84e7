"""Two workloads on data larger than memory, made as they go: ``python -m examples.workloads [ROWS]``.

1. ``(x + 1)[::2, ::2].sum()`` over a Dask array of random numbers, and the mean it has to have.
2. Trips in CSV files: Dask groups them by zone, joins the means to each trip, and manyfit searches over the
   frame in chunks.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline

from manyfit.estimators import Ridge, StandardScaler
from manyfit.model_selection import GridSearchCV

ROWS, FILES, ZONES = 1_000_000, 10, 200


def sum_every_other(rows: int) -> tuple[float, float]:
    """The mean of every other number of every other row, plus 1, and the seconds that it took."""
    x = da.random.default_rng(0).normal(size=(rows, 100), chunks=(max(1, rows // FILES), 100))
    start = time.perf_counter()
    total = float((x + 1)[::2, ::2].sum().compute())
    return total / (-(-rows // 2) * 50), time.perf_counter() - start


def write_trips(folder: Path, rows: int) -> None:
    """Write CSV files of trips: their zone, distance, hour and fare."""
    for k in range(FILES):
        rng, n = np.random.default_rng(k), max(1, rows // FILES)
        zone, distance = rng.integers(0, ZONES, n), rng.exponential(3.0, n)
        trips = pd.DataFrame({"zone": zone, "distance": distance, "hour": rng.integers(0, 24, n)})
        trips["fare"] = 3.0 + 2.5 * distance + 0.02 * zone + rng.normal(size=n)
        trips.to_csv(folder / f"trips{k}.csv", index=False)


def search_trips(folder: Path, memory_limit: int) -> tuple[GridSearchCV, float]:
    """The search over the trips with the means of their zones, and the seconds from the files on."""
    start = time.perf_counter()
    trips = dd.read_csv(str(folder / "trips*.csv"))
    by_zone = trips.groupby("zone")[["fare", "distance"]].mean()
    means = by_zone.rename(columns={"fare": "zone_fare", "distance": "zone_distance"}).compute()
    joined = trips.join(means, on="zone")
    X = joined[["distance", "hour", "zone_fare", "zone_distance"]]
    model = make_pipeline(StandardScaler(), Ridge())
    grid = {"ridge__alpha": list(np.logspace(-2, 4, 20))}
    search = GridSearchCV(model, grid, memory_limit=memory_limit).fit(X, trips["fare"])
    return search, time.perf_counter() - start


def main(arguments: list[str]) -> dict[str, Any]:
    """Run both and print what they found."""
    rows = int(arguments[0]) if arguments else ROWS
    mean, seconds = sum_every_other(rows)
    print(f"(x + 1)[::2, ::2].sum() of {rows:,} x 100 numbers: mean {mean:.3f}, {seconds:.2f} s")
    with tempfile.TemporaryDirectory() as folder:
        write_trips(Path(folder), rows)
        search, seconds = search_trips(Path(folder), memory_limit=max(10_000, rows * 16))
    report = search.report_
    print(f"CSV > groupby > join > search of {rows:,} trips: R2 {search.best_score_:.3f}, {seconds:.2f} s")
    print(f"fits made: {report.fits_done}, passes: {report.passes:g}, bytes read: {report.bytes_read:,}")
    return {"mean": mean, "score": search.best_score_, "fits": report.fits_done, "passes": report.passes}


if __name__ == "__main__":
    main(sys.argv[1:])
