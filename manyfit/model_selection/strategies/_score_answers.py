"""Scores of a family's answers: from moments where that is exact, else from predictions."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit._compat import raise_scorer_errors, score
from manyfit.arrays import block_size, is_xp_array, label_transfers, to_host, to_host_together
from manyfit.estimators import Answers
from manyfit.folds import Fold, FoldedData, Moments, Unsupported, wrap_rows
from manyfit.metrics import Residuals, ScoredTargets, SharedScoring
from manyfit.model_selection.job._job import Options, Pair, Result
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.sharing._deferred_warnings import DeferredWarnings
from manyfit.model_selection.sharing.rows._known_readers import any_of, strangers_among_scorers
from manyfit.model_selection.sharing.rows._own_rows import OwnRows
from manyfit.model_selection.sharing.rows._read_only import read_only_view

Array = NDArray[Any]

# Bytes of predictions that a device scores at a time. Metrics take a few times as much memory. Smaller blocks
# would spend most of the time on calls.
DEVICE_BLOCK_BYTES = 2**23


@dataclass(frozen=True)
class ScoredRows:
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
class FoldScores:
    """The scores of a family's answers on one split."""

    answers: Answers
    # By role and setting: a float, a dict by scorer, the exception of a scorer, or None if refused.
    scores: Mapping[str, Sequence[Any]]
    warned: DeferredWarnings  # warnings of scorers, by setting

    def keep(
        self,
        outcome: TaskResult,
        candidates: Sequence[int],
        i: int,
        times: tuple[float, float],
        left: Mapping[int, str] | None = None,
    ) -> dict[Pair, Result]:
        """Note which settings split `i` leaves to scikit-learn; note and return results of the others.

        `times`: seconds of the fit and score of one setting. `left`: other refused settings.
        Warnings of scorers are shown for shared settings only: an individual fit warns again.
        """
        counted, results = set(), {}
        for j, c in enumerate(candidates):
            why = self._reason_refused(j) or (left or {}).get(j)
            if why is not None:
                outcome.refused[c, i] = why
            else:
                counted.add(j)
                results[c, i] = _result(self.scores, j, *times)
        outcome.results.update(results)
        self.warned.emit(counted)
        return results

    def _reason_refused(self, j: int) -> str | None:
        """Why setting `j` is left to scikit-learn, or None."""
        if j in self.answers.refused:
            return self.answers.refused[j]
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
) -> FoldScores:
    """Score the answers to some settings on the rows of split `i`."""
    pending = start_scores(scoring, answers, n_settings, folded, i, options)
    return pending.finish(to_host_together(*pending.device_scores, label="scores"))


def start_scores(
    scoring: SharedScoring, answers: Answers, n_settings: int, folded: FoldedData, i: int, options: Options
) -> "PendingScores":
    """Start to score the answers on split `i`; a device may still be at work."""
    start = time.perf_counter()
    with label_transfers("scores"):
        roles = [
            _SubsetScores(scoring, answers, n_settings, ScoredRows(folded, i, role), options.memory_limit)
            for role in (("test", "train") if options.return_train_score else ("test",))
        ]
    return PendingScores(answers, roles, time.perf_counter() - start)


class PendingScores:
    """Scores of a split, some of which may still lie on a device.

    `device_scores` are best fetched with those of other splits. `seconds`: time so far.
    """

    def __init__(self, answers: Answers, roles: "Sequence[_SubsetScores]", seconds: float) -> None:
        self._answers, self._roles, self.seconds = answers, roles, seconds
        self.device_scores = [table for role in roles for table in role.device_scores]

    def finish(self, on_host: Sequence[Array]) -> FoldScores:
        """The scores; `on_host` is what `device_scores` became on the host."""
        warned, on_host = DeferredWarnings(), list(on_host)
        try:
            scores = {}
            for role in self._roles:
                own, on_host = on_host[: len(role.device_scores)], on_host[len(role.device_scores) :]
                with label_transfers("scores"):
                    scores[role.rows.role] = role.finish(own, warned)
        except Exception:
            warned.emit(())
            raise
        return FoldScores(self._answers, scores, warned)


