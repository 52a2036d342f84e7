"""What the options that manyfit adds to a search may be."""

from __future__ import annotations

import numbers
import os
from typing import Any, get_args

from manyfit._compat import Interval, StrOptions, evaluates_all_at_once
from manyfit.model_selection.job._option_values import Sharing
from manyfit.model_selection.running._race import RULES


class _Number(Interval):
    """An interval of numbers, without True and False, which are integers in Python."""

    def is_satisfied_by(self, val: Any) -> bool:
        return not isinstance(val, bool) and bool(super().is_satisfied_by(val))


def refuse_checkpoint_in_rounds(search: Any) -> None:
    """Raise ValueError if a search with a checkpoint chooses settings by the scores of others."""
    if search.checkpoint is not None and not (search.continues_rounds or evaluates_all_at_once(search)):
        raise ValueError(
            f"checkpoint={os.fspath(search.checkpoint)!r} was given to {type(search).__name__}, which chooses"
            " settings by a method of its own. Only GridSearchCV, RandomizedSearchCV, and halving and"
            " incremental searches can continue from a checkpoint."
        )


COUNT = Interval(numbers.Integral, 1, None, closed="left")

OPTIONS: dict[str, Any] = {
    "sharing": [StrOptions(set(get_args(Sharing)))],
    "verify": [_Number(numbers.Integral, 0, None, closed="left")],
    "memory_limit": [_Number(numbers.Integral, None, None, closed="neither"), str, None],
    "client": "no_validation",  # by `client_for`, without importing Dask where nobody has
    "checkpoint": [str, os.PathLike, None],
    "early_stopping": [StrOptions({"fold"}), None],
    "engine": [StrOptions({"sklearnex"}), None],
    "return_predictions": ["boolean", str, tuple],
    "time_budget": [Interval(numbers.Real, 0, None, closed="neither"), None],
    "fit_timeout": [_Number(numbers.Real, 0, None, closed="neither"), None],
    "sample": [
        _Number(numbers.Integral, 1, None, closed="left"),
        _Number(numbers.Real, 0, 1, closed="right"),
        None,
    ],
    "race": [StrOptions(set(RULES)), _Number(numbers.Real, 0, None, closed="left"), None],
}
