"""Scores of a family's answers: from moments where that is exact, else from predictions."""

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from typing import Any

import numpy as np

from manyfit._compat import raise_scorer_errors, score
from manyfit.arrays import block_size, is_xp_array, label_transfers, to_host
from manyfit.families import Answers, Responses
from manyfit.folds import (
    NO_NOTES,
    Array,
    Fold,
    FoldedData,
    StepNotes,
    Unsupported,
    holds_categories,
    wrap_rows,
)
from manyfit.metrics.scoring import ScoredTargets, SharedScoring
from manyfit.model_selection.job._job import Options, Pair, Result
from manyfit.model_selection.job._predictions import Predicted, Recording
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.sharing._deferred_warnings import DeferredWarnings
from manyfit.model_selection.sharing.rows._known_readers import any_of, strangers_among_scorers
from manyfit.model_selection.sharing.rows._own_rows import OwnRows
from manyfit.model_selection.sharing.rows._read_only import read_only_view
from manyfit.model_selection.strategies._failed_scorers import call_scorers, error_score_of_each

# Bytes of predictions that a device scores at a time. Metrics take a few times as much memory. Smaller blocks
# would spend most of the time on calls.
DEVICE_BLOCK_BYTES = 2**23
LOST_DIGITS = "the normal equations would lose digits of the score"


@dataclass(frozen=True)
class FoldScores:
    """The scores of a family's answers on one split."""

    answers: Answers
    # By role and setting: a float, a dict by scorer, the exception of a scorer, or None if refused.
    scores: Mapping[str, Sequence[Any]]
    warned: DeferredWarnings  # warnings of scorers, by setting
    predicted: Mapping[int, Predicted]  # recorded predictions, by setting
    notes: StepNotes = NO_NOTES  # why there are no test scores, and what scikit-learn warns of
    # By setting, scorers that failed on test rows in chunks, which scikit-learn cannot score instead.
    failed: Mapping[int, set[str]] = field(default_factory=dict)

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
        counted, results, left = set(), {}, left or {}
        test, train, (fit_time, score_time) = self.scores.get("test"), self.scores.get("train"), times
        for j, c in enumerate(candidates):
            why = self._reason_refused(j) or left.get(j)
            if why is not None:
                outcome.refused[c, i] = why
                continue
            counted.add(j)
            # As scikit-learn's ``_fit_and_score`` gives it.
            result: Result = {"fit_error": None}
            for role, own in (("test_scores", test), ("train_scores", train)):
                if own is not None:
                    result[role] = own[j]
            result["fit_time"], result["score_time"] = fit_time, score_time
            if self.notes.unscored:
                outcome.refused[c, i], outcome.unscored[c, i] = self.notes.unscored, result
                continue
            if j in self.predicted:
                result["predicted"] = self.predicted[j]
            results[c, i] = result
        outcome.results.update(results)
        self.warned.emit(counted)
        for message in self.notes.warnings if counted else ():
            warnings.warn(message, UserWarning, stacklevel=2)
        return results

    def _reason_refused(self, j: int) -> str | None:
        """Why setting `j` is left to scikit-learn, or None."""
        if j in self.answers.refused:
            return self.answers.refused[j]
        for of_role in self.scores.values():
            if isinstance(of_role[j], Exception):
                return str(of_role[j]) if isinstance(of_role[j], Unsupported) else "a scorer failed"
        return None


def start_scores(
    scoring: SharedScoring,
    answers: Answers,
    n_settings: int,
    folded: FoldedData,
    i: int,
    options: Options,
    notes: StepNotes = NO_NOTES,
) -> "PendingScores":
    """Start to score the answers on split `i`; a device may still be at work.

    `notes` say why the test rows have no scores, if they have none.
    """
    start, roles = time.perf_counter(), [] if notes.unscored else ["test"]
    with label_transfers("scores"):
        scores = [
            _RoleScores(scoring, answers, n_settings, folded, i, role, options)
            for role in (roles + ["train"] if options.return_train_score else roles)
        ]
    return PendingScores(answers, scores, time.perf_counter() - start, notes)


