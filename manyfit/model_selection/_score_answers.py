"""Scores of a family's answers: from moments where that is exact, else from predictions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit._compat import raising, score
from manyfit.estimators import Answers, LinearAnswers, LinkedAnswers
from manyfit.folds import Fold, FoldedData, Moments, Unsupported
from manyfit.metrics import Residuals, SharedScoring, Truth, lost_to_rounding, residuals_from_moments
from manyfit.model_selection._held_warnings import HeldWarnings
from manyfit.model_selection._job import Options, Pair, Result
from manyfit.model_selection._lend import guard
from manyfit.model_selection._outcome import Outcome

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


@dataclass(frozen=True)
class Scored:
    """The scores of a family's answers on one split.

    Attributes
    ----------
    answers : Answers
        To m settings.
    scores : dict of str to list
        For each role a score (a float, or a dict of floats by name) of each setting. An exception takes
        the place of a score that cannot be given, and None where answers leave a setting alone.
    warned : HeldWarnings
        What scorers warned of, by setting.
    """

    answers: Answers
    scores: Mapping[str, Sequence[Any]]
    warned: HeldWarnings

    def keep(
        self, outcome: Outcome, candidates: Sequence[int], i: int, times: tuple[float, float]
    ) -> dict[Pair, Result]:
        """Note which settings are fitted alone on split `i` after all; note and return results of the others.

        `times` are those of the fit and score of one setting. What the scorers warned of is shown where it
        counts: a fit alone warns again.
        """
        counted, results = set(), {}
        for j, c in enumerate(candidates):
            why = self._why_alone(j)
            if why is not None:
                outcome.alone[c, i] = why
            else:
                counted.add(j)
                results[c, i] = _result(self.scores, j, *times)
        outcome.results.update(results)
        self.warned.settle(counted)
        return results

    def _why_alone(self, j: int) -> str | None:
        """Why setting `j` is fitted alone after all, or None."""
        if j in self.answers.alone:
            return self.answers.alone[j]
        for of_role in self.scores.values():
            if isinstance(of_role[j], Exception):
                return str(of_role[j]) if isinstance(of_role[j], Unsupported) else "a scorer failed"
        return None


def _result(scores: Mapping[str, Sequence[Any]], j: int, fit_time: float, score_time: float) -> Result:
    """A result as scikit-learn's ``_fit_and_score`` gives it."""
    result: Result = {"fit_error": None, "test_scores": scores["test"][j]}
    if "train" in scores:
        result["train_scores"] = scores["train"][j]
    return {**result, "fit_time": fit_time, "score_time": score_time}


def score_answers(
    scoring: SharedScoring, answers: Answers, n_settings: int, folded: FoldedData, i: int, options: Options
) -> Scored:
    """Score the answers to some settings on the rows of split `i`."""
    warned = HeldWarnings()
    try:
        scores = {
            role: _score_role(
                scoring, answers, n_settings, RowsToScore(folded, i, role), options.memory_limit, warned
            )
            for role in (("test", "train") if options.return_train_score else ("test",))
        }
    except Exception:
        warned.settle(())
        raise
    return Scored(answers, scores, warned)


def _score_role(
    scoring: SharedScoring,
    answers: Answers,
    n_settings: int,
    rows: RowsToScore,
    memory_limit: int,
    warned: HeldWarnings,
) -> list[Any]:
    """The scores of some rows; see `Scored`."""
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
    from_responses = _FromResponses(scoring, answers.classes, y, rows, warned)
    for block in _blocks(missing, len(y), answers, memory_limit):
        responses = answers.subset(block).respond(rows.role, rows.fold)
        for j, one in zip(block, from_responses.scores(responses, block), strict=True):
            scores[j] = one
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


def _constant(y: Array) -> bool:
    """Whether a target has one value in two or more rows to score."""
    return len(y) > 1 and bool((y == y[:1]).all(axis=0).any())


def _shaped(scoring: SharedScoring, values: dict[str, float]) -> Any:
    return values if scoring.multimetric else values["score"]


def _blocks(missing: list[int], n_rows: int, answers: Answers, limit: int) -> list[list[int]]:
    """Settings whose predictions fit in an eighth of the memory limit together."""
    outputs = answers.linear.coef.shape[2] if isinstance(answers, LinearAnswers | LinkedAnswers) else 1
    size = max(1, limit // 8 // max(8 * n_rows * outputs, 1))
    return [missing[j : j + size] for j in range(0, len(missing), size)]


class _FromResponses:
    """Scores of settings from their predictions: of all at once where that is known, else by the scorers."""

    def __init__(
        self,
        scoring: SharedScoring,
        classes: Array | None,
        y: Array,
        rows: RowsToScore,
        warned: HeldWarnings,
    ) -> None:
        self.scoring, self.classes, self.warned = scoring, classes, warned
        self.given = rows.fold.scored_targets(rows.role)
        self.params = scoring.params_of(rows.fold, rows.role)
        self.truth = Truth(y, rows.fold.score_weight(rows.role), classes, getattr(self.given, "dtype", None))

    def scores(self, responses: Mapping[str, Array], settings: Sequence[int]) -> list[Any]:
        """A score for each of some settings, or the exception that takes its place."""
        known = self.scoring.from_responses(responses, self.truth)
        scores: list[Any] = []
        for j, setting in enumerate(settings):
            values = {name: float(of_all[j]) for name, of_all in known.items() if np.isfinite(of_all[j])}
            asked = [name for name in self.scoring.named if name not in values]
            try:
                if asked:
                    own = {name: array[j] for name, array in responses.items()}
                    with self.warned.of(setting):
                        values.update(self._ask(asked, self.scoring.stub(own, self.classes)))
                scores.append(_shaped(self.scoring, {name: values[name] for name in self.scoring.named}))
            except Exception as error:
                scores.append(error)
        return scores

    def _ask(self, names: list[str], stub: Any) -> dict[str, float]:
        """Scores of one setting by scikit-learn's own scorers."""
        # No scorer that is served reads X; the stub answers for the rows that it was made for. One that
        # writes into y or the weights finds them read-only, and scikit-learn's fit gives it its own.
        params = {name: guard(value) for name, value in self.params.items()}
        scorer = raising(self.scoring.scorer, names)
        found = score(stub, None, guard(self.given), scorer, params, "raise")
        return found if self.scoring.multimetric else {"score": found}
