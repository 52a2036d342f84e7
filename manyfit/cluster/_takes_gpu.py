"""Which objects take a GPU to work with: those of a device, and estimators that compute there."""

from collections.abc import Mapping
from typing import Any

from manyfit.arrays import on_device

# Estimators, frames and arrays of these packages are of the GPU.
_PACKAGES = frozenset(("cuml", "cudf", "cupy", "cupyx"))
# How estimators that can do both are told: XGBoost, LightGBM, CatBoost and skorch.
_CHOICES = frozenset(("device", "device_type", "task_type", "tree_method"))


def takes_gpu(value: Any) -> bool:
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
    return of_gpu(value) or any_of_gpu(params_of(value))


def of_gpu(value: Any) -> bool:
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


def any_of_gpu(params: Mapping[str, Any]) -> bool:
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
        of_gpu(value) or _chosen(name, value) or any_of_gpu(params_of(value))
        for name, value in params.items()
    )


def _chosen(name: str, value: Any) -> bool:
    return name.rpartition("__")[2] in _CHOICES and str(value).lower().startswith(("cuda", "gpu"))


def params_of(value: Any) -> Mapping[str, Any]:
    """The parameters of an estimator and of those in it; none of anything else.

    Parameters
    ----------
    value : object
        Anything.

    Returns
    -------
    mapping of str to object
        By their names, those of steps too.
    """
    if isinstance(value, type) or not hasattr(value, "get_params"):
        return {}
    return dict(value.get_params(deep=True))