def score_on_host(
    scoring: SharedScoring,
    answers: Answers,
    candidates: Sequence[int],
    folded: FoldedData,
    i: int,
    options: Options,
    fit_time: float,
    outcome: TaskResult,
) -> dict[Pair, Result]:
    """Score answers on split `i`, whose rows lie on the host; note and return the results, or note why not.

    `fit_time`: seconds of the fit of one setting.
    """
    start, n = time.perf_counter(), len(candidates)
    try:
        scored = start_scores(scoring, answers, n, folded, i, options).finish(())
    except Exception as error:
        outcome.leave([(c, i) for c in candidates], error)
        return {}
    return scored.keep(outcome, candidates, i, (fit_time, (time.perf_counter() - start) / n))


class PendingScores:
    """Scores of a split, some of which may still lie on a device.

    `device_scores` are best fetched with those of other splits. `seconds`: time so far.
    """

    def __init__(
        self, answers: Answers, roles: "Sequence[_RoleScores]", seconds: float, notes: StepNotes
    ) -> None:
        self._answers, self._roles, self.seconds, self._notes = answers, roles, seconds, notes
        self.device_scores = [table for role in roles for table in role.device_scores]

    def finish(self, on_host: Iterable[Array]) -> FoldScores:
        """The scores; `on_host` begins with what `device_scores` became on the host."""
        fetched, warned = iter(list(islice(on_host, len(self.device_scores)))), DeferredWarnings()
        try:
            with label_transfers("scores"):
                scores = {role.role: role.finish(fetched, warned) for role in self._roles}
        except Exception:
            warned.emit(())
            raise
        if self._notes.unscored:
            return FoldScores(self._answers, scores, warned, {}, self._notes)
        test = self._roles[0]
        return FoldScores(self._answers, scores, warned, test.predicted, self._notes, test.failed)


