"""Digests of arrays by their content."""

import hashlib

import numpy as np

ArrayDigest = tuple[str, tuple[int, ...], bool | tuple[int, ...], bytes]


def describes_itself(dtype: np.dtype) -> bool:
    """Whether the text of a dtype in `array_digest` is complete.

    It is not for dtypes of other packages, and for those with metadata, which `repr` does not show.
    """
    if type(dtype).__module__ != "numpy.dtypes" or dtype.metadata is not None:
        return False
    if dtype.subdtype is not None:
        return describes_itself(dtype.subdtype[0])
    return all(describes_itself(field[0]) for field in (dtype.fields or {}).values())


def array_digest(X: np.ndarray) -> ArrayDigest:
    """Dtype, shape, memory layout and a digest of all bytes of an array; equal in every process.

    `X` holds no objects and its dtype `describes_itself`. The layout (True for Fortran's, False for C's,
    else the strides) counts because sums over another layout round differently.
    """
    fortran = X.flags.f_contiguous and not X.flags.c_contiguous
    layout = fortran if fortran or X.flags.c_contiguous else X.strides
    content = X.T if fortran else np.ascontiguousarray(X)
    # An item of no bytes has no view as bytes.
    data = content.reshape(-1).view(np.uint8).data if X.nbytes else b""
    digest = hashlib.sha1(data, usedforsecurity=False).digest()
    # The character tells two integers of one size apart, which `repr` calls by one name.
    return f"{X.dtype!r} {X.dtype.char}", X.shape, layout, digest
