"""Finds the step of a setting that draws random numbers anew in each fit, and its cost for a search."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from functools import cached_property
from typing import Any

import scipy.sparse
from sklearn.preprocessing import MaxAbsScaler, Normalizer, StandardScaler

from manyfit.introspection.class_names import sklearn_class_of
from manyfit.introspection.randomness import (
    SEEDS,
    RandomParameter,
    Sizes,
    find_random_parameter,
    is_deterministic,
)
from manyfit.model_selection.job._job import Job
from manyfit.model_selection.planning._pipeline_spec import PipelineSpec, StepSpec
from manyfit.model_selection.planning.steps._outputs import makes_sparse, n_columns
from manyfit.model_selection.sharing._fold_store import retained_folds


class DrawingSteps:
    """Finds the steps of settings that draw random numbers, as far as parameters show it."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._first: dict[Any, int | None] = {}

    @cached_property
    def _sizes(self) -> Sizes:
        """The size of the first training set."""
        job = self._job
        shape: tuple[int, ...] = getattr(job.X, "shape", ())
        train = job.splits.indices(0)[0] if job.splits.n_splits else None
        n = len(train) if isinstance(train, Sized) else None
        return Sizes(n, shape[1] if len(shape) == 2 else None, scipy.sparse.issparse(job.X))

    def first(self, chain: PipelineSpec) -> int | None:
        """The position of the first step that draws, or cannot be compared with others; or None."""
        key = tuple(step.key for step in chain.steps)
        if key not in self._first:
            self._first[key] = self._found(chain.steps)
        return self._first[key]

    def _found(self, steps: Sequence[StepSpec]) -> int | None:
        for j, (one, sizes) in enumerate(self.sized_steps(steps)):
            if steps[j].unshared_reason is not None or is_deterministic(one, sizes) is False:
                return j
        return None

    def sized_steps(self, steps: Sequence[StepSpec]) -> Iterator[tuple[Any, Sizes]]:
        """Each step, unfitted, and the sizes of its input as far as parameters show them."""
        sizes = self._sizes
        for step in steps:
            one = step.build()
            yield one, sizes
            sparse = _is_sparse_behind(one, sizes.sparse)
            sizes = Sizes(sizes.n_samples, n_columns(one, sizes.n_features), sparse)

    def last_draws(self, chain: PipelineSpec) -> bool:
        """Whether the last estimator of a setting draws random numbers, or may do so."""
        return is_deterministic(chain.final.build()) is False

    # The cost

    def advice(self, chains: Mapping[int, PipelineSpec], in_order: bool) -> tuple[str, ...]:
        """Parameters to set so that more is shared, for settings that may be fitted one by one.

        `in_order` says whether one process fits them in scikit-learn's order.
        """
        found = dict.fromkeys(self._advise_on_steps(chains.values()))
        if in_order and not found:
            found |= dict.fromkeys(self._advise_on_last_steps(chains.values()))
        return tuple(found)

    def _advise_on_steps(self, chains: Iterable[PipelineSpec]) -> Iterable[str]:
        """Advice on steps that several settings have in common, and would share."""
        prefixes, steps = Counter[Any](), dict[Any, StepSpec]()
        for chain in chains:
            j = self.first(chain)
            if j is not None:
                key = tuple(step.key for step in chain.steps[: j + 1])
                prefixes[key] += 1
                steps[key] = chain.steps[j]
        for key, n in prefixes.items():
            if n > 1:
                cost = "it is fitted anew for each setting, and so is every step behind it"
                yield _sentence(steps[key], cost, "they are fitted once a split")

    def _advise_on_last_steps(self, chains: Iterable[PipelineSpec]) -> Iterable[str]:
        k, job = self._job.splits.n_splits, self._job
        n_retained = retained_folds(job.X, k, job.options.memory_limit)
        cost = f"fits keep scikit-learn's order, so that the folds of all {k} splits are in memory at once"
        if n_retained < k:
            cost = (
                f"fits keep scikit-learn's order; {n_retained} of {k} folds fit in memory_limit, and on the "
                "others steps are fitted anew for each setting"
            )
        for chain in chains:
            if chain.steps and self.last_draws(chain):
                yield _sentence(chain.final, cost, "the search goes split by split, with one in memory")


def _is_sparse_behind(step: Any, sparse_input: bool) -> bool:
    """Whether the output of a step is known to be sparse."""
    if getattr(step, "encode", None) == "onehot" or makes_sparse(step):
        return True
    return sparse_input and sklearn_class_of(type(step)) in (MaxAbsScaler, Normalizer, StandardScaler)


def _sentence(step: StepSpec, cost: str, gain: str) -> str:
    if step.unshared_reason is not None:
        return f"{step.unshared_reason}: {cost}."
    draw = find_random_parameter(step.build(), step.path)
    if draw is None:
        return f"{step.cls.__name__} may draw random numbers: {cost}."
    owner = _owner(step, draw)
    if draw.name.rpartition("__")[2] not in SEEDS:
        return f"{owner} ({draw.name} {draw.why}): {cost}."
    text = f"{owner} draws random numbers ({draw.name} {draw.why}): {cost}."
    return f"{text} Set {draw.name} to an integer, and {gain}."


def _owner(step: StepSpec, draw: RandomParameter) -> str:
    """The class of the estimator that a parameter belongs to."""
    inside = draw.name.removeprefix(step.path).removeprefix("__").rpartition("__")[0]
    held = step.build().get_params().get(inside) if inside else None
    return type(held).__name__ if hasattr(held, "fit") else step.cls.__name__
