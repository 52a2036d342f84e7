"""The outputs of several transformers, joined on the device where they lie."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyfit.arrays import array_namespace, container_place, is_xp_array, numpy_dtype, to_host_once


def join_columns_on_device(holder: Any, parts: list[Any]) -> Any:
    """Join the outputs of a ColumnTransformer or FeatureUnion; None for those of the host.

    Host parts are returned for scikit-learn to join if the result is sparse.
    """
    place = next((container_place(part) for part in parts if is_xp_array(part)), None)
    if place is None:
        return None
    if any(len(part.shape) != 2 for part in parts):
        return None  # scikit-learn's error names the part
    as_sparse = getattr(holder, "sparse_output_", True)  # a FeatureUnion's output is sparse if a part is
    if as_sparse and any(hasattr(part, "toarray") for part in parts):
        return [to_host_once(part) for part in parts]
    arrays = [place.as_array(part.toarray() if hasattr(part, "toarray") else part) for part in parts]
    xp = array_namespace(arrays[0])
    if len({array.dtype for array in arrays}) > 1:  # libraries do not join different kinds of numbers
        widest = np.result_type(*map(numpy_dtype, arrays)).name
        arrays = [xp.astype(array, getattr(xp, widest), copy=False) for array in arrays]
    return xp.concat(arrays, axis=1)
