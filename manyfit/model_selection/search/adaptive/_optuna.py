"""OptunaSearchCV: settings chosen by Optuna, evaluated in batches on manyfit's engine."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from manyfit._compat import NO_CALLBACKS, parameter_constraints, scorers_by_name, uses_callbacks
from manyfit._compat import BaseSearchCV as SklearnBaseSearchCV
from manyfit.introspection.object_state import keep_arguments
from manyfit.introspection.parameter_docs import complete_parameters
from manyfit.model_selection._search import GridSearchCV
from manyfit.model_selection.job._option_values import EarlyStopping, Engine, Sharing
from manyfit.model_selection.planning._plan import Plan
from manyfit.model_selection.planning._planner import prepare
from manyfit.model_selection.running._race import Race
from manyfit.model_selection.search._base import SharedSearch, accept_device_data
from manyfit.model_selection.search._hooks import attributes_restored
from manyfit.model_selection.search._options import COUNT
from manyfit.model_selection.search._setup import draw_splits, make_job, make_setup
from manyfit.model_selection.search.adaptive._optuna_space import as_space
from manyfit.model_selection.search.adaptive._optuna_study import (
    PruningRace,
    StudySource,
    copy_in_memory,
    make_study,
    require_optuna,
)


@complete_parameters(GridSearchCV)
@accept_device_data
class OptunaSearchCV(SharedSearch, SklearnBaseSearchCV):
    """Search over settings that an Optuna sampler chooses by the scores of earlier ones.

    Trials are asked for in batches. The settings of a batch share their work as those of `GridSearchCV` do,
    and are fitted at the same time. It needs Optuna: ``pip install 'manyfit[optuna]'``.

    Parameters
    ----------
    param_distributions : dict or callable
        Names of parameters with a list of values, a distribution of Optuna, or a frozen one of
        `scipy.stats`; or a function that takes an `optuna.Trial` and returns a dict of parameters, for
        spaces in which a parameter depends on others.
    n_trials : int, default=20
        Trials of `fit`.
    batch_size : int, default=8
        Trials that are evaluated together. The sampler knows the scores of earlier batches only: a smaller
        number lets it learn more often, a larger one shares more.
    sampler : optuna.samplers.BaseSampler or None, default=None
        None: `optuna.samplers.TPESampler`. `fit` uses a copy of it.
    study : optuna.Study or None, default=None
        A study to continue, in any storage of Optuna's; it has its own sampler and pruner, and has to
        maximize. Its best trials are run again first. None: a new study in memory.
    prune : bool, default=False
        Whether the pruner of the study is asked after each split if a trial goes on. A new study has
        `optuna.pruners.WilcoxonPruner`. Settings that one fit serves are not pruned.
    random_state : int, RandomState instance or None, default=None
        Seed of the sampler that is made where `sampler` and `study` are None.
    refit : bool, str or callable, default=True
        As in `GridSearchCV`. With several metrics the study maximizes the one that it names. If it names
        none, each metric is an objective of the study.
    error_score : "raise" or float, default=nan
        As in `GridSearchCV`; with NaN a trial whose fits fail is a failed trial of the study.
    verify : int, default=0
        As in `GridSearchCV`, in each batch.
    time_budget : float or None, default=None
        Seconds after which no more fits begin, and no trial is asked for. At least one trial is evaluated.
    return_predictions : bool or str, default=False
        As in `GridSearchCV`, of the best setting.

    Attributes
    ----------
    study_ : optuna.Study
        The study with all its trials. A trial whose setting was evaluated before gets the same scores.
    cv_results_ : dict of str to array
        As of `GridSearchCV`: a row for each setting that `fit` has evaluated, in the order of trials.
        ``trial_number`` is the trial's number in the study.
    best_estimator_, best_params_, best_score_, ...
        As of `GridSearchCV`.
    report_ : Report
        What all batches have done: fits, passes over the data, transfers and seconds.
    cv_predictions_ : ndarray, sparse matrix or list
        With `return_predictions`, as of `GridSearchCV`.

    See Also
    --------
    RandomizedSearchCV : Draws all settings at once, so that all of them share their work.

    Notes
    -----
    Those of `GridSearchCV` hold here, too.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from manyfit.model_selection import OptunaSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> space = {"C": loguniform(1e-2, 1e2), "kernel": ["rbf", "linear"]}
    >>> search = OptunaSearchCV(SVC(), space, n_trials=12, batch_size=4, random_state=0).fit(X, y)
    >>> len(search.study_.trials), len(search.cv_results_["params"])
    (12, 12)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **parameter_constraints(SklearnBaseSearchCV),
        **SharedSearch._parameter_constraints,
        "param_distributions": [dict, callable],
        "n_trials": [COUNT],
        "batch_size": [COUNT],
        "sampler": "no_validation",
        "study": "no_validation",
        "prune": ["boolean"],
        "random_state": ["random_state"],
    }
    rounds_may_fail = True  # a batch may have one new setting
    study_: Any

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_trials: int = 20,
        batch_size: int = 8,
        sampler: Any = None,
        study: Any = None,
        prune: bool = False,
        random_state: Any = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: bool | str | Callable[..., int] = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        error_score: float | str = np.nan,
        return_train_score: bool = False,
        sharing: Sharing = "auto",
        verify: int = 0,
        memory_limit: int | str | None = None,
        client: Any = None,
        early_stopping: EarlyStopping = None,
        engine: Engine = None,
        time_budget: float | None = None,
        fit_timeout: float | None = None,
        return_predictions: bool | str = False,
    ) -> None:
        keep_arguments(self, locals())

    def plan(self, X: Any, y: Any = None, **params: Any) -> Plan:
        """Return what the first batch of `fit` will share and why.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, (n_samples, n_features)
            As for `fit`.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            As for `fit`.
        **params : dict
            As for `fit`.

        Returns
        -------
        Plan
            Of the first batch; the settings of the others depend on its scores. `fit` draws the same ones if
            `random_state` is an integer. A given study stays as it is.
        """
        self._validate_params()
        with attributes_restored(self):
            setup = make_setup(self, X, y, params)
            study = self._study(self._objectives()) if self.study is None else copy_in_memory(self.study)
            source = StudySource(study, as_space(self.param_distributions))
            asked = source.ask(min(self.batch_size, self.n_trials))
            contexts: list[Any] | None = [] if uses_callbacks(self) else None
            splits = draw_splits(setup, setup.cv)
            plan = prepare(make_job(self, setup, [one.params for one in asked], splits, contexts)).plan
        n = -(-self.n_trials // self.batch_size)
        line = f"this is the first of {n} batches; the sampler chooses the others by the scores before them"
        return replace(plan, rounds=(line,) if n > 1 else ())

    def _run_search(self, evaluate_candidates: Callable[..., Any], callback_ctx: Any = NO_CALLBACKS) -> None:
        objectives = self._objectives()
        study = self._study(objectives)  # which says so if Optuna is missing
        source = StudySource(study, as_space(self.param_distributions))
        self.study_ = source.study
        if self.study is not None:
            source.try_best_again(self.n_trials)
        end = math.inf if self.time_budget is None else time.perf_counter() + self.time_budget
        left, evaluated = self.n_trials, False
        context = callback_ctx.subcontext(task_name="search", max_subtasks=None)
        context.call_on_fit_task_begin(estimator=self)
        try:
            while left and not (source.is_exhausted or (evaluated and time.perf_counter() >= end)):
                self._batch = source.ask(min(self.batch_size, left))
                left -= min(self.batch_size, left)
                if self._batch:
                    self._evaluate(source, objectives, evaluate_candidates, context)
                    evaluated = True
            if not evaluated:
                raise ValueError(
                    "OptunaSearchCV: the function param_distributions has pruned all "
                    f"{self.n_trials} trials: there is no setting to evaluate."
                )
            context.call_on_fit_task_end(estimator=self)
        finally:
            source.give_up()
            self.__dict__.pop("_batch", None)
            self.__dict__.pop("_race", None)

    def _evaluate(
        self, source: StudySource, objectives: Sequence[str], evaluate: Callable[..., Any], context: Any
    ) -> None:
        asked = self._batch
        numbers = {"trial_number": [one.trial.number for one in asked]}
        n_fits = len(asked) * self.n_splits_
        batch = context.subcontext(task_name="batch", max_subtasks=n_fits, sequential_subtasks=False)
        batch.call_on_fit_task_begin(estimator=self)
        results = evaluate([one.params for one in asked], more_results=numbers, callback_ctx=batch)
        batch.call_on_fit_task_end(estimator=self)
        # The scores of a function have names once it has returned some: until then all fits have failed.
        names = [name if f"mean_test_{name}" in results else "score" for name in objectives]
        if "score" in names and "mean_test_score" not in results:
            raise ValueError(
                "OptunaSearchCV: `scoring` is a function that returns several scores, so that `refit` has to "
                f"name the one to maximize, got refit={self.refit!r}."
            )
        scores = np.column_stack([results[f"mean_test_{name}"][-len(asked) :] for name in names])
        if self.prune:  # later trials are compared with all splits of these, shared ones too
            splits = [results[f"split{i}_test_{names[0]}"][-len(asked) :] for i in range(self.n_splits_)]
            for c, own in enumerate(np.column_stack(splits)):
                self._race.report(c, dict(enumerate(own.tolist())))
        source.tell(asked, scores, self._race.dropped if self.prune else ())

    def _make_race(self, n_splits: int, metric: str | None) -> Race | None:
        if not self.prune:
            return None
        self._race = PruningRace(self._batch, metric)
        return self._race

    def _objectives(self) -> list[str]:
        """Names of the metrics that the study maximizes."""
        scorer, metric = self._get_scorers()
        if callable(self.scoring):
            return [self.refit] if isinstance(self.refit, str) else ["score"]
        return [metric] if isinstance(metric, str) else list(scorers_by_name(scorer))

    def _study(self, objectives: Sequence[str]) -> Any:
        require_optuna()
        if self.prune and len(objectives) > 1:
            raise ValueError(
                f"OptunaSearchCV: prune=True needs one metric, and the study has {', '.join(objectives)}. "
                "Set `refit` to the one that decides."
            )
        if self.study is None:
            seed = None
            if self.sampler is None and self.random_state is not None:
                seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            return make_study(len(objectives), self.sampler, seed, self.prune)
        if self.sampler is not None:
            raise ValueError("OptunaSearchCV: a study has its own sampler; give `sampler` or `study`.")
        directions = [one.name for one in self.study.directions]
        if directions != ["MAXIMIZE"] * len(objectives):
            raise ValueError(
                f"OptunaSearchCV maximizes {', '.join(objectives)}: the study has to have the directions "
                f"{['maximize'] * len(objectives)}, got {directions}."
            )
        return self.study
