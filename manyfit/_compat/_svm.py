"""scikit-learn's support vector machines: models that were fitted on a kernel matrix."""

from typing import Any

from numpy.typing import NDArray

__all__ = ["svm_on_rows"]


def svm_on_rows(estimator: Any, fitted: Any, X: NDArray[Any], gamma: float) -> Any:
    """A model fitted on the kernel matrix of rows X, as one that was fitted on these rows.

    Parameters
    ----------
    estimator : SVC, NuSVC, SVR or NuSVR
        Unfitted, with a kernel that scikit-learn computes; it becomes the model.
    fitted : estimator
        With ``kernel="precomputed"`` and the same other parameters.
    X : ndarray of float64 of shape (n, p)
        The training rows.
    gamma : float
        The number that the kernel has on these rows.
    """
    parameters = estimator.get_params()
    vars(estimator).update({name: value for name, value in vars(fitted).items() if name not in parameters})
    estimator.support_vectors_ = X[fitted.support_]
    estimator.shape_fit_, estimator.n_features_in_ = X.shape, X.shape[1]
    estimator._gamma = gamma
    return estimator
