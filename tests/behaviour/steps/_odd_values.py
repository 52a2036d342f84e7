"""Transformers whose parameters are easily taken for equal, and the values that differ."""

from __future__ import annotations

import enum
import weakref
from collections import OrderedDict

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin


class Step(TransformerMixin, BaseEstimator):
    """Weighs columns by what `weights` makes of the parameter."""

    def __init__(self, value=None):
        self.value = value

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.asarray(X) * np.resize(np.asarray(self.weights(), float), np.shape(X)[1])


class InOrder(Step):
    """By the order in which a container is read."""

    def weights(self):
        read = self.value.values() if hasattr(self.value, "values") else self.value
        return [4.0 ** -float(j) for j in read]


class ByType(Step):
    def weights(self):
        return [1.0, 1.0 + 9 * len(type(self.value).__name__), 1.0]


class BySign(Step):
    def weights(self):
        return [1.0, np.copysign(5.0, self.value) + 6.0, 1.0]


class WithUnit(Step):
    def weights(self):
        return np.asarray(self.value, float) * getattr(self.value, "unit", 1.0)


class ByMask(Step):
    def weights(self):
        return np.ma.filled(self.value[0], 0.0)


class ByLayout(Step):
    def weights(self):
        return np.ravel(self.value, order="K")


class ByDtype(Step):
    def weights(self):
        return [1.0, 9.0 if (np.asarray(self.value).dtype.metadata or {}).get("wide") else 0.1, 1.0]


class Calls(Step):
    def weights(self):
        return self.value()


class Changes(Step):
    """Changes its parameter in fit, as it should not."""

    def fit(self, X, y=None):
        self.value["fits"] = self.value.get("fits", 0) + 1
        return self

    def weights(self):
        return [1.0, self.value["scale"] * self.value["fits"], 1.0]


_kept = weakref.WeakKeyDictionary()


class Delegates(Step):
    """Its parameter is a property, kept elsewhere than in ``vars()``."""

    value = property(lambda self: _kept[self], lambda self, value: _kept.__setitem__(self, value))

    def weights(self):
        return [1.0, self.value, 1.0]


class _Slots:
    __slots__ = ("value",)


class Slotted(_Slots, Step):
    def weights(self):
        return [1.0, self.value, 1.0]


class Computes(Step):
    """Returns as parameter what it computes of a state that it keeps elsewhere."""

    def __init__(self, value=1):
        _kept[self] = value

    def get_params(self, deep=True):
        return {"value": _kept[self]}

    def set_params(self, value=None):
        _kept[self] = _kept[self] if value is None else value
        return self

    def weights(self):
        return [1.0, _kept[self], 1.0]


class ClonesItself(Step):
    """Its clones have more than its parameters."""

    def __sklearn_clone__(self):
        other = type(self)(self.value)
        other.secret = next(self.secrets)
        return other

    secret = 1.0
    secrets = iter(())  # a test sets it

    def weights(self):
        return [1.0, self.secret, 1.0]


class SetsMore(Step):
    """Setting its parameter, even to what it was, sets something else."""

    factor = 1.0

    def set_params(self, **params):
        if "value" in params:
            self.factor = 7.0
        return super().set_params(**params)

    def weights(self):
        return [1.0, self.value * self.factor, 1.0]


class TakesAnything(Step):
    """Takes keywords, which are parameters, too."""

    def __init__(self, value=1, **more):
        self.value, self._more = value, more

    def get_params(self, deep=True):
        return {"value": self.value, **self._more}

    def set_params(self, **params):
        self.value = params.pop("value", self.value)
        self._more = {**self._more, **params}
        return self

    def weights(self):
        return [1.0, self._more.get("scale", 1.0), 1.0]


class ByContainer(Step):
    """Its output differs where it is a frame, as its class is told by `set_output`."""

    def transform(self, X):
        frame = getattr(self, "_sklearn_output_config", {}).get("transform") == "pandas"
        return np.asarray(X) * ([1.0, 9.0, 1.0] if frame else [1.0, 0.1, 1.0])

    def get_feature_names_out(self, input_features=None):
        return np.array(["a", "b", "c"], dtype=object)


