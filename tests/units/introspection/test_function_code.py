"""Code of a user that draws random numbers, as far as it can be read."""

from __future__ import annotations

import random
import types
from functools import cached_property
from random import gauss

import numpy as np
import pytest
from numpy.random import RandomState, default_rng, normal
from sklearn.base import BaseEstimator, TransformerMixin

from manyfit.introspection._function_code import code_draws
from manyfit.introspection.randomness import find_random_parameter, is_deterministic

GENERATOR = np.random.RandomState(0)
RANDOM = np.random


def helper(X):
    return X * np.random.rand()


def recursive(X):
    return recursive(X[1:]) if len(X) else other(X)


def other(X):
    return recursive(X)


def with_generator(generator, module):
    return (lambda X: X + generator.random()), (lambda X: X + module.random()), (lambda X: X + module.pi)


class Noise(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X + [np.random.rand() for _ in range(X.shape[1])]


def imports(X):
    import numpy as other_name

    return X + other_name.random.normal()


def imports_a_name(X):
    from numpy.random import default_rng

    return default_rng().normal()


def renames(X):
    drawn = np.random
    return drawn.normal()


def with_default(X, generator=GENERATOR):
    return X + generator.normal()


class WithGenerator:
    rng = GENERATOR


class WithCachedProperty:
    @cached_property
    def draw(self):
        return helper(1)


class Inherited(Noise):
    pass


class WithStatic:
    @staticmethod
    def draw():
        return gauss(0, 1)


class Plain:
    @staticmethod
    def draw():
        return 1


class WithProperty:
    @property
    def draw(self):
        return helper(1)


class Seeded(TransformerMixin, BaseEstimator):
    def __init__(self, random_state=0):
        self.random_state = random_state

    def fit(self, X, y=None):
        self.shift_ = np.random.RandomState(self.random_state).rand()
        return self


def many_names():
    """A function with more names than an instruction has room for."""
    names = {}
    exec(
        "def drawn(X):\n" + "".join(f"    name_{k}\n" for k in range(300)) + "    np.random.normal()\n", names
    )
    return types.FunctionType(names["drawn"].__code__, {"np": np})


class Lazy(types.ModuleType):
    def __getattr__(self, name):
        raise ImportError(name)


lazy = Lazy("lazy")

DRAWS = {
    "numpy's function": lambda X: np.random.normal(X),
    "under another name": lambda X: RANDOM.normal(X),
    "imported": lambda X: normal(X),
    "Python's function": lambda X: random.random() + X,
    "Python's, imported": lambda X: gauss(0, 1),
    "a global generator": lambda X: GENERATOR.rand(),
    "in a function that is called": lambda X: helper(X),
    "in a comprehension": lambda X: [np.random.rand() for _ in X],
    "a generator without a seed": lambda X: np.random.default_rng().random(),
    "the seed None": lambda X: np.random.RandomState(None).rand(),
    "a generator of the function around it": with_generator(random.Random(0), np)[0],
    "a module of the function around it": with_generator(None, random)[1],
    "a method of a generator": GENERATOR.normal,
    "a function of a generator": np.random.normal,
    "a class": Noise,
    "a base class": Inherited,
    "a static method": WithStatic,
    "a property": WithProperty,
    "a cached property": WithCachedProperty,
    "a generator of a class": WithGenerator,
    "a generator as a default": with_default,
    "an import in the function": imports,
    "an import of a name in the function": imports_a_name,
    "another name in the function": renames,
    "a function that makes a generator": lambda X: default_rng().normal(),
    "a class that makes a generator": lambda X: RandomState().normal(),
    "after many names": many_names(),
}
DRAWS_NOTHING = {
    "a seed": lambda X: np.random.default_rng(0).random(),
    "a seed for an imported name": lambda X: default_rng(0).normal() + RandomState(1).normal(),
    "a module that fails if it is asked for a name": lambda X: lazy.thing(X),
    "a named seed": lambda X: np.random.RandomState(seed=3).rand(),
    "a bit generator": lambda X: np.random.Generator(np.random.PCG64(1)).random(),
    "a method of the same name": lambda X: X.random(),
    "other functions": lambda X: np.log(np.pi) + len(X),
    "a function around it": with_generator(None, np)[2],
    "functions that call each other": recursive,
    "a ufunc": np.log1p,
    "a builtin": len,
    "a type": float,
    "a seeded class": Seeded,
    "a class of a library": TransformerMixin,
}


@pytest.mark.parametrize("thing", DRAWS.values(), ids=DRAWS)
def test_code_that_draws(thing):
    assert code_draws(thing)


@pytest.mark.parametrize("thing", DRAWS_NOTHING.values(), ids=DRAWS_NOTHING)
def test_code_that_draws_nothing(thing):
    assert not code_draws(thing)


def test_code_says_that_an_estimator_is_random():
    assert is_deterministic(Seeded()) and not is_deterministic(Inherited())
    name, why, _ = find_random_parameter(Noise(), "noise")
    assert f"{name} {why}" == "noise has methods whose code draws random numbers"


def test_a_function_that_is_defined_again_is_read_again(monkeypatch):
    assert not code_draws(Plain)
    monkeypatch.setattr(Plain, "draw", staticmethod(helper))
    assert code_draws(Plain)
