"""From a job to its plan: which settings are served together, how, and why no more."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import sklearn
from sklearn.base import is_classifier

from manyfit._compat import TESTED, check_parameters, is_tested, routing_enabled
from manyfit.cluster.pool.run import slots
from manyfit.estimators import Family, Shape, affine_step_of, family_of
from manyfit.families import require_usual_numbers
from manyfit.folds import (
    FoldedMatrix,
    Unsupported,
    Weights,
    as_labels,
    as_matrix,
    as_matrix_or_csr,
    as_targets,
    as_weights,
    is_sparse,
    is_xp_array,
)
from manyfit.introspection.randomness import is_shareable
from manyfit.metrics import SharedScoring
from manyfit.model_selection.job._job import Job
from manyfit.model_selection.job._joblib_tasks import joblib_workers
from manyfit.model_selection.job._rowwise_prefix import count_rowwise_steps, saves_work
from manyfit.model_selection.planning._convergence import reason_of, require_gradient_stop, stops_as_sklearn
from manyfit.model_selection.planning._cost_checks import (
    n_classes,
    operations_of,
    require_cheaper,
    require_memory,
)
from manyfit.model_selection.planning._data_location import (
    host_only_estimators,
    may_share_device_rows,
    moves_to_gpu,
    only_readers,
)
from manyfit.model_selection.planning._metadata_routing import fit_weights, require_scored_by_last_step
from manyfit.model_selection.planning._pipeline_spec import PipelineReader, PipelineSpec, StepSpec, value_key
from manyfit.model_selection.planning._plan import Group, Plan, WorkPlace
from manyfit.model_selection.planning._work_places import WorkPlaces
from manyfit.model_selection.planning.steps._counts import StepCounts
from manyfit.model_selection.planning.steps._order import sample, step_order
from manyfit.model_selection.planning.steps._random import DrawingSteps
from manyfit.model_selection.sharing.rows._known_readers import writes_in_place
from manyfit.model_selection.sharing.rows._own_rows import has_mutable_items
from manyfit.model_selection.sharing.rows._read_only import can_be_shared


@dataclass(frozen=True)
class Prepared:
    """A plan, and what running it needs that no plan should hold on to."""

    plan: Plan
    data: FoldedMatrix | None
    rows: FoldedMatrix | None
    scoring: SharedScoring | None  # of the groups that moments serve


def prepare(job: Job) -> Prepared:
    """Plan a job; nothing is fitted."""
    return _Planner(job).prepare()


# Parameters that do not change an optimum, but where a solver stops on its way to it.
PATH = ("max_iter", "tol", "solver")
WRITES = "a step may write into its input (copy=False)"


class _Planner:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.groups: list[Group] = []
        self.data: FoldedMatrix | None = None
        self.rows: FoldedMatrix | None = None
        self.scoring: SharedScoring | None = None
        self.calls_scorers = False
        self._drawing = DrawingSteps(job)
        self._checks: dict[Any, str | None] = {}
        self._data_reason: str | None = None
        self._paths: frozenset[int] | None = None
        self._data_ready = False
        self._given: tuple[Any, Any] | None = None
        sent = job.client is None and moves_to_gpu(job.X)
        self._there = sent or is_xp_array(job.X) or is_xp_array(job.y)
        self._lends = not self._there or may_share_device_rows(job)

    @property
    def _fitted_there(self) -> bool:
        """Whether rows of a device are fitted one by one where they are."""
        return (
            self._there
            and not host_only_estimators(self.job)
            and (is_xp_array(self.job.X) or moves_to_gpu(self.job.X))
        )

    def prepare(self) -> Prepared:
        candidates = list(range(len(self.job.candidates)))
        reason, chains = self._whole_reason(), list[PipelineSpec | str]()
        order: tuple[Any, ...] | None = None
        by_candidate, advice = False, tuple[str, ...]()
        n_workers = slots(self.job.client) if self.job.client is not None else joblib_workers(self.job.n_jobs)
        if reason is not None:
            self._one_by_one(candidates, reason)
        else:
            chains = self._chains()
            left, reasons = self._place_families(chains)
            # What families may hand back, once they see the data behind the steps, shares these steps too.
            families = [group.candidates for group in self.groups if group.kind == "family"]
            may_be_left = sorted([*left, *(c for candidates in families for c in candidates)])
            order = step_order(self.job, chains, may_be_left) if self._lends else None
            by_candidate = order is not None and self._by_candidate(chains, may_be_left)
            self._place_rest(left, reasons, order, chains)
            counts = StepCounts(self.job, chains, self._n_once, self._drawing.first)
            self.groups = counts.counted(self.groups, order, by_candidate)
            fitted = {c: chain for c in may_be_left if isinstance(chain := chains[c], PipelineSpec)}
            advice = self._drawing.advice(fitted, by_candidate and n_workers == 1) if len(fitted) > 1 else ()
        shared = any(group.kind == "moments" for group in self.groups)
        passed = any(group.kind == "passes" for group in self.groups)
        refit_places: tuple[WorkPlace, ...] = ()
        if self._there:
            places = WorkPlaces(self.job)
            self.groups = [replace(group, places=places.locate(group)) for group in self.groups]
            refit_places = places.locate_refit()
        plan = Plan(
            tuple(self.groups),
            len(candidates),
            self.job.splits.n_splits,
            self._passes() if shared else 0.0,
            order=order,
            by_candidate=by_candidate,
            n_workers=n_workers,
            advice=advice,
            alone=reason is not None or not self._lends or (self._fitted_there and order is None),
            from_predictions=self.calls_scorers,
            refit_places=refit_places,
        )
        data, rows = self.data if shared else None, self.rows if passed else None
        return Prepared(plan, data, rows, self.scoring)

    def _whole_reason(self) -> str | None:
        """Why nothing at all is shared, or None."""
        if self.job.sharing == "none":
            return "sharing='none'"
        if self.job.options.return_estimator:
            return "fitted estimators are asked for"
        if self.job.contexts is not None:
            return "callbacks follow every single fit"
        for name, data in (("X", self.job.X), ("y", self.job.y)):
            if not (can_be_shared(data) or is_xp_array(data)):
                return f"{name} is a {type(data).__name__}, which a fit could change for the next one"
            if has_mutable_items(data) and not only_readers(self.job):
                return f"{name} holds objects that can be changed, and fits have them in common"
        if not is_tested():
            return f"scikit-learn {sklearn.__version__} is not one of the tested versions {', '.join(TESTED)}"
        return None

    def _chains(self) -> list[PipelineSpec | str]:
        reader = PipelineReader(self.job.estimator)
        chains: list[PipelineSpec | str] = []
        for params in self.job.candidates:
            try:
                chains.append(reader.read(params))
            except Unsupported as why:
                chains.append(str(why))
            except Exception as error:
                # An unknown parameter, say: fitted one by one, it raises again in scikit-learn's own words.
                chains.append(f"the setting cannot be applied ({type(error).__name__})")
        return chains

    # Families

    def _place_families(self, chains: Sequence[PipelineSpec | str]) -> tuple[list[int], dict[int, str]]:
        """Groups for every setting that a family serves; the others, with the reason."""
        left: list[int] = []
        reasons: dict[int, str] = {}
        together: dict[Any, list[int]] = defaultdict(list)
        for c, chain in enumerate(chains):
            family = family_of(chain.final.cls) if isinstance(chain, PipelineSpec) else None
            if isinstance(chain, str):
                reasons[c] = chain
            elif family is None:
                reasons[c] = f"no family serves {chain.final.cls.__name__}"
            elif set(family.free) - set(chain.final.params):
                reasons[c] = f"{chain.final.cls.__name__} lacks a parameter of its family"
            elif not chain.final.keeps_params:
                reasons[c] = f"{chain.final.cls.__name__} keeps parameters elsewhere than in its attributes"
            elif family.result == "converged" and c in self._followed(chains):
                reasons[c] = f"the search varies {' or '.join(PATH)}: where each fit stops is looked for"
            else:
                steps = tuple(step.key for step in chain.steps)
                together[steps, chain.final.path, chain.final.key_without(family.free)].append(c)
                continue
            left.append(c)
        for candidates in together.values():
            for part, why in self._place_group(candidates, chains):
                left += part
                reasons.update(dict.fromkeys(part, why))
        return sorted(left), reasons

    def _followed(self, chains: Sequence[PipelineSpec | str]) -> frozenset[int]:
        """Settings among which what decides where a solver stops differs."""
        if self._paths is None:
            by_class: dict[Any, dict[Any, list[int]]] = defaultdict(lambda: defaultdict(list))
            for c, chain in enumerate(chains):
                if isinstance(chain, PipelineSpec):
                    stops = tuple(value_key(chain.final.params.get(name)) for name in PATH)
                    by_class[chain.final.path, chain.final.cls][stops].append(c)
            differ = [stops for stops in by_class.values() if len(stops) > 1]
            self._paths = frozenset(c for stops in differ for own in stops.values() for c in own)
        return self._paths

    def _place_group(self, candidates: list[int], chains: Sequence[Any]) -> list[tuple[list[int], str]]:
        """Place settings that differ in free parameters only; return those not placed, with the reason."""
        chain: PipelineSpec = chains[candidates[0]]
        family = family_of(chain.final.cls)
        assert family is not None
        refused: list[tuple[list[int], str]] = []
        shared = ("shared", chain.final.key_without(family.free))
        shared_why = self._reason(shared, _check_shared, chain.final, family.free)
        served = []
        # What all settings share is checked once; free values by the family, too.
        for c in candidates:
            final = chains[c].final
            why = shared_why or self._reason(("free", final.key), _check_free, family, final)
            if why is None:
                served.append(c)
            else:
                refused.append(([c], why))
        if not served:
            return refused
        try:
            self._share(served, chains, family)
        except Unsupported as why:
            refused.append((served, str(why)))
        return refused

    def _share(self, candidates: list[int], chains: Sequence[Any], family: Family) -> None:
        chain: PipelineSpec = chains[candidates[0]]
        if family.result == "converged" and self.job.sharing == "exact":
            raise Unsupported("sharing='exact' leaves out families that converge")
        if self.job.options.return_train_score and self._writes(chain):
            raise Unsupported("training scores would be of rows that a step has overwritten (copy=False)")
        options, prototype = self.job.options, chain.final.build()
        scoring = SharedScoring(options.scorer, options.score_params, prototype)
        if scoring.by_itself and routing_enabled():
            require_scored_by_last_step(sample(self.job, candidates[0]), options.score_params)
        affine, operations = all(affine_step_of(step.cls) for step in chain.steps), 0.0
        if affine and family.needs in ("moments", "passes"):
            self._require_weights(candidates[0], chain, scoring)
        if family.needs == "moments" and affine:
            self._require(chain)
            self._require_data()
            shape = self._shape(self.data, prototype)
            require_cheaper(family, prototype, [{}] * len(candidates), shape, self.job.sharing)
            if scoring.by_itself and not scoring.reads_moments:
                raise Unsupported("a score of its own is not had from moments")
            self.scoring = scoring  # the same for all these groups
            kind = "moments"
        elif family.needs == "passes" and affine:
            self._require(chain)
            self._require_rows(chain)
            shape = self._shape(self.rows, prototype)
            if stops_as_sklearn(self.job):
                require_gradient_stop(family, prototype, shape)
            settings: list[Mapping[str, Any]] = [{}] * len(candidates)
            if self._there:  # steps take the time there, and they are as many for one fit as for all
                operations = operations_of(family, prototype, settings, shape)
            else:
                operations = require_cheaper(family, prototype, settings, shape, self.job.sharing)
            kind = "passes"
        else:
            self._require_rows_family(chain, len(candidates))
            kind = "family"
        self.calls_scorers = self.calls_scorers or scoring.calls_scorers
        self.groups.append(self._group(kind, candidates, chains, family, operations))

    def _group(
        self, kind: Any, candidates: list[int], chains: Sequence[Any], family: Family, operations: float
    ) -> Group:
        chain: PipelineSpec = chains[candidates[0]]
        k = self.job.splits.n_splits
        settings = tuple({n: chains[c].final.params[n] for n in family.free} for c in candidates)
        checked = stops_as_sklearn(self.job)
        reason = reason_of(chain.final.build(), checked) if family.needs == "passes" else ""
        n_once = self._n_once(chain) if kind == "family" else 0
        n = len(candidates) * k
        undecided = kind == "family" or (kind == "passes" and checked)
        seen = f"the output of {chain.steps[-1].cls.__name__}" if chain.steps else "the rows of a split"
        if kind == "passes":
            seen = "a trial of scikit-learn's solver"
        return Group(
            kind=kind,
            candidates=tuple(candidates),
            estimator=_title(chain),
            reason=reason,
            fits_requested=n,
            fits_planned=0,
            fits_undecided=n if undecided else 0,
            decided_by=seen if undecided else "",
            once=tuple(step.cls.__name__ for step in chain.steps[:n_once]),
            settings=settings,
            steps=chain.steps,
            family=family,
            prototype=chain.final.build(),
            operations=operations,
        )

    def _writes(self, chain: PipelineSpec | str) -> bool:
        """Whether a step writes into its input: it is then fitted on rows of its own, and shares no steps."""
        steps = (*chain.steps, chain.final) if isinstance(chain, PipelineSpec) else ()
        return any(self._reason(("writes", step.key), _require_copies, step) for step in steps)

    def _n_once(self, chain: PipelineSpec) -> int:
        """How many steps, from the first one, are applied to all rows at once; on a cluster none."""
        if self.job.client is not None or self._there:
            return 0
        found = count_rowwise_steps((step.build() for step in chain.steps), self.job.X)
        return found if found and self._fronts_pay else 0

    @cached_property
    def _fronts_pay(self) -> bool:
        return saves_work(self.job.splits)

    def _require(self, chain: PipelineSpec) -> None:
        for step in chain.steps:
            why = self._reason(("step", step.key), _check_step, step)
            if why is not None:
                raise Unsupported(why)

    def _reason(self, key: Any, check: Callable[..., None], *args: Any) -> str | None:
        """Why a check refuses, or None; each key is looked at once."""
        if key not in self._checks:
            try:
                check(*args)
                self._checks[key] = None
            except Unsupported as why:
                self._checks[key] = str(why)
            except Exception as error:  # of a value that only scikit-learn's fit can judge
                self._checks[key] = f"a check of its parameters raised {type(error).__name__}"
        return self._checks[key]

    def _require_weights(self, candidate: int, chain: PipelineSpec, scoring: SharedScoring) -> None:
        """The weights of fits and scores, which are the same for all groups that read one matrix."""
        fit_params = self.job.options.fit_params
        routed = routing_enabled() and fit_params
        model = sample(self.job, candidate) if routed else self.job.estimator
        given = fit_weights(model, chain.final.path, fit_params), scoring.weights
        self._given = self._given or given
        if any(one is not other for one, other in zip(given, self._given, strict=True)):
            raise Unsupported("its last step has other weights than that of the settings before it")

    def _require_data(self) -> None:
        """The data as one matrix, or the reason why not; looked at once."""
        if not self._data_ready:
            self._data_ready = True
            try:
                self._load()
            except (Unsupported, IndexError) as why:
                self._data_reason = str(why)
        if self._data_reason is not None:
            raise Unsupported(self._data_reason)

    def _load(self) -> None:
        job = self.job
        X = as_matrix(job.X)
        y = as_targets(job.y if is_xp_array(X) else job.brought(job.y, "y"))
        n = X.shape[0]
        if n != y.shape[0]:
            raise Unsupported("X and y differ in length")
        data = FoldedMatrix(X, y, job.splits, self._weights(n), job.y, home=job.brought)
        require_memory(data.moment_bytes, job.options.memory_limit)
        self.data = data

    def _require_rows(self, chain: PipelineSpec) -> None:
        """The data for passes: dense, or sparse where there are no steps."""
        if self.rows is None:
            self.rows = self._rows(chain.final)
        if chain.steps and is_sparse(self.rows.X):
            raise Unsupported("X is sparse, and steps are seen through moments of dense data only")

    def _rows(self, final: StepSpec) -> FoldedMatrix:
        job = self.job
        read_y = as_labels if is_classifier(final.build()) else as_targets
        X, y = as_matrix_or_csr(job.X), read_y(job.brought(job.y, "y"))
        if y.ndim != 1:
            raise Unsupported("y has several columns")
        if X.shape[0] != len(y):
            raise Unsupported("X and y differ in length")
        numbers = y if y.dtype.kind in "fiu" else np.zeros(len(y))
        return FoldedMatrix(X, y, job.splits, self._weights(len(y)), job.y, numbers)

    def _weights(self, n: int) -> Weights:
        """Those of fits and of scores, which are one array where they are for the user, too."""
        brought = self.job.brought
        assert self._given is not None
        fit, score = self._given
        weights = Weights(as_weights(brought(fit, "weights"), n))
        if score is None:
            return weights
        return Weights(weights.fit, weights.fit if score is fit else as_weights(brought(score, "weights"), n))

    def _shape(self, data: FoldedMatrix | None, estimator: Any) -> Shape:
        assert data is not None
        k, X = self.job.splits.n_splits, data.X
        n_train = max(1, round(X.shape[0] * (1 - 1 / max(k, 2))))
        entries = round(X.nnz * n_train / X.shape[0]) if hasattr(X, "nnz") else None
        classes = n_classes(estimator, data.y) if is_classifier(estimator) else 0
        return Shape(n_train, X.shape[1], data.n_targets, k, classes, entries)

    def _require_rows_family(self, chain: PipelineSpec, n_settings: int) -> None:
        job = self.job
        if not self._lends:
            raise Unsupported("rows of a device are not lent to estimators that may write into them")
        if self._fitted_there and is_xp_array(job.X):
            as_matrix(job.X)  # or the reason why not
        if n_settings < 2:
            raise Unsupported("a single setting of the last step has nothing to share")
        if chain.final.path.count("__") or any("__" in step.path for step in chain.steps):
            raise Unsupported("a nested pipeline holds a step that is not affine")
        if job.options.fit_params or job.options.score_params:
            raise Unsupported("fit or score parameters go through steps that are not affine")
        drawing = self._drawing.first(chain)
        if drawing is not None:
            step = chain.steps[drawing]
            drawn = f"{step.cls.__name__} draws random numbers anew in each fit"
            raise Unsupported(step.why_not_shared or drawn)
        if self._writes(chain):
            raise Unsupported(WRITES)

    def _passes(self) -> float:
        assert self.data is not None
        weights = self.data.weights
        return float(len(self.job.splits.atom_groups) * len({id(None), id(weights.fit), id(weights.score)}))

    # The rest

    def _by_candidate(self, chains: Sequence[PipelineSpec | str], left: Sequence[int]) -> bool:
        """Whether the order of the fits can be seen: in what they draw, or in which of them raises first."""
        if self.job.options.error_score == "raise":
            return True
        read = [chain for chain in (chains[c] for c in left) if isinstance(chain, PipelineSpec)]
        drawn = any(
            self._drawing.first(chain) is not None or self._drawing.last_draws(chain) for chain in read
        )
        return drawn or not (read or is_shareable(sample(self.job, left[0])))

    def _place_rest(
        self, left: list[int], reasons: Mapping[int, str], order: Any, chains: Sequence[PipelineSpec | str]
    ) -> None:
        by_reason: dict[str, list[int]] = defaultdict(list)
        for c in left:
            writes = order is not None and self._writes(chains[c])
            by_reason[WRITES if writes else reasons[c]].append(c)
        for reason, candidates in by_reason.items():
            if order is None or reason == WRITES:
                self._one_by_one(candidates, reason)
            else:
                self._steps_shared(candidates, reason, chains)

    def _one_by_one(self, candidates: list[int], reason: str) -> None:
        if not candidates:
            return
        n = len(candidates) * self.job.splits.n_splits
        name = type(self.job.estimator).__name__
        self.groups.append(Group("one by one", tuple(candidates), name, n, n, reason=reason))

    def _steps_shared(self, candidates: list[int], reason: str, chains: Sequence[PipelineSpec | str]) -> None:
        names: dict[str, None] = {}
        for chain in (chains[c] for c in candidates):
            if isinstance(chain, PipelineSpec):
                names.update(dict.fromkeys(step.cls.__name__ for step in chain.steps[: self._n_once(chain)]))
        chain = chains[candidates[0]]
        title = _title(chain) if isinstance(chain, PipelineSpec) else type(self.job.estimator).__name__
        n = len(candidates) * self.job.splits.n_splits
        self.groups.append(Group("steps", tuple(candidates), title, n, n, reason=reason, once=tuple(names)))


def _title(chain: PipelineSpec) -> str:
    return " > ".join(step.cls.__name__ for step in (*chain.steps, chain.final))


def _require_copies(step: StepSpec) -> None:
    if writes_in_place(step.build()):
        raise Unsupported(WRITES)


def _check_shared(final: StepSpec, free: frozenset[str]) -> None:
    # Free parameters at their defaults, which are valid.
    shared = {name: value for name, value in final.params.items() if name not in free}
    require_usual_numbers(shared)
    _require_valid(final.cls(**shared))


def _check_free(family: Family, final: StepSpec) -> None:
    free, prototype = {name: final.params[name] for name in family.free}, final.build()
    require_usual_numbers(free)
    family.check(prototype, [free])
    _require_valid(prototype, free)  # a family may take more than scikit-learn does


def _check_step(step: StepSpec) -> None:
    prototype = step.build()
    affine = affine_step_of(step.cls)
    assert affine is not None
    require_usual_numbers(step.params)
    _require_valid(prototype)
    affine.check(prototype)


def _require_valid(prototype: Any, names: Collection[str] | None = None) -> None:
    why = check_parameters(prototype, names)
    if why is not None:
        raise Unsupported(f"scikit-learn refuses a parameter: {why}")
