"""Parameters of estimators that are True or False, in any of the ways that Python and NumPy write these."""

from typing import Any


def is_flag(value: Any, wanted: bool) -> bool:
    """Whether code that asks ``if value`` goes the way of `wanted`.

    ``np.False_``, which grids made from arrays have, is not ``False``, and no more is 0 or None. What refuses
    to be asked counts as `wanted`, since nobody knows where it leads.
    """
    try:
        return bool(value) is wanted
    except Exception:
        return True
