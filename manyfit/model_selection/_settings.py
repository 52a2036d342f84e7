"""Settings of a search as unfitted estimators, for reading them, and which of their steps they share."""

from collections.abc import Sequence
from typing import Any

from sklearn.base import clone

from manyfit.model_selection._chain import Chain, Step
from manyfit.model_selection._job import Job
from manyfit.model_selection._prefix import shareable
from manyfit.model_selection._structural_key import Unkeyable, structural_key


class Settings:
    """The settings of a job, each built once.

    Parameters
    ----------
    job : Job
        The search.
    chains : sequence of Chain or str
        Of all settings; empty where nothing is shared.
    """

    def __init__(self, job: Job, chains: Sequence[Chain | str]) -> None:
        self._job, self._chains = job, chains
        self._models: dict[int, Any] = {}
        self._shareable: dict[Any, bool] = {}

    def model(self, c: int) -> Any:
        """The estimator of setting `c`; None where it cannot be applied."""
        if c not in self._models:
            try:
                params = clone(dict(self._job.candidates[c]), safe=False)
                self._models[c] = clone(self._job.estimator).set_params(**params)
            except Exception:  # scikit-learn raises it again, in its own words, when it is fitted
                self._models[c] = None
        return self._models[c]

    def prefix_key(self, c: int, j: int) -> Any:
        """Equal for settings that have the output of step `j` in common."""
        chain = self._chains[c] if self._chains else ""
        if not isinstance(chain, Chain) or not all(map(self._is_shareable, chain.steps[: j + 1])):
            return c, j
        return tuple(step.key for step in chain.steps[: j + 1])

    def _is_shareable(self, step: Step) -> bool:
        if step.key not in self._shareable:
            self._shareable[step.key] = step.why_not_shared is None and shareable(step.build())
        return self._shareable[step.key]


def part_key(part: Any, *source: Any) -> Any:
    """Equal for equal parts of steps that hold others, of the same input, if they may be shared."""
    try:
        if shareable(part):
            return (*source, structural_key(part))
    except (Unkeyable, RecursionError):
        pass
    return (*source, id(part))
