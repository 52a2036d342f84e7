"""Whether sharing pays: in operations, and in the memory that the user allows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from dask.utils import format_bytes
from sklearn.base import is_classifier

from manyfit.arrays import numpy_dtype
from manyfit.estimators import Family, Shape
from manyfit.estimators._bytes_there import Iterated, bytes_of_iterations
from manyfit.folds import SplitData, Unsupported, distinct_labels
from manyfit.folds._atoms import as_rows
from manyfit.metrics._moment_scores import PREDICTED_VALUES_THERE
from manyfit.model_selection._job import Job
from manyfit.model_selection._plan import Group
from manyfit.model_selection._responses import Asked
from manyfit.model_selection._score_answers import SCORED_THERE
from manyfit.model_selection._trips import together

# What a family that converges has to gain.
LEAST_GAIN = 2.0


def n_classes(estimator: Any, y: Any) -> int:
    """How many classes a classifier is given; 0 for other estimators."""
    return len(distinct_labels(y)) if is_classifier(estimator) else 0


def require_cheaper(
    family: Family, estimator: Any, settings: Sequence[Mapping[str, Any]], shape: Shape, sharing: str
) -> float:
    """What sharing costs; settings for which scikit-learn's fits cost less are refused.

    A family that converges may change last digits, which is not worth a small gain.
    """
    cost = family.cost(estimator, settings, shape)
    least = LEAST_GAIN if family.result == "converged" and sharing == "auto" else 1.0
    if cost.shared > cost.one_by_one:
        raise Unsupported("sharing would take more operations here")
    if least * cost.shared > cost.one_by_one:
        gain = cost.one_by_one / cost.shared
        raise Unsupported(
            f"sharing is expected to be {gain:.1f} times as fast, and has to be {least:g} times"
        )
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
# measured: of numbers, of decisions, of probabilities of two classes and of more; and where they are sorted,
# of decisions alone and beside probabilities.
OF_NUMBERS, OF_DECISIONS, OF_TWO, OF_MORE = 3.0, 3.0, 6.0, 4.2
OF_SORTED_DECISIONS, OF_SORTED = 9.0, 12.0


def outputs_of(group: Group, data: SplitData) -> int:
    """Outputs of a linear model: one for each class where there are more than two."""
    classes = n_classes(group.prototype, data.y) if is_classifier(group.prototype) else 0
    return classes if classes > 2 else data.n_targets


def bytes_of_passes(job: Job, group: Group, data: SplitData) -> int:
    """Bytes that it takes on a device to iterate, beside X and y."""
    atoms = max(job.splits.atom_groups, key=lambda one: len(one.splits))
    weighted = data.weights.fit is not None
    asked = Iterated(
        data.X,
        len(group.candidates),
        len(atoms.splits),
        iterated_outputs(group, outputs_of(group, data)),
        atoms.rows,
        float(np.count_nonzero(atoms.train) / atoms.train.size),
        n_rowwise(group, weighted),
    )
    # Behind steps y and weights are there as moments read them, too.
    of_steps = 8 * data.X.shape[0] * (1 + weighted) if group.steps else 0
    return bytes_of_iterations(asked, job.options.memory_limit) + of_steps


def iterated_outputs(group: Group, n_outputs: int) -> int:
    """Outputs of a linear model that a family goes over at once."""
    return n_outputs if getattr(group.family, "coupled", True) else 1


def n_rowwise(group: Group, weighted: bool) -> int:
    """Numbers that a family keeps of each row beside its targets: a weight, a class if these have some."""
    return weighted + (getattr(group.prototype, "class_weight", None) is not None)


def bytes_of_scores(job: Job, group: Group, data: SplitData) -> int:
    """Bytes that it takes on a device, as a rule, to score the predictions of a group on one split."""
    X, outputs = data.X, outputs_of(group, data)
    (n, p), k = X.shape, job.splits.n_splits
    n_rows = -(-n // k)
    apart = not together(as_rows(data.splits.indices(0)[1], n))
    if job.options.return_train_score:
        n_rows, apart = max(n_rows, n - n_rows), True
    of_one = 8 * n_rows * outputs
    block = max(1, min(len(group.candidates), min(job.options.memory_limit // 8, SCORED_THERE) // of_one))
    # Beside them targets; and rows, gathered, and some of them less the origin.
    rows = min(n_rows * p, PREDICTED_VALUES_THERE) * (8 if numpy_dtype(X).kind == "f" else 16)
    gathered = n_rows * (numpy_dtype(X).itemsize * p + 8) if apart else 0
    predicting = rows + 2 * block * of_one
    return round(max(predicting, block * of_one * _times(job, group, outputs))) + gathered + 16 * n


def _times(job: Job, group: Group, outputs: int) -> float:
    """Arrays of the size of linear predictors that there are while predictions are scored."""
    if not is_classifier(group.prototype):
        return OF_NUMBERS
    decides = not hasattr(group.prototype, "predict_proba")
    if Asked(job.options.scorer).ranks:
        return OF_SORTED_DECISIONS if decides else OF_SORTED
    if decides:
        return OF_DECISIONS
    return OF_TWO if outputs == 1 else OF_MORE
