"""Numbers among the parameters of estimators with which a family computes as scikit-learn does.

scikit-learn computes with a parameter as it was given. A Fraction fails in its validation, ``np.int8(1)``
overflows when it is multiplied by a number of rows, and ``float(10**400)`` raises. So only a few exact types
are shared, and scikit-learn fits the others.
"""

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from manyfit.folds import Unsupported

_FLOATS = (float, np.float64, np.float32)
_INTEGERS = (int, np.int64)
# Up to these sizes a product with a number of rows overflows neither np.int64 nor float32.
_LARGEST_INTEGER, _LARGEST_FLOAT = 2**31, 1e30
_LONGEST = 40


def require_number(name: str, value: Any, *, positive: bool = False) -> None:
    """Refuse a parameter that is not one finite number of a usual type and size, from 0 or `positive`."""
    kind = type(value)
    if kind not in (*_FLOATS, *_INTEGERS):
        raise Unsupported(f"{name}={_shown(value)} is not one number of a usual type")
    largest = _LARGEST_FLOAT if kind in _FLOATS else _LARGEST_INTEGER
    if not (value > 0 if positive else value >= 0) or not value <= largest:
        raise Unsupported(
            f"{name}={_shown(value)} is not in the range {'(' if positive else '['}0, {largest}]"
        )


def require_usual_numbers(params: Mapping[str, Any]) -> None:
    """Refuse numbers among parameters, by name, that are not of Python's or NumPy's usual types.

    These are numbers of a type of their own (a Fraction, a Decimal, a subclass of float), complex ones, those
    of fewer than 32 or more than 64 bits, and integers of more than 64 bits.
    """
    for name, value in params.items():
        if isinstance(value, numbers.Number) and not _is_usual(value):
            raise Unsupported(f"{name}={_shown(value)} is a number of an unusual type or size")


def _is_usual(value: Any) -> bool:
    kind = type(value)
    if kind in (bool, *_FLOATS):
        return True
    own = kind is int or (isinstance(value, np.integer) and kind.__module__ == "numpy")
    return own and -(2**63) <= value < 2**63


def _shown(value: Any) -> str:
    """A value as a text of one short line."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # integers of thousands of digits are not printed
        return f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
