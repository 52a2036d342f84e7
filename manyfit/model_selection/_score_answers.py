"""Scores of a family's answers: from moments where that is exact, else from predictions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit._compat import raising, score
from manyfit.estimators import Answers, LinearAnswers
from manyfit.folds import Fold, FoldedData, Moments, Unsupported
from manyfit.metrics import Residuals, SharedScoring, lost_to_rounding, residuals_from_moments
from manyfit.model_selection._lend import guard

Array = NDArray[Any]


@dataclass(frozen=True)
class RowsToScore:
    """The training or test rows of one split."""

    folded: FoldedData
    i: int
    role: Any

    @cached_property
    def moments(self) -> Moments:
        return self.folded.scoring_moments(self.i, self.role)

    @cached_property
    def fold(self) -> Fold:
        return self.folded.fold(self.i)


def score_answers(
    scoring: SharedScoring, answers: Answers, n_settings: int, rows: RowsToScore, memory_limit: int
) -> list[Any]:
    """A score (a float, or a dict of floats by name) for each setting.

    An exception takes the place of a score that cannot be given; the caller fits that setting alone.
    Settings that the answers leave alone get None.
    """
    scores: list[Any] = [None] * n_settings
    missing = [j for j in range(n_settings) if j not in answers.alone]
    residuals = _residuals(scoring, answers, rows)
    if residuals is not None and isinstance(answers, LinearAnswers) and answers.roundings:
        lost = lost_to_rounding(residuals, answers.roundings, rows.moments)
        for j in map(int, np.flatnonzero(lost)):
            scores[j] = Unsupported("the normal equations would lose digits of the score")
        missing = [j for j in missing if not lost[j]]
    named = scoring.from_moments(residuals) if residuals is not None else None
    if named is not None:
        table = np.stack([named[name] for name in scoring.named])
        exact = np.isfinite(table).all(axis=0)
        for j in missing:
            if exact[j]:
                scores[j] = _shaped(scoring, {name: float(named[name][j]) for name in scoring.named})
        missing = [j for j in missing if not exact[j]]
    if not missing:
        return scores
    y = rows.fold.targets(rows.role)
    if isinstance(answers, LinearAnswers) and _constant(y):
        # R2 of a constant target is 1 or 0 as the predictions are equal to it to the last bit or not.
        for j in missing:
            scores[j] = Unsupported("a target is constant in the rows to score")
        return scores
    for block in _blocks(missing, len(y), answers, memory_limit):
        _score_block(scoring, answers, block, rows, scores)
    return scores


def _residuals(scoring: SharedScoring, answers: Answers, rows: RowsToScore) -> Residuals | None:
    """What moments say of the residuals; None where nobody asks, or where the rows have no moments."""
    if not isinstance(answers, LinearAnswers) or not (answers.roundings or scoring.reads_moments):
        return None
    try:
        return residuals_from_moments(answers.linear, rows.moments)
    except Unsupported:
        if answers.roundings:
            raise
        return None


def why_alone(answers: Answers, scores: Mapping[str, Sequence[Any]], j: int) -> str | None:
    """Why setting `j` is fitted alone after all, or None."""
    if j in answers.alone:
        return answers.alone[j]
    for of_role in scores.values():
        if isinstance(of_role[j], Exception):
            return str(of_role[j]) if isinstance(of_role[j], Unsupported) else "a scorer failed"
    return None


def _constant(y: Array) -> bool:
    """Whether a target has one value in two or more rows to score."""
    return len(y) > 1 and bool((y == y[:1]).all(axis=0).any())


def _shaped(scoring: SharedScoring, values: dict[str, float]) -> Any:
    return values if scoring.multimetric else values["score"]


def _blocks(missing: list[int], n_rows: int, answers: Answers, limit: int) -> list[list[int]]:
    """Settings whose predictions fit in an eighth of the memory limit together."""
    targets = answers.linear.coef.shape[2] if isinstance(answers, LinearAnswers) else 1
    size = max(1, limit // 8 // max(8 * n_rows * targets, 1))
    return [missing[j : j + size] for j in range(0, len(missing), size)]


def _score_block(
    scoring: SharedScoring, answers: Answers, block: list[int], rows: RowsToScore, scores: list[Any]
) -> None:
    fold, role = rows.fold, rows.role
    y = fold.scored_targets(role)
    part = answers.subset(block)
    responses = part.respond(role, fold)
    params = scoring.params_of(fold, role)
    strict = raising(scoring.scorer)
    for position, j in enumerate(block):
        stub = scoring.stub({name: array[position] for name, array in responses.items()}, answers.classes)
        try:
            # No scorer that is served reads X; the stub answers for the rows that it was made for. One that
            # writes into y or the weights finds them read-only, and scikit-learn's fit gives it its own.
            given = {name: guard(value) for name, value in params.items()}
            scores[j] = score(stub, None, guard(y), strict, given, "raise")
        except Exception as error:
            scores[j] = error
