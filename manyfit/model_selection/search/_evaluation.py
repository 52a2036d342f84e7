"""Evaluates the settings of a search, round by round, and collects all results."""

import os
import time
import warnings
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from manyfit._compat import check_fit_failures, uses_callbacks
from manyfit.arrays import Transfers, transfers
from manyfit.families import STOPS_EARLY, continued_fits
from manyfit.folds import Splits
from manyfit.model_selection.job._job import Job, Pair, Result
from manyfit.model_selection.job._predictions import Recording
from manyfit.model_selection.planning._planner import Prepared, prepare
from manyfit.model_selection.planning.places._data_location import advise_drop_in, place_data, where_refitted
from manyfit.model_selection.results._report import Report
from manyfit.model_selection.results._result_sink import ResultSink, as_partial
from manyfit.model_selection.results.displays._advice import advise
from manyfit.model_selection.running._engine import n_workers, run
from manyfit.model_selection.running._predictions import collect_predictions
from manyfit.model_selection.running._time_budget import NotMade, TimeBudget
from manyfit.model_selection.search._hooks import add_sizes, format_results
from manyfit.model_selection.search._setup import Frozen, Setup, draw_splits, make_job
from manyfit.model_selection.search._verify import Round, stopped_early, verify
from manyfit.model_selection.strategies._doubts import as_good_as_best

if TYPE_CHECKING:
    from manyfit.model_selection.checkpoint._file import Checkpoint


