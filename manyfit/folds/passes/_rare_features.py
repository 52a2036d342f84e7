"""Fewer sparse features, which a linear model with an l2 penalty cannot tell from the original ones."""

from typing import Any

import numpy as np
import scipy.sparse as sp


def merge_rare_features(X: Any) -> tuple[Any, Any]:
    """Leave out empty columns of a CSR matrix X, merge those of only one row, and put the frequent first.

    Returns CSR arrays Z, (n, q), and T, (p, q), with ``Z = X @ T``, ``X = Z @ T.T`` and orthonormal columns
    of T. The features of a row that no other row has are rotated so that one of them has their whole length;
    the penalty does not see a rotation. So if w minimises a loss of ``Z @ w`` and ``||w||^2``, then ``T @ w``
    minimises that of ``X @ v`` and ``||v||^2``.
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
