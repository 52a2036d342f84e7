"""Hyperband and Optuna's sampler beside the libraries that have them, and a search of all settings."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.stats import loguniform
from sklearn.datasets import make_classification
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer
from sklearn.svm import SVC

from benchmarks._benchmark import register
from benchmarks._study import Column, Findings, Study, Tell

_BLOCKS = 20
# A call of partial_fit reads all training rows, and of dask-ml one block: its models read fewer rows.
_MAX_ITER, _MAX_BLOCKS = 9, 81
_LEARNER = SGDClassifier(learning_rate="constant", random_state=0)
_SPACE = {"alpha": loguniform(1e-7, 1e-1), "eta0": loguniform(1e-5, 1), "average": [False, True]}


def _rows(n: int, seed: int) -> tuple[Any, Any]:
    """Rows of 50 columns, 15 of which decide, with a class that is drawn."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 50))
    weights = np.where(np.arange(50) < 15, np.random.default_rng(0).standard_normal(50), 0.0)
    logits = X @ weights + 0.5 * X[:, 0] * X[:, 1]
    return X, (logits + rng.logistic(size=n) > 0).astype(int)


def _repair_dask_ml() -> None:
    """Let dask-ml's incremental searches run on a Dask since 2025 (dask-ml issue 1016).

    They call ``dask.persist`` on the client's event loop, which Dask now refuses; its client does the same.
    """
    import dask
    from dask_ml.model_selection import _incremental  # type: ignore[import-untyped]
    from distributed import default_client

    def persist(*given: Any) -> list[Any]:
        client, found = default_client(), []
        for one in given:
            if isinstance(one, dict):
                kept = client.persist(list(one.values())) if one else []
                found.append(dict(zip(one, kept, strict=True)))
            else:
                found.append(client.persist(one) if dask.is_dask_collection(one) else one)
        return found

    _incremental.dask = SimpleNamespace(persist=persist, delayed=dask.delayed)


