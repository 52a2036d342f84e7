"""XGBoost: the first trees of the largest fit."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from xgboost import XGBClassifier, XGBRegressor

from manyfit._compat import keep_xgboost_bins
from manyfit.families.boosting_libraries._first_iterations import BoostingLibraryFamily
from manyfit.families.protocol import register_family


class XGBoostFamily(BoostingLibraryFamily):
    """XGBClassifier and XGBRegressor with trees."""

    serves, kinds = (XGBClassifier, XGBRegressor), (None, "gbtree")
    of_trees = frozenset(
        {
            *("learning_rate", "max_depth", "max_leaves", "grow_policy", "min_child_weight", "gamma"),
            *("subsample", "colsample_bytree", "colsample_bylevel", "colsample_bynode"),
            *("reg_alpha", "reg_lambda", "max_delta_step", "scale_pos_weight"),
        }
    )

    def makes_bins(self, estimator: Any) -> bool:
        return super().makes_bins(estimator) and estimator.tree_method in (None, "auto", "hist")

    def keep_bins(self, estimator: Any, kept: dict[str, Any]) -> AbstractContextManager[None]:
        return keep_xgboost_bins(estimator, kept)

    def first(self, n: int) -> dict[str, Any]:
        return {"iteration_range": (0, n)}


register_family(XGBoostFamily())
