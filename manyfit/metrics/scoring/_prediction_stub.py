"""Stand-ins for fitted estimators, whose predictions are known, for scikit-learn's scorers."""

from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin

from manyfit.folds import Unsupported


class _Predicted(BaseEstimator):
    """A fitted estimator with given `responses` by method, whatever X is, in the order of `classes`."""

    def __init__(self, responses: dict[str, Any] | None = None, classes: Any = None) -> None:
        self.responses = responses
        self.classes = classes
        if classes is not None:
            self.classes_ = classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        responses = self.__dict__.get("responses") or {}
        if name in responses:

            def respond(X: Any) -> Any:
                return responses[name]

            # Scorers tell methods apart by their names.
            respond.__name__ = name
            return respond
        raise AttributeError(f"{type(self).__name__!r} has no {name!r}: no family gave that response")


class PredictedRegressor(RegressorMixin, _Predicted):
    """A regressor with given predictions."""


class PredictedWithOwnScore(PredictedRegressor):
    """A regressor whose ``score`` needs the fitted estimator itself."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Raise Unsupported."""
        raise Unsupported("the estimator's own score is not had from these predictions")


class PredictedClassifier(ClassifierMixin, _Predicted):
    """A classifier with given predictions."""


class PredictedOutlierDetector(OutlierMixin, _Predicted):
    """A detector of outliers with given predictions."""
