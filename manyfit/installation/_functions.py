"""scikit-learn's own cross_validate and its relatives: their fits run on the engine."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np

from manyfit._compat import is_fit_and_score, unwrap_delayed
from manyfit.installation._ledger import keep
from manyfit.installation._searches import foreign_data
from manyfit.installation._settings import current
from manyfit.introspection.randomness import is_deterministic
from manyfit.model_selection import Plan, Report
from manyfit.model_selection.validation import EngineParallel

# Rows of splits that are drawn before the first fit; scikit-learn draws more of them one by one.
MOST_SPLIT_BYTES = 2**30


class InstalledParallel(EngineParallel):
    """In place of ``Parallel`` in scikit-learn's module: calls that are no fits of a model run as before."""

    def __init__(self, n_jobs: Any = None, verbose: int = 0, pre_dispatch: Any = "2*n_jobs") -> None:
        super().__init__(n_jobs, verbose, pre_dispatch)
        self._settings = current()
        if self._settings is not None:
            self._sharing = self._settings.sharing
            self._memory_limit, self._client = self._settings.memory_limit, self._settings.client

    def __call__(self, calls: Iterable[Any]) -> list[Any]:
        drawn: list[Any] = []
        rest, watch = iter(calls), _Watch()
        for call in rest:
            drawn.append(call)
            if self._settings is None or not is_fit_and_score(unwrap_delayed(call[0])[0]):
                return self._pass_on(chain(drawn, rest))
            why = watch.why_not(call)
            if why is not None:
                results = self._pass_on(chain(drawn, rest))
                n = len(results)
                keep(_title(call[1][0]), Report(fits_requested=n, fits_done=n, left_to_sklearn={why: n}))
                return results
        if self._settings is not None and drawn:
            self._fits_within = self._settings.fits_within(drawn[0][1][0])
        return super().__call__(drawn)

    def _begin(self, estimator: Any, plan: Plan) -> None:
        if self._settings is not None and self._settings.show_plans:
            print(f"{_title(estimator)}\n{plan}", file=sys.stderr, flush=True)

    def _end(self, estimator: Any, report: Report) -> None:
        keep(_title(estimator), report)


class _Watch:
    """Finds out, while fits are drawn, that they cannot be drawn before the first is made."""

    def __init__(self) -> None:
        self._n_bytes, self._state = 0, _global_state()

    def why_not(self, call: Any) -> str | None:
        """Why scikit-learn has to make the fits, of which this is the next; None if there is no reason."""
        _, (estimator, X, y, *_), given = call
        if not self._n_bytes:
            params = [given.get("fit_params") or {}, given.get("score_params") or {}]
            why = foreign_data((X, y, *(value for one in params for value in one.values())))
            if why is not None:
                return why
            # scikit-learn draws the next split after a fit, and either may take numbers from the other.
            if self._state != _global_state() and not is_deterministic(estimator):
                return "splits and fits that both draw from NumPy's global random state"
        self._n_bytes += sum(getattr(given[name], "nbytes", 1) for name in ("train", "test"))
        return "rows of too many splits for memory" if self._n_bytes > MOST_SPLIT_BYTES else None


def _global_state() -> tuple[Any, ...]:
    state = np.random.get_state(legacy=False)
    return state["state"]["pos"], state["state"]["key"].tobytes(), state["has_gauss"], state["gauss"]


def _title(estimator: Any) -> str:
    return f"cross-validation of {type(estimator).__name__}"
