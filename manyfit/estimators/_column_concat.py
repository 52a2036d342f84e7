"""Columns of several transformers, joined where they lie."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyfit._compat import replace_hstack
from manyfit.arrays import array_namespace, container_kind, container_place, numpy_dtype, to_host_once


def join_columns_there(cls: type) -> None:
    """Let a drop-in ColumnTransformer or FeatureUnion join columns on a device.

    Parameters
    ----------
    cls : type
        The drop-in class. What its transformers give for data of the host it joins as scikit-learn does.
    """
    replace_hstack(cls, _joined)


def _joined(holder: Any, parts: list[Any]) -> Any:
    """Parts side by side: on a device where one of them is, unless the result is to be sparse.

    Returns
    -------
    array, list or None
        The result; or parts of the host that scikit-learn is to join; or None if these are.
    """
    place = next((container_place(part) for part in parts if container_kind(part) == "array"), None)
    if place is None:
        return None
    if any(len(part.shape) != 2 for part in parts):
        return None  # scikit-learn says which one, and how that is mended
    as_sparse = getattr(holder, "sparse_output_", True)  # a FeatureUnion's is where one part is
    if as_sparse and any(hasattr(part, "toarray") for part in parts):
        return [to_host_once(part) for part in parts]
    arrays = [place.as_array(part.toarray() if hasattr(part, "toarray") else part) for part in parts]
    xp = array_namespace(arrays[0])
    if len({array.dtype for array in arrays}) > 1:  # libraries join no two kinds of numbers
        widest = np.result_type(*map(numpy_dtype, arrays)).name
        arrays = [xp.astype(array, getattr(xp, widest), copy=False) for array in arrays]
    return xp.concat(arrays, axis=1)
