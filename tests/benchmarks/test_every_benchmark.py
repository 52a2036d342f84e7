"""Each benchmark, at a size that takes moments, through the whole harness but for the memory."""

from __future__ import annotations

import json
import math
from importlib.util import find_spec

import pytest

from benchmarks._benchmark import Benchmark, all_benchmarks
from benchmarks._floor import linear_passes_work
from benchmarks._measure import run
from benchmarks._report import table, write_json

# left out of an installation without the extra `bench`; their rows then hold the failed import
OPTIONAL = {"dask-ml threads": "dask_ml", "himalaya RidgeCV": "himalaya"}

# Another criterion, warm starts that differ within `tol`, and settings that halving does not fit.
NOT_COMPARED = {
    "RidgeCV leave-one-out",
    "LassoCV or ElasticNetCV n_jobs=-1",
    "manyfit GridSearchCV, all trees",
}

# Of the others it is `make thorough` that sees whether they still run.
ALWAYS = {"affine-pipeline"}
# Those on clusters, by joblib's backends too, have tests of their own, on one cluster for all of them; those
# of a GPU have a device that is imitated.
NAMES = [
    pytest.param(name, marks=[] if name in ALWAYS else pytest.mark.thorough)
    for name, benchmark in all_benchmarks().items()
    if isinstance(benchmark, Benchmark) and not name.startswith(("cluster-", "joblib-", "gpu-"))
]


@pytest.mark.parametrize("name", NAMES)
def test_finite_table_and_complete_json(name, tmp_path):
    benchmark = all_benchmarks()[name]
    exact = benchmark.work is not linear_passes_work  # the others converge: a bar on scores says how far
    result = run(benchmark, repeat=1, quick=True, memory=False)
    assert [row.name for row in result.rows] == [contender.name for contender in benchmark.contenders]
    for row in result.rows:
        if find_spec(OPTIONAL.get(row.name, "sklearn")) is None:
            assert "Error" in row.failure
            continue
        assert row.failure is None
        assert row.median > 0
        if exact and row.name not in NOT_COMPARED:
            assert row.mean_difference <= 1e-8
    if exact:
        assert result.best("ours").split_difference <= 1e-9
    assert result.one_fit > 0
    assert 0 < result.floor.seconds < math.inf
    # no score apart from scikit-learn's, whatever the time
    assert [verdict.met for verdict in result.verdicts if "scores" in verdict.asked] == [True]

    text = table(result)
    assert all(row.name in text for row in result.rows)
    assert "nan" not in text.replace("Discriminant", "")
    assert "inf" not in text.replace("info", "")

    write_json([result], tmp_path / "new" / "result.json")
    found = json.loads((tmp_path / "new" / "result.json").read_text())
    assert set(found) == {"machine", "versions", "results"}
    assert found["machine"]["cores"] > 0
    assert found["versions"]["scikit-learn"]
    (kept,) = found["results"]
    assert {"name", "shape", "bytes", "settings", "splits", "rounds", "one_fit", "floor"} < set(kept)
    assert [row["median"] for row in kept["rows"]] == [row.median for row in result.rows]
    assert len(kept["verdicts"]) == len(benchmark.bars)
    if name == "svc-pipeline":
        _check_fits(result)


def _check_fits(result):
    steps = ("StandardScaler", "PCA", "SVC")
    scaler, pca, svc = (result.row("scikit-learn n_jobs=None").fits[step] for step in steps)
    assert scaler == pca == svc == result.settings * result.splits
    scaler, pca, svc = (result.row("manyfit n_jobs=None").fits[step] for step in steps)
    assert scaler == result.splits
    assert pca == result.splits  # the fit of the most components serves the others
    assert svc == result.settings * result.splits
    # worker processes count for themselves
    assert result.row("manyfit n_jobs=-1").fits is None
