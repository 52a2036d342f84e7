"""Sparse data of the tests of searches in chunks, and their comparison with a search in memory."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
import scipy.sparse
from sklearn.feature_extraction.text import HashingVectorizer

from manyfit.folds import Blocks

rng = np.random.default_rng(0)
N, WORDS = 601, [f"word{k}" for k in range(40)]
Y = rng.integers(0, 3, size=N)
TEXTS = [" ".join(rng.choice(WORDS[8 * c : 8 * c + 24], size=rng.integers(1, 17))) for c in Y]
COUNTS = HashingVectorizer(n_features=64, alternate_sign=False, norm=None).transform(TEXTS)
SHARES = HashingVectorizer(n_features=64, alternate_sign=False).transform(TEXTS)
SIGNED = HashingVectorizer(n_features=64).transform(TEXTS)
LIMIT = 40_000  # bytes: X has more, and each block is read by itself
OPTIONS = {"refit": False, "memory_limit": LIMIT, "return_train_score": True}


def blocks(X, rows=50, y=Y, weights=None, calls=None):
    """Blocks of sparse rows."""

    def read():
        if calls is not None:
            calls.append(0)
        for start in range(0, X.shape[0], rows):
            own = slice(start, start + rows)
            yield (X[own], y[own]) if weights is None else (X[own], y[own], weights[own])

    return Blocks(read)


def lazy(X, rows=50, known=True):
    """A Dask array whose chunks are sparse."""
    parts = [
        da.from_delayed(
            dask.delayed(X[start : start + rows]),
            shape=(min(rows, X.shape[0] - start) if known else np.nan, X.shape[1]),
            dtype=X.dtype,
            meta=scipy.sparse.csr_array((0, 0), dtype=X.dtype),
        )
        for start in range(0, X.shape[0], rows)
    ]
    return da.concatenate(parts, axis=0, allow_unknown_chunksizes=True)


def require_equal(search, expected, **tol):
    names = [name for name in expected.cv_results_ if name.startswith("split")]
    assert names
    for name in names:
        np.testing.assert_allclose(
            search.cv_results_[name], expected.cv_results_[name], err_msg=name, **tol or {"rtol": 1e-14}
        )
