"""Drop-in estimators made from scikit-learn's classes of the same names."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

from sklearn.utils.metaestimators import available_if

from manyfit._compat import output_wrapping, replace_hstack
from manyfit.estimators._catalog import CATALOG, META_ESTIMATORS
from manyfit.estimators._column_concat import join_columns_on_device
from manyfit.estimators._method_call import RECORD
from manyfit.estimators._method_wrapper import wrap_method
from manyfit.estimators._pickling import getstate, setstate
from manyfit.estimators.backends import _cuml
from manyfit.introspection.class_names import register_drop_in

# Methods that take data, or compute with fitted attributes.
WRAPPED_METHODS = frozenset(
    {
        "fit", "partial_fit", "fit_transform", "fit_predict",
        "predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba", "decision_function",
        "transform", "inverse_transform", "score", "score_samples", "decode",
        "kneighbors", "kneighbors_graph", "radius_neighbors", "radius_neighbors_graph",
        "apply", "decision_path", "get_covariance", "get_precision", "dbscan_clustering",
        "densify", "sparsify",
    }
)  # fmt: skip


def make_drop_in(sklearn_class: type) -> type:
    """A subclass of the same name, parameters and text, whose methods take data on any device."""
    cls = type(
        sklearn_class.__name__,
        (sklearn_class,),
        {
            "__module__": "manyfit.estimators",
            "__doc__": sklearn_class.__doc__,
            "__getattr__": _read_cuml_attribute,
            "__getstate__": getstate,
            "__setstate__": setstate,
        },
        **output_wrapping(sklearn_class),
    )
    # After the class is made: scikit-learn would wrap a `transform` in the class body once more.
    for name in sorted(WRAPPED_METHODS & set(dir(sklearn_class))):
        setattr(cls, name, _method(sklearn_class, name))
    register_drop_in(cls, sklearn_class)
    return cls


def _method(sklearn_class: type, name: str) -> Any:
    member = inspect.getattr_static(sklearn_class, name)
    if inspect.isfunction(member):
        return wrap_method(name, member)
    # `available_if` makes a function and a check of whether the estimator has it.
    return available_if(member.check)(wrap_method(name, member.fn))


def _read_cuml_attribute(self: Any, name: str) -> Any:
    """Read a fitted attribute from cuML's estimator if the drop-in itself has none of that name."""
    record = vars(self).get(RECORD)
    if record is not None and record.model is not None and _cuml.is_fitted_name(name):
        return _cuml.read_attribute(self, record, name)
    return object.__getattribute__(self, name)  # raises the original error again, perhaps a property's


def load_drop_in(name: str) -> type:
    """Make the drop-in estimator of a name in `CATALOG`."""
    line = CATALOG[name]
    cls = make_drop_in(getattr(import_module(line.module), name))
    if name in META_ESTIMATORS and line.dispatch is not None:
        replace_hstack(cls, join_columns_on_device)
    return cls
