"""The part of ``early_stopping="fold"`` outside of the fits: checks before them, and their iterations."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from manyfit.introspection.composites import build_setting
from manyfit.model_selection.early_stopping._boosters import booster_of, stops_lightgbm
from manyfit.model_selection.early_stopping._fold_stopping import N_ITER, split_pipelines
from manyfit.model_selection.job._job import Job, Result

# Parameters of fits that are a validation set of the user's own.
_VALIDATION_SETS = ("eval_set", "eval_X", "eval_y", "X_val", "y_val")


def require_stops(job: Job) -> Job:
    """Raise ValueError if a setting cannot stop early by the test part of its fold; returns the job."""
    if job.options.early_stopping is None:
        return job
    for name, value in job.options.fit_params.items():
        if name.rpartition("__")[2] in _VALIDATION_SETS:
            raise ValueError(
                f"early_stopping='fold' validates each fit on the test part of its fold; got {name} too."
                f" Leave out {name}, or set early_stopping=None."
            )
        if name.endswith("callbacks") and any(map(stops_lightgbm, value)):
            raise ValueError(  # LightGBM's callback fails in the refit
                f"early_stopping='fold' refits without the validation set that stops by {name} need."
                " Set early_stopping_round of the estimator instead."
            )
    for params in job.candidates:
        try:
            model = build_setting(job.estimator, params)
        except Exception:  # its fit raises it again, and `error_score` says what happens then
            continue
        _require_stop(split_pipelines(model)[1])
    return job


def _require_stop(last: Any) -> None:
    name, booster = type(last).__name__, booster_of(last)
    if booster is None:
        raise ValueError(
            "early_stopping='fold' stops fits of XGBoost, LightGBM and HistGradientBoosting, alone or as the"
            f" last step of a Pipeline; got {name}. Set early_stopping=None, or search it by itself."
        )
    missing = booster.why_not(last)
    if missing is not None:
        raise ValueError(
            f"early_stopping='fold' needs to know after how many rounds without improvement {name} stops."
            f" Set its {missing}."
        )


def iteration_columns(out: Sequence[Result], n_splits: int) -> dict[str, Any]:
    """Columns of ``cv_results_`` with the iterations of each split, and their mean; none without them."""
    if not any(N_ITER in one for one in out):
        return {}
    found = [np.nan if one.get(N_ITER) is None else float(one[N_ITER]) for one in out]
    table = np.array(found).reshape(-1, n_splits)
    return {
        **{f"split{i}_{N_ITER}": table[:, i] for i in range(n_splits)},
        f"mean_{N_ITER}": table.mean(axis=1),
    }


def limit_iterations(estimator: Any, results: Mapping[str, Any], best: int, n_splits: int) -> int | None:
    """Let an unfitted estimator make the mean of its best iterations, and not stop; returns how many.

    None if every fit of the setting failed: the estimator stays as it is.
    """
    found = np.array([results[f"split{i}_{N_ITER}"][best] for i in range(n_splits)])
    found = found[~np.isnan(found)]
    _, last = split_pipelines(estimator)
    booster = booster_of(last)
    if booster is None or not found.size:
        return None
    n_iter = max(1, round(float(found.mean())))
    last.set_params(**booster.fixed(last, n_iter))
    return n_iter
