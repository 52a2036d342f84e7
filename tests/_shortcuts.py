"""What scikit-learn asks, and what processes import, again and again is asked and imported once."""

from __future__ import annotations

import functools
from multiprocessing import get_context
from typing import Any

import numpy as np
from joblib.externals.loky.backend.context import set_start_method
from sklearn.base import BaseEstimator
from sklearn.utils import validation

# What workers of joblib and Dask import before and with their first task.
PRELOADED = (
    "distributed",
    "manyfit.cluster.worker.run_items",
    "manyfit.joblib_backend",
    "manyfit.model_selection",
)


def fork_joblib_workers() -> None:
    """Have joblib's processes forked from one with all imports: a pool of two takes 0.5 s of a core, not 6 s.

    Tests that run a script in a process of its own start them as users do.
    """
    get_context("forkserver").set_forkserver_preload([*PRELOADED])
    set_start_method("forkserver", force=True)


def take_shortcuts() -> None:
    """Remember the names of the parameters of each class, and that a plain array is no frame."""
    names = functools.cache(BaseEstimator._get_param_names.__func__)  # type: ignore[attr-defined]

    def get_param_names(cls: type) -> list[str]:
        return [*names(cls)]

    BaseEstimator._get_param_names = classmethod(get_param_names)
    is_frame = getattr(validation, "_nw_into_df_or_series", None)  # since scikit-learn 1.9
    if is_frame is not None:

        def is_other_than_an_array(x: Any) -> bool:
            return type(x) is not np.ndarray and bool(is_frame(x))

        validation._nw_into_df_or_series = is_other_than_an_array
