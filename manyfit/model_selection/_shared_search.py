"""What every search of manyfit does beyond scikit-learn's: plan, share, report."""

import copy
import numbers
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, get_args

from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import indexable

from manyfit._compat import (
    Interval,
    StrOptions,
    any_callbacks,
    asks_at_once,
    callback_context,
    check_fit_failures,
    check_method_params,
    fit_context,
    insert_error_scores,
    num_samples,
    scorers_by_name,
    takes_callback_context,
)
from manyfit.arrays import Brought, Transfers, loaded, to_host, transfers
from manyfit.cluster._progress import refitting
from manyfit.cluster._remote import client_for
from manyfit.folds import Splits, is_foreign
from manyfit.metrics import refuse_metrics
from manyfit.model_selection._arrivals import Arrivals, as_partial
from manyfit.model_selection._audit import REFIT_STOPPED, settings_in_doubt
from manyfit.model_selection._chain import value_key
from manyfit.model_selection._checkpoint import Checkpoint
from manyfit.model_selection._digest import ProcessDigester
from manyfit.model_selection._doubts import as_good_as_best
from manyfit.model_selection._engine import n_workers, run
from manyfit.model_selection._hooks import (
    add_sizes,
    attributes_restored,
    check_input,
    format_results,
    list_candidates,
)
from manyfit.model_selection._identity import identity
from manyfit.model_selection._job import Job, Options, Pair, Result, Sharing, memory_limit_in_bytes
from manyfit.model_selection._plan import Plan
from manyfit.model_selection._planner import Prepared, prepare
from manyfit.model_selection._report import Report
from manyfit.model_selection._verify import verify
from manyfit.model_selection._where import where_asked, where_refitted


@dataclass(frozen=True)
class _Setup:
    """What a fit derives from its arguments before anything is fitted."""

    X: Any
    y: Any
    params: Mapping[str, Any]
    scorer: Any
    refit_metric: Any
    routed: Any
    cv: Any
    n_splits: int
    brought: Brought


@dataclass(frozen=True)
class _Frozen:
    """The splits and settings of a plan, kept until the fit on the same data."""

    data: str | None
    asked: Any
    params: dict[str, Any]  # kept alive: some of `asked` are their identities
    cv: Any
    n_splits: int
    splits: Splits
    candidates: list[Any]


class _Count(Interval):
    """An interval of integers that True and False, which are integers to Python, do not belong to."""

    def is_satisfied_by(self, val: Any) -> bool:
        return not isinstance(val, bool) and bool(super().is_satisfied_by(val))


