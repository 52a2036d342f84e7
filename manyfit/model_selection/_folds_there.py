"""What the rows of folds on a device take of its memory, and what shared steps make of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from manyfit._compat import num_samples
from manyfit.arrays import numpy_dtype
from manyfit.cluster._takes_gpu import steps_of
from manyfit.estimators._bytes_there import Iterated, bytes_of_iterations
from manyfit.folds import bytes_of_sums, distinct_labels
from manyfit.folds._atoms import as_rows
from manyfit.model_selection._job import Job
from manyfit.model_selection._lend import bytes_of
from manyfit.model_selection._plan import Group
from manyfit.model_selection._settings import Settings
from manyfit.model_selection._trips import rows_there, together
from manyfit.model_selection._widths import n_columns
from manyfit.model_selection._worth import iterated_outputs, n_rowwise


@dataclass(frozen=True)
class _Largest:
    """The largest fold: rows, bytes of those that are gathered, and of a number behind steps."""

    n_train: int
    rows: int
    gathered: int
    size: int

    @classmethod
    def of(cls, job: Job) -> "_Largest":
        X, n = rows_there(job), num_samples(job.X)
        splits = [[as_rows(index, n) for index in split] for split in job.splits]
        apart = max(sum(len(rows) for rows in split if not together(rows)) for split in splits)
        return cls(
            max(len(train) for train, _ in splits),
            max(sum(map(len, split)) for split in splits),
            apart * bytes_of(X) // n,
            4 if numpy_dtype(X) == np.float32 else 8,
        )


def bytes_of_folds(job: Job, groups: Sequence[Group], settings: Settings, by_candidate: bool) -> int:
    """Bytes of a device that groups take which are fitted fold by fold, in one process.

    Parameters
    ----------
    job : Job
        The search.
    groups : sequence of Group
        Of its plan.
    settings : Settings
        Those of the job.
    by_candidate : bool
        Whether what no family answers is fitted setting by setting, so that several folds are kept.

    Returns
    -------
    int
        Rows that lie apart, gathered, outputs of all steps that settings of a fold share, and what a family
        takes to read them; what steps take while they work is theirs. Where only a fit tells how many columns
        a step makes, it counts as making as many as it is given.
    """
    families, steps = ([one for one in groups if one.kind == kind] for kind in ("family", "steps"))
    if not (families or steps):
        return 0
    fold, limit = _Largest.of(job), job.options.memory_limit
    outputs = _outputs(job, [*families, *steps], settings)
    work = max((_of_family(job, group, outputs, settings, fold) for group in families), default=0)
    kept = max(1, min(job.splits.n_splits, limit // 4 // bytes_of(rows_there(job)))) if by_candidate else 1
    numbers = fold.rows * sum(outputs.values())
    return kept * fold.gathered + min(kept * fold.size * numbers, limit // 2) + work


def _outputs(job: Job, groups: Sequence[Group], settings: Settings) -> dict[Any, int]:
    """Columns that steps make, each once that settings share."""
    found = dict[Any, int]()
    for group in groups:
        for c in group.candidates[:1] if group.kind == "family" else group.candidates:
            for j, columns in enumerate(_columns(settings.model(c), rows_there(job).shape[1])):
                found[settings.prefix_key(c, j)] = columns
    return found


def _columns(model: Any, p: int) -> Iterator[int]:
    """Columns behind each step of a setting; none of one that cannot be applied."""
    for step in list(steps_of(model))[:-1] if model is not None else ():
        found = n_columns(step, p)
        p = p if found is None else found
        yield p


def _of_family(job: Job, group: Group, outputs: Mapping[Any, int], settings: Settings, fold: _Largest) -> int:
    """Bytes that a family takes to read the training rows of a fold behind its steps."""
    assert group.family is not None
    p = outputs.get(settings.prefix_key(group.candidates[0], len(group.steps) - 1), rows_there(job).shape[1])
    # Of a shape and dtype, and without memory.
    rows: Any = np.broadcast_to(np.zeros((), dtype=f"f{fold.size}"), (fold.n_train, int(p)))
    y: Any = job.y
    q = y.shape[1] if getattr(y, "ndim", 1) == 2 else 1
    if group.family.needs == "moments":
        return bytes_of_sums(rows, q, [slice(0, len(rows))])
    classes = len(distinct_labels(job.brought(y))) if is_classifier(group.prototype) else 0
    K, atoms = iterated_outputs(group, classes if classes > 2 else q), [slice(0, len(rows))]
    asked = Iterated(rows, len(group.candidates), 1, K, atoms, 1.0, n_rowwise(group, False))
    return bytes_of_iterations(asked, job.options.memory_limit)
