"""Values of parameters that one fit serves, each beside its own fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from manyfit.model_selection.sharing._fold_cache import FoldCache
from manyfit.model_selection.sharing.nested import NestedRequests
from manyfit.model_selection.sharing.transformers._step_wrappers import share_prefixes, unshare


def rows_of(kind, n, p, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * np.logspace(0, 1, p)
    if kind == "ties":
        X = np.round(X / 3)
        X[:, -1] = X[:, 0]
    elif kind == "low rank":
        X = X[:, : max(1, p // 3)] @ rng.normal(size=(max(1, p // 3), p))
    elif kind == "offset":
        X += 1e5
    elif kind == "constant":
        X[:, 0] = 0.1
    return X, (X @ rng.normal(size=p) + rng.normal(size=n) > np.median(X @ rng.normal(size=p))).astype(int)


FORMS = {
    "array": np.ascontiguousarray,
    "fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "integers": lambda X: X.astype(np.int64),
    "frame": lambda X: pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]),
    "sparse": scipy.sparse.csr_matrix,
}


def assert_same(one, other, where=""):
    """Equal to the bit, in type, layout and everything that an estimator holds."""
    assert type(one) is type(other), where
    if isinstance(one, np.ndarray):
        assert_array_equal(one, other, err_msg=where)
        assert one.dtype == other.dtype, where
        if min(one.shape) > 1:  # the order decides which product a BLAS makes
            assert one.ndim == 1 or one.flags.f_contiguous == other.flags.f_contiguous, where
    elif scipy.sparse.issparse(one):
        assert_same(one.toarray(), other.toarray(), where)
    elif isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other, check_exact=True)
    elif isinstance(one, BaseEstimator):
        assert vars(one).keys() == vars(other).keys(), where
        for name in vars(one):
            assert_same(vars(one)[name], vars(other)[name], f"{where}.{name}")
    elif isinstance(one, (int, float, str, np.generic)) or one is None:
        np.testing.assert_equal(one, other, err_msg=where)


def check_values(step, params, X, y, *, container=None):
    """Fit a step with each of some parameters beside its own fits; return the counts of the cache."""
    step = clone(step) if container is None else clone(step).set_output(transform=container)
    cache = FoldCache(None)
    pipe = make_pipeline(step, GaussianNB())
    name = type(step).__name__.lower()
    candidates = [{f"{name}__{key}": value for key, value in one.items()} for one in params]
    cache.requests = NestedRequests(pipe, candidates)
    train, test = cache.share(X), cache.share(X[: len(y) // 2] if not scipy.sparse.issparse(X) else X[:3])
    for one in params:
        plain = clone(step).set_params(**one)
        shared = share_prefixes(clone(pipe).set_params(**{name: clone(plain)}), cache)
        wrapped = shared.steps[0][1]
        try:
            output = plain.fit_transform(X, y)
        except Exception as error:
            with pytest.raises(type(error)):
                wrapped.fit_transform(train, cache.share(y))
            continue
        ours = wrapped.fit_transform(train, cache.share(y))
        assert_same(np.asarray(ours) if isinstance(output, np.ndarray) else ours, output, f"{one} output")
        ours = wrapped.transform(test)
        expected = plain.transform(test)
        assert_same(np.asarray(ours) if isinstance(expected, np.ndarray) else ours, expected, f"{one}")
        assert_same(unshare(wrapped), plain, f"{one}")
    return cache.fits, cache.saved


def values(name, *found):
    return [{name: value} for value in found]
