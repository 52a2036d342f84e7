"""How a drop-in estimator is made of scikit-learn's class of the same name."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

from sklearn.utils.metaestimators import available_if

from manyfit._compat import output_wrapping
from manyfit._drop_in_classes import register_drop_in
from manyfit.estimators._catalog import ALL, HOLDERS
from manyfit.estimators._column_concat import join_columns_there
from manyfit.estimators._method_call import STATE
from manyfit.estimators._method_wrapper import wrap_methods
from manyfit.estimators._pickling import getstate, setstate
from manyfit.estimators.backends import _cuml as _with_cuml

# Methods that take data, or compute with fitted attributes.
BRIDGED = frozenset(
    {
        "fit", "partial_fit", "fit_transform", "fit_predict",
        "predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba", "decision_function",
        "transform", "inverse_transform", "score", "score_samples", "decode",
        "kneighbors", "kneighbors_graph", "radius_neighbors", "radius_neighbors_graph",
        "apply", "decision_path", "get_covariance", "get_precision", "dbscan_clustering",
        "densify", "sparsify",
    }
)  # fmt: skip


def exported(twin: type) -> type:
    """The drop-in estimator for scikit-learn's class.

    Parameters
    ----------
    twin : type
        scikit-learn's class.

    Returns
    -------
    type
        A subclass of the same name, parameters and text, whose methods take data that lie anywhere.
    """
    cls = type(
        twin.__name__,
        (twin,),
        {
            "__module__": "manyfit.estimators",
            "__doc__": twin.__doc__,
            "__getattr__": _fitted_attribute,
            "__getstate__": getstate,
            "__setstate__": setstate,
        },
        **output_wrapping(twin),
    )
    # After the class is made: scikit-learn would wrap a `transform` that it finds in the body once more.
    for name in sorted(BRIDGED & set(dir(twin))):
        setattr(cls, name, _method(twin, name))
    register_drop_in(cls, twin)
    return cls


def _method(twin: type, name: str) -> Any:
    member = inspect.getattr_static(twin, name)
    if inspect.isfunction(member):
        return wrap_methods(name, member)
    # What `available_if` makes: a function, and a check that says whether the estimator has it.
    return available_if(member.check)(wrap_methods(name, member.fn))


def _fitted_attribute(self: Any, name: str) -> Any:
    """Fitted attributes that an estimator of cuML's has; asked where there is no such attribute."""
    state = vars(self).get(STATE)
    if state is not None and state.model is not None and _with_cuml.may_have(name):
        return _with_cuml.attribute(self, state, name)
    return object.__getattribute__(self, name)  # raises again what was raised, by a property perhaps


def export(name: str) -> type:
    """Make the drop-in estimator of a name, of which there is a line in `ALL`."""
    line = ALL[name]
    cls = exported(getattr(import_module(line.module), name))
    if name in HOLDERS and line.dispatch is not None:
        join_columns_there(cls)
    return cls
