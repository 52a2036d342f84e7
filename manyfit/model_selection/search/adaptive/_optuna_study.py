"""An Optuna study as a source of settings: trials are asked for in batches, and told their scores."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyfit.introspection.stable_digest import Digester, Unkeyable
from manyfit.model_selection.running._race import Race, Rule, Scores, few_splits
from manyfit.model_selection.search.adaptive._optuna_space import Dimension, Space


def require_optuna() -> None:
    """Raise ImportError that says what to install, if Optuna is missing."""
    try:
        import optuna  # noqa: F401
    except ImportError as error:
        raise ImportError("OptunaSearchCV needs Optuna: pip install 'manyfit[optuna]'.") from error


def make_study(n_objectives: int, sampler: Any, seed: int | None, prune: bool) -> Any:
    """A new study in memory that maximizes scores."""
    import optuna

    if not isinstance(sampler, optuna.samplers.BaseSampler | None):
        raise TypeError(f"OptunaSearchCV: sampler has to be a sampler of Optuna's, or None, got {sampler!r}.")
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(level, optuna.logging.WARNING))  # it prints a line for each new study
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            if sampler is None:
                # It counts trials of a batch that have no score yet as bad ones, so that a batch spreads.
                sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
            pruner = optuna.pruners.WilcoxonPruner() if prune else optuna.pruners.NopPruner()
        return optuna.create_study(
            directions=["maximize"] * n_objectives, sampler=copy.deepcopy(sampler), pruner=pruner
        )
    finally:
        optuna.logging.set_verbosity(level)


def copy_in_memory(study: Any) -> Any:
    """A study with the same trials and sampler, so that asking changes nothing."""
    import optuna

    other = make_study(len(study.directions), study.sampler, None, False)
    states = (optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)
    other.add_trials(study.get_trials(states=states))
    return other


@dataclass(frozen=True)
class Asked:
    trial: Any
    params: dict[str, Any]
    digest: str | None


class StudySource:
    """Settings of the trials of a study, which learns their scores.

    A setting that was evaluated before is not evaluated again: its trial is told the same scores.
    """

    def __init__(self, study: Any, space: Space) -> None:
        self.study, self._space = study, space
        self._told: dict[str, Any] = {}  # scores and state of settings, by digest
        self._open: list[Asked] = []
        self.is_exhausted = False  # whether the sampler has no more settings

    def try_best_again(self, n: int) -> None:
        """Let the first trials, at most `n`, be the best that the study has: they take part in the choice."""
        import optuna

        complete = self.study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
        if not complete:
            return
        best = [self.study.best_trial] if len(self.study.directions) == 1 else self.study.best_trials
        for one in best[:n]:
            if callable(self._space) or _is_in(one.params, self._space):
                self.study.enqueue_trial(one.params)

    def ask(self, n: int) -> list[Asked]:
        """At most `n` trials whose settings are to be evaluated."""
        import optuna

        for _ in range(n):
            if self.is_exhausted:
                break
            try:
                asked = self._ask()
            except optuna.TrialPruned:  # by the function that draws the setting
                continue
            if asked.digest is not None and asked.digest in self._told:
                self._tell(asked.trial, self._told[asked.digest])
            else:
                self._open.append(asked)
        first: dict[str, Asked] = {}
        return [one for one in self._open if one.digest is None or first.setdefault(one.digest, one) is one]

    def tell(self, asked: Sequence[Asked], scores: np.ndarray, pruned: Container[int]) -> None:
        """Tell trials of the batch their scores, (n_trials, n_objectives), and whether they were pruned."""
        import optuna

        known: dict[int, Mapping[str, Any]] = {}
        for j, (one, own) in enumerate(zip(asked, scores, strict=True)):
            if np.isfinite(own).all():
                known[id(one)] = {"values": own.tolist()}
            else:
                state = optuna.trial.TrialState.PRUNED if j in pruned else optuna.trial.TrialState.FAIL
                known[id(one)] = {"state": state}
            if one.digest is not None:
                self._told[one.digest] = known[id(one)]
        while self._open:
            one = self._open.pop(0)
            self._tell(one.trial, known[id(one)] if id(one) in known else self._told[str(one.digest)])

    def _tell(self, trial: Any, told: Mapping[str, Any]) -> None:
        """Tell a trial its scores; a sampler that has no more settings stops the study by an error."""
        try:
            self.study.tell(trial, **told)
        except RuntimeError:
            if not self.study.get_trials(deepcopy=False)[trial.number].state.is_finished():
                raise
            self.is_exhausted = True

    def give_up(self) -> None:
        """Tell the study that the trials of the batch failed: the search was interrupted."""
        import optuna

        for one in self._open:
            self._tell(one.trial, {"state": optuna.trial.TrialState.FAIL})
        self._open = []

    def _ask(self) -> Asked:
        import optuna

        if not callable(self._space):
            trial = self.study.ask({name: one.distribution for name, one in self._space.items()})
            params = {name: one.value(trial.params[name]) for name, one in self._space.items()}
        else:
            trial = self.study.ask()
            try:
                drawn = self._space(trial)
                if not isinstance(drawn, Mapping):
                    raise TypeError(
                        "OptunaSearchCV: the function param_distributions has to return a dict of "
                        f"parameters, got {drawn!r}."
                    )
                params = dict(drawn)
            except optuna.TrialPruned:
                self.study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                raise
            except BaseException:
                self.study.tell(trial, state=optuna.trial.TrialState.FAIL)
                raise
        return Asked(trial, params, _digest(params))


def _is_in(params: Mapping[str, Any], space: Mapping[str, Dimension]) -> bool:
    """Whether the parameters of a trial are in a space, which may be another than that of its search."""
    return params.keys() == space.keys() and all(space[name].contains(one) for name, one in params.items())


class PruningRace(Race):
    """Asks the pruner of a study after each split whether a trial goes on."""

    def __init__(self, asked: Sequence[Asked], metric: str | None) -> None:
        super().__init__(Rule(1, lambda best, own: False), metric)  # the pruner decides
        self._trials = [one.trial for one in asked]
        self._reported: set[tuple[int, int]] = set()

    def is_out(self, c: int, scores: Scores) -> bool:
        if not np.isfinite(list(scores[c].values())).all():
            return True
        self.report(c, scores[c])
        with few_splits():  # Optuna's Wilcoxon test, too
            return bool(self._trials[c].should_prune())

    def report(self, c: int, scores: Mapping[int, float]) -> None:
        """Report the scores of a setting, by split, that the study does not know yet."""
        for i, score in sorted(scores.items()):
            if (c, i) not in self._reported and np.isfinite(score):
                self._trials[c].report(score, step=i)
                self._reported.add((c, i))


def _digest(params: Mapping[str, Any]) -> str | None:
    try:
        return Digester()(dict(params))
    except Unkeyable:
        return None
