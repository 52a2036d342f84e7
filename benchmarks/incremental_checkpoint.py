"""The share of an incremental search that its checkpoint takes."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import loguniform
from sklearn.datasets import make_classification
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier

from benchmarks._benchmark import register
from benchmarks._study import Column, Findings, Study, Tell

_ROUNDS = 5  # of which the fastest counts


def _forest() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(10, random_state=0)


# The model, its space, how many settings, how many calls, and the rows and columns.
CASES: dict[str, tuple[Callable[[], Any], dict[str, Any], int, int, tuple[int, int]]] = {
    "SGDClassifier": (
        lambda: SGDClassifier(random_state=0), {"alpha": loguniform(1e-6, 1e-1)}, 50, 6, (2_000, 50),
    ),
    "MLPClassifier, 2 x 256": (
        lambda: MLPClassifier((256, 256), random_state=0), {"alpha": loguniform(1e-6, 1e-1)}, 10, 6,
        (500, 50),
    ),
    "RandomForestClassifier, 10 trees a call": (
        _forest, {"min_samples_leaf": [1, 2, 4, 8], "max_features": [2, 5, 10]}, 10, 5, (300, 20),
    ),
}  # fmt: skip


def _measure(quick: bool, tell: Tell) -> Findings:
    from manyfit.model_selection import IncrementalSearchCV
    from manyfit.model_selection.checkpoint import _models

    rows, usual = [], _models.MODELS_SHARE

    def seconds(name: str, share: float | None) -> tuple[float, int]:
        """CPU seconds of a search, and bytes of its checkpoint."""
        make, space, n, calls, shape = CASES[name]
        shape, n, calls = ((200, shape[1]), 4, 3) if quick else (shape, n, calls)
        X, y = make_classification(*shape, random_state=0)
        with tempfile.TemporaryDirectory() as folder:
            path = None if share is None else Path(folder, "checkpoint")
            search = IncrementalSearchCV(make(), space, n, max_iter=calls, random_state=0, checkpoint=path)
            _models.MODELS_SHARE = usual if share is None else share
            start = time.process_time()
            search.fit(X, y)
            spent = time.process_time() - start
            return spent, 0 if path is None else path.stat().st_size

    try:
        for name in CASES:
            found: dict[str, list[float]] = {"none": [], "every": [], "usual": []}
            size = 0
            for _ in range(1 if quick else _ROUNDS):
                for kind, share in (("none", None), ("every", np.inf), ("usual", usual)):
                    tell(f"{name}, {kind}")
                    spent, size = seconds(name, share)
                    found[kind].append(spent)
            none, every, own = (min(found[kind]) for kind in ("none", "every", "usual"))
            rows.append({
                "model": name, "none": none, "every": every / none - 1, "usual": own / none - 1, "size": size,
            })  # fmt: skip
    finally:
        _models.MODELS_SHARE = usual
    columns = (
        Column("model", "model"), Column("none", "CPU time without a checkpoint", "s"),
        Column("every", "more with models in each round", "number"),
        Column("usual", "more with models in a tenth of the time", "number"),
        Column("size", "bytes of the file", "bytes"),
    )  # fmt: skip
    notes = (f"IncrementalSearchCV, models scored after each call; the fastest of {_ROUNDS} runs in turns.",)
    return Findings(rows, columns, {}, notes)


register(
    Study(
        "incremental-checkpoint",
        "an incremental search with and without a checkpoint, three kinds of models",
        _measure,
    )
)
