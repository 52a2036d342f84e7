"""Ten metrics for many settings in one call, and scikit-learn's functions called for each setting.

``python -m benchmarks.metrics [--quick] [--library numpy] [--out FILE]``. With a library other than NumPy the
predictions lie on its default device, where ours are computed; scikit-learn's are computed on the host.
"""

from __future__ import annotations

import argparse
import importlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import sklearn.metrics
from scipy.special import expit

from benchmarks._floor import read_rate
from benchmarks._machine import machine
from manyfit import metrics
from manyfit.arrays import to_device, to_host

# Required ratio of times, if there is a requirement.
ASKED = {
    "accuracy_score": 10.0,
    "log_loss": 10.0,
    "f1_score": 4.0,
    "roc_auc_score": 2.5,
    "r2_score": 1.5,
    "mean_squared_error": 1.5,
}
METRICS = {
    "accuracy_score": "labels",
    "balanced_accuracy_score": "labels",
    "f1_score": "labels",
    "matthews_corrcoef": "labels",
    "log_loss": "probabilities",
    "brier_score_loss": "probabilities",
    "roc_auc_score": "probabilities",
    "average_precision_score": "probabilities",
    "r2_score": "numbers",
    "mean_squared_error": "numbers",
}
SAME = 1e-12


@dataclass(frozen=True)
class Row:
    """The result of one metric.

    Attributes
    ----------
    metric : str
        scikit-learn's name.
    ours, theirs : float
        Seconds for all settings: manyfit's call (the median of the rounds), and scikit-learn's calls.
    times : float
        Their quotient.
    floor : float
        Seconds to read the predictions once.
    apart : float
        Largest difference of a score, relative to the score if that is above 1.
    asked : float or None
        Required ratio of times.
    """

    metric: str
    ours: float
    theirs: float
    times: float
    floor: float
    apart: float
    asked: float | None


def answers(settings: int, rows: int) -> dict[str, tuple[Any, Any]]:
    """Targets, and predictions of each kind, (settings, rows)."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=rows)
    y = (rng.random(rows) < expit(2.0 * z)).astype(np.int64)
    P = np.empty((settings, rows))
    for row in P:
        row[:] = z + rng.normal(size=rows)
    probabilities = expit(P)
    return {
        "labels": (y, (P > 0.0).astype(np.int64)),
        "probabilities": (y, probabilities),
        "numbers": (z, P),
    }


def _seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    start = perf_counter()
    result = call()
    return perf_counter() - start, result


def measure(*, quick: bool = False, library: str = "numpy", rounds: int = 3) -> list[Row]:
    """Measure all metrics, manyfit's before and after scikit-learn's."""
    settings, rows = (3, 1000) if quick else (50, 1_000_000)
    xp = importlib.import_module(library)
    rate = read_rate(8 * settings * rows)
    out = []
    for kind, (y, P) in answers(settings, rows).items():
        y_there, P_there = (to_device(a, xp=xp) for a in (y, P))
        for name in [name for name, read in METRICS.items() if read == kind]:
            many, single = getattr(metrics, name).many, getattr(sklearn.metrics, name)

            def ours(many: Any = many, y: Any = y_there, P: Any = P_there) -> Any:
                return to_host(many(y, P))

            def theirs(single: Any = single, y: Any = y, P: Any = P) -> Any:
                return np.array([single(y, one) for one in P])

            ours()
            taken = [_seconds(ours) for _ in range(rounds // 2)]
            peer, expected = _seconds(theirs)
            taken += [_seconds(ours) for _ in range(rounds - rounds // 2)]
            median = float(np.median([seconds for seconds, _ in taken]))
            apart = float(np.max(np.abs(taken[-1][1] - expected) / np.maximum(np.abs(expected), 1.0)))
            out.append(Row(name, median, peer, peer / median, P.nbytes / rate, apart, ASKED.get(name)))
    return out


def table(rows: list[Row]) -> str:
    """The results as a table."""
    lines = [
        f"{'metric':24} {'manyfit':>9} {'scikit-learn':>13} {'times':>7} {'x floor':>8} {'apart':>8}  asked"
    ]
    for row in rows:
        asked = (
            "" if row.asked is None else f"{row.asked:g}: {'met' if row.times >= row.asked else 'NOT met'}"
        )
        lines.append(
            f"{row.metric:24} {row.ours:8.3g}s {row.theirs:12.3g}s {row.times:7.3g} "
            f"{row.ours / row.floor:8.3g} {row.apart:8.1e}  {asked}"
        )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line; 1 if a score is not scikit-learn's."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.metrics", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small size, to see that it works")
    parser.add_argument("--library", default="numpy", help="where predictions lie: numpy, cupy, torch")
    parser.add_argument("--out", type=Path, help="write everything measured as JSON")
    chosen = parser.parse_args(arguments)
    rows = measure(quick=chosen.quick, library=chosen.library)
    print(table(rows))
    if chosen.out:
        found = {"machine": machine(), "library": chosen.library, "rows": [asdict(row) for row in rows]}
        chosen.out.write_text(json.dumps(found, indent=1) + "\n")
    return 0 if all(row.apart <= SAME for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
