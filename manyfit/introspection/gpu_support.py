"""Which objects take a GPU to work with: those of a device, and estimators that compute there."""

from collections.abc import Mapping
from typing import Any

from sklearn import get_config
from sklearn.utils import get_tags

from manyfit._drop_in_classes import sklearn_class_of
from manyfit.arrays import on_device
from manyfit.introspection.composites import params_of, pipeline_steps

# Estimators, frames and arrays of these packages are of the GPU.
_PACKAGES = frozenset(("cuml", "cudf", "cupy", "cupyx"))
# How estimators that can do both are told: XGBoost, LightGBM, CatBoost and skorch.
_CHOICES = frozenset(("device", "device_type", "task_type", "tree_method"))


def needs_gpu(value: Any) -> bool:
    """Whether something is of a GPU, or an estimator that is, or holds one that is.

    Parameters
    ----------
    value : object
        Anything.

    Returns
    -------
    bool
        As far as can be told from outside.
    """
    return is_gpu_object(value) or has_gpu_params(params_of(value))


def is_gpu_object(value: Any) -> bool:
    """Whether something is itself of a GPU.

    Parameters
    ----------
    value : object
        Anything.

    Returns
    -------
    bool
        As far as can be told from outside.
    """
    packages = {cls.__module__.partition(".")[0] for cls in type(value).__mro__}
    return on_device(value) or not packages.isdisjoint(_PACKAGES)


def has_gpu_params(params: Mapping[str, Any]) -> bool:
    """Whether parameters have an estimator compute on a GPU: by what they are, hold or say.

    Parameters
    ----------
    params : mapping of str to object
        By their names, those of steps too.

    Returns
    -------
    bool
        As far as can be told from outside.
    """
    return any(
        is_gpu_object(value) or _chosen(name, value) or has_gpu_params(params_of(value))
        for name, value in params.items()
    )


def _chosen(name: str, value: Any) -> bool:
    return name.rpartition("__")[2] in _CHOICES and str(value).lower().startswith(("cuda", "gpu"))


def supports_device_data(estimator: Any) -> bool:
    """Whether an estimator can be fitted on arrays of a device, as things are here.

    Parameters
    ----------
    estimator : estimator
        Unfitted; of a pipeline every step counts.

    Returns
    -------
    bool
        Of scikit-learn's own, for those that say so by their tags, under ``array_api_dispatch=True``; of all
        others, who know what they can be given.
    """
    return all(_takes(step) for step in pipeline_steps(estimator))


def is_drop_in(estimator: Any) -> bool:
    """Whether an estimator, and every step of a pipeline, is one of `manyfit.estimators`.

    Parameters
    ----------
    estimator : estimator
        Any.

    Returns
    -------
    bool
        These take data of any place, y of another place than X, too.
    """
    return all(sklearn_class_of(type(step)) is not type(step) for step in pipeline_steps(estimator))


def _takes(step: Any) -> bool:
    if supports_device_data_natively(step) or is_drop_in(step):
        return True
    if not type(step).__module__.startswith("sklearn."):
        return True  # whoever wrote it knows
    return bool(get_config()["array_api_dispatch"]) and supports_array_api(step)


def supports_device_data_natively(step: Any) -> bool:
    """Whether an estimator takes arrays of a device without scikit-learn's help.

    Parameters
    ----------
    step : estimator
        No pipeline.

    Returns
    -------
    bool
        For those of the GPU, and XGBoost's that are told to compute there.
    """
    return is_gpu_object(step) or (
        type(step).__module__.startswith("xgboost.") and has_gpu_params(params_of(step))
    )


def supports_array_api(step: Any) -> bool:
    """Whether an estimator takes arrays of a device under scikit-learn's array API dispatch, by its tags.

    Parameters
    ----------
    step : estimator
        No pipeline.

    Returns
    -------
    bool
        False for whatever is no estimator to scikit-learn.
    """
    try:
        return bool(get_tags(step).array_api_support)
    except Exception:  # whatever a class that is no estimator raises
        return False
