"""Data on a GPU: the tests that need one, then searches beside scikit-learn's, cuML's and cuml.accel's.

``python -m benchmarks gpu`` runs all of them, in at most thirteen minutes.
"""

from __future__ import annotations

from typing import Any

from benchmarks._benchmark import register
from benchmarks._study import Column, Findings, Study, Tell
from benchmarks._verdict import Verdict, at_most
from benchmarks.gpu._compared import compared, failures, largest_differences
from benchmarks.gpu._problems import PROBLEMS
from benchmarks.gpu._process import Run, run_process, why_no_device
from benchmarks.gpu._verdicts import verdicts

# Seconds of each part with its start: 720 in all, without those to find the device.
PARTS = {
    "gpu-tests": (150.0, ["tests"], "the tests that need a device"),
    "gpu-ridge": (130.0, ["ridge"], "Ridge, 10 alphas x 5 folds, r2, diabetes up to 2.8 GB, two dtypes"),
    "gpu-affine-pipeline": (60.0, ["affine-pipeline"], "StandardScaler > PCA > Ridge, 100 settings"),
    "gpu-logistic": (220.0, ["logistic", "logistic-multinomial"], "LogisticRegression, two and ten classes"),
    "gpu-one-by-one": (160.0, ["forest", "neighbours"], "cuML's forest and neighbours, fitted one by one"),
}  # fmt: skip

_SEARCHES = (
    Column("problem", "problem"),
    Column("case", "X"),
    Column("contender", "contender"),
    Column("whole", "time", "s"),
    Column("share", "measured", "number"),
    Column("times", "times", "number"),
    Column("over_floor", "x floor", "number"),
    Column("fits_made", "fits", "number"),
    Column("to_device", "to device", "bytes"),
    Column("to_host", "to host", "bytes"),
    Column("synchronisations", "waits", "number"),
    Column("peak", "peak", "bytes"),
    Column("seen_to_device", "seen to device", "bytes"),
    Column("seen_to_host", "seen to host", "bytes"),
    Column("seen_waits", "seen waits", "number"),
    Column("difference", "apart", "gap"),
)
_TESTS = (
    Column("folder", "folder"),
    Column("passed", "passed", "number"),
    Column("failed", "failed", "number"),
    Column("skipped", "skipped", "number"),
    Column("seconds", "time", "s"),
    Column("failure", "failure"),
)
_LEGEND = (
    "time: of all settings, the median of up to five runs after the first one, which compiles kernels; if\n"
    "they would take too long, some were run, and 'measured' is their share;\n"
    "times: against scikit-learn; x floor: against the larger of two bounds, the bytes of X and y at the\n"
    "rate of a copy and the fewest operations at the rate of a product, both measured in this run;\n"
    "fits, to device, to host, waits: by manyfit's own report; peak: most device memory in use by a search,\n"
    "beyond X and y; seen: by all libraries, in the smallest case, as the driver sees it;\n"
    "apart: largest difference of a score on a split from scikit-learn's, or from the first contender's"
)


def _measure_searches(part: str, quick: bool, tell: Tell) -> Findings:
    run = _run(part, quick, tell)
    rows = compared(run.rows)
    found = {"about": run.about, "seconds": run.seconds, "failure": run.failure}
    found["largest_differences"] = largest_differences(run.rows)
    notes = [*failures(run.rows), *_about(run), _LEGEND]
    own = [name for name, problem in PROBLEMS.items() if problem.own]
    asked = [*verdicts(rows, own), _in_time(part, run)]
    return Findings(rows, _SEARCHES, found=found, notes=notes, verdicts=asked)


def _measure_tests(part: str, quick: bool, tell: Tell) -> Findings:
    run = _run(part, quick, tell)
    rows = [{"failed": None, "skipped": None, "seconds": None, **row} for row in run.rows]
    found = {"about": run.about, "seconds": run.seconds, "failure": run.failure}
    wrong = sum(row["failed"] or bool(row["failure"]) for row in rows) if rows else None
    asked = [at_most("no test fails, and all are run", wrong, 0, "wrong"), _in_time(part, run)]
    return Findings(rows, _TESTS, found=found, notes=_about(run), verdicts=asked)


def _in_time(part: str, run: Run) -> Verdict:
    if run.failure:
        return Verdict("complete", run.failure, False)
    return at_most("complete in its time", run.seconds, PARTS[part][0], "s")


def _run(part: str, quick: bool, tell: Tell) -> Run:
    seconds, problems, _ = PARTS[part]
    return run_process(problems, seconds, quick, tell)


def _about(run: Run) -> list[str]:
    notes = []
    if run.about:
        versions = [f"{name} {version}" for name, version in run.about["versions"].items() if version]
        notes.append(f"{run.about['device']}; {', '.join(versions)}; {run.seconds:.0f} s")
    if "memory" in run.about:
        notes.append(f"memory of the device: {run.about['memory']}")
    if "rates" in run.about:
        rates: dict[str, Any] = run.about["rates"]
        products = [f"{rate / 1e12:.3g} Tflop/s in {dtype}" for dtype, rate in rates["product"].items()]
        notes.append(
            f"copies {rates['copy'] / 1e9:.4g} GB/s, from the host {rates['from_host'] / 1e9:.3g} GB/s, "
            f"to the host {rates['to_host'] / 1e9:.3g} GB/s, products {', '.join(products)}"
        )
    if run.failure:
        notes.append(f"NOT COMPLETE: {run.failure}")
    return notes


for _part, (_, _, _summary) in PARTS.items():
    _measure = _measure_tests if _part == "gpu-tests" else _measure_searches
    register(
        Study(
            name=_part,
            summary=_summary,
            measure=lambda quick, tell, part=_part, measure=_measure: measure(part, quick, tell),  # type: ignore[misc]
            why_not=why_no_device,
        )
    )
