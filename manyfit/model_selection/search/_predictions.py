"""The attribute of a search with its out-of-fold predictions."""

from __future__ import annotations

from typing import Any

from manyfit.model_selection.job._predictions import recording_of
from manyfit.model_selection.search._evaluation import Evaluation


def note_predictions(search: Any, evaluation: Evaluation) -> None:
    """Set ``cv_predictions_`` if the search asks for it.

    Raises a ValueError if it has no best setting, and does not ask for the predictions of all.
    """
    vars(search).pop("cv_predictions_", None)
    recording = recording_of(search.return_predictions)
    if recording is None:
        return
    best = None if recording.every else getattr(search, "best_index_", None)
    if best is None and not recording.every:
        raise ValueError(
            f"return_predictions={search.return_predictions!r} needs a best setting: with several metrics,"
            " set refit to the name of one, or ask for return_predictions='all'."
        )
    search.cv_predictions_ = evaluation.predictions(recording, best)