class SharedSearch:
    """What our searches have beyond scikit-learn's: a plan, shared work and a report.

    Mixed into a search class of scikit-learn, whose every other method it leaves as it is.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "sharing": [StrOptions(set(get_args(Sharing)))],
        "verify": [_Count(numbers.Integral, 0, None, closed="left")],
        "memory_limit": [_Count(numbers.Integral, None, None, closed="neither"), str, None],
        "client": "no_validation",  # by `client_for`, without importing Dask where nobody has
        "checkpoint": [str, os.PathLike, None],
    }

    estimator: Any
    scoring: Any
    n_jobs: Any
    refit: Any
    cv: Any
    verbose: Any
    pre_dispatch: Any
    error_score: Any
    return_train_score: Any
    sharing: Sharing
    verify: int
    memory_limit: int | str | None
    client: Any
    checkpoint: str | os.PathLike[str] | None
    report_: Report
    partial_results_: list[dict[str, Any]]
    best_estimator_: Any
    best_index_: int
    best_params_: dict[str, Any]
    best_score_: float
    cv_results_: dict[str, Any]
    multimetric_: bool
    n_splits_: int
    refit_time_: float
    scorer_: Any

    def plan(self, X: Any, y: Any = None, **params: Any) -> Plan:
        """Say what `fit` on the same data will share and why, before anything is fitted.

        Splits and settings are drawn now and kept: a `fit` with the same data, parameters and search
        uses them, also where they are random.

        Parameters
        ----------
        X, y, **params
            As for `fit`.

        Returns
        -------
        Plan
            Prints as a tree; holds no data.

        Notes
        -----
        The data are read once, to be told from others by their content. Those of a device come to the host
        for that, here and once more in `fit`.
        """
        self._validate_params()  # type: ignore[attr-defined]
        with attributes_restored(self):
            setup = self._setup(X, y, params)
            candidates = list_candidates(self, setup.n_splits)
        splits = _draw(setup, setup.cv)
        # Asked only now: drawing may have moved a random state that is part of the answer.
        own = self.get_params(deep=False)  # type: ignore[attr-defined]
        self._frozen = _Frozen(
            _fingerprint(setup), _asked(own), own, setup.cv, setup.n_splits, splits, candidates
        )
        contexts: list[Any] | None = [] if any_callbacks(self) else None
        return prepare(self._job(setup, candidates, splits, contexts)).plan

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Run the search.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, (n_samples, n_features) or (n_samples, n_samples)
            Training data, or a kernel where the estimator takes one. Here and below Dask's arrays, frames
            and series are loaded as a whole, once.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Targets.
        **params : dict
            Passed on to the estimator's ``fit``, the scorer and the splitter (``groups``), as in
            scikit-learn.

        Returns
        -------
        self : object
            The fitted search, with scikit-learn's attributes and `report_`.

        Notes
        -----
        The time of a shared fit is split evenly over the settings that it served: in ``cv_results_``,
        ``mean_fit_time`` adds up to what was spent.
        """
        start = time.perf_counter()
        vars(self).pop("partial_results_", None)
        self._refuse_checkpoint_in_rounds()
        frozen = self._take_frozen()
        with transfers() as crossed:
            setup = self._setup(X, y, params, frozen)
        if frozen is not None and (frozen.data is None or frozen.data != _fingerprint(setup)):
            frozen = None
        metadata = _weights_of(setup.params)
        n_tasks = 1 + (self.refit is not False)
        root = callback_context(self, n_tasks).call_on_fit_task_begin(
            estimator=self, X=setup.X, y=setup.y, metadata=metadata
        )
        self.n_splits_ = setup.n_splits
        evaluation = _Evaluation(self, setup, frozen, crossed)
        try:
            if takes_callback_context(self._run_search):  # type: ignore[attr-defined]
                self._run_search(evaluation, callback_ctx=root)  # type: ignore[attr-defined]
            else:
                self._run_search(evaluation)  # type: ignore[attr-defined]
            self.report_ = evaluation.report
            self._choose(setup, evaluation)
            if self.refit:
                context = root.subcontext(task_name="refit-with-best-params")
                self._refit(setup, evaluation, context, metadata)
                while evaluation.refit_doubts(self.best_index_, self.best_estimator_):
                    refitted = self.best_index_
                    self._choose(setup, evaluation)
                    if self.best_index_ != refitted:
                        self._refit(setup, evaluation, context, metadata)
        except BaseException:  # Ctrl-C too
            self.partial_results_ = evaluation.partial()
            raise
        if hasattr(self, "best_index_"):
            self._note_ties(setup, evaluation)
        # The one scorer, or all by name where there are several.
        named = scorers_by_name(setup.scorer)
        self.scorer_ = setup.scorer if named.get("score") is setup.scorer else named
        self.cv_results_ = evaluation.formatted
        root.call_on_fit_task_end(estimator=self, X=setup.X, y=setup.y, metadata=metadata)
        self.report_.seconds["total"] = time.perf_counter() - start
        return self

    # Before the fits

    def _get_scorers(self) -> Any:
        # Of its own metrics in place of a scorer scikit-learn tells by their module.
        refuse_metrics(self.scoring)
        return super()._get_scorers()  # type: ignore[misc]

    def _refuse_checkpoint_in_rounds(self) -> None:
        if self.checkpoint is not None and not asks_at_once(self):
            raise ValueError(
                f"checkpoint={os.fspath(self.checkpoint)!r} was given to {type(self).__name__}, which chooses"
                " settings by a method of its own. Only a search that asks for all its settings at once can"
                " go on: GridSearchCV and RandomizedSearchCV."
            )

    def _setup(self, X: Any, y: Any, params: Mapping[str, Any], frozen: _Frozen | None = None) -> _Setup:
        scorer, refit_metric = self._get_scorers()  # type: ignore[attr-defined]
        X, y, *values = loaded((X, y, *params.values()), type(self).__name__)
        params = dict(zip(params, values, strict=True))
        (X, y), brought = indexable(X, y), Brought()
        params = check_method_params(X, params=params)
        routed = self._get_routed_params_for_fit(params)  # type: ignore[attr-defined]
        # A plan has read a `cv` that can be read only once. Any other depends on y.
        once = isinstance(self.cv, Iterable) and not hasattr(self.cv, "split")
        if frozen is not None and once:
            cv = frozen.cv
        else:
            # Of a classifier its kind decides.
            y_read = brought(y) if is_classifier(self.estimator) else y
            cv = check_cv(self.cv, y_read, classifier=is_classifier(self.estimator))
        split_params = routed.splitter.split
        cv = check_input(self, cv, X, y, split_params)
        memory_limit_in_bytes(self.memory_limit)
        n_splits = cv.get_n_splits(X, y, **split_params)
        return _Setup(X, y, params, scorer, refit_metric, routed, cv, n_splits, brought)

    def _job(self, setup: _Setup, candidates: list[Any], splits: Splits, contexts: Any) -> Job:
        options = Options(
            scorer=setup.scorer,
            fit_params=setup.routed.estimator.fit,
            score_params=setup.routed.scorer.score,
            return_train_score=self.return_train_score,
            error_score=self.error_score,
            verbose=int(self.verbose),
            memory_limit=memory_limit_in_bytes(self.memory_limit),
        )
        return Job(
            clone(self.estimator), candidates, setup.X, setup.y, splits, options, self.n_jobs,
            self.pre_dispatch, self.sharing, self, contexts, client=client_for(self.client),
            brought=setup.brought,
        )  # fmt: skip

    def _take_frozen(self) -> _Frozen | None:
        """The last plan, if the search is still the one that was planned; used once."""
        frozen: _Frozen | None = vars(self).pop("_frozen", None)
        if frozen is None:
            return None
        own = self.get_params(deep=False)  # type: ignore[attr-defined]
        return frozen if frozen.asked == _asked(own) else None

    # After the fits

    def _choose(self, setup: _Setup, evaluation: "_Evaluation") -> None:
        """Set ``best_index_`` and its kin, by scikit-learn's rules."""
        results, first = evaluation.formatted, evaluation.out[0]["test_scores"]
        self.multimetric_ = isinstance(first, dict)
        metric = setup.refit_metric
        if callable(self.scoring) and self.multimetric_:
            # Only now is it known which scores a callable returns.
            self._check_refit_for_multimetric(first)  # type: ignore[attr-defined]
            metric = self.refit
        if self.refit or not self.multimetric_:
            self.best_index_ = self._select_best_index(self.refit, metric, results)  # type: ignore[attr-defined]
            if not callable(self.refit):
                self.best_score_ = results[f"mean_test_{metric}"][self.best_index_]
            self.best_params_ = results["params"][self.best_index_]

    def _note_ties(self, setup: _Setup, evaluation: "_Evaluation") -> None:
        """Name the settings that `tol` leaves as good as the best."""
        metric = self.refit if self.multimetric_ else "score"
        if isinstance(metric, str):
            scores = evaluation.formatted[f"mean_test_{metric}"]
            tied = as_good_as_best(scores, self.best_index_, evaluation.doubts, metric, setup.n_splits)
            self.report_.as_good_as_best = [dict(evaluation.candidates[c]) for c in tied]

    def _refit(self, setup: _Setup, evaluation: "_Evaluation", context: Any, metadata: Any) -> None:
        """Fit the user's own estimator on all rows: exactly scikit-learn's, nothing shared."""
        params = clone(self.best_params_, safe=False)
        self.best_estimator_ = clone(self.estimator).set_params(**params)
        with context.propagate_callback_context(self.best_estimator_):
            context.call_on_fit_task_begin(estimator=self, X=setup.X, y=setup.y, metadata=metadata)
            start = time.time()
            X, y, params = evaluation.data_for(self.best_estimator_)
            targets = () if y is None else (y,)
            with refitting(int(self.verbose), evaluation.seconds):
                self.best_estimator_.fit(X, *targets, **params)
            self.refit_time_ = time.time() - start
        self.report_.spend("refit", self.refit_time_)
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_
        context.call_on_fit_task_end(estimator=self, X=setup.X, y=setup.y, metadata=metadata)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        state.pop("_frozen", None)
        if state.get("client"):
            state["client"] = None  # a connection does not travel; the current one serves where it arrives
        return state

    def __sklearn_clone__(self) -> Any:
        """A clone with the same client: a connection cannot be copied."""
        without = copy.copy(self)  # which takes the state that is pickled
        other = super(SharedSearch, without).__sklearn_clone__()  # type: ignore[misc]
        other.client = self.client
        return other


