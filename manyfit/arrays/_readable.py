"""Arrays as estimators can read them: of a dtype that NumPy has, without a gradient."""

from __future__ import annotations

from typing import Any

from manyfit.arrays._namespace import array_namespace, numpy_dtype
from manyfit.arrays.transfer._containers import container_kind


def dtype_kind(array: Any) -> str:
    """The kind of an array's dtype as NumPy calls it; "other" of what it has not, as bfloat16."""
    try:
        return numpy_dtype(array).kind
    except TypeError:
        return "other"


def as_readable(value: Any) -> Any:
    """An argument as it can be worked on.

    Parameters
    ----------
    value : object
        Anything.

    Returns
    -------
    object
        An array of floats that NumPy has not (bfloat16) as float32; a tensor that asks for a gradient
        without it, since nothing here gives one; anything else as it is.
    """
    if container_kind(value) != "array":
        return value
    if getattr(value, "requires_grad", False):
        value = value.detach()
    xp = array_namespace(value)
    if dtype_kind(value) == "other" and xp.isdtype(value.dtype, "real floating"):
        return xp.astype(value, xp.float32)
    return value


def refuse_complex(estimator: Any, method: str, X: Any, what: str = "X") -> None:
    """Refuse complex numbers as scikit-learn does on the host; libraries fail somewhere within.

    Parameters
    ----------
    estimator : estimator
        Who is given X.
    method : str
        By which method.
    X : object
        Anything.
    what : str
        What it is called.

    Raises
    ------
    ValueError
        If X is an array of complex numbers.
    """
    if container_kind(X) == "array" and dtype_kind(X) == "c":
        raise ValueError(
            f"Complex data not supported: {type(estimator).__name__}.{method} got {what} of dtype {X.dtype}. "
            "Give real and imaginary parts as columns of their own."
        )
