"""scikit-learn's scorers over predictions that are already there."""

from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from manyfit.folds import Unsupported


class _Predicted(BaseEstimator):
    """A fitted estimator whose answers for the rows to score are given.

    Parameters
    ----------
    responses : dict of str to array
        What ``predict``, ``predict_proba``, ``decision_function`` return, whatever X is.
    classes : array, optional
        The classes in the order of the columns.
    """

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
    """See `_Predicted`."""


class PredictedWithOwnScore(PredictedRegressor):
    """A regressor whose ``score`` needs the fitted estimator itself."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Leave it to the estimator."""
        raise Unsupported("the estimator's own score is not had from these predictions")


class PredictedClassifier(ClassifierMixin, _Predicted):
    """See `_Predicted`."""
