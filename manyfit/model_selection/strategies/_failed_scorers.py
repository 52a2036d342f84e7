"""Scorers that fail on rows in chunks: scikit-learn cannot call them, and the fit keeps its other scores."""

from collections.abc import Callable, Mapping, Sequence
from math import isnan

from manyfit.folds import ChunkSums, FoldedData, Unsupported
from manyfit.model_selection.job._job import Options
from manyfit.model_selection.sharing._deferred_warnings import DeferredWarnings
from manyfit.model_selection.sharing.rows._own_rows import InputWritten


def error_score_of_each(folded: FoldedData, options: Options) -> float | None:
    """The score of each scorer that fails; None where all scores are left to scikit-learn."""
    in_chunks = isinstance(getattr(folded, "X", None), ChunkSums)
    return options.error_score if in_chunks and options.error_score != "raise" else None


def call_scorers(
    call: Callable[[Sequence[str]], Mapping[str, float]],
    call_all: Callable[[], Mapping[str, float]],
    missing: Sequence[str],
    error_score: float,
    values: dict[str, float],
) -> set[str]:
    """Add the missing scores to `values`, and return the names of those that may be `error_score`.

    `call` raises errors of scorers, and `call_all` warns of them, as scikit-learn does. What is no error of a
    scorer is raised.
    """
    warned = DeferredWarnings()
    try:
        with warned.under(0):
            values.update(call(missing))
        warned.emit([0])
        return set()
    except (Unsupported, InputWritten):
        raise
    except Exception:
        warned.emit([])
    # Scorers of one bundle share predictions, with the positive class of the first that reads them: whether a
    # scorer fails depends on those before it.
    found = call_all()
    values.update({name: found[name] for name in missing})
    return {
        name
        for name in missing
        if values[name] == error_score or (isnan(values[name]) and isnan(error_score))
    }