class _RoleScores:
    """Scores of the training or test rows; those from moments or on a device are started at once."""

    def __init__(
        self,
        scoring: SharedScoring,
        answers: Answers,
        n_settings: int,
        folded: FoldedData,
        i: int,
        role: Any,
        options: Options,
    ) -> None:
        self.role, self._folded, self._i = role, folded, i
        self._scoring, self._answers, self._limit = scoring, answers, options.memory_limit
        self._recording = options.recording if role == "test" else None
        self.predicted: dict[int, Predicted] = {}
        self.failed: dict[int, set[str]] = {}
        self._error_score = error_score_of_each(folded, options)
        self._scores: list[Any] = [None] * n_settings
        self._missing = [j for j in range(n_settings) if j not in answers.refused]
        self._from_moments()
        self.device_scores: list[Any] = []
        if self._missing and self._has_rounded_ends():
            for j in self._missing:
                self._scores[j] = Unsupported("a target is constant in the rows to score")
            self._missing = []
        if self._missing and has_device_rows(folded):
            self.device_scores = self._score_on_device()

    def _has_rounded_ends(self) -> bool:
        """Whether the last bit of a prediction may decide between the scores 1 and 0 of a constant target."""
        by_moments, by_variance = self._answers.reads_moments, self._scoring.explains_variance
        if not (by_moments or by_variance):
            return False
        weight = self._fold.score_weight(self.role)
        y = self._y if weight is None else self._y[weight != 0.0]
        if not (y == y[:1]).all(axis=0).any():
            return False
        if len(self._y) > 1:  # R2 is 1 if all residuals are 0, explained variance if they are their mean
            return True
        # One residual is its mean without weights; with one, their product is divided by it.
        return by_variance and weight is not None

    def _from_moments(self) -> None:
        answers, scoring = self._answers, self._scoring
        if not answers.checks_rounding and not (answers.reads_moments and scoring.reads_moments):
            return
        try:
            moments = self._folded.scoring_moments(self._i, self.role)
            residuals = answers.from_moments(moments)
        except Unsupported:  # the rows have no moments
            if answers.checks_rounding:
                raise
            return
        if residuals is None:
            return
        if answers.checks_rounding:
            lost = answers.lost_digits(residuals, moments)
            for j in map(int, np.flatnonzero(lost)):
                self._scores[j] = Unsupported(LOST_DIGITS)
            self._missing = [j for j in self._missing if not lost[j]]
        named = scoring.from_moments(residuals) if answers.reads_moments else None
        if named is not None:
            self._take(np.stack([named[name] for name in scoring.named]), range(len(self._scores)))

    def _take(self, table: Array, settings: Sequence[int]) -> None:
        """Scores by scorer and setting, of which those that are finite count."""
        exact = dict(zip(settings, np.asarray(np.isfinite(table).all(axis=0)).tolist(), strict=True))
        names, missing, multimetric = list(self._scoring.named), set(self._missing), self._scoring.multimetric
        for j, values in zip(settings, np.asarray(table, dtype=np.float64).T.tolist(), strict=True):
            if exact[j] and j in missing:
                self._scores[j] = dict(zip(names, values, strict=True)) if multimetric else values[0]
        self._missing = [j for j in self._missing if not exact.get(j, False)]

    @cached_property
    def _fold(self) -> Fold:
        return self._folded.fold(self._i)

    @cached_property
    def _y(self) -> Array:
        return self._fold.targets(self.role)

    @cached_property
    def _truth(self) -> ScoredTargets:
        fold, role = self._fold, self.role
        dtype = getattr(fold.scored_targets(role), "dtype", None)
        return ScoredTargets(self._y, fold.score_weight(role), self._answers.classes, dtype)

    def _score_on_device(self) -> list[Any]:
        """Scores of all missing settings, on the device; none if a scorer has to see predictions."""
        tables, fold, role = [], self._fold, self.role
        self._on_device = [*self._missing]
        for block in blocks_of_settings(
            self._on_device, len(self._y), self._answers, min(self._limit // 8, DEVICE_BLOCK_BYTES)
        ):
            responses = self._answers.subset(block).respond(role, fold)
            if not self._scoring.gives_all_scores(responses):
                return []
            tables.append(self._scoring.device_scores(responses, self._truth))
        return tables

    def finish(self, on_host: Iterable[Array], warned: DeferredWarnings) -> list[Any]:
        """All scores; `on_host` begins with what `device_scores` became on the host."""
        if self.device_scores:
            own = list(islice(on_host, len(self.device_scores)))
            self._take(np.concatenate(own, axis=1), self._on_device)
        if self._missing:
            self._respond(self._missing, partial(self._score_responses, warned=warned))
        if self._recording is not None and self._recording.every:
            rest = range(len(self._scores))
            self._respond([j for j in rest if j not in self.predicted and j not in self._answers.refused])
        return self._scores

    def _respond(self, settings: Sequence[int], use: Callable[..., None] | None = None) -> None:
        """Use the responses of some settings, block by block, and record their predictions."""
        answers = self._answers
        for block in blocks_of_settings(settings, len(self._y), answers, self._limit // 8):
            responses = answers.subset(block).respond(self.role, self._fold)
            responses = _responses_on_host(responses, answers.classes)
            if use is not None:
                use(responses, block)
            self._record(responses, block)

    def _record(self, responses: Mapping[str, Array], settings: Sequence[int]) -> None:
        """Record predictions: all that are asked for, or those that cost nothing and are exact."""
        recording, answers = self._recording, self._answers
        if recording is None or not may_record(recording, responses):
            return
        if answers.varies_within_tol and not recording.every:
            return
        classes = None if recording.method == "predict" else answers.classes
        for j, values in zip(settings, responses[recording.method], strict=True):
            self.predicted[j] = Predicted(np.array(values), classes)

    def _score_responses(
        self, responses: Mapping[str, Array], settings: Sequence[int], warned: DeferredWarnings
    ) -> None:
        """Scores of all settings at once where possible, else by the scorers, or their exceptions."""
        scoring, classes = self._scoring, self._answers.classes
        # Scores of several targets are scikit-learn's own.
        known = scoring.from_responses(responses, self._truth) if self._truth.one_output else {}
        for j, setting in enumerate(settings):
            values = {name: float(column[j]) for name, column in known.items() if np.isfinite(column[j])}
            missing = [name for name in scoring.named if name not in values]
            try:
                if missing:
                    own = {name: array[j] for name, array in responses.items()}
                    with warned.under(setting):
                        call = partial(self._call_scorers, stub=scoring.stub(own, classes))
                        if self._error_score is None:
                            values.update(call(missing))
                        else:
                            fail = partial(call, None, error_score=self._error_score)
                            failed = call_scorers(call, fail, missing, self._error_score, values)
                            self.failed[setting] = failed
                ordered = {name: values[name] for name in scoring.named}
                self._scores[setting] = ordered if scoring.multimetric else ordered["score"]
            except Exception as error:
                self._scores[setting] = error

    def _call_scorers(
        self, names: Sequence[str] | None, stub: Any, error_score: Any = "raise"
    ) -> dict[str, float]:
        """Scores of one setting by scikit-learn's own scorers, or by all; see its ``error_score``."""
        # No supported scorer reads X; the stub has the predictions for its rows. If a scorer writes into y or
        # the weights, the setting is left to scikit-learn.
        rows, (y, params, is_strange) = OwnRows(), self._scorer_input
        give = rows.copy if is_strange else read_only_view
        given = {name: give(value) for name, value in params.items()}
        scorer = self._scoring.scorer
        scorer = raise_scorer_errors(scorer, names) if error_score == "raise" else scorer
        found = score(stub, None, give(y), scorer, given, error_score)
        rows.require_unchanged()
        return found if self._scoring.multimetric else {"score": found}

    @cached_property
    def _scorer_input(self) -> tuple[Any, Mapping[str, Any], bool]:
        """Targets and weights for scorers, and whether one of these may write into them."""
        fold, role = self._fold, self.role
        is_strange = any_of(strangers_among_scorers(self._scoring.scorer))
        return fold.scored_targets(role), self._scoring.params_of(fold, role), is_strange


def may_record(recording: Recording, responses: Mapping[str, Array]) -> bool:
    """Whether predictions are to be recorded: unless all are asked for, only if they are computed already."""
    method = recording.method
    computed = not isinstance(responses, Responses) or responses.is_computed(method)
    return method in responses and (recording.every or computed)


def has_device_rows(folded: FoldedData) -> bool:
    """Whether predictions for the rows of some data are arrays of another library than NumPy."""
    X = getattr(folded, "X", None)
    if X is None or holds_categories(X):
        return False
    return is_xp_array(wrap_rows(X).take(slice(0, 0)))


def _responses_on_host(responses: Mapping[str, Any], classes: Array | None) -> Mapping[str, Array]:
    """Predictions on the host as scikit-learn's methods return them, with labels in place of codes."""
    if isinstance(responses, Responses):  # on the host, and computed when they are read
        return responses
    on_host = {}
    for method, values in responses.items():
        on_host[method] = values
        if not isinstance(values, np.ndarray):
            host = to_host(values, label="predictions")
            on_host[method] = classes[host] if method == "predict" and classes is not None else host
    return on_host


def blocks_of_settings(
    missing: Sequence[int], n_rows: int, answers: Answers, limit: int
) -> list[Sequence[int]]:
    """Settings whose predictions fit in so many bytes together."""
    size = max(1, block_size(limit) // max(8 * n_rows * answers.n_outputs, 1))
    return [missing[j : j + size] for j in range(0, len(missing), size)]