class Quantity(np.ndarray):
    """An array with a unit, whose pickle keeps it."""

    def __new__(cls, value, unit):
        made = np.asarray(value, float).view(cls)
        made.unit = unit
        return made

    def __array_finalize__(self, of):
        self.unit = getattr(of, "unit", 1.0)

    def __reduce__(self):
        return Quantity, (np.asarray(self), self.unit)

    def __deepcopy__(self, memo):
        return Quantity(np.array(self), self.unit)


class Forgetful(Quantity):
    """An array with a unit that its pickle leaves out."""

    __reduce__ = np.ndarray.__reduce__

    def __deepcopy__(self, memo):
        return np.array(self).view(Forgetful).in_unit(self.unit)

    def in_unit(self, unit):
        self.unit = unit
        return self


class Length(float):
    """A number with a unit."""

    unit = 1.0

    def __deepcopy__(self, memo):
        return length(float(self), self.unit)


def length(value, unit):
    made = Length(value)
    made.unit = unit
    return made


class Config:
    """An object whose pickle leaves out what it is read for."""

    def __init__(self, scale):
        self.scale = scale

    def __getstate__(self):
        return {}

    def __deepcopy__(self, memo):
        return Config(self.scale)

    def __call__(self):
        return [1.0, self.scale, 1.0]


class Level(enum.IntEnum):
    LOW = 1


def same_code(scale):
    return lambda: [1.0, scale, 1.0]


def same_name(scale):
    """A class as a notebook's cell that is run again defines it."""

    class Redefined(Step):
        def weights(self):
            return [1.0, scale, 1.0]

    return Redefined()


ONES = [1.0, 1.0, 1.0]
WIDE = np.array([9.0, 1.0, 1.0])
# Name: step, values of its parameter. All values of a case give other rows.
CASES = {
    "order of an OrderedDict": (
        InOrder(),
        [OrderedDict(a=0, b=1, c=2), OrderedDict(c=2, b=1, a=0)],
    ),
    "order of a dict": (InOrder(), [{"a": 0, "b": 1, "c": 2}, {"c": 2, "b": 1, "a": 0}]),
    "order of a set": (InOrder(), [{0, 8}, {8, 0}]),
    "list, tuple, array": (ByType(), [[1], (1,), np.array([1])]),
    "numbers of other types": (
        ByType(),
        [1, 1.0, True, np.int64(1), np.float32(1), Level.LOW, "1"],
    ),
    "signs of zero": (BySign(), [0.0, -0.0, np.float64(-0.0)]),
    "array with a unit": (WithUnit(), [Quantity(ONES, 1.0), Quantity(ONES, WIDE)]),
    "array whose pickle forgets": (WithUnit(), [Forgetful(ONES, 1.0), Forgetful(ONES, WIDE)]),
    "float with a unit": (WithUnit(), [length(1.0, WIDE), length(1.0, 1.0)]),
    "masked arrays": (
        ByMask(),
        [[np.ma.array(ONES, mask=[0, 0, 1])], [np.ma.array(ONES, mask=[1, 0, 0])]],
    ),
    "layout": (
        ByLayout(),
        [np.array([[1.0, 9.0], [0.1, 1.0]]), np.array([[1.0, 9.0], [0.1, 1.0]], order="F")],
    ),
    "metadata of a dtype": (
        ByDtype(),
        [np.zeros(1), np.zeros(1, np.dtype("f8", metadata={"wide": True}))],
    ),
    "closures": (Calls(), [same_code(0.1), same_code(9.0)]),
    "object whose pickle forgets": (Calls(), [Config(0.1), Config(9.0)]),
    "a dict that fit changes": (
        Changes({}),
        [{"scale": 1.0}, {"scale": 9.0}, {"scale": 1.0, "fits": 8}],
    ),
    "property": (Delegates(1), [1, 9]),
    "slot": (Slotted(1), [1, 9]),
    "own get_params": (Computes(1), [1, 9]),
}


def with_attribute(scale):
    def function():
        return [1.0, function.scale, 1.0]

    function.scale = scale
    return function


def with_attrs(attrs):
    frame = pd.DataFrame({"a": [1.0]})
    frame.attrs.update(attrs)
    return frame