class _SubsetScores:
    """Scores of the training or test rows; those from moments or on a device are started at once."""

    def __init__(
        self, scoring: SharedScoring, answers: Answers, n_settings: int, rows: ScoredRows, memory_limit: int
    ) -> None:
        self.rows = rows
        self._scoring, self._answers, self._limit = scoring, answers, memory_limit
        self._scores: list[Any] = [None] * n_settings
        self._missing = [j for j in range(n_settings) if j not in answers.refused]
        self._from_moments()
        self.device_scores: list[Any] = []
        if self._missing and answers.reads_moments and _has_constant_target(self._y):
            # R2 of a constant target is 1 or 0 as the predictions are equal to it to the last bit or not.
            for j in self._missing:
                self._scores[j] = Unsupported("a target is constant in the rows to score")
            self._missing = []
        if self._missing and has_device_rows(rows.folded):
            self.device_scores = self._score_on_device()

    def _from_moments(self) -> None:
        answers, scoring = self._answers, self._scoring
        residuals = _residuals(scoring, answers, self.rows)
        if residuals is None:
            return
        if answers.checks_rounding:
            lost = answers.lost_digits(residuals, self.rows.moments)
            for j in map(int, np.flatnonzero(lost)):
                self._scores[j] = Unsupported("the normal equations would lose digits of the score")
            self._missing = [j for j in self._missing if not lost[j]]
        named = scoring.from_moments(residuals)
        if named is not None:
            self._take(np.stack([named[name] for name in scoring.named]), range(len(self._scores)))

    def _take(self, table: Array, settings: Sequence[int]) -> None:
        """Scores by scorer and setting, of which those that are finite count."""
        exact = dict(zip(settings, np.asarray(np.isfinite(table).all(axis=0)), strict=True))
        names, missing = list(self._scoring.named), set(self._missing)
        for column, j in enumerate(settings):
            if exact[j] and j in missing:
                values = dict(zip(names, map(float, table[:, column]), strict=True))
                self._scores[j] = _as_scorer_result(self._scoring, values)
        self._missing = [j for j in self._missing if not exact.get(j, False)]

    @cached_property
    def _y(self) -> Array:
        return self.rows.fold.targets(self.rows.role)

    def _score_on_device(self) -> list[Any]:
        """Scores of all missing settings, on the device; none if a scorer has to see predictions."""
        tables, fold, role = [], self.rows.fold, self.rows.role
        dtype = getattr(fold.scored_targets(role), "dtype", None)
        truth = ScoredTargets(self._y, fold.score_weight(role), self._answers.classes, dtype)
        self._on_device = [*self._missing]
        for block in blocks_of_settings(
            self._on_device, len(self._y), self._answers, min(self._limit // 8, DEVICE_BLOCK_BYTES)
        ):
            responses = self._answers.subset(block).respond(role, fold)
            if not self._scoring.gives_all_scores(responses):
                return []
            tables.append(self._scoring.device_scores(responses, truth))
        return tables

    def finish(self, on_host: Sequence[Array], warned: DeferredWarnings) -> list[Any]:
        """All scores; `on_host` is what `device_scores` became on the host."""
        if on_host:
            self._take(np.concatenate(on_host, axis=1), self._on_device)
        if self._missing:
            self._from_predictions(warned)
        return self._scores

    def _from_predictions(self, warned: DeferredWarnings) -> None:
        answers, rows = self._answers, self.rows
        from_responses = _FromResponses(self._scoring, answers.classes, self._y, rows, warned)
        for block in blocks_of_settings(self._missing, len(self._y), answers, self._limit // 8):
            responses = _responses_on_host(
                answers.subset(block).respond(rows.role, rows.fold), answers.classes
            )
            for j, one in zip(block, from_responses.scores(responses, block), strict=True):
                self._scores[j] = one


def has_device_rows(folded: FoldedData) -> bool:
    """Whether predictions for the rows of some data are arrays of another library than NumPy."""
    X = getattr(folded, "X", None)
    return X is not None and is_xp_array(wrap_rows(X).take(slice(0, 0)))


def _responses_on_host(responses: Mapping[str, Any], classes: Array | None) -> Mapping[str, Array]:
    """Predictions on the host as scikit-learn's methods return them, with labels in place of codes."""
    on_host = {}
    for method, values in responses.items():
        on_host[method] = values
        if not isinstance(values, np.ndarray):
            host = to_host(values, label="predictions")
            on_host[method] = classes[host] if method == "predict" and classes is not None else host
    return on_host


def _residuals(scoring: SharedScoring, answers: Answers, rows: ScoredRows) -> Residuals | None:
    """The residuals from moments; None if no score needs them, or if the rows have no moments."""
    if not answers.reads_moments or not (answers.checks_rounding or scoring.reads_moments):
        return None
    try:
        return answers.from_moments(rows.moments)
    except Unsupported:
        if answers.checks_rounding:
            raise
        return None


def _has_constant_target(y: Array) -> bool:
    """Whether a target has one value in two or more rows to score."""
    return len(y) > 1 and bool((y == y[:1]).all(axis=0).any())


def _as_scorer_result(scoring: SharedScoring, values: dict[str, float]) -> Any:
    return values if scoring.multimetric else values["score"]


def blocks_of_settings(
    missing: Sequence[int], n_rows: int, answers: Answers, limit: int
) -> list[Sequence[int]]:
    """Settings whose predictions fit in so many bytes together."""
    size = max(1, block_size(limit) // max(8 * n_rows * answers.n_outputs, 1))
    return [missing[j : j + size] for j in range(0, len(missing), size)]


class _FromResponses:
    """Scores from predictions: of all settings at once where possible, else by the scorers."""

    def __init__(
        self,
        scoring: SharedScoring,
        classes: Array | None,
        y: Array,
        rows: ScoredRows,
        warned: DeferredWarnings,
    ) -> None:
        self.scoring, self.classes, self.warned = scoring, classes, warned
        self._strange = any_of(strangers_among_scorers(scoring.scorer))
        self.scored_y = rows.fold.scored_targets(rows.role)
        self.params = scoring.params_of(rows.fold, rows.role)
        self.truth = ScoredTargets(
            y, rows.fold.score_weight(rows.role), classes, getattr(self.scored_y, "dtype", None)
        )

    def scores(self, responses: Mapping[str, Array], settings: Sequence[int]) -> list[Any]:
        """A score for each of some settings, or the exception that takes its place."""
        known = self.scoring.from_responses(responses, self.truth)
        scores: list[Any] = []
        for j, setting in enumerate(settings):
            values = {name: float(column[j]) for name, column in known.items() if np.isfinite(column[j])}
            missing = [name for name in self.scoring.named if name not in values]
            try:
                if missing:
                    own = {name: array[j] for name, array in responses.items()}
                    with self.warned.under(setting):
                        values.update(self._call_scorers(missing, self.scoring.stub(own, self.classes)))
                scores.append(
                    _as_scorer_result(self.scoring, {name: values[name] for name in self.scoring.named})
                )
            except Exception as error:
                scores.append(error)
        return scores

    def _call_scorers(self, names: list[str], stub: Any) -> dict[str, float]:
        """Scores of one setting by scikit-learn's own scorers."""
        # No supported scorer reads X; the stub has the predictions for its rows. If a scorer writes into y or
        # the weights, the setting is left to scikit-learn.
        rows = OwnRows()
        give = rows.copy if self._strange else read_only_view
        params = {name: give(value) for name, value in self.params.items()}
        scorer = raise_scorer_errors(self.scoring.scorer, names)
        found = score(stub, None, give(self.scored_y), scorer, params, "raise")
        rows.require_unchanged()
        return found if self.scoring.multimetric else {"score": found}
