"""Arrays known by what they hold."""

import hashlib

import numpy as np

ArrayDigest = tuple[str, tuple[int, ...], bool | tuple[int, ...], bytes]


def describes_itself(dtype: np.dtype) -> bool:
    """Whether the description of a dtype in `array_digest` is all that there is to it.

    Parameters
    ----------
    dtype : numpy.dtype
        Any dtype.

    Returns
    -------
    bool
        False for dtypes of other packages, and for those with metadata, which `repr` does not show.
    """
    if type(dtype).__module__ != "numpy.dtypes" or dtype.metadata is not None:
        return False
    if dtype.subdtype is not None:
        return describes_itself(dtype.subdtype[0])
    return all(describes_itself(field[0]) for field in (dtype.fields or {}).values())


def array_digest(X: np.ndarray) -> ArrayDigest:
    """The content of an array of numbers, with its dtype, shape and layout in memory.

    The layout counts because sums over another layout round differently.

    Parameters
    ----------
    X : numpy.ndarray
        On the host, of any shape and any dtype that `describes_itself` and holds no objects.

    Returns
    -------
    tuple
        Dtype, shape, layout (True: Fortran's, False: C's, else the strides) and a digest of all bytes; equal
        in every process.

    Notes
    -----
    One pass over the data, and a copy of it if it is not contiguous.
    """
    fortran = X.flags.f_contiguous and not X.flags.c_contiguous
    layout = fortran if fortran or X.flags.c_contiguous else X.strides
    content = X.T if fortran else np.ascontiguousarray(X)
    # An item of no bytes has no view as bytes.
    data = content.reshape(-1).view(np.uint8).data if X.nbytes else b""
    digest = hashlib.sha1(data, usedforsecurity=False).digest()
    # The character tells two integers of one size apart, which `repr` calls by one name.
    return f"{X.dtype!r} {X.dtype.char}", X.shape, layout, digest
