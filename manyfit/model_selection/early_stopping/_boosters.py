"""The boosting estimators that a validation set can stop, and what each calls it."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Mapping
from types import FunctionType
from typing import Any, ClassVar

from sklearn.base import is_classifier

from manyfit.introspection.class_names import is_instance


class Booster:
    """How one library's estimators are given a validation set, and say where they have stopped."""

    limit: ClassVar[str] = "n_estimators"  # the parameter that is the most iterations of a fit
    # Parameters of ``fit`` with a value for each row, and the names of those for the validation set.
    row_params: ClassVar[Mapping[str, str]]

    def why_not(self, estimator: Any) -> str | None:
        """The parameter to set so that fits of an unfitted estimator stop early; None if it is set."""
        raise NotImplementedError

    def fit_params(self, estimator: Any, X: Any, y: Any, rows: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters of ``fit`` for a validation set; `rows` has its values of `row_params`."""
        raise NotImplementedError

    def fit(self, estimator: Any, X: Any, y: Any, params: Mapping[str, Any]) -> Any:
        """Fit with parameters, among them those of `fit_params`."""
        return estimator.fit(X, y, **params)

    def n_iter(self, estimator: Any) -> int:
        """How many iterations of a fitted estimator its predictions use."""
        raise NotImplementedError

    def fixed(self, estimator: Any, n_iter: int) -> dict[str, Any]:
        """Parameters for a fit of so many iterations that does not stop early."""
        raise NotImplementedError


class XGBoost(Booster):
    """Estimators of XGBoost; boosting only, since its random forests have one iteration."""

    row_params: ClassVar[Mapping[str, str]] = {
        "sample_weight": "sample_weight_eval_set",
        "base_margin": "base_margin_eval_set",
        "qid": "eval_qid",
    }

    def why_not(self, estimator: Any) -> str | None:
        stops = len(_other_callbacks(estimator)) < len(estimator.callbacks or ())
        if estimator.early_stopping_rounds or stops:
            return None
        return "early_stopping_rounds"

    def fit_params(self, estimator: Any, X: Any, y: Any, rows: Mapping[str, Any]) -> dict[str, Any]:
        """See `Booster`; without `verbose` XGBoost prints every iteration."""
        lists = {self.row_params[name]: [value] for name, value in rows.items()}
        return {"verbose": False, "eval_set": [(X, y)], **lists}

    def n_iter(self, estimator: Any) -> int:
        return int(estimator.best_iteration) + 1

    def fixed(self, estimator: Any, n_iter: int) -> dict[str, Any]:
        callbacks = _other_callbacks(estimator) or None
        return {self.limit: n_iter, "early_stopping_rounds": None, "callbacks": callbacks}


def _other_callbacks(estimator: Any) -> list[Any]:
    """The callbacks of an XGBoost estimator that do not stop it."""
    from xgboost.callback import EarlyStopping

    return [one for one in estimator.callbacks or () if not isinstance(one, EarlyStopping)]


class LightGBM(Booster):
    row_params: ClassVar[Mapping[str, str]] = {
        "sample_weight": "eval_sample_weight",
        "init_score": "eval_init_score",
    }
    _names = ("early_stopping_round", "early_stopping_rounds", "early_stopping", "n_iter_no_change")
    _limits = (
        "n_estimators", "num_iterations", "num_iteration", "n_iter", "num_tree", "num_trees", "num_round",
        "num_rounds", "nrounds", "num_boost_round", "max_iter",
    )  # fmt: skip

    def why_not(self, estimator: Any) -> str | None:
        given = estimator.get_params()
        return None if any(given.get(name) for name in self._names) else self._names[0]

    def fit_params(self, estimator: Any, X: Any, y: Any, rows: Mapping[str, Any]) -> dict[str, Any]:
        """See `Booster`.

        LightGBM 4.7 has deprecated `eval_set`, which older versions need. But its classifiers encode the
        labels of `eval_set` alone: those of `eval_y` are not what the fit calls the classes.
        """
        lists = {self.row_params[name]: [value] for name, value in rows.items()}
        known = inspect.signature(type(estimator).fit).parameters
        if "eval_X" in known and not (is_classifier(estimator) and "eval_set" in known):
            return {"eval_X": (X,), "eval_y": (y,), **lists}
        return {"eval_set": [(X, y)], **lists}

    def fit(self, estimator: Any, X: Any, y: Any, params: Mapping[str, Any]) -> Any:
        """See `Booster`; the user has not chosen `eval_set`, and need not hear that it is deprecated."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The argument 'eval_set' is deprecated")
            return super().fit(estimator, X, y, params)

    def n_iter(self, estimator: Any) -> int:
        """See `Booster`; a fit of trees that are dropped at random has no best iteration."""
        best = int(estimator.best_iteration_ or 0)
        return best if best > 0 else int(estimator.n_iter_)

    def fixed(self, estimator: Any, n_iter: int) -> dict[str, Any]:
        given = estimator.get_params()
        limits = {name: n_iter for name in self._limits if name in given}
        return {**limits, **{name: None for name in self._names if name in given}}


class HistogramBoosting(Booster):
    """Histogram boosting of scikit-learn, whose predictions use all iterations until it stops."""

    limit = "max_iter"
    row_params: ClassVar[Mapping[str, str]] = {"sample_weight": "sample_weight_val"}

    def why_not(self, estimator: Any) -> str | None:
        return None if estimator.early_stopping is True else "early_stopping=True"

    def fit_params(self, estimator: Any, X: Any, y: Any, rows: Mapping[str, Any]) -> dict[str, Any]:
        return {"X_val": X, "y_val": y, **{self.row_params[name]: value for name, value in rows.items()}}

    def n_iter(self, estimator: Any) -> int:
        return int(estimator.n_iter_)

    def fixed(self, estimator: Any, n_iter: int) -> dict[str, Any]:
        return {self.limit: n_iter, "early_stopping": False}


_XGBOOST, _LIGHTGBM, _HISTOGRAM = XGBoost(), LightGBM(), HistogramBoosting()
_HISTOGRAM_CLASSES = (
    "sklearn.ensemble.HistGradientBoostingClassifier",
    "sklearn.ensemble.HistGradientBoostingRegressor",
)


def stops_lightgbm(callback: Any) -> bool:
    """Whether a callback is of the kind that ``lightgbm.early_stopping`` makes."""
    lightgbm = sys.modules.get("lightgbm")
    if lightgbm is None:
        return False
    kind = type(lightgbm.early_stopping(1, verbose=False))
    return kind is not FunctionType and isinstance(callback, kind)  # a function before LightGBM 4


def booster_of(estimator: Any) -> Booster | None:
    """The rules by which a class of estimators stops by a validation set; None if it cannot."""
    if is_instance(estimator, *_HISTOGRAM_CLASSES):
        return _HISTOGRAM
    # An estimator's library is imported already.
    xgboost, lightgbm = sys.modules.get("xgboost"), sys.modules.get("lightgbm")
    if xgboost is not None and isinstance(estimator, xgboost.XGBModel):
        # XGBoost is about to remove its forests.
        forests = (getattr(xgboost, name, ()) for name in ("XGBRFClassifier", "XGBRFRegressor"))
        return None if isinstance(estimator, tuple(forests)) else _XGBOOST
    if lightgbm is not None and isinstance(estimator, lightgbm.LGBMModel):
        return _LIGHTGBM
    return None
