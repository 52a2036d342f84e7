"""Out-of-fold predictions: those that a run has not recorded, and the order of all of them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from manyfit._compat import columns_of_all_classes, evaluates_all_at_once, is_multimetric
from manyfit.folds import Splits, is_row_source
from manyfit.model_selection.job._job import Job, Pair
from manyfit.model_selection.job._predictions import Predicted, Recording, recording_of
from manyfit.model_selection.planning._planner import prepare
from manyfit.model_selection.results._result_sink import ResultSink
from manyfit.model_selection.running._engine import run


def require_choice(search: Any, scorer: Any) -> None:
    """Raise a ValueError if predictions of the best setting are asked for, and there will be none."""
    recording = recording_of(search.return_predictions)
    if recording is not None and is_multimetric(scorer):
        _require_best(search, recording)
    if recording is not None and recording.every and not evaluates_all_at_once(search):
        raise ValueError(
            f"return_predictions={search.return_predictions!r} was given to {type(search).__name__}, which "
            f"evaluates settings in rounds. Ask for those of the best setting: {recording.method!r}. "
            "GridSearchCV and RandomizedSearchCV give those of all settings."
        )


def note_predictions(search: Any, evaluation: Any) -> None:
    """Set ``cv_predictions_`` if the search asks for it."""
    vars(search).pop("cv_predictions_", None)
    recording = recording_of(search.return_predictions)
    if recording is None:
        return
    if search.multimetric_:  # a function may have given several scores
        _require_best(search, recording)
    search.cv_predictions_ = evaluation.predictions(
        recording, None if recording.every else search.best_index_
    )


def _require_best(search: Any, recording: Recording) -> None:
    if not (search.refit or recording.every):
        raise ValueError(
            f"return_predictions={search.return_predictions!r} needs a best setting: with several metrics,"
            " set refit to the name of one, or ask for return_predictions='all'."
        )


def collect_predictions(
    job: Job, candidates: Sequence[int], recording: Recording, found: dict[Pair, Predicted]
) -> list[Any]:
    """The predictions of some settings, each as `in_order` gives them; None if a fit of it fails.

    `found`: what a run has recorded. The rest takes one more run, in which scikit-learn fits models whose
    shared fits converge.
    """
    k = job.splits.n_splits
    missing = [c for c in candidates if any((c, i) not in found for i in range(k))]
    if missing:
        options = replace(
            job.options, recording=replace(recording, every=True), verbose=0, return_train_score=False
        )
        keeps = recording.every or job.sharing == "none" or is_row_source(job.X)
        again = replace(
            job,
            candidates=[job.candidates[c] for c in missing],
            options=options,
            sharing=job.sharing if keeps else "exact",
            search=None,
            contexts=None,
        )
        sink = ResultSink(again)
        run(again, prepare(again), sink)
        found = found | {(missing[j], i): one for (j, i), one in sink.predicted.items()}
    if is_row_source(job.X) and any((c, i) not in found for c in candidates for i in range(k)):
        warnings.warn(no_predictions(job.X, recording.method), UserWarning, stacklevel=2)
    y = job.copy_to_host(job.y, "y")
    own = [[found.get((c, i)) for i in range(k)] for c in candidates]
    return [
        None if any(one is None for one in parts) else in_order(parts, job.splits, y, recording.method)
        for parts in own
    ]


def no_predictions(X: Any, method: str) -> str:
    """Why there are no predictions of an X that scikit-learn cannot read."""
    kind = getattr(X, "kind", type(X).__name__)
    return (
        f"There are no predictions by {method} of X, a {kind} that is read for shared fits only: they do not "
        "answer this method. Pass X as an array or DataFrame, or ask for 'predict'."
    )


def in_order(parts: Sequence[Any], splits: Splits, y: Any, method: str) -> Any:
    """Predictions in the order of the rows of X, if each row is tested once.

    Otherwise a list with the test rows of each split and their predictions.
    """
    known = np.ndim(y) == 1 and all(one.classes is not None for one in parts)
    classes = np.unique(np.asarray(y)) if known else None
    values = [columns_of_all_classes(one.values, one.classes, classes, method) for one in parts]
    rows = [np.arange(splits.n_samples)[test] for _, test in splits]
    every = np.concatenate(rows)
    if len(every) != splits.n_samples or (np.bincount(every, minlength=splits.n_samples) != 1).any():
        return list(zip(rows, values, strict=True))
    sparse = scipy.sparse.issparse(values[0])
    joined = scipy.sparse.vstack(values, format="csr") if sparse else np.concatenate(values)
    return joined[np.argsort(every)]
