"""What the rows of folds on a device take of its memory, and what shared steps make of them."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from manyfit._compat import num_samples
from manyfit.arrays import numpy_dtype
from manyfit.cluster import steps_of
from manyfit.folds import as_matrix, bytes_of_passes, bytes_of_sums
from manyfit.folds._atoms import as_rows
from manyfit.model_selection._chain import Chain
from manyfit.model_selection._job import Job
from manyfit.model_selection._moves_of_steps import prefix_key, together
from manyfit.model_selection._plan import Group
from manyfit.model_selection._widths import n_columns


def bytes_of_folds(job: Job, groups: Sequence[Group], chains: Sequence[Chain | str]) -> int:
    """Bytes of a device that groups take which are fitted fold by fold, one fold at a time.

    Parameters
    ----------
    job : Job
        The search.
    groups : sequence of Group
        Of its plan.
    chains : sequence of Chain or str
        Of all settings; empty where nothing is shared.

    Returns
    -------
    int
        Rows that lie apart, gathered, outputs of all steps that settings of a fold share, and what a family
        takes to read them; what steps take while they work is theirs. Where only a fit tells how many columns
        a step makes, it counts as making as many as it is given.
    """
    shared = [group for group in groups if group.kind in ("family", "steps")]
    if not shared:
        return 0
    X, n = as_matrix(job.X), num_samples(job.X)
    splits = [[as_rows(index, n) for index in split] for split in job.splits]
    width = X.shape[1] * numpy_dtype(X).itemsize
    gathered = max(sum(len(rows) for rows in split if not together(rows)) for split in splits) * width
    n_train, n_fold = max(len(train) for train, _ in splits), max(sum(map(len, split)) for split in splits)
    size, outputs, work = 4 if numpy_dtype(X) == np.float32 else 8, dict[Any, int](), 0
    for group in shared:
        columns = X.shape[1]
        for c in group.candidates[:1] if group.kind == "family" else group.candidates:
            columns = X.shape[1]
            for j, made in enumerate(_columns(job, c, columns)):
                columns = outputs[prefix_key(chains, c, j)] = made
        if group.kind == "family":
            work = max(work, _of_family(job, group, np.broadcast_to(_zero(size), (n_train, columns))))
    kept = min(size * n_fold * sum(outputs.values()), job.options.memory_limit // 2)
    return gathered + kept + work


def _zero(size: int) -> np.ndarray:
    return np.zeros((), dtype=f"f{size}")


def _columns(job: Job, c: int, p: int) -> Iterator[int]:
    """Columns behind each step of a setting."""
    with suppress(Exception):  # a setting that cannot be applied makes none
        model = clone(job.estimator).set_params(**clone(dict(job.candidates[c]), safe=False))
        *steps, _ = steps_of(model)
        for step in steps:
            found = n_columns(step, p)
            p = p if found is None else found
            yield p


def _of_family(job: Job, group: Group, rows: np.ndarray) -> int:
    """Bytes that a family takes to read rows of a shape and dtype."""
    assert group.family is not None
    y: Any = job.y
    q = y.shape[1] if getattr(y, "ndim", 1) == 2 else 1
    if group.family.needs == "moments":
        return bytes_of_sums(rows, q, [slice(0, len(rows))])
    classes = len(np.unique(job.brought(y))) if is_classifier(group.prototype) else 0
    return bytes_of_passes(rows, len(group.candidates), classes if classes > 2 else q, 1)
