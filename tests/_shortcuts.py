"""What scikit-learn asks, and what processes import, again and again is asked and imported once."""

from __future__ import annotations

import functools
import importlib
from importlib.util import find_spec
from multiprocessing import get_context
from typing import Any

import numpy as np
from joblib.externals.loky.backend.context import set_start_method
from sklearn.base import BaseEstimator
from sklearn.utils import _param_validation

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
    """Remember what depends on classes and functions only, and that a plain array is no frame.

    That is a tenth of the time of small searches.
    """
    names = functools.cache(BaseEstimator._get_param_names.__func__)  # type: ignore[attr-defined]

    def get_param_names(cls: type) -> list[str]:
        return [*names(cls)]

    BaseEstimator._get_param_names = classmethod(get_param_names)
    _param_validation.signature = functools.cache(_param_validation.signature)
    if find_spec("narwhals"):  # which scikit-learn needs since 1.9
        frames = importlib.import_module("narwhals.stable.v2").dependencies
        for name in ("is_into_dataframe", "is_into_series"):
            setattr(frames, name, _but_no_array(getattr(frames, name)))


def _but_no_array(is_frame: Any) -> Any:
    def is_other_than_an_array(x: Any) -> bool:
        return type(x) is not np.ndarray and bool(is_frame(x))

    return is_other_than_an_array
