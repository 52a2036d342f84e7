"""What scikit-learn asks again and again, asked once: a tenth of the time of all tests would go there."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import validation


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
