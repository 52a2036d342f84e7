"""Transformers that count what they do, and the comparison of shared fits with plain ones."""

from __future__ import annotations

import copy
from collections import Counter
from types import FunctionType, ModuleType

import numpy as np
import pandas as pd
import sklearn
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, TransformerMixin, clone

from manyfit.model_selection.sharing._fold_cache import FoldCache
from manyfit.model_selection.sharing.transformers._cached_transformer import CachedTransformer
from manyfit.model_selection.sharing.transformers._step_wrappers import share_prefixes

CALLS: Counter[str] = Counter()
COPY_ON_WRITE = int(pd.__version__.split(".")[0]) >= 3


class Counting(TransformerMixin, BaseEstimator):
    """Shifts by the mean, and counts by name what it is asked to do."""

    def __init__(self, name="counting", shift=0.0):
        self.name = name
        self.shift = shift

    def fit(self, X, y=None, sample_weight=None):
        CALLS[f"{self.name}.fit"] += 1
        self.mean_ = np.average(np.asarray(X), axis=0, weights=sample_weight)
        self.n_features_in_ = np.shape(X)[1]
        return self

    def transform(self, X):
        CALLS[f"{self.name}.transform"] += 1
        return np.asarray(X) - self.mean_ + self.shift

    def get_feature_names_out(self, input_features=None):
        return np.asarray(input_features, dtype=object)


class OwnFitTransform(Counting):
    """fit_transform is not fit().transform()."""

    def fit_transform(self, X, y=None):
        return self.fit(X, y).transform(X) + 1000.0


class Exploding(Counting):
    def fit(self, X, y=None):
        CALLS["exploding.fit"] += 1
        raise ArithmeticError(f"shift {self.shift}")


class Mutating(Counting):
    """Changes its constructor parameter in fit, which it should not."""

    def fit(self, X, y=None):
        super().fit(X)
        self.shift = self.shift + 1
        return self


class Drawing(Counting):
    def __init__(self, name="drawing", random_state=None):
        self.name = name
        self.random_state = random_state
        self.shift = 0.0

    def fit(self, X, y=None):
        super().fit(X)
        self.shift = sklearn.utils.check_random_state(self.random_state).uniform()
        return self


class DrawingInTransform(Counting):
    """Its transform moves a generator that it keeps."""

    def __init__(self, name="moving", random_state=0):
        self.name = name
        self.random_state = random_state

    def fit(self, X, y=None):
        self.shift = 0.0
        self.generator_ = np.random.RandomState(self.random_state)
        return super().fit(X)

    def transform(self, X):
        return super().transform(X) + self.generator_.uniform()


def data(n=60, p=5, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n, p)) + 3.0
    return X, X @ rng.standard_normal(p) + rng.standard_normal(n)


def fold(X, y, at=40):
    return X[:at], y[:at], X[at:], y[at:]


def both(base, settings, X, y, X_test, cache=None, **fit_params):
    """Test and train predictions of each setting, shared and as scikit-learn does it by itself."""
    cache = FoldCache(None) if cache is None else cache
    for setting in settings:
        plain = clone(base).set_params(**clone(setting, safe=False))
        shared = share_prefixes(clone(base).set_params(**clone(setting, safe=False)), cache)
        plain.fit(copy.deepcopy(X), y, **fit_params)
        shared.fit(cache.share(X), cache.share(y), **fit_params)
        for part in (X_test, X):
            expected = np.asarray(plain.predict(copy.deepcopy(part)))
            # Bit for bit; but before 3, pandas rearranges the memory of a frame where it is copied.
            rtol = 0 if COPY_ON_WRITE else 1e-12
            assert_allclose(np.asarray(shared.predict(cache.share(part))), expected, rtol=rtol, atol=rtol)
        yield plain, shared, cache


def agree(base, settings, X, y, X_test, cache=None, **fit_params):
    """Check that predictions are the same bit for bit; returns the cache."""
    results = list(both(base, settings, X, y, X_test, cache, **fit_params))
    assert len(results) == len(settings)
    return results[-1][2]


ALPHAS = [{"ridge__alpha": alpha} for alpha in (0.1, 1.0, 10.0)]


def wrappers(thing, seen=None):
    """All wrappers that can be reached from something."""
    seen = {} if seen is None else seen
    if id(thing) in seen or isinstance(thing, (str, bytes, np.ndarray, type, ModuleType, FunctionType)):
        return []
    seen[id(thing)] = thing
    found = [thing] if type(thing) is CachedTransformer else []
    items = (
        thing.values() if isinstance(thing, dict) else thing if isinstance(thing, (list, tuple, set)) else ()
    )
    for item in (*items, *(vars(thing).values() if hasattr(thing, "__dict__") else ())):
        found += wrappers(item, seen)
    return found