@dataclass(frozen=True)
class _Round:
    """Settings that were evaluated together; `before` counts those of earlier rounds."""

    job: Job
    plan: Plan
    shared: set[Pair]
    doubts: dict[Pair, Mapping[str, float]]
    before: int


class _Evaluation:
    """The function that ``_run_search`` calls with settings; it remembers all results so far."""

    def __init__(
        self, search: SharedSearch, setup: _Setup, frozen: _Frozen | None, crossed: Transfers
    ) -> None:
        self.search, self.setup, self._frozen, self._crossed = search, setup, frozen, crossed
        self.candidates: list[Any] = []
        self.out: list[Result] = []
        self.more: dict[str, list[Any]] = defaultdict(list)
        self.report = Report()
        self.formatted: dict[str, Any] = {}
        self._arrivals: tuple[list[Any], Arrivals] | None = None
        self._sent: Job | None = None
        self._rounds: list[_Round] = []
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Since the search began."""
        return time.perf_counter() - self._start

    def __call__(
        self,
        candidate_params: Iterable[Any],
        cv: Any = None,
        more_results: Mapping[str, Any] | None = None,
        callback_ctx: Any = None,
    ) -> dict[str, Any]:
        start = time.perf_counter()
        search, setup = self.search, self.setup
        with transfers() as drawn:
            candidates, splits = self._drawn(candidate_params, cv)
        if search.verbose > 0:
            print(
                f"Fitting {splits.n_splits} folds for each of {len(candidates)} candidates,"
                f" totalling {splits.n_splits * len(candidates)} fits"
            )
        contexts = self._contexts(callback_ctx, len(candidates) * splits.n_splits)
        with transfers() as crossed:
            job = self._placed(search._job(setup, candidates, splits, contexts))
            prepared: Prepared = prepare(job)
        planned = time.perf_counter()
        arrivals = Arrivals(job, self._checkpoint(job), self._metric())
        self._arrivals = candidates, arrivals
        out, report = run(job, prepared, arrivals)
        if not out:
            raise ValueError("No fits were performed. Was the CV iterator empty? Were there no candidates?")
        check_fit_failures(out, search.error_score)
        if callable(search.scoring):
            insert_error_scores(out, search.error_score)
        report.spend("plan", planned - start)
        report.cross(drawn, crossed, self._crossed)  # what was sent and read before the first fit
        self._crossed = Transfers()
        if search.verify:
            report.verification += verify(job, out, search.verify, report)
        self._keep(candidates, out, more_results, report)
        self._arrivals = None
        before = len(self.candidates) - len(candidates)
        self._rounds.append(_Round(job, prepared.plan, arrivals.shared, arrivals.doubts, before))
        add_sizes(search, out, splits)
        return self._format(splits.n_splits)

    @property
    def doubts(self) -> dict[Pair, Mapping[str, float]]:
        """How far `tol` leaves scores open, by setting and split."""
        return {(one.before + c, i): doubt for one in self._rounds for (c, i), doubt in one.doubts.items()}

    def refit_doubts(self, best: int, refitted: Any) -> bool:
        """Have scikit-learn fit what was shared with the best setting if the refit stopped early.

        Returns whether scores were made anew.
        """
        own = next(one for one in reversed(self._rounds) if one.before <= best)
        job, k = own.job, own.job.splits.n_splits
        doubted = settings_in_doubt(job, own.plan, own.shared, best - own.before, refitted)
        if not doubted:
            return False
        n_shared = len(own.shared & set(job.pairs(doubted)))
        alone = replace(job, candidates=[job.candidates[c] for c in doubted], sharing="none")
        out, report = run(alone, prepare(alone))
        check_fit_failures(out, self.search.error_score)
        add_sizes(self.search, out, job.splits)
        for j, c in enumerate(doubted):
            start = (own.before + c) * k
            self.out[start : start + k] = out[j * k : (j + 1) * k]
        own.shared.difference_update(job.pairs(doubted))
        for pair in job.pairs(doubted):
            own.doubts.pop(pair, None)
        self.report.take_back(n_shared, REFIT_STOPPED, report)
        self._format(k)
        return True

    def _format(self, n_splits: int) -> dict[str, Any]:
        """All results so far as scikit-learn has them in ``cv_results_``."""
        self.formatted = format_results(self.search, self.candidates, n_splits, self.out, self.more)
        return self.formatted

    def _placed(self, job: Job) -> Job:
        """The job on data where they are asked to be, sent there once for all settings of the search."""
        if self._sent is None:
            self._sent = where_asked(job)
        return replace(job, X=self._sent.X, y=self._sent.y, home=self._sent.home)

    def data_for(self, estimator: Any) -> tuple[Any, Any, Mapping[str, Any]]:
        """X, y and weights where an estimator can be fitted: as they are, or were sent, or on the host."""
        assert self._sent is not None
        job = where_refitted(replace(self._sent, estimator=estimator, candidates=()))
        return job.X, job.y, job.options.fit_params

    def _checkpoint(self, job: Job) -> Checkpoint | None:
        path, verbose = self.search.checkpoint, self.search.verbose
        if path is None:
            return None
        checkpoint = Checkpoint(path, identity(job, self.search), n_workers(job))
        if verbose > 0 and checkpoint.kept:
            print(f"Going on from {os.fspath(path)!r}, where {len(checkpoint.kept)} of these fits are")
        return checkpoint

    def _metric(self) -> str | None:
        return self.search.refit if isinstance(self.search.refit, str) else None

    def partial(self) -> list[dict[str, Any]]:
        """All that is finished so far."""
        k = len(self.out) // max(len(self.candidates), 1)
        found = as_partial(self.candidates, ((divmod(j, k), one) for j, one in enumerate(self.out)))
        if self._arrivals is not None:
            candidates, arrivals = self._arrivals
            found += as_partial(candidates, sorted(arrivals.results.items(), key=lambda item: item[0]))
        return found

    def _drawn(self, candidate_params: Iterable[Any], cv: Any) -> tuple[list[Any], Splits]:
        frozen, self._frozen = self._frozen, None
        if frozen is not None and cv is None:
            return frozen.candidates, frozen.splits
        return list(candidate_params), _draw(self.setup, cv or self.setup.cv)

    def _contexts(self, callback_ctx: Any, n: int) -> list[Any] | None:
        if callback_ctx is None or not any_callbacks(self.search):
            return None
        return [callback_ctx.subcontext(task_name="candidate-split-evaluation", task_id=j) for j in range(n)]

    def _keep(self, candidates: list[Any], out: list[Result], more: Any, report: Report) -> None:
        self.candidates.extend(candidates)
        self.out.extend(out)
        for key, value in (more or {}).items():
            self.more[key].extend(value)
        self.report = report if not self.report.fits_requested else self.report.merged(report)


def _asked(params: Mapping[str, Any]) -> tuple[Any, ...]:
    """A key of a search's own parameters, which a plan depends on."""
    # The state of a connection is no part of what is planned.
    return tuple(
        (name, id(value) if name == "client" else _content(value)) for name, value in sorted(params.items())
    )


