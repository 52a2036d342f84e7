"""What the options that manyfit adds to a search may be."""

from __future__ import annotations

import numbers
import os
from typing import TYPE_CHECKING, Any, get_args

from manyfit._compat import Interval, StrOptions, evaluates_all_at_once
from manyfit.model_selection.job._option_types import Sharing
from manyfit.model_selection.running._race import RULES

if TYPE_CHECKING:
    from manyfit.model_selection.job._job import Job


class _Number(Interval):
    """An interval of numbers, without True and False, which are integers in Python."""

    def is_satisfied_by(self, val: Any) -> bool:
        return not isinstance(val, bool) and bool(super().is_satisfied_by(val))


def refuse_checkpoint_in_rounds(search: Any) -> None:
    """Raise ValueError if a search with a checkpoint chooses settings by the scores of others."""
    if search.checkpoint is not None and not (search.continues_rounds or evaluates_all_at_once(search)):
        raise ValueError(
            f"checkpoint={os.fspath(search.checkpoint)!r} was given to {type(search).__name__}, which chooses"
            " settings by a method of its own. Only GridSearchCV, RandomizedSearchCV and the halving"
            " searches can continue from a checkpoint."
        )


def require_timed_fits(job: Job) -> Job:
    """The job; ValueError if its fits cannot be made by processes of their own, as `fit_timeout` asks."""
    if job.options.fit_timeout is None:
        return job
    from manyfit.arrays import is_xp_array

    given = [job.X, job.y, *job.options.fit_params.values(), *job.options.score_params.values()]
    whys = {
        "callbacks follow the fits": job.contexts is not None,
        "the data are on a device": any(map(is_xp_array, given)),
        f"engine={job.options.engine!r}": job.options.engine is not None,
    }
    if any(whys.values()):
        why = next(one for one, is_so in whys.items() if is_so)
        raise ValueError(
            f"fit_timeout={job.options.fit_timeout:g} has each fit made by a process that can be ended. That "
            f"cannot be combined with this: {why}. Use fit_timeout=None."
        )
    return job


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
        _Number(numbers.Real, 0, 1, closed="neither"),
        None,
    ],
    "random_state": ["random_state"],
    "race": [StrOptions(set(RULES)), _Number(numbers.Real, 0, None, closed="left"), None],
}
