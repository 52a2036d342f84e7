"""Results as JSON text, with the type and every bit of each number."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from manyfit.model_selection.job._job import Result

_ENTRIES = ("fit_error", "test_scores", "train_scores", "fit_time", "score_time", "best_n_iter")
_PLAIN = (type(None), bool, int, float, str)


class NotStored(Exception):
    """A result holds other things than numbers and strings."""


def encoded(result: Result) -> str:
    """A result as text; `NotStored` if a score is no number of Python or NumPy."""
    if not set(result) <= set(_ENTRIES):
        raise NotStored(sorted(set(result) - set(_ENTRIES)))
    return json.dumps({name: _coded(value) for name, value in result.items()}, ensure_ascii=True)


def decoded(text: str) -> Result:
    """The result from a text that `encoded` made."""
    return {name: _decoded(value) for name, value in json.loads(text).items()}


def _coded(value: Any) -> Any:
    if type(value) in _PLAIN:  # JSON writes floats in as many digits as they need, and NaN
        return value
    if type(value) is complex:
        return {"complex": [value.real, value.imag]}
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        return {"numpy": [value.dtype.str, value.tobytes().hex()]}
    if type(value) is dict and all(type(name) is str for name in value):
        return {"scores": {name: _coded(one) for name, one in value.items()}}
    raise NotStored(type(value).__name__)


def _decoded(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((tag, inside),) = value.items()
    if tag == "scores":
        return {name: _decoded(one) for name, one in inside.items()}
    if tag == "numpy":
        return np.frombuffer(bytes.fromhex(inside[1]), dtype=inside[0])[0]
    if tag == "complex":
        return complex(*inside)
    raise ValueError(f"an unknown kind of value: {tag}")
