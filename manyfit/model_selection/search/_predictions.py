"""The attribute of a search with its out-of-fold predictions."""

from __future__ import annotations

from typing import Any

from manyfit._compat import is_multimetric
from manyfit.model_selection.job._predictions import Recording, recording_of
from manyfit.model_selection.search._evaluation import Evaluation


def require_choice(search: Any, scorer: Any) -> None:
    """Raise a ValueError if predictions of the best setting are asked for, and there will be none."""
    recording = recording_of(search.return_predictions)
    if recording is not None and is_multimetric(scorer):
        _require_best(search, recording)


def note_predictions(search: Any, evaluation: Evaluation) -> None:
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
