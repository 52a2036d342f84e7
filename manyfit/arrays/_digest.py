"""Arrays known by what they hold."""

import hashlib

import numpy as np

ArrayDigest = tuple[str, tuple[int, ...], bool | tuple[int, ...], bytes]


def array_digest(X: np.ndarray) -> ArrayDigest:
    """The content of an array of numbers, with its dtype, shape and layout in memory.

    The layout counts because sums over another layout round differently.

    Parameters
    ----------
    X : numpy.ndarray
        On the host, of any shape and any dtype but object.

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
    digest = hashlib.sha1(content.reshape(-1).view(np.uint8).data, usedforsecurity=False).digest()
    return repr(X.dtype), X.shape, layout, digest