class Evaluation:
    """The function that ``_run_search`` calls with settings; it collects all results so far."""

    def __init__(self, search: Any, setup: Setup, frozen: Frozen | None, crossed: Transfers) -> None:
        self.search, self.setup, self._frozen, self._crossed = search, setup, frozen, crossed
        self.candidates: list[Any] = []
        self.out: list[Result] = []
        self.more: dict[str, list[Any]] = defaultdict(list)
        self.report = Report()
        self.formatted: dict[str, Any] = {}
        self._arrivals: tuple[list[Any], ResultSink] | None = None
        self._sent: Job | None = None
        self._rounds: list[Round] = []
        self._start, self._budget = time.perf_counter(), None
        if search.time_budget is not None:
            # Drawn settings are in no order that a search could go through.
            self._budget = TimeBudget(search.time_budget, spread=not hasattr(search, "param_distributions"))

    @property
    def names(self) -> dict[str, None]:
        """The names of the parameters of all settings so far, those of the last round included."""
        last = self._arrivals[0] if self._arrivals is not None else []
        return dict.fromkeys(name for one in (*self.candidates, *last) for name in one)

    @property
    def seconds(self) -> float:
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
            candidates, splits = self._draw(candidate_params, cv)
        if search.verbose > 0:
            print(
                f"Fitting {splits.n_splits} folds for each of {len(candidates)} candidates,"
                f" totalling {splits.n_splits * len(candidates)} fits"
            )
        contexts = self._contexts(callback_ctx, len(candidates) * splits.n_splits)
        with transfers() as crossed:
            job = self._place(make_job(search, setup, candidates, splits, contexts))
            prepared: Prepared = prepare(job)
        planned = time.perf_counter()
        checkpoint = self._checkpoint(job)
        arrivals = ResultSink(job, checkpoint, self._metric())
        self._arrivals = candidates, arrivals
        if (earlier := continued_fits()) is not None:
            earlier.next_round()
        race = search._make_race(job.splits.n_splits, self._metric())
        with nullcontext() if checkpoint is None else _keep_ranges(job, checkpoint):
            out, report = run(job, prepared, arrivals, self._budget, race)
        if not out:
            raise ValueError("No fits were performed. Was the CV iterator empty? Were there no candidates?")
        known = [*self.out, *out] if search.rounds_may_fail else out
        if not search.rounds_may_fail:
            self._check_failures(known)
        if callable(search.scoring):
            _insert_error_scores(known, search.error_score)
        for one in report.dropped:
            one["candidate"] += len(self.candidates)
        for group in report.groups:
            group["candidates"] = tuple(len(self.candidates) + c for c in group["candidates"])
        report.spend("plan", planned - start)
        report.cross(drawn, crossed, self._crossed)  # before the first fit
        self._crossed = Transfers()
        verified = verify(job, out, search.verify, report) if search.verify else {}
        report.verification += chain.from_iterable(verified.values())
        self._keep(candidates, out, more_results, report)
        self._arrivals = None
        before = len(self.candidates) - len(candidates)
        data = None if prepared.data.chunks is None else prepared.data
        own = Round(job, prepared.plan, arrivals, report.groups, verified, checkpoint, before, data)
        self._rounds.append(own)
        add_sizes(search, out, splits)
        if own.stopped_audit:
            self._fit_again(own, own.stopped_audit)
        return self._format(splits.n_splits)

    def end(self) -> None:
        """Warn of failed fits of all rounds, or raise if none succeeded, where rounds may fail."""
        if self.search.rounds_may_fail:
            self._check_failures(self.out)

    def _check_failures(self, results: Iterable[Result]) -> None:
        made = [one for one in results if not isinstance(one, NotMade)]
        check_fit_failures(made, self.search.error_score)

    @property
    def doubts(self) -> dict[Pair, Mapping[str, float]]:
        """The uncertainty of scores that `tol` allows, by setting and split."""
        return {
            (one.before + c, i): doubt
            for one in self._rounds
            for (c, i), doubt in one.arrivals.doubts.items()
        }

    def note_choice(self) -> None:
        """Report what the choice of the best setting leaves open, and settings as good as it within `tol`."""
        search, results = self.search, self.formatted
        metric = search.refit if search.multimetric_ else "score"
        by_mean = metric if isinstance(metric, str) and not callable(search.refit) else None
        self.report.advice += advise(search, results, by_mean, self.setup.X)
        if self._sent is not None and STOPS_EARLY in self.report.left_to_sklearn:
            self.report.advice += advise_drop_in(self._sent, STOPS_EARLY)
        if isinstance(metric, str):
            scores = results[f"mean_test_{metric}"]
            tied = as_good_as_best(scores, search.best_index_, self.doubts, metric, self.setup.n_splits)
            self.report.as_good_as_best = [dict(self.candidates[c]) for c in tied]

    def may_doubt(self, best: int) -> bool:
        """Whether shared scores are replaced if the refit of the best setting stops early."""
        own = self.round_of(best)
        return bool(own.in_doubt(best - own.before))

    def refit_doubts(self, best: int, refitted: Any, raised: bool) -> bool:
        """If the refit stopped early, fit by scikit-learn what was shared with the best setting.

        `raised`: the solver raised its convergence warning. Returns whether scores were replaced. Less is
        shared after each time.
        """
        if not (self.may_doubt(best) and (raised or stopped_early(refitted))):
            return False
        own = self.round_of(best)
        self._fit_again(own, own.in_doubt(best - own.before))
        self._format(own.job.splits.n_splits)
        return True

    def predictions(self, recording: Recording, best: int | None) -> Any:
        """The out-of-fold predictions of a setting, or of all; None for those without fits of all splits."""
        start = time.perf_counter()
        own = self._rounds[-1] if best is None else self.round_of(best)
        asked = range(len(own.job.candidates)) if best is None else [best - own.before]
        fitted = [c for c in asked if self._is_fitted(own.before + c, own.job.splits.n_splits)]
        parts = collect_predictions(own.job, fitted, recording, own.arrivals.predicted)
        found = dict(zip(fitted, parts, strict=True))
        self.report.spend("predictions", time.perf_counter() - start)
        return [found.get(c) for c in asked] if best is None else found.get(asked[0])

    def _is_fitted(self, candidate: int, k: int) -> bool:
        results = self.out[candidate * k : (candidate + 1) * k]
        return not any(isinstance(one, NotMade) or one["fit_error"] is not None for one in results)

    def round_of(self, best: int) -> Round:
        """The round in which the best setting was evaluated."""
        return next(one for one in reversed(self._rounds) if one.before <= best)

    def _fit_again(self, own: Round, pairs: Collection[Pair]) -> None:
        """Fit shared pairs by scikit-learn, and treat failures as those of other fits."""
        search, k = self.search, own.job.splits.n_splits
        own.fit_again(pairs, self.out, self.report)
        for pair in pairs:
            own.arrivals.predicted.pop(pair, None)
        first = own.before * k
        out = self.out[first : first + own.job.n_pairs]
        if any(out[c * k + i]["fit_error"] is not None for c, i in pairs):
            known = self.out if search.rounds_may_fail else out  # all fits, as scikit-learn counts them
            self._check_failures(known)
            if callable(search.scoring):
                _insert_error_scores(known, search.error_score)
        add_sizes(search, out, own.job.splits)

    def _format(self, n_splits: int) -> dict[str, Any]:
        """All results so far in the format of ``cv_results_``."""
        with warnings.catch_warnings():
            if self._only_unmade_are_nan():
                warnings.filterwarnings("ignore", "One or more of the .* scores are non-finite", UserWarning)
            self.formatted = format_results(self.search, self.candidates, n_splits, self.out, self.more)
        return self.formatted

    def _only_unmade_are_nan(self) -> bool:
        """Whether NaN scores are those of fits for which there was no time, so that nobody need be warned."""
        if not any(isinstance(one, NotMade) for one in self.out):
            return False
        made = [one["test_scores"] for one in self.out if not isinstance(one, NotMade)]
        scores = [value for one in made for value in (one.values() if isinstance(one, dict) else (one,))]
        return bool(np.isfinite(np.array(scores, dtype=float)).all())

    def _place(self, job: Job) -> Job:
        """The job with its data on the configured device, sent once for all settings of the search."""
        if self._sent is None:
            self._sent = place_data(job)
        return replace(job, X=self._sent.X, y=self._sent.y, host_data=self._sent.host_data)

    def data_for(self, estimator: Any) -> tuple[Any, Any, Mapping[str, Any]]:
        """X, y and weights for a fit of an estimator: as given, on the configured device, or on the host."""
        assert self._sent is not None
        job = where_refitted(replace(self._sent, estimator=estimator, candidates=()))
        return job.X, job.y, job.options.fit_params

    def _checkpoint(self, job: Job) -> "Checkpoint | None":
        path, verbose = self.search.checkpoint, self.search.verbose
        if path is None:
            return None
        from manyfit.model_selection.checkpoint._file import Checkpoint  # it needs SQLite
        from manyfit.model_selection.checkpoint._search_identity import identity

        may_grow = not self.search.continues_rounds
        compared = identity(job, self.search, len(self.candidates), may_grow=may_grow)
        checkpoint = Checkpoint(path, compared, n_workers(job))
        if verbose > 0 and checkpoint.stored:
            print(f"Continuing from {os.fspath(path)!r}, which has {len(checkpoint.stored)} of these fits")
        return checkpoint

    def _metric(self) -> str | None:
        return self.search.refit if isinstance(self.search.refit, str) else None

    def partial(self) -> list[dict[str, Any]]:
        k = len(self.out) // max(len(self.candidates), 1)
        found = as_partial(self.candidates, ((divmod(j, k), one) for j, one in enumerate(self.out)))
        if self._arrivals is not None:
            candidates, arrivals = self._arrivals
            found += as_partial(candidates, sorted(arrivals.results.items(), key=lambda item: item[0]))
        return found

    def _draw(self, candidate_params: Iterable[Any], cv: Any) -> tuple[list[Any], Splits]:
        frozen, self._frozen = self._frozen, None
        if frozen is not None and cv is None:
            return frozen.candidates, frozen.splits
        return list(candidate_params), draw_splits(self.setup, cv or self.setup.cv)

    def _contexts(self, callback_ctx: Any, n: int) -> list[Any] | None:
        if callback_ctx is None or not uses_callbacks(self.search):
            return None
        return [callback_ctx.subcontext(task_name="candidate-split-evaluation", task_id=j) for j in range(n)]

    def _keep(self, candidates: list[Any], out: list[Result], more: Any, report: Report) -> None:
        self.candidates.extend(candidates)
        self.out.extend(out)
        for key, value in (more or {}).items():
            self.more[key].extend(value)
        self.report = report if not self.report.fits_requested else self.report.merged(report)


def _keep_ranges(job: Job, checkpoint: "Checkpoint") -> AbstractContextManager[None]:
    from manyfit.model_selection.checkpoint._ranges import keep_ranges  # it needs SQLite

    return keep_ranges(job.X, checkpoint)


def _insert_error_scores(results: Iterable[Result], error_score: Any) -> None:
    """Give failed and unmade fits all scores of a function, if it has returned several for others.

    scikit-learn's function does so for failed fits, and stumbles over failed scores.
    """
    results = list(results)
    scores = next((one["test_scores"] for one in results if isinstance(one["test_scores"], dict)), ())
    for one in results if scores else ():
        for key in one.keys() & {"test_scores", "train_scores"}:
            if not isinstance(one[key], dict):
                one[key] = dict.fromkeys(scores, np.nan if isinstance(one, NotMade) else error_score)
