"""Arrays as estimators can read them: with a dtype that NumPy has, without a gradient."""

from __future__ import annotations

from typing import Any

from manyfit.arrays._namespace import array_namespace, numpy_dtype
from manyfit.arrays.transfer._containers import is_xp_array


def dtype_kind(array: Any) -> str:
    """The kind of an array's dtype in NumPy's letters; "other" for a dtype that NumPy lacks, as bfloat16."""
    try:
        return numpy_dtype(array).kind
    except TypeError:
        return "other"


def as_readable(value: Any) -> Any:
    """An array without a gradient, and as float32 if NumPy lacks its float dtype; other values unchanged."""
    if not is_xp_array(value):
        return value
    if getattr(value, "requires_grad", False):
        value = value.detach()
    xp = array_namespace(value)
    if dtype_kind(value) == "other" and xp.isdtype(value.dtype, "real floating"):
        return xp.astype(value, xp.float32)
    return value


def refuse_complex(estimator: Any, method: str, X: Any, what: str = "X") -> None:
    """Raise ValueError for an array of complex numbers, as scikit-learn does on the host."""
    if is_xp_array(X) and dtype_kind(X) == "c":
        raise ValueError(
            f"Complex data not supported: {type(estimator).__name__}.{method} got {what} of dtype {X.dtype}. "
            "Pass real and imaginary parts as separate columns."
        )
