"""Whether sharing pays: in operations, and in the memory that the user allows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from dask.utils import format_bytes
from sklearn.base import is_classifier

from manyfit.estimators import Family, Shape
from manyfit.folds import SplitData, Unsupported
from manyfit.model_selection._job import Job
from manyfit.model_selection._plan import Group


def n_classes(estimator: Any, y: Any) -> int:
    """How many classes a classifier is given; 0 for other estimators."""
    return len(np.unique(y)) if is_classifier(estimator) else 0


def require_cheaper(
    family: Family, estimator: Any, settings: Sequence[Mapping[str, Any]], shape: Shape
) -> float:
    """Operations that sharing takes; settings that scikit-learn fits in fewer are refused."""
    cost = family.cost(estimator, settings, shape)
    if cost.shared > cost.one_by_one:
        raise Unsupported("sharing would take more operations here")
    return cost.shared


def operations_of(
    family: Family, estimator: Any, settings: Sequence[Mapping[str, Any]], shape: Shape
) -> float:
    """Operations that sharing takes."""
    return family.cost(estimator, settings, shape).shared


def require_memory(needed: int, limit: int) -> None:
    """Refuse moments of more than `limit` bytes."""
    if needed > limit:
        raise Unsupported(f"moments would need {format_bytes(needed)}, more than memory_limit")


# Arrays of the size of linear predictors that are there while predictions are scored on a device, as was
# measured: of numbers, of two classes, and of more.
OF_NUMBERS, OF_TWO, OF_MORE = 3.0, 7.5, 5.3


def outputs_of(group: Group, data: SplitData) -> int:
    """Outputs of a linear model: one for each class where there are more than two."""
    classes = n_classes(group.prototype, data.y) if is_classifier(group.prototype) else 0
    return classes if classes > 2 else data.n_targets


def bytes_of_scores(job: Job, group: Group, data: SplitData) -> int:
    """Bytes that it takes on a device, as a rule, to score the predictions of a group on one split."""
    n_test = -(-data.X.shape[0] // job.splits.n_splits)
    outputs = outputs_of(group, data)
    of_one = 8 * n_test * outputs
    block = max(1, min(len(group.candidates), job.options.memory_limit // 8 // of_one))
    times = OF_NUMBERS if not is_classifier(group.prototype) else OF_TWO if outputs == 1 else OF_MORE
    # Beside them rows, less the origin, and targets.
    return round(block * of_one * times) + 8 * n_test * data.X.shape[1] + 16 * data.X.shape[0]
