"""A race over splits beside the full search: fits, and whether the choice is the same."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.stats import loguniform, randint
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold

from benchmarks._benchmark import register
from benchmarks._study import Column, Findings, Study, Tell
from benchmarks._verdict import at_least

_SPACE = {
    "learning_rate": loguniform(0.01, 1),
    "max_leaf_nodes": randint(3, 40),
    "min_samples_leaf": randint(2, 100),
    "l2_regularization": loguniform(1e-3, 10),
}
_RACES = (None, "t-test", "wilcoxon")
_COLUMNS = (
    Column("race", "race"),
    Column("fits", "fits, mean", "number"),
    Column("less", "times fewer fits", "number"),
    Column("cpu", "CPU time, mean", "s"),
    Column("same", "same choice", "number"),
    Column("lost", "largest loss of score", "gap"),
)


def _measure(quick: bool, tell: Tell) -> Findings:
    from manyfit.model_selection import RandomizedSearchCV

    seeds, n, n_settings = (2, 200, 5) if quick else (20, 400, 20)
    found: dict[Any, dict[str, list[Any]]] = {
        race: {"fits": [], "cpu": [], "best": [], "score": []} for race in _RACES
    }
    for seed in range(seeds):
        tell(f"seed {seed}")
        X, y = make_classification(n, 20, n_informative=6, flip_y=0.1, random_state=seed)
        full: Any = None
        for race, own in found.items():
            search = RandomizedSearchCV(
                HistGradientBoostingClassifier(max_iter=15, random_state=0), _SPACE, n_iter=n_settings,
                cv=StratifiedKFold(10, shuffle=True, random_state=seed), scoring="neg_log_loss",
                random_state=seed, race=race, refit=False,
            )  # fmt: skip
            start = time.process_time()
            search.fit(X, y)
            own["cpu"].append(time.process_time() - start)
            full = search if race is None else full
            own["fits"].append(search.report_.fits_requested)
            own["best"].append(int(search.best_index_))
            own["score"].append(float(full.cv_results_["mean_test_score"][search.best_index_]))
    rows = []
    for race, own in found.items():
        same = [a == b for a, b in zip(own["best"], found[None]["best"], strict=True)]
        lost = np.subtract(found[None]["score"], own["score"]).max()
        rows.append({
            "race": "none" if race is None else race, "fits": float(np.mean(own["fits"])),
            "less": float(np.mean(found[None]["fits"]) / np.mean(own["fits"])),
            "cpu": float(np.mean(own["cpu"])), "same": sum(same), "lost": float(lost),
        })  # fmt: skip
    notes = (f"{seeds} data sets of {n} x 20; the loss is of the mean log loss over all splits.",)
    verdicts = [
        at_least("at least 2 times fewer fits by race='t-test'", rows[1]["less"], 2.0, "times"),
        at_least(f"the same choice in {seeds - 1} of {seeds}", rows[1]["same"], seeds - 1, "times"),
    ]
    return Findings(rows, _COLUMNS, {"seeds": seeds}, notes, verdicts)


register(
    Study(
        "race-boosting",
        "HistGradientBoostingClassifier, 20 settings x 10, worse ones dropped early",
        _measure,
    )
)