def _content(value: Any) -> Any:
    """A key of what a parameter holds; distributions, whose state moves with every draw, by identity.

    Whatever the key knows by its identity could be changed in place: its content is looked at, too.
    """
    if isinstance(value, dict):
        return tuple((name, _content(item)) for name, item in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(_content, value))
    if hasattr(value, "rvs"):
        return id(value)
    return value_key(value), _digest(value)


def _draw(setup: _Setup, cv: Any) -> Splits:
    given = setup.X, setup.y, num_samples(setup.X), setup.routed.splitter.split
    splits = Splits.draw(cv, *given, home=setup.brought)
    if splits.n_splits != setup.n_splits:
        raise ValueError(
            "cv.split and cv.get_n_splits return inconsistent results. "
            f"Expected {setup.n_splits} splits, got {splits.n_splits}"
        )
    return splits


def _fingerprint(setup: _Setup) -> str | None:
    """The content of all that a fit is given, if it can be compared; of a device it comes to the host."""
    X, y, *values = (
        to_host(one) if is_foreign(one) else one for one in (setup.X, setup.y, *setup.params.values())
    )
    return _digest((X, y, dict(zip(setup.params, values, strict=True))))


def _digest(thing: Any) -> str | None:
    try:
        return ProcessDigester()(thing)
    except Exception:  # what cannot be pickled, or a user's own method that fails
        return None


def _weights_of(params: Mapping[str, Any]) -> dict[str, Any] | None:
    weights = params.get("sample_weight")
    return None if weights is None else {"sample_weight": weights}
