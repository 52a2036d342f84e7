"""Sparse features brought to fewer ones that a linear model with an l2 penalty cannot tell from them."""

from typing import Any

import numpy as np
import scipy.sparse as sp


def merge_rare_features(X: Any) -> tuple[Any, Any]:
    """Leave out empty columns, make one of all that only the same row has, and put the frequent first.

    Hashed text has many of both. The features of a row that no other row has are rotated so that one of
    them has all that the row has of them; the penalty does not see a rotation.

    Parameters
    ----------
    X : CSR matrix or array of shape (n, p)
        On the host.

    Returns
    -------
    Z : csr_array of shape (n, q)
        ``X @ T``, q at most p; with it ``X = Z @ T.T``.
    T : csr_array of shape (p, q)
        Orthonormal columns: if w minimises a loss of ``Z @ w`` and ``||w||^2``, then ``T @ w`` minimises that
        of ``X @ v`` and ``||v||^2``.
    """
    n, p = X.shape
    count = np.bincount(X.indices, minlength=p)
    # The most frequent first: what is read again and again lies together.
    kept = np.argsort(-count, kind="stable")[: np.count_nonzero(count > 1)]
    row = np.repeat(np.arange(n), np.diff(X.indptr))
    alone = count[X.indices] == 1
    row, column, value = row[alone], X.indices[alone], X.data[alone].astype(np.float64)
    size = np.bincount(row, np.abs(value), minlength=n)
    # In units of their size, so that no square under- or overflows.
    norm = size * np.sqrt(np.bincount(row, (value / np.where(size > 0, size, 1.0)[row]) ** 2, minlength=n))
    own = np.flatnonzero(norm)
    place = np.zeros(n, dtype=np.intp)
    place[own] = kept.size + np.arange(own.size)
    some = norm[row] > 0
    row, column, value = row[some], column[some], value[some]
    T = sp.csr_array(
        (
            np.concatenate([np.ones(kept.size), value / norm[row]]),
            (np.concatenate([kept, column]), np.concatenate([np.arange(kept.size), place[row]])),
        ),
        shape=(p, kept.size + own.size),
    )
    return sp.csr_array(sp.csr_array(X) @ T), T
