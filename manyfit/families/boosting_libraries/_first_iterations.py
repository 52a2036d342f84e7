"""Gradient boosting of another library: its models predict with their first iterations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from manyfit.families.nested._binned import BinnedFamily
from manyfit.families.protocol import Answers, Array, FoldRows, Responses, Settings, lazy_responses
from manyfit.folds import Fold, Unsupported

# LightGBM's other names for `n_estimators`, among the parameters that its estimators hand on.
_OTHER_NAMES = frozenset(
    {
        *("n_iter", "num_iteration", "num_iterations", "num_tree", "num_trees", "num_round", "num_rounds"),
        *("nrounds", "num_boost_round", "max_iter"),
    }
)
# Parameters that may end a fit before its last iteration.
_STOPPING_PARAMETERS = ("early_stopping", "early_stopping_round", "early_stopping_rounds", "n_iter_no_change")
# Names of columns that both libraries take. They refuse brackets, braces, quotes, colons and commas, of which
# fits of arrays know nothing.
_PLAIN_NAME = re.compile(r"[\w .()/%+#-]+", re.ASCII)


class BoostingLibraryFamily(BinnedFamily):
    """Gradient boosting of another library, whose models predict with their first iterations.

    `kinds` are the values of `booster` or `boosting_type` for which later iterations leave earlier ones as
    they are; the default is the first.
    """

    kinds: ClassVar[tuple[str | None, ...]]

    reads = FoldRows(sparse=True, weights=True, device=False, categories=True)

    def require_repeatable(self, estimator: Any) -> None:
        """See `NestedFamily`; without a seed these libraries take a fixed one."""
        if estimator.random_state is not None:
            super().require_repeatable(estimator)

    def check(self, estimator: Any, settings: Settings) -> None:
        given = estimator.get_params()
        for name in ("booster", "boosting_type", "boosting", "boost"):
            if given.get(name, self.kinds[0]) not in self.kinds:
                raise Unsupported(f"{name}={given[name]!r} changes earlier iterations, or has none")
        for name in (*_STOPPING_PARAMETERS, "callbacks"):
            if given.get(name):
                raise Unsupported(f"{name}={given[name]!r} may end a fit at another iteration")
        others = sorted(_OTHER_NAMES.intersection(given))
        if others:
            raise Unsupported(f"{others[0]} overrides n_estimators")
        self.require_counts(settings)
        self.require_repeatable(estimator)

    def fit_fold(self, estimator: Any, settings: Settings, fold: Fold) -> Answers:
        _require_plain_names(fold.names or ())
        return super().fit_fold(estimator, settings, fold)

    def makes_bins(self, estimator: Any) -> bool:
        """See `BinnedFamily`; a GPU has other bins, and an objective of the user's may write into targets."""
        given = estimator.get_params()
        devices = {given.get(name) for name in ("device", "device_type")}
        return devices <= {None, "cpu"} and not callable(given.get("objective"))

    def first_responses(self, model: Any, X: Any, values: Sequence[int]) -> Responses:

        def of_all(method: str) -> Array:
            predict = getattr(model, method)
            return np.stack([predict(X, **self.first(n)) for n in values])

        return lazy_responses(model, of_all)

    def first(self, n: int) -> dict[str, Any]:
        """The arguments of a prediction with the first `n` iterations."""
        raise NotImplementedError


def _require_plain_names(names: Sequence[Any]) -> None:
    """Raise `Unsupported` for names of columns that a library may refuse."""
    written = [str(name) for name in names]
    odd = next((name for name in written if not _PLAIN_NAME.fullmatch(name)), None)
    if odd is not None:
        raise Unsupported(f"{odd!r} is a name of a column that the library may refuse")
    if len({name.replace(" ", "_") for name in written}) < len(written):  # LightGBM reads them so
        raise Unsupported("two columns have names that are the same to the library")
