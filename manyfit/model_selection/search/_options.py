"""What the options that manyfit adds to a search may be."""

from __future__ import annotations

import numbers
import os
from typing import Any, get_args

from manyfit._compat import Interval, StrOptions
from manyfit.model_selection.job._job import Sharing
from manyfit.model_selection.running._race import RULES


class _Number(Interval):
    """An interval of numbers, without True and False, which are integers in Python."""

    def is_satisfied_by(self, val: Any) -> bool:
        return not isinstance(val, bool) and bool(super().is_satisfied_by(val))


OPTIONS: dict[str, Any] = {
    "sharing": [StrOptions(set(get_args(Sharing)))],
    "verify": [_Number(numbers.Integral, 0, None, closed="left")],
    "memory_limit": [_Number(numbers.Integral, None, None, closed="neither"), str, None],
    "client": "no_validation",  # by `client_for`, without importing Dask where nobody has
    "checkpoint": [str, os.PathLike, None],
    "early_stopping": [StrOptions({"fold"}), None],
    "engine": [StrOptions({"sklearnex"}), None],
    "time_budget": [Interval(numbers.Real, 0, None, closed="neither"), None],
    "race": [StrOptions(set(RULES)), _Number(numbers.Real, 0, None, closed="left"), None],
}
