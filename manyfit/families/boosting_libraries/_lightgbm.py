"""LightGBM: the first trees of the largest fit."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from lightgbm import LGBMClassifier, LGBMRegressor

from manyfit._compat import keep_lightgbm_bins, without_names
from manyfit.families.boosting_libraries._first_iterations import BoostingLibraryFamily
from manyfit.families.protocol import register_family
from manyfit.folds import Fold


class LightGBMFamily(BoostingLibraryFamily):
    """LGBMClassifier and LGBMRegressor; `min_child_samples` leaves columns out of the bins."""

    serves, kinds = (LGBMClassifier, LGBMRegressor), ("gbdt", "rf", "goss")
    of_trees = frozenset(
        {
            *("learning_rate", "max_depth", "num_leaves", "min_split_gain", "min_child_weight"),
            *("subsample", "subsample_freq", "colsample_bytree", "reg_alpha", "reg_lambda"),
        }
    )

    def keep_bins(self, estimator: Any, kept: dict[str, Any]) -> AbstractContextManager[None]:
        return keep_lightgbm_bins(estimator, kept)

    def finished(self, model: Any, fold: Fold) -> Any:
        """See `BinnedFamily`; scikit-learn's fits of frames predict for frames, and warn of no names."""
        return model if fold.names is None else without_names(model)

    def first(self, n: int) -> dict[str, Any]:
        return {"num_iteration": n}


register_family(LightGBMFamily())
