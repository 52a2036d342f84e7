"""XGBoost and LightGBM: the first iterations of the largest fit are the fits with fewer of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit.families.nested._prefix import PrefixFamily, lazy_responses
from manyfit.families.protocol import Responses, register_family, register_on_demand
from manyfit.folds import Unsupported

Array = NDArray[Any]
# LightGBM's other names for `n_estimators`, among the parameters that its estimators hand on.
_OTHER_NAMES = frozenset(
    {
        *("n_iter", "num_iteration", "num_iterations", "num_tree", "num_trees", "num_round", "num_rounds"),
        *("nrounds", "num_boost_round", "max_iter"),
    }
)
_STOPS_EARLY = ("early_stopping", "early_stopping_round", "early_stopping_rounds", "n_iter_no_change")


class BoostingLibraryFamily(PrefixFamily):
    """Gradient boosting of another library, whose models predict with their first iterations.

    Parameters
    ----------
    serves : tuple of type
        See `Family`.
    kinds : tuple
        Values of `booster` or `boosting_type` for which later iterations leave earlier ones as they are.
    """

    def __init__(self, serves: tuple[type, ...], kinds: tuple[str | None, ...]) -> None:
        self.serves, self._kinds = serves, kinds

    def require_repeatable(self, estimator: Any) -> None:
        """See `NestedFamily`; without a seed these libraries take a fixed one."""
        if estimator.random_state is not None:
            super().require_repeatable(estimator)

    def check(self, estimator: Any, settings: Sequence[Mapping[str, Any]]) -> None:
        given = estimator.get_params()
        for name in ("booster", "boosting_type", "boosting", "boost"):
            if given.get(name, self._kinds[0]) not in self._kinds:
                raise Unsupported(f"{name}={given[name]!r} changes earlier iterations, or has none")
        for name in (*_STOPS_EARLY, "callbacks"):
            if given.get(name):
                raise Unsupported(f"{name}={given[name]!r} may end a fit at another iteration")
        others = sorted(_OTHER_NAMES.intersection(given))
        if others:
            raise Unsupported(f"{others[0]} overrides n_estimators")
        self.require_counts(settings)
        self.require_repeatable(estimator)

    def responses(self, model: Any, X: Any, values: Sequence[int]) -> Responses:
        """See `NestedFamily`."""

        def of_all(method: str) -> Array:
            predict = getattr(model, method)
            return np.stack([predict(X, **self.first(n)) for n in values])

        return lazy_responses(model, of_all)

    def first(self, n: int) -> dict[str, Any]:
        """The arguments of a prediction with the first `n` iterations."""
        raise NotImplementedError


class XGBoostFamily(BoostingLibraryFamily):
    """XGBClassifier and XGBRegressor with trees."""

    def first(self, n: int) -> dict[str, Any]:
        """See `BoostingLibraryFamily`."""
        return {"iteration_range": (0, n)}


class LightGBMFamily(BoostingLibraryFamily):
    """LGBMClassifier and LGBMRegressor."""

    def first(self, n: int) -> dict[str, Any]:
        """See `BoostingLibraryFamily`."""
        return {"num_iteration": n}


def _register_xgboost() -> None:
    from xgboost import XGBClassifier, XGBRegressor

    register_family(XGBoostFamily((XGBClassifier, XGBRegressor), (None, "gbtree")))


def _register_lightgbm() -> None:
    from lightgbm import LGBMClassifier, LGBMRegressor

    register_family(LightGBMFamily((LGBMClassifier, LGBMRegressor), ("gbdt", "rf", "goss")))


register_on_demand("xgboost", _register_xgboost)
register_on_demand("lightgbm", _register_lightgbm)
