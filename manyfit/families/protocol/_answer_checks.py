"""Checks that the answers of a family have the shapes that scoring reads."""

from collections.abc import Callable

import numpy as np

from manyfit.families.protocol._answers import Answers, LinearAnswers, Predictions
from manyfit.families.protocol._protocol import Family
from manyfit.folds import Fold


def require_valid_answers(
    family: Family,
    answers: Answers,
    n_settings: int,
    n_features: int,
    n_targets: int,
    fold: Callable[[], Fold],
) -> None:
    """Raise ValueError, with the family and the fact, if answers for one fold do not fit it.

    `fold` gives the fold; it is called for predictions only.
    """
    wrong = None
    if not all(j in range(n_settings) for j in answers.refused):
        given = dict(answers.refused)
        wrong = f"refused={given!r}, with other keys than the positions of {n_settings} settings"
    elif isinstance(answers, LinearAnswers):
        wrong = _wrong_predictors(answers, n_settings, n_features, n_targets)
    elif isinstance(answers, Predictions):
        wrong = _wrong_predictions(answers, n_settings, fold())
    if wrong:
        raise ValueError(f"{type(family).__name__}.fit_many gave {wrong}")


def _wrong_predictors(answers: LinearAnswers, m: int, p: int, q: int) -> str | None:
    for name, expected in (("coef", (p, m, q)), ("at_origin", (m, q)), ("origin", (p,))):
        shape = np.shape(getattr(answers.linear, name))
        if shape != expected:
            return f"{name} of shape {shape}, not {expected}"
    return None


def _wrong_predictions(answers: Predictions, m: int, fold: Fold) -> str | None:
    y = fold.y_train
    for role, arrays, n in (("test", answers.test, len(fold.y_test)), ("train", answers.train, len(y))):
        for method, values in (arrays or {}).items():
            shape = np.shape(values)
            if shape[:2] != (m, n):
                return f"{method} of shape {shape} for the {role} rows, not ({m}, {n}, ...)"
    if answers.classes is not None and isinstance(y, np.ndarray) and y.ndim == 1:
        labels = np.unique(y)
        if not np.array_equal(answers.classes, labels):
            return f"classes={answers.classes!r}, not the sorted labels {labels!r} of the training rows"
    return None
