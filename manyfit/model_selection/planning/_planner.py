"""From a job to its plan: which settings are served together, how, and why they share no more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from textwrap import shorten
from typing import Any

import sklearn

from manyfit._compat import TESTED, is_tested, warn_untested
from manyfit.arrays import is_xp_array
from manyfit.cluster.pool.run import count_slots
from manyfit.families import ClassSums, FoldRows, Iterations, family_of, sparse_step_of
from manyfit.folds import Unsupported, is_row_source
from manyfit.introspection.parameter_hints import suggest_parameters
from manyfit.introspection.randomness import is_deterministic
from manyfit.model_selection.early_stopping._fold_stopping import OPTIMISTIC
from manyfit.model_selection.job._job import Job
from manyfit.model_selection.job._joblib_tasks import joblib_workers
from manyfit.model_selection.job._sklearnex import settings_for_sklearnex
from manyfit.model_selection.planning._parameter_checks import WRITES
from manyfit.model_selection.planning._pipeline_spec import PipelineReader, PipelineSpec, value_key
from manyfit.model_selection.planning._plan import Group, Plan, WorkPlace, reading_of
from manyfit.model_selection.planning._search_data import SearchData
from manyfit.model_selection.planning._search_facts import SearchFacts
from manyfit.model_selection.planning._step_counts import StepCounts
from manyfit.model_selection.planning.places._data_location import only_readers
from manyfit.model_selection.planning.places._work_places import WorkPlaces
from manyfit.model_selection.planning.steps._encoded_columns import reads_columns
from manyfit.model_selection.planning.steps._order import build_candidate, step_order
from manyfit.model_selection.sharing.rows._own_rows import has_mutable_items
from manyfit.model_selection.sharing.rows._read_only import can_be_shared
from manyfit.model_selection.strategies._class_moments import CLASS_MOMENTS
from manyfit.model_selection.strategies._fold_families import FOLD_FAMILIES
from manyfit.model_selection.strategies._individual_fits import INDIVIDUAL_FITS, SHARED_STEPS
from manyfit.model_selection.strategies._iterations import ITERATIONS
from manyfit.model_selection.strategies._left_out_folds import LEFT_OUT
from manyfit.model_selection.strategies._moments import MOMENTS, moment_data
from manyfit.model_selection.strategies._strategy import Batch, Strategy, nothing_in_common, scoring_of

# The first that matches the settings of a family serves them; single fits get what it refuses.
FAMILY_STRATEGIES: tuple[Strategy, ...] = (MOMENTS, ITERATIONS, CLASS_MOMENTS, LEFT_OUT, FOLD_FAMILIES)


@dataclass(frozen=True)
class Prepared:
    """A plan, and the data that running it reads and that no plan should hold."""

    plan: Plan
    data: SearchData


def prepare(job: Job) -> Prepared:
    """Plan a job; nothing is fitted."""
    return _Planner(job).prepare()


class _Planner:
    def __init__(self, job: Job) -> None:
        self.job, self.facts = job, SearchFacts(job)
        self.groups: list[Group] = []
        self.specs: list[PipelineSpec | str] = []
        self.opened: list[PipelineSpec | str] = []  # the same, with meta-estimators opened

    def prepare(self) -> Prepared:
        job, facts = self.job, self.facts
        candidates = list(range(len(job.candidates)))
        reason = self._reason_for_all()
        order: tuple[Any, ...] | None = None
        by_candidate, advice = False, tuple[str, ...]()
        n_workers = count_slots(job.client) if job.client is not None else joblib_workers(job.n_jobs)
        if reason is not None:
            if candidates:
                batch = Batch(tuple(candidates), ("",) * len(candidates), reason=reason)
                self.groups.append(INDIVIDUAL_FITS.serve(batch, facts))
        else:
            self.specs = self._read_settings()
            self.opened = [_opened(spec) for spec in self.specs]
            left, reasons = self._place_families()
            # Settings that families leave, once they see the data behind the steps, share these steps too.
            families = [group.candidates for group in self.groups if group.strategy.shares_steps]
            may_be_left = sorted([*left, *(c for candidates in families for c in candidates)])
            once = any(isinstance(s, PipelineSpec) and facts.tokens_key(s) for s in self.specs)
            may_share_steps = facts.may_share_rows and job.options.fit_timeout is None
            order = step_order(job, self.specs, may_be_left, once) if may_share_steps else None
            by_candidate = order is not None and self._order_is_visible(may_be_left)
            self._place_rest(left, reasons, shares_steps=order is not None)
            counts = StepCounts(facts, self.specs, n_workers)
            self.groups = counts.counted(self.groups, order, by_candidate)
            fitted = {c: spec for c in may_be_left if isinstance(spec := self.specs[c], PipelineSpec)}
            advice = tuple(facts.checks.advice)
            if len(fitted) > 1:
                advice += facts.drawing.advice(fitted, by_candidate and n_workers == 1)
        shared = [group for group in self.groups if group.strategy.shares_fits]
        summed = [moment_data(group, facts.data) for group in shared if group.strategy == MOMENTS]
        counted = [group for group in shared if group.strategy == CLASS_MOMENTS]
        summed += [facts.data.for_iterations(one.prototype, ()) for one in counted if not one.steps]
        refit_places: tuple[WorkPlace, ...] = ()
        if facts.on_device:
            places = WorkPlaces(job)
            self.groups = [replace(group, places=places.locate(group)) for group in self.groups]
            refit_places = places.locate_refit()
        self.groups = [
            group
            if group.strategy.shares_fits
            else replace(group, by_sklearnex=settings_for_sklearnex(job, group.candidates))
            for group in self.groups
        ]
        plan = Plan(
            tuple(self.groups),
            len(candidates),
            job.splits.n_splits,
            facts.data.moment_passes(summed) + facts.data.passes_behind(group.steps for group in counted),
            order=order,
            by_candidate=by_candidate,
            n_workers=n_workers,
            advice=advice,
            by_sklearn=reason is not None
            or not facts.may_share_rows
            or (facts.fits_on_device and order is None),
            from_predictions=any(scoring_of(group, job.options).calls_scorers for group in shared),
            warnings=() if job.options.early_stopping is None else (OPTIMISTIC,),
            refit_places=refit_places,
            reading=reading_of(facts.data.chunks, self.groups),
        )
        # Matrices that no group reads are not held while others are fitted.
        read = any(group.strategy in (MOMENTS, ITERATIONS, CLASS_MOMENTS, LEFT_OUT) for group in shared)
        return Prepared(plan, facts.data if read else SearchData(job))

    def _reason_for_all(self) -> str | None:
        """Why nothing at all is shared, or None."""
        if self.job.sharing == "none":
            return "sharing='none'"
        if self.job.options.return_estimator:
            return "fitted estimators are asked for"
        if self.job.contexts is not None:
            return "callbacks follow every single fit"
        if not self.job.splits.n_splits:
            return "there are no splits"
        for name, data in (("X", self.job.X), ("y", self.job.y)):
            if not (can_be_shared(data) or is_xp_array(data) or is_row_source(data)):
                return f"{name} is a {type(data).__name__}, which a fit could change for the next one"
            if has_mutable_items(data) and not only_readers(self.job):
                return f"{name} holds objects that can be changed, and fits have them in common"
        if not is_tested():
            warn_untested(sklearn.__version__)
            return f"scikit-learn {sklearn.__version__} is not one of the tested versions {', '.join(TESTED)}"
        return None

    def _read_settings(self) -> list[PipelineSpec | str]:
        reader = PipelineReader(self.job.estimator)
        specs: list[PipelineSpec | str] = []
        for params in self.job.candidates:
            try:
                specs.append(reader.read(params))
            except Unsupported as why:
                specs.append(str(why))
            except Exception as error:
                # An unknown parameter, say: fitted one by one, it raises again in scikit-learn's own words.
                suggest_parameters(error, self.job.estimator, params)
                message = shorten(str(error), 120, placeholder=" ...") or type(error).__name__
                specs.append(
                    " ".join(
                        [f"scikit-learn refuses the setting: {message}", *getattr(error, "__notes__", [])]
                    )
                )
        return specs

    def _place_families(self) -> tuple[list[int], dict[int, str]]:
        """Groups for every setting that a family serves; the others, with the reason."""
        reasons: dict[int, str] = {}
        together: dict[Any, list[int]] = defaultdict(list)
        for c, spec in enumerate(self.opened):
            why = self._why_without_family(c, spec)
            if why is not None:
                reasons[c] = why
                continue
            assert isinstance(spec, PipelineSpec)
            family = family_of(spec.final.cls)
            assert family is not None
            steps = tuple(step.key for step in spec.steps)
            wrapper = None if spec.wrapper is None else (spec.wrapper.key, spec.n_wrapped)
            together[steps, spec.final.path, spec.final.key_without(family.free), wrapper].append(c)
        for candidates in together.values():
            specs = tuple(self.opened[c] for c in candidates)
            first = specs[0]
            assert isinstance(first, PipelineSpec)
            try:
                family = self.facts.checks.family_of(first)
            except Unsupported as why:
                reasons.update(dict.fromkeys(candidates, str(why)))
                continue
            reasons.update(
                self._serve(
                    Batch(tuple(candidates), specs, family, is_sparse=self.facts.data.has_sparse_chunks)
                )
            )
        return sorted(reasons), reasons

    def _why_without_family(self, c: int, spec: PipelineSpec | str) -> str | None:
        """Why no family serves a setting, as far as its parameters need not be looked at; or None."""
        if isinstance(spec, str):
            return spec
        if self.job.options.early_stopping is not None:
            return "each fit stops by the test part of its fold"
        family, name = family_of(spec.final.cls), spec.final.cls.__name__
        if family is None:
            return f"manyfit knows no work that fits of {name} have in common"
        if spec.steps and self.facts.data.has_sparse_chunks:
            reads = isinstance(family.reads, Iterations | ClassSums)
            unread = [step.cls for step in spec.steps if not (reads and sparse_step_of(step.cls))]
            if unread:
                steps = ", ".join(dict.fromkeys(cls.__name__ for cls in unread))
                return f"steps before {name}, here {steps}, do not read sparse chunks"
        if self.facts.must_share and type(family.reads) is FoldRows:
            return f"{name} reads the rows of a fold as one array"
        if not family.free <= spec.final.params.keys():
            return f"{name} lacks a parameter of its family"
        if not spec.final.keeps_params:
            return f"{name} keeps parameters elsewhere than in its attributes"
        if family.result == "converged" and c in self._varied_path_params:
            names = " and ".join(self._varied_path_params[c])
            return f"the search varies {names}, which changes where a fit stops"
        return None

    @cached_property
    def _varied_path_params(self) -> dict[int, list[str]]:
        """By setting, the parameters that decide where its solver stops and that the search varies."""
        by_class: dict[Any, list[int]] = defaultdict(list)
        for c, spec in enumerate(self.opened):
            if isinstance(spec, PipelineSpec):
                by_class[spec.final.path, spec.final.cls].append(c)
        found = {}
        for (_, cls), candidates in by_class.items():
            family = family_of(cls)
            finals = [spec.final for c in candidates if isinstance(spec := self.opened[c], PipelineSpec)]
            names = sorted(family.path_params) if family is not None else []
            varied = [n for n in names if len({value_key(final.params.get(n)) for final in finals}) > 1]
            if varied:
                found.update(dict.fromkeys(candidates, varied))
        return found

    def _serve(self, batch: Batch) -> dict[int, str]:
        """Place settings that differ in free parameters only; return those not placed, with the reason."""
        reasons, shared = dict[int, str](), list[int]()
        assert batch.family is not None
        finals = [spec.final for spec in batch.specs if isinstance(spec, PipelineSpec)]
        found = self.facts.checks.family_reasons(batch.family, finals)
        for j, (c, why) in enumerate(zip(batch.candidates, found, strict=True)):
            if why is None:
                shared.append(j)
            elif len(finals) == 1 and self.facts.checks.can_be_met(why):
                reasons[c] = nothing_in_common(batch)  # which would still hold
            else:
                reasons[c] = why
        if not shared:
            return reasons
        batch = batch.subset(shared)
        refusals = list[tuple[Strategy, str]]()
        for strategy in (one for one in FAMILY_STRATEGIES if one.matches(batch)):
            try:
                group = strategy.serve(batch, self.facts)
                notes = [
                    f"no {tried.kind}, because {why}" for tried, why in refusals if why and tried.is_usual
                ]
                self.groups.append(replace(group, reason="; ".join(filter(None, [group.reason, *notes]))))
                return reasons
            except Unsupported as refusal:
                refusals.append((strategy, str(refusal)))
            # Steps that cannot be seen through columns are fitted once a fold, as steps of other kinds are.
            if not (reads_columns(batch.spec.steps) or strategy.refuses_alone):
                break
        # scikit-learn's way, which is tried last, is closed to an X that it cannot read.
        reason = refusals[0 if self.facts.must_share else -1][1]
        reasons.update(dict.fromkeys(batch.candidates, reason))
        return reasons

    def _order_is_visible(self, left: Sequence[int]) -> bool:
        """Whether the order of the fits can be seen: in what they draw, or in which of them raises first."""
        if self.job.options.error_score == "raise":
            return True
        drawing = self.facts.drawing
        read = [spec for spec in (self.specs[c] for c in left) if isinstance(spec, PipelineSpec)]
        draws = any(drawing.first(spec) is not None or drawing.last_draws(spec) for spec in read)
        return draws or (not read and is_deterministic(build_candidate(self.job, left[0])) is False)

    def _place_rest(self, left: list[int], reasons: Mapping[int, str], shares_steps: bool) -> None:
        alike: dict[tuple[str, str], list[int]] = defaultdict(list)
        for c in left:
            spec = self.specs[c]
            writes = shares_steps and self.facts.checks.writes_into_input(spec)
            # A grid may replace steps: a line of the plan names the classes that its settings have.
            title = spec.title if shares_steps and not writes and isinstance(spec, PipelineSpec) else ""
            alike[WRITES if writes else reasons[c], title].append(c)
        for (reason, _), candidates in alike.items():
            strategy: Strategy = SHARED_STEPS if shares_steps and reason != WRITES else INDIVIDUAL_FITS
            specs = tuple(self.specs[c] for c in candidates)
            self.groups.append(strategy.serve(Batch(tuple(candidates), specs, reason=reason), self.facts))


def _opened(spec: PipelineSpec | str) -> PipelineSpec | str:
    """A setting with the meta-estimator at its end opened, or the reason why it cannot be."""
    try:
        return spec.opened if isinstance(spec, PipelineSpec) else spec
    except Unsupported as why:
        return str(why)
