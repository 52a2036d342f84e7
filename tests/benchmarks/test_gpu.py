"""The benchmarks of a GPU, on arrays that stand in for those of one, with estimators in place of cuML's."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from joblib import parallel_config

from benchmarks import on_gpu
from benchmarks.__main__ import main as command
from benchmarks._benchmark import all_benchmarks
from benchmarks._report import table, write_json
from benchmarks.gpu import _compared, _part, _process, _tests, _timed
from benchmarks.gpu.__main__ import NO_DEVICE, main
from benchmarks.gpu._contenders import ACCEL, CUML_DEVICE, CUML_HOST, OURS, OURS_ON_HOST, SKLEARN
from benchmarks.gpu._place import IMITATION, NoDevice, find_place
from benchmarks.gpu._problems import PROBLEMS

STAND_IN = str(Path(__file__).parent / "standin")
EVERYBODY = {OURS, OURS_ON_HOST, CUML_DEVICE, SKLEARN, CUML_HOST, ACCEL}


class NoProcess:
    """In place of the process of cuml.accel."""

    def __init__(self, *_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def timed(self, *_):
        return {"failure": "not started"}


@pytest.fixture
def imitated(monkeypatch):
    """A device whose arrays refuse to become NumPy arrays; estimators for cuML; threads."""
    monkeypatch.setenv(IMITATION, "array_api_strict")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    monkeypatch.setenv("PYTHONPATH", STAND_IN)
    monkeypatch.syspath_prepend(STAND_IN)
    with parallel_config(backend="threading"):
        yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "cuml"]:
        del sys.modules[name]


@pytest.fixture
def no_process(monkeypatch):
    monkeypatch.setattr(_part, "Accelerated", NoProcess)


@pytest.mark.thorough
def test_without_a_gpu_it_says_so(monkeypatch, capsys):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.delenv(IMITATION, raising=False)
    _process.why_no_device.cache_clear()
    assert command(["gpu"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("There is no GPU here that CuPy or torch can use")
    assert "docs/gpu-testing.md" in said.err
    with pytest.raises(NoDevice, match="cupy: .*torch: "):
        find_place()
    assert main([]) == main(["ridge", "--rows", "/dev/null"]) == NO_DEVICE
    _process.why_no_device.cache_clear()


def test_a_part_that_is_asked_to_stop_keeps_its_rows(tmp_path, monkeypatch):
    """As by ``timeout``; the process that is measured would go on for ever."""
    monkeypatch.setattr(_process, "_stop", threading.Event())
    rows = tmp_path / "rows"
    rows.write_text('{"problem": "ridge"}\n')
    never = [sys.executable, "-c", "import time; time.sleep(1e6)"]
    with (
        _process._asked_to_stop() as stop,
        subprocess.Popen(never, start_new_session=True) as process,
    ):
        tell = lambda shown: signal.getsignal(signal.SIGTERM)(signal.SIGTERM, None)  # noqa: E731
        assert _process._wait(process, float("inf"), 1.0, rows, tell, stop) == "stopped by a signal"
    again = _process.run_process(["ridge"], 60.0, True, lambda shown: None)
    assert again.failure == "stopped by a signal" and not again.rows


OFTEN = {"logistic"}  # of the others it is `make thorough` that sees whether they still run


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in OFTEN else pytest.mark.thorough)
        for name in PROBLEMS
        if name != "ridge"
    ],
)
def test_everybody_searches(name, imitated, no_process, tmp_path):
    """What scikit-learn itself cannot do with arrays of this library is kept as a failure."""
    rows = _rows(name, tmp_path)
    own = PROBLEMS[name].own
    assert {row["contender"] for row in rows} == EVERYBODY - ({OURS_ON_HOST} if own else set())
    for row in rows:
        assert row["floor"] > 0
        failed = row["failure"] is not None
        assert failed == (row["contender"] == ACCEL) or (row["contender"], name) == (OURS, "logistic")
        if not failed:
            assert row["settings_run"] == row["settings"] == len(row["scores"])
            assert row["difference"] is None or row["difference"] < 1e-3
        if row["contender"] == OURS and not failed:
            assert row["to_host"] >= 0 and row["synchronisations"] >= 0 and row["fits_made"] >= 0


def _rows(name, tmp_path):
    """Those of a problem, compared; its process would do the same."""
    out = tmp_path / "rows"
    assert main([name, "--quick", "--seconds", "60", "--rows", str(out)]) == 0
    about, *rows = map(json.loads, out.read_text().splitlines())
    rates = about["about"]["rates"]
    assert min(rates["copy"], rates["from_host"], rates["to_host"], *rates["product"].values()) > 0
    assert about["about"]["imitated"] is True
    return _compared.compared(rows)


@pytest.mark.thorough
def test_cuml_accel_is_a_process_of_its_own(imitated, tmp_path):
    rows = [row for row in _rows("ridge", tmp_path) if row["contender"] == ACCEL]
    assert len(rows) == 2
    for row in rows:
        assert row["failure"] is None
        assert row["difference"] == 0.0  # there it is scikit-learn itself
        assert row["settings_run"] == row["settings"]


def test_what_is_missing_is_said(imitated, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "cuml", None)
    rows = _rows("neighbours", tmp_path)
    failed = [row for row in rows if row["failure"]]
    assert {row["contender"] for row in failed} == {OURS, CUML_DEVICE, CUML_HOST, ACCEL}
    assert all("cuml" in row["failure"] for row in failed)
    assert "cuml.accel: ModuleNotFoundError: No module named 'cuml' (neighbours 77 kB float32)" in (
        _compared.failures(rows)
    )


def test_what_does_not_fit_is_not_run(imitated, no_process, monkeypatch, tmp_path):
    monkeypatch.setattr(_part, "_COPIES_THERE", 1e12)
    rows = {row["contender"]: row for row in _rows("ridge", tmp_path)}
    assert rows[OURS]["failure"].startswith("not run: it may take ")
    assert "on the device" in rows[CUML_DEVICE]["failure"]
    assert rows[OURS_ON_HOST]["failure"] is None


def test_a_process_that_takes_too_long_is_ended(monkeypatch):
    monkeypatch.setenv(IMITATION, "array_api_strict")
    found = _process.run_process(["ridge"], 0.1, True, lambda where: None)
    assert found.failure == "ended after 0 s"
    assert found.rows == []
    assert found.seconds < 10


# ------------------------------------------------------------------------------------------ what is kept


def test_some_settings_first(monkeypatch):
    ran = []

    def run(row, search, now, settings):
        ran.append(len(now))
        row |= {"seconds": 2.0 * len(now), "settings_run": len(now), "whole": 2.0 * len(settings)}
        return 2.0 * len(now)

    monkeypatch.setattr(_timed, "_run", run)
    settings = [{"a": value} for value in range(10)]
    first = _timed.some(settings, PROBLEMS["ridge"].task, False)
    assert first == [{"a": 0}, {"a": 9}]
    assert _timed.timed(None, settings, first, 100.0)["settings_run"] == 10
    assert (
        _timed.timed(None, settings, first, 15.0)["settings_run"] == 2
    )  # 16 s would be too long for the rest
    assert ran == [2, 2, 10, 2, 2]  # the first run of each is not timed
    late = _timed.timed(None, settings, first, 10.0, expected=6.0)
    assert late["failure"] == "NoTime: 12 s for 2 settings, with 10 s left"
    assert len(ran) == 5


def _row(contender, whole, scores, **more):
    return {"problem": "p", "case": "c", "contender": contender, "floor": 0.5, "settings": 2} | more | {
        "whole": whole, "seconds": whole, "settings_run": len(scores or ()), "scores": scores,
    }  # fmt: skip


def test_scores_of_all_are_compared():
    rows = [
        _row(OURS, 1.0, {"a": [0.5, 0.6], "b": [0.1, 0.2]}),
        _row(SKLEARN, 4.0, {"a": [0.5, 0.7]}),
        _row(ACCEL, 2.0, {"b": [0.1, 0.5]}),
        _row(CUML_HOST, None, {}, failure="no"),
    ]
    ours, theirs, accel, failed = _compared.compared(rows)
    assert (ours["times"], ours["over_floor"], ours["share"]) == (4.0, 2.0, 1.0)
    assert ours["difference"] == pytest.approx(0.1)
    assert (theirs["difference"], theirs["share"]) == (None, 0.5)
    assert accel["difference"] is None  # no setting in common
    assert (failed["whole"], failed["failure"]) == (None, "no")
    (worst,) = _compared.largest_differences(rows)
    assert worst["difference"] == pytest.approx(0.3)
    assert worst["between"] == [OURS, ACCEL]
    assert _compared.apart(rows[0], _row(ACCEL, 1.0, {"a": [0.5, float("nan")]})) == float("inf")
    assert _compared.failures(rows) == [f"{CUML_HOST}: no (p c)"]


def test_a_part_that_ends_early_keeps_its_rows(monkeypatch, tmp_path):
    about = {"device": "a device", "versions": {"cupy": "1"}}
    rows = [_row(OURS, 1.0, {"a": [0.5]}), _row(SKLEARN, 4.0, {"a": [0.5]})]
    run = _process.Run(rows, about, 3.0, "ended after 3 s")
    monkeypatch.setattr(on_gpu, "run_process", lambda *_: run)
    found = all_benchmarks()["gpu-ridge"].run(quick=True)
    text = table(found)
    assert "NOT COMPLETE: ended after 3 s" in text
    assert "a device; cupy 1; 3 s" in text
    write_json([found], tmp_path / "out.json")
    (kept,) = json.loads((tmp_path / "out.json").read_text())["results"]
    assert kept["found"]["failure"] == "ended after 3 s"
    assert kept["found"]["largest_differences"][0]["difference"] == 0.0
    assert len(kept["rows"]) == 2


def test_tests_are_counted(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(
        "<testsuites><testsuite><testcase classname='a' name='b'/><testcase classname='a' name='c'>"
        "<failure/></testcase><testcase classname='a' name='d'><skipped/></testcase></testsuite></testsuites>"
    )
    row = _tests.read_report(report)
    assert (row["passed"], row["failed"], row["skipped"]) == (1, 1, 1)
    assert row["failed_tests"] == ["a::c"]
    assert row["failure"] == "1 failed, the first a::c"
    assert {"tests/units/arrays", "tests/units/metrics", "tests/device"} <= set(_tests.folders())
    assert _tests.folders()[-1] == "tests/device/estimators"  # the longest


@pytest.mark.thorough
def test_the_whole_command(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("PYTHONPATH", STAND_IN)
    monkeypatch.setenv(IMITATION, "")  # so that it is put back
    _process.why_no_device.cache_clear()
    out = tmp_path / "gpu.json"
    assert command(["gpu", "--imitate", "array_api_strict", "--out", str(out)]) == 0
    results = json.loads(out.read_text())["results"]
    assert [result["name"] for result in results] == list(on_gpu.PARTS)
    assert [result["found"]["failure"] for result in results] == [None] * len(on_gpu.PARTS)
    tests, *searches = results
    assert tests["rows"][0]["passed"] > 0 and tests["rows"][0]["failure"] is None
    for result in searches:
        assert {row["contender"] for row in result["rows"]} >= EVERYBODY - {OURS_ON_HOST}
        assert len(result["found"]["largest_differences"]) >= 1
    printed = capsys.readouterr().out
    assert all(f"{part}: " in printed for part in on_gpu.PARTS)
    _process.why_no_device.cache_clear()
