"""Which objects need a GPU, and which estimators can be fitted on device arrays."""

from collections.abc import Mapping
from typing import Any

from sklearn import get_config
from sklearn.utils import get_tags

from manyfit.arrays import is_on_device
from manyfit.introspection.class_names import sklearn_class_of
from manyfit.introspection.composites import params_of, pipeline_steps

# Estimators, frames and arrays of these packages belong to a GPU.
_PACKAGES = frozenset(("cuml", "cudf", "cupy", "cupyx"))
# Parameters by which XGBoost, LightGBM, CatBoost and skorch choose a GPU.
_CHOICES = frozenset(("device", "device_type", "task_type", "tree_method"))


def needs_gpu(value: Any) -> bool:
    """Whether an array, a frame or an estimator, or an estimator inside it, visibly belongs to a GPU."""
    return is_gpu_object(value) or has_gpu_params(params_of(value))


def is_gpu_object(value: Any) -> bool:
    """Whether `value` itself belongs to a GPU: by its device, or the package of its class."""
    packages = {cls.__module__.partition(".")[0] for cls in type(value).__mro__}
    return is_on_device(value) or not packages.isdisjoint(_PACKAGES)


def has_gpu_params(params: Mapping[str, Any]) -> bool:
    """Whether parameters, with those of inner estimators, make an estimator compute on a GPU."""
    return any(_chooses_gpu(name, value) or needs_gpu(value) for name, value in params.items())


def _chooses_gpu(name: str, value: Any) -> bool:
    return name.rpartition("__")[2] in _CHOICES and str(value).lower().startswith(("cuda", "gpu"))


def supports_device_data(estimator: Any) -> bool:
    """Whether an estimator, or every step of a pipeline, can be fitted on device arrays.

    scikit-learn's own need the tag and ``array_api_dispatch=True``; other libraries' are assumed to.
    """
    return all(_supports_device_data(step) for step in pipeline_steps(estimator))


def _supports_device_data(step: Any) -> bool:
    if supports_device_data_natively(step) or is_drop_in(step):
        return True
    if not type(step).__module__.startswith("sklearn."):
        return True
    return bool(get_config()["array_api_dispatch"]) and supports_array_api(step)


def is_drop_in(estimator: Any) -> bool:
    """Whether an estimator, or every step of a pipeline, is one of `manyfit.estimators`.

    They take data on any device, and y on another device than X.
    """
    return all(sklearn_class_of(type(step)) is not type(step) for step in pipeline_steps(estimator))


def reads_device_frames(estimator: Any) -> bool:
    """Whether an estimator reads frames of a device: our drop-ins, and cuML's.

    scikit-learn's own, with its dispatch, read arrays of a device only.
    """
    return all(is_drop_in(step) or is_gpu_object(step) for step in pipeline_steps(estimator))


def supports_device_data_natively(step: Any) -> bool:
    """Whether an estimator takes device arrays without scikit-learn's dispatch: cuML's, or XGBoost's."""
    return is_gpu_object(step) or (
        type(step).__module__.startswith("xgboost.") and has_gpu_params(params_of(step))
    )


def supports_array_api(step: Any) -> bool:
    """Whether an estimator supports scikit-learn's array API dispatch, by its tags."""
    try:
        return bool(get_tags(step).array_api_support)
    except Exception:  # a class that is no estimator may raise anything
        return False