def _measure_hyperband(quick: bool, tell: Tell) -> Findings:
    import dask.array as da
    from distributed import Client, LocalCluster

    from manyfit.model_selection import HyperbandSearchCV, IncrementalSearchCV

    n, seeds = (20_000, 1) if quick else (1_000_000, 1)
    X, y = _rows(n, 1)
    chunked, targets = da.from_array(X, chunks=(n // _BLOCKS, 50)), da.from_array(y, chunks=n // _BLOCKS)
    others = _rows(n // 5, 2)
    in_chunks = {"memory_limit": X.nbytes // 2, "n_jobs": 2}

    def hyperband(seed: int, **more: Any) -> Any:
        return HyperbandSearchCV(_LEARNER, _SPACE, max_iter=_MAX_ITER, random_state=seed, **more)

    def every(seed: int) -> Any:
        n_models = hyperband(seed).metadata["n_models"]
        given = {"n_initial_parameters": n_models, "max_iter": _MAX_ITER, "fits_per_score": _MAX_ITER - 1}
        return IncrementalSearchCV(_LEARNER, _SPACE, random_state=seed, **given, **in_chunks)

    def dask_ml(seed: int) -> Any:
        from dask_ml.model_selection import HyperbandSearchCV as Theirs  # type: ignore[import-untyped]

        _repair_dask_ml()
        return Theirs(_LEARNER, _SPACE, max_iter=_MAX_BLOCKS, random_state=seed)

    def fit_chunks(search: Any) -> Any:
        return search.fit(chunked, y)

    def fit_memory(search: Any) -> Any:
        return search.fit(X, y)

    def fit_dask_ml(search: Any) -> Any:
        with (
            LocalCluster(
                n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
            ) as cluster,
            Client(cluster),
        ):
            return search.fit(chunked, targets, classes=[0, 1])

    contenders: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
        "manyfit HyperbandSearchCV, X in chunks": (lambda seed: hyperband(seed, **in_chunks), fit_chunks),
        "manyfit HyperbandSearchCV, X in memory": (lambda seed: hyperband(seed, n_jobs=1), fit_memory),
        "manyfit, the same settings all to the end": (every, fit_chunks),
        "dask-ml HyperbandSearchCV": (dask_ml, fit_dask_ml),
    }
    rows, failures = [], []
    for name, (make, fit) in contenders.items():
        seconds, cpu, scores, search = [], [], [], None
        for seed in range(seeds):
            tell(f"{name}, seed {seed}")
            start, before = time.perf_counter(), time.process_time()
            try:
                search = fit(make(seed))
            except Exception as error:  # kept as data: the library may not work with these versions
                failures.append(f"{name} failed: {type(error).__name__}: {error}")
                break
            seconds.append(time.perf_counter() - start)
            cpu.append(time.process_time() - before)
            scores.append(float(search.best_estimator_.score(*others)))
        if seconds:
            calls = int(np.sum(search.cv_results_["partial_fit_calls"]))
            read = calls * (n // _BLOCKS if name.startswith("dask") else round(0.8 * n))
            rows.append({
                "search": name, "models": len(search.cv_results_["params"]), "rows": read / 1e6,
                "seconds": float(np.median(seconds)), "cpu": float(np.median(cpu)),
                "score": float(np.mean(scores)), "worst": min(scores),
            })  # fmt: skip
    notes = (
        f"{n:,} x 50 in {_BLOCKS} blocks, {seeds} seed; accuracy on {n // 5:,} other rows. "
        "A call of dask-ml reads one block, one of manyfit all training rows. dask-ml is repaired (its issue "
        "1016), since its own code fails with this Dask.",
        *failures,
    )
    columns = (
        Column("search", "search"), Column("models", "settings", "number"),
        Column("rows", "millions of rows read by fits", "number"), Column("seconds", "time", "s"),
        Column("cpu", "CPU time", "s"), Column("score", "accuracy, mean", "number"),
        Column("worst", "worst", "number"),
    )  # fmt: skip
    return Findings(rows, columns, {"failures": failures}, notes)


def _measure_optuna(quick: bool, tell: Tell) -> Findings:
    import optuna
    from optuna.distributions import FloatDistribution, IntDistribution

    from manyfit.model_selection import OptunaSearchCV

    n, seeds, trials = (150, 1, 10) if quick else (500, 3, 48)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    model = make_pipeline(QuantileTransformer(output_distribution="normal", random_state=0), SVC())
    space = {
        "quantiletransformer__n_quantiles": IntDistribution(20, 100, step=40),
        "svc__C": FloatDistribution(1e-2, 1e3, log=True),
        "svc__gamma": FloatDistribution(1e-4, 1, log=True),
    }

    def ours(seed: int, size: int) -> Any:
        return OptunaSearchCV(model, space, n_trials=trials, batch_size=size, random_state=seed, cv=5)

    def theirs(seed: int) -> Any:
        from optuna_integration import OptunaSearchCV as Theirs  # type: ignore[import-not-found, unused-ignore]

        sampler = optuna.samplers.TPESampler(seed=seed)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        return Theirs(model, space, n_trials=trials, study=study, cv=5)

    contenders: dict[str, Callable[[int], Any]] = {
        "manyfit OptunaSearchCV, batches of 8": lambda seed: ours(seed, 8),
        "manyfit OptunaSearchCV, batches of 1": lambda seed: ours(seed, 1),
        "optuna-integration OptunaSearchCV": theirs,
    }
    found: dict[str, dict[str, list[float]]] = {
        name: {"seconds": [], "cpu": [], "best": []} for name in contenders
    }
    failures: dict[str, str] = {}
    for seed in range(seeds):
        X, y = make_classification(n, 20, n_informative=8, flip_y=0.05, random_state=seed)
        X = np.exp(X)
        for name, make in contenders.items():
            if name in failures:
                continue
            tell(f"seed {seed}, {name}")
            start, cpu = time.perf_counter(), time.process_time()
            try:
                search = make(seed).fit(X, y)
            except Exception as error:  # kept as data
                failures[name] = f"{name} failed: {type(error).__name__}: {error}"
                continue
            own = found[name]
            own["seconds"].append(time.perf_counter() - start)
            own["cpu"].append(time.process_time() - cpu)
            own["best"].append(float(search.best_score_))
    rows = [
        {
            "search": name, "seconds": float(np.median(own["seconds"])), "cpu": float(np.median(own["cpu"])),
            "best": float(np.mean(own["best"])), "worst": min(own["best"]),
        }
        for name, own in found.items() if name not in failures
    ]  # fmt: skip
    columns = (
        Column("search", "search"), Column("seconds", "time", "s"), Column("cpu", "CPU time", "s"),
        Column("best", "best score, mean", "number"), Column("worst", "worst", "number"),
    )  # fmt: skip
    notes = (f"{seeds} data sets of {n:,} x 20, {trials} trials, 5 folds; medians.", *failures.values())
    return Findings(rows, columns, {"failures": list(failures.values())}, notes)


def _lacks(*packages: str) -> Callable[[], str | None]:
    def why_not() -> str | None:
        missing = [name for name in packages if find_spec(name) is None]
        return f"it needs {', '.join(missing)}" if missing else None

    return why_not


register(
    Study(
        "hyperband-sgd",
        "SGDClassifier by partial_fit, Hyperband on 1,000,000 x 50 in blocks",
        _measure_hyperband,
        _lacks("dask", "distributed"),
    )
)
register(
    Study(
        "optuna-tpe",
        "QuantileTransformer and SVC, 48 trials of TPE x 5 in batches, 500 x 20",
        _measure_optuna,
        _lacks("optuna"),
    )
)
