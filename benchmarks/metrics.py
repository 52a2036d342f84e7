"""Ten metrics for many settings in one call, and scikit-learn's functions called for each setting.

``python -m benchmarks.metrics [--folds] [--quick] [--library numpy] [--out FILE]``. With a library other than
NumPy the predictions lie on its default device, where ours are computed; scikit-learn's are computed on the
host. With ``--folds`` scorers score a fold in a search: 1, 10 and 50 settings on 100 to 100,000 rows.
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
from sklearn.dummy import DummyClassifier

from benchmarks._floor import read_rate
from benchmarks._machine import machine
from manyfit import metrics
from manyfit.arrays import to_device, to_host
from manyfit.metrics import ScoredTargets, SharedScoring

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
# Scorers of folds, and what they read.
SCORERS = {
    "accuracy": "labels",
    "balanced_accuracy": "labels",
    "neg_log_loss": "probabilities",
    "neg_brier_score": "probabilities",
    "r2": "numbers",
    "neg_mean_squared_error": "numbers",
    "neg_root_mean_squared_error": "numbers",
    "neg_mean_absolute_error": "numbers",
    "neg_mean_poisson_deviance": "counts",
    "neg_mean_gamma_deviance": "counts",
}
FOLD_ROWS, FOLD_SETTINGS = (100, 1000, 100_000), (1, 10, 50)


@dataclass(frozen=True)
class Row:
    """The result of one metric.

    Attributes
    ----------
    metric : str
        scikit-learn's name; of folds with the numbers of rows and of settings.
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


def fold(kind: str, settings: int, rows: int) -> tuple[ScoredTargets, dict[str, Any]]:
    """Targets of a fold, and responses of several settings."""
    if kind == "counts":
        rng = np.random.default_rng(0)
        P = rng.gamma(2.0, size=(settings, rows)) + 0.01
        y = rng.poisson(P[0]) + 1.0
        return ScoredTargets(y, given_dtype=y.dtype), {"predict": P}
    y, P = answers(settings, rows)[kind]
    classes = None if kind == "numbers" else np.array([0, 1])
    responses = {"predict_proba": np.stack([1 - P, P], axis=2)} if kind == "probabilities" else {"predict": P}
    return ScoredTargets(y, None, classes, y.dtype), responses


def measure_folds(*, quick: bool = False) -> list[Row]:
    """Measure the scorers of a search on folds, new targets for each call: medians of 7 rounds or more."""
    out = []
    sizes = [(n, m) for n in (FOLD_ROWS[:1] if quick else FOLD_ROWS) for m in FOLD_SETTINGS]
    for name, kind in SCORERS.items():
        shared = SharedScoring(sklearn.metrics.get_scorer(name), {}, DummyClassifier())
        for n, m in sizes:
            truth, responses = fold(kind, m, n)

            def ours(shared: Any = shared, fold: Any = (truth, responses)) -> Any:
                y, classes, dtype = fold[0].y, fold[0].classes, fold[0].given_dtype
                return shared.from_responses(fold[1], ScoredTargets(y, None, classes, dtype))["score"]

            def theirs(shared: Any = shared, fold: Any = (truth, responses), m: int = m) -> Any:
                own = [{method: P[j] for method, P in fold[1].items()} for j in range(m)]
                stubs = [shared.stub(one, fold[0].classes) for one in own]
                return np.array([shared.scorer(stub, None, fold[0].y) for stub in stubs])

            ours()
            taken = [_seconds(ours) for _ in range(max(7, min(100, 10**6 // (n * m))))]
            peer, expected = _seconds(theirs)
            median = float(np.median([seconds for seconds, _ in taken]))
            apart = float(np.max(np.abs(taken[-1][1] - expected) / np.maximum(np.abs(expected), 1.0)))
            size = sum(P.nbytes for P in responses.values())
            row = Row(f"{name} {n:,} x {m}", median, peer, peer / median, size / read_rate(size), apart, None)
            out.append(row)
    return out


def table(rows: list[Row]) -> str:
    """The results as a table."""
    lines = [
        f"{'metric':40} {'manyfit':>9} {'scikit-learn':>13} {'times':>7} {'x floor':>8} {'apart':>8}  asked"
    ]
    for row in rows:
        asked = (
            "" if row.asked is None else f"{row.asked:g}: {'met' if row.times >= row.asked else 'NOT met'}"
        )
        lines.append(
            f"{row.metric:40} {row.ours:8.3g}s {row.theirs:12.3g}s {row.times:7.3g} "
            f"{row.ours / row.floor:8.3g} {row.apart:8.1e}  {asked}"
        )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line; 1 if a score is not scikit-learn's."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.metrics", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small size, to see that it works")
    parser.add_argument("--folds", action="store_true", help="score folds in a search, by ten scorers")
    parser.add_argument("--library", default="numpy", help="where predictions lie: numpy, cupy, torch")
    parser.add_argument("--out", type=Path, help="write everything measured as JSON")
    chosen = parser.parse_args(arguments)
    if chosen.folds:
        rows = measure_folds(quick=chosen.quick)
    else:
        rows = measure(quick=chosen.quick, library=chosen.library)
    print(table(rows))
    if chosen.out:
        found = {"machine": machine(), "library": chosen.library, "rows": [asdict(row) for row in rows]}
        chosen.out.write_text(json.dumps(found, indent=1) + "\n")
    return 0 if all(row.apart <= SAME for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
