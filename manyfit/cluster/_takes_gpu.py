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
    return _of_gpu(value) or any(_of_gpu(one) or _chosen(name, one) for name, one in _params(value).items())


def _of_gpu(value: Any) -> bool:
    packages = {cls.__module__.partition(".")[0] for cls in type(value).__mro__}
    return on_device(value) or not packages.isdisjoint(_PACKAGES)


def _chosen(name: str, value: Any) -> bool:
    return name.rpartition("__")[2] in _CHOICES and str(value).lower().startswith(("cuda", "gpu"))


def _params(value: Any) -> Mapping[str, Any]:
    if isinstance(value, type) or not hasattr(value, "get_params"):
        return {}
    return dict(value.get_params(deep=True))
