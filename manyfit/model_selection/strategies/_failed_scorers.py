"""Scorers that fail on rows in chunks: scikit-learn cannot call them, and the others keep their scores."""

import warnings
from collections.abc import Callable, Mapping, Sequence

from manyfit.folds import ChunkSums, FoldedData
from manyfit.metrics.scoring import SharedScoring
from manyfit.model_selection.job._job import Options


def error_score_of_each(scoring: SharedScoring, folded: FoldedData, options: Options) -> float | None:
    """The score of each scorer that fails; None where all scores are left to scikit-learn."""
    in_chunks = isinstance(getattr(folded, "X", None), ChunkSums)
    if not (in_chunks and scoring.multimetric) or options.error_score == "raise":
        return None
    return options.error_score


def call_in_turn(
    call: Callable[[list[str]], Mapping[str, float]],
    names: Sequence[str],
    error_score: float,
    values: dict[str, float],
) -> set[str]:
    """Add scores to `values`, and return the names of those that failed; raises if there are no others."""
    errors = dict[str, Exception]()
    for name in names:
        try:
            values.update(call([name]))
        except Exception as error:
            errors[name] = error
    if errors and not values:
        raise next(iter(errors.values()))
    for name, why in errors.items():
        values[name] = error_score
        warnings.warn(
            f"Scoring failed. The score by {name} on this train-test partition for these parameters will be "
            f"set to {error_score}. {type(why).__name__}: {why}",
            UserWarning,
            stacklevel=2,
        )
    return set(errors)
