"""scikit-learn's estimators, for arrays of any library: what they give lies where X does."""

from __future__ import annotations

import functools

import sklearn

from manyfit.arrays import array_namespace, device, is_array, to_device, to_host


def alike(cls):
    """Return the class, with methods that take arrays of a device and give arrays there."""
    names = ("fit", "fit_transform", "transform", "predict", "predict_proba")
    return type(cls.__name__, (cls,), {name: _there(cls, name) for name in names if hasattr(cls, name)})


def _there(cls, name):
    @functools.wraps(getattr(cls, name))
    def method(self, X, *args):
        here = [to_host(value) if is_array(value) else value for value in (X, *args)]
        with sklearn.config_context(array_api_dispatch=False):
            out = getattr(cls, name)(self, *here)
        return to_device(out, device(X), array_namespace(X)) if is_array(out) else out

    return method
