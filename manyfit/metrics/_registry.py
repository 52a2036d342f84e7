"""Every metric that takes the predictions of many settings, by scikit-learn's function."""

from collections.abc import Callable
from typing import Any

from sklearn.metrics import accuracy_score

from manyfit.metrics._many import Many, Targets

MANY: dict[Callable[..., Any], Many] = {}


def _accuracy(targets: Targets, P: Any) -> Any:
    return targets.mean(targets.codes == P)


MANY[accuracy_score] = Many(_accuracy, "labels")
