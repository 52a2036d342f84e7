"""The folds of one estimator as moments, for scores that a search is not the right form of."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from manyfit._compat import num_samples
from manyfit.families import (
    LinearAnswers,
    SolvesSubsets,
    SubsetAnswers,
    WrappedFamily,
    affine_step_of,
    apply_step,
)
from manyfit.folds import Array, FoldedMatrix, Splits, TransformedMoments, Unsupported, as_matrix
from manyfit.introspection.class_names import sklearn_class_of
from manyfit.introspection.randomness import find_random_parameter
from manyfit.model_selection.job._job import Job, Options
from manyfit.model_selection.planning._cost_checks import require_memory
from manyfit.model_selection.planning._plan import Group
from manyfit.model_selection.planning._planner import prepare
from manyfit.model_selection.strategies._moments import MOMENTS, ViewedFold, moment_data
from manyfit.model_selection.strategies._score_answers import start_scores
from manyfit.model_selection.strategies._strategy import scoring_of

# A plan for so many settings knows whether moments pay; more would take longer to plan.
PLANNED = 32
# Scores that differ by less, relative to those above 1, may come in another order by rounding.
NEAR = 1e-8
# Moments of so many training sets are kept.
MOST_SPLITS = 200


def draw_fixed_splits(cv: Any, X: Any, y: Any, groups: Any = None) -> Splits:
    """The splits of a checked `cv`, if it gives the same ones each time and reads no X; else Unsupported."""
    cls = sklearn_class_of(type(cv))
    if cls.__module__ != "sklearn.model_selection._split":
        raise Unsupported(f"{cls.__name__} is not one of scikit-learn's splitters")
    found = find_random_parameter(cv, "cv")
    if found is not None:
        raise Unsupported(f"{found.name} {found.why}, so that each fit has other splits")
    return Splits.draw(cv, X, y, num_samples(X), {"groups": groups})


class MomentFolds:
    """One estimator on the folds of some data, ready to be answered from moments.

    `n_fits` is the number of times that it would be fitted on each split. Raises `Unsupported` if it is not
    served by moments, if that does not pay, or if its scores need more than they give.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, splits: Splits, scorer: Any, n_fits: int) -> None:
        X = as_matrix(X)
        if not isinstance(X, np.ndarray) or X.dtype.kind not in "fiu" or X.dtype == np.float32:
            raise Unsupported("X is not of float64 or integers in host memory")
        if not 2 <= splits.n_splits <= MOST_SPLITS:
            raise Unsupported(f"{splits.n_splits} splits are not between 2 and {MOST_SPLITS}")
        settings: list[dict[str, Any]] = [{}] * min(n_fits, PLANNED)
        job = Job(estimator, settings, X, y, splits, Options(scorer=scorer), sharing="exact")
        prepared = prepare(job)
        self.group: Group = prepared.plan.groups[0]
        if self.group.strategy != MOMENTS or len(prepared.plan.groups) != 1:
            raise Unsupported(self.group.reason or "moments do not serve the estimator")
        if not all(affine_step_of(step.cls) for step in self.group.steps):
            raise Unsupported("a step reads columns by their place")
        self.options, self.splits = job.options, splits
        self.data: FoldedMatrix = moment_data(self.group, prepared.data)
        if self.data.classes is not None and not self.data.trains_on_all_classes:
            raise Unsupported("a class is missing in a training part")
        self.scoring = scoring_of(self.group, job.options)
        if self.scoring.calls_scorers:
            raise Unsupported("a scorer has to be called for each fit")
        d = X.shape[1] + self.data.n_targets
        require_memory(splits.n_splits * 5 * 8 * d * d, self.options.memory_limit)

    @property
    def n_splits(self) -> int:
        return self.splits.n_splits

    @cached_property
    def views(self) -> list[TransformedMoments]:
        """The training moments of each split, before any step."""
        return [self.data.view(i) for i in range(self.n_splits)]

    def behind_steps(self, view: TransformedMoments) -> TransformedMoments:
        for step in self.group.steps:
            seen = apply_step(step.build(), view)
            assert isinstance(seen, TransformedMoments)
            view = seen
        return view

    @cached_property
    def seen(self) -> list[TransformedMoments]:
        """The training moments of each split, behind the steps."""
        return [self.behind_steps(view) for view in self.views]

    def fit(self, i: int, seen: TransformedMoments) -> LinearAnswers:
        """The fit of the last step on a view of split `i`; raises `Unsupported` if it is refused."""
        family = self.group.family
        assert family is not None
        folded = ViewedFold(self.data, i, seen)
        answers = next(iter(family.fit_many(self.group.prototype, self.group.settings[:1], folded)))
        if not isinstance(answers, LinearAnswers):
            raise Unsupported(f"{type(family).__name__} does not give linear answers")
        if answers.refused:
            raise Unsupported(answers.refused[0])
        return answers

    def fit_subsets(self, i: int, subsets: Array) -> LinearAnswers:
        """The fits of the last step on many sets of columns, (m, k), of split `i`, as one batch."""
        if not all(step.cls is StandardScaler for step in self.group.steps):
            raise Unsupported("a step depends on which columns there are")
        return self.fit_view(self.seen[i], subsets)

    def fit_view(self, seen: TransformedMoments, subsets: Array) -> SubsetAnswers:
        """The same, for a view behind the steps."""
        family, group = self.group.family, self.group
        if isinstance(family, WrappedFamily) or not isinstance(family, SolvesSubsets):
            raise Unsupported("sets of columns are fitted one by one")
        return family.fit_subsets(group.prototype, group.settings[0], seen, subsets)

    def score(self, i: int, answers: LinearAnswers) -> Array:
        """Scores of the answers on split `i`, NaN for those that scikit-learn has to give."""
        m = answers.linear.coef.shape[1]
        pending = start_scores(self.scoring, answers, m, self.data, i, self.options)
        if pending.device_scores:
            raise Unsupported("scores lie on a device")
        scored = pending.finish(())
        if scored.warned.emit(()):  # scikit-learn warns where it scores
            return np.full(m, np.nan)
        test = scored.scores["test"]
        known = [j not in answers.refused and isinstance(test[j], float) for j in range(m)]
        return np.array([test[j] if known[j] else np.nan for j in range(m)])
