"""Predictions for test rows, which a run may record beside scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from manyfit._config.sizes import format_size
from manyfit.arrays import container_to_host
from manyfit.introspection.randomness import is_deterministic
from manyfit.model_selection.job._option_values import memory_limit_in_bytes

METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function")


class Predicted(NamedTuple):
    """Predictions for the test rows of a split, and the classes of their columns, if these are classes."""

    values: Any
    classes: Any = None


@dataclass(frozen=True)
class Recording:
    """What a run records: the predictions of one method.

    `every`: those of all pairs. Otherwise those that cost nothing, and those of fits that draw random
    numbers, which another fit would not give again.
    """

    method: str
    every: bool = False

    def wants(self, model: Any) -> bool:
        """Whether a fit of a model records its predictions."""
        return self.every or is_deterministic(model) is not True

    def require(self, model: Any) -> None:
        """Raise an AttributeError if a model has no method for these predictions."""
        if not hasattr(model, self.method):
            raise AttributeError(
                f"return_predictions={self.method!r} calls {self.method}, which this {type(model).__name__} "
                "does not have. Ask for 'predict', or search an estimator that has it."
            )

    def of_model(self, model: Any, X: Any) -> Predicted:
        """The predictions of a model; an AttributeError if it has no such method."""
        self.require(model)
        values = container_to_host(getattr(model, self.method)(X), label="predictions")
        if isinstance(values, list):
            raise ValueError(
                f"return_predictions={self.method!r} takes one target; {type(model).__name__} has several."
            )
        return Predicted(values, None if self.method == "predict" else getattr(model, "classes_", None))


def recording_of(given: Any) -> Recording | None:
    """What `return_predictions` asks for; raises a ValueError if it is none of its values."""
    if given is False or given is None:
        return None
    pair = given if isinstance(given, tuple) else ("all", "predict") if given == "all" else (None, given)
    if len(pair) == 2 and pair[0] in (None, "all"):
        method = "predict" if pair[1] is True else pair[1]
        if method in METHODS:
            return Recording(method, every=pair[0] == "all")
    raise ValueError(
        f"return_predictions should be False, True, 'all', one of {', '.join(map(repr, METHODS))}, or a tuple"
        f" of 'all' and one of these; got {given!r}."
    )


def recording_for(given: Any, y: Any, n_settings: int, memory_limit: int | str | None) -> Recording | None:
    """What a search records by itself; None if that is more than an eighth of the memory limit.

    Raises a ValueError if predictions of all settings are asked for, and need more than the limit.
    """
    recording = recording_of(given)
    if recording is None or y is None:
        return recording
    shape, width = np.shape(y), 1
    if len(shape) == 2:
        width = shape[1]
    elif recording.method != "predict":
        width = len(np.unique(container_to_host(y, label="y")))
    needed, limit = 8 * n_settings * shape[0] * width, memory_limit_in_bytes(memory_limit)
    if recording.every and needed > limit:
        raise ValueError(
            f"return_predictions={given!r} for {n_settings} settings would need {format_size(needed)}, more"
            f" than memory_limit={format_size(limit)}. Ask for those of the best setting, or raise the limit."
        )
    return recording if recording.every or needed <= limit // 8 else None
