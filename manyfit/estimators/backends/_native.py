"""Fits of drop-in estimators by families, on arrays of any namespace.

A family answers many settings of many folds; a single fit is one setting, one fold with all rows. Rows stay
on their device; moments and gradients, which are small, are processed on the host.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.linear_model import (
    GammaRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    TweedieRegressor,
)
from sklearn.svm import LinearSVC, LinearSVR
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from manyfit._compat import array_api_dispatch, check_parameters, set_glm_loss
from manyfit.arrays import (
    TransferCache,
    array_namespace,
    device,
    numpy_dtype,
    numpy_float_dtype,
    to_device_of,
    to_host,
)
from manyfit.estimators.backends._native_registry import register_fitter
from manyfit.exceptions import Unsupported
from manyfit.families import Family, GLMAnswers, Probabilities, family_of
from manyfit.folds import (
    AtomGroup,
    FoldArrays,
    PassData,
    RowSource,
    SingleFold,
    as_matrix,
    as_targets,
    as_weights,
    finite_middle,
)
from manyfit.introspection.class_names import sklearn_class_of
from manyfit.metrics.scoring import LinearPredictors, lost_to_rounding, residuals_from_moments

Array = Any


@dataclass(frozen=True)
class _Data:
    """The data of a fit: X (n, p) and y (n,) or (n, q) on any device, weights (n,) on the host or None."""

    X: Array
    y: Array
    weight: Any

    @classmethod
    def check(cls, X: Array, y: Array, sample_weight: Array) -> "_Data":
        """Checked data; Unsupported if a family cannot read them: scikit-learn then raises its own error."""
        X = as_matrix(X)
        if y is None:
            raise Unsupported("y is missing")
        if y.ndim not in (1, 2) or y.shape[0] != X.shape[0]:
            raise Unsupported("X and y differ in length")
        return cls(X, y, as_weights(sample_weight, X.shape[0]))

    def as_attribute(self, values: Any, *, wide: bool = False) -> Array:
        """A fitted attribute on X's device, as float32 if X is float32 and the attribute is not `wide`."""
        narrow = not wide and numpy_dtype(self.X) == np.float32
        dtype = np.dtype(np.float32) if narrow else numpy_float_dtype(self.X)
        return to_device_of(np.array(values, dtype=dtype, order="C"), self.X, label="coefficients")


def _family_and_setting(estimator: Any) -> tuple[Family, dict[str, Any]]:
    """The family of an estimator and the values of its free parameters; Unsupported if it refuses them."""
    family = family_of(sklearn_class_of(type(estimator)))
    assert family is not None
    why = check_parameters(estimator)
    if why is not None:
        raise Unsupported(why)
    setting = {name: getattr(estimator, name) for name in family.free}
    family.check(estimator, [setting])
    return family, setting


def fit_by_moments(estimator: Any, X: Array, y: Array, sample_weight: Array) -> None:
    """Fit Ridge or LinearRegression, see `Fitter`, in one pass over X and one synchronisation."""
    family, setting = _family_and_setting(estimator)
    data = _Data.check(X, as_targets(y) if y is not None else y, sample_weight)
    send = TransferCache(data.X)
    targets, weight = send(data.y, "y"), send(data.weight, "weights")
    none, no_targets = data.X[:0, :], targets[:0, ...]
    folded = SingleFold(FoldArrays(data.X, targets, none, no_targets, weight, data.X, targets, targets))
    answers: Any = next(iter(family.fit_many(estimator, [setting], folded)))
    for why in answers.refused.values():
        raise Unsupported(why)
    moments = folded.fitted_moments
    residuals = residuals_from_moments(answers.linear, moments)
    if lost_to_rounding(residuals, answers.roundings, moments).any():
        raise Unsupported("the normal equations would lose digits")
    flat = data.y.ndim == 1 or (answers.flat and data.y.shape[1] == 1)
    coef, intercept = _at_zero(answers.linear)
    estimator.coef_ = data.as_attribute(coef[0] if flat else coef)
    if not estimator.fit_intercept:
        estimator.intercept_ = 0.0
    else:
        estimator.intercept_ = data.as_attribute(intercept[0] if data.y.ndim == 1 else intercept)
    estimator.n_features_in_ = data.X.shape[1]
    if Ridge in family.serves:
        estimator.n_iter_ = None
        # The solver of the normal equations, unless the user chose one.
        estimator.solver_ = "cholesky" if estimator.solver == "auto" else estimator.solver
    else:
        view = folded.view(0).weighted
        spectrum = view.spectrum if estimator.fit_intercept else view.raw_spectrum
        estimator.rank_, estimator.singular_ = data.X.shape[1], data.as_attribute(np.sqrt(spectrum.values))


def fit_by_passes(estimator: Any, X: Array, y: Array, sample_weight: Array) -> None:
    """Fit an iterative linear model, see `Fitter`, with at most two synchronisations a pass."""
    data = _Data.check(X, y, sample_weight)
    _fit_rows(estimator, data, data.X)


def fit_rows_by_passes(estimator: Any, rows: RowSource, y: Array, weight: Any, memory_limit: int) -> None:
    """`fit_by_passes` for rows that lie outside memory, with y and weights on the host."""
    like = np.empty((0, rows.shape[1]), dtype=rows.dtype)
    _fit_rows(estimator, _Data(like, y, weight), rows, memory_limit=memory_limit)


def _fit_rows(estimator: Any, data: _Data, rows: Any, **options: Any) -> None:
    """Fit an iterative linear model to some rows, with fitted attributes beside ``data.X``."""
    family, setting = _family_and_setting(estimator)
    if data.y.ndim != 1:
        raise Unsupported("y has several columns")
    labels = to_host(data.y if is_classifier(estimator) else as_targets(data.y), label="y")
    if is_classifier(estimator):
        check_classification_targets(labels)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise Unsupported("y holds NaN or infinity")
    n = rows.shape[0]
    every = AtomGroup(range(1), [slice(0, n)], np.ones((1, 1)), np.zeros((1, 1)))
    seen = PassData(rows, labels, [every], data.weight, [None], origin=finite_middle(rows), **options)
    answers: Any = next(iter(family.fit_many(estimator, [setting], seen)))
    assert isinstance(answers, GLMAnswers)
    for why in answers.refused.values():
        raise Unsupported(why)
    n_iter = -(-answers.rows_read // n)
    coef, intercept = _at_zero(answers.linear)
    wide = not answers.link.keeps_single
    one = answers.classes is None
    estimator.coef_ = data.as_attribute(coef[0] if one else coef, wide=wide)
    estimator.n_features_in_ = data.X.shape[1]
    is_logistic, is_glm = (cls in family.serves for cls in (LogisticRegression, TweedieRegressor))
    if is_logistic:
        estimator.n_iter_ = to_device_of(np.array([n_iter], dtype=np.int32), data.X)
    else:
        estimator.n_iter_ = n_iter
    if is_glm:
        set_glm_loss(estimator)
    if estimator.fit_intercept:
        estimator.intercept_ = data.as_attribute(intercept[0] if is_glm else intercept, wide=wide)
    else:
        estimator.intercept_ = data.as_attribute(np.zeros(len(coef))) if is_logistic else 0.0
    if answers.classes is not None:
        estimator.classes_ = TransferCache(data.X)(answers.classes)


def _at_zero(linear: LinearPredictors) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (q, p) of the only setting, and intercepts (q,), the values at X = 0."""
    coef = linear.coef[:, 0, :].T
    return coef, linear.at_origin[0] - coef @ linear.origin


def _predictors(estimator: Any, X: Array) -> Array:
    """Linear predictors (1, n, K) on the device of X and of the coefficients."""
    xp = array_namespace(X)
    with array_api_dispatch():
        X = validate_data(estimator, as_matrix(X), reset=False)
    coef, intercept = estimator.coef_, estimator.intercept_
    X = xp.astype(X, coef.dtype, copy=False)
    Z = X @ (coef[:, None] if coef.ndim == 1 else xp.matrix_transpose(coef)) + intercept
    return Z[None, ...]


def _linear(estimator: Any, X: Array) -> Array:
    """Predictions of a model with the identity link."""
    Z = _predictors(estimator, X)[0, ...]
    return Z[:, 0] if estimator.coef_.ndim == 1 else Z


def _decisions(estimator: Any, X: Array) -> Array:
    """Decision values of a classifier."""
    Z = _predictors(estimator, X)[0, ...]
    return Z[:, 0] if Z.shape[1] == 1 else Z


def _responses(method: str) -> Callable[[Any, Array], Array]:
    """A method of a classifier with probabilities."""

    def answer(estimator: Any, X: Array) -> Array:
        xp = array_namespace(X)
        classes = np.arange(estimator.classes_.shape[0])
        found = Probabilities(classes).responses(_predictors(estimator, X))[method][0, ...]
        if method != "predict":
            return found
        return xp.take(estimator.classes_, xp.asarray(found, device=device(X)), axis=0)

    return answer


_REGRESSION = {"predict": _linear}
_CLASSES = {"predict": _responses("predict"), "decision_function": _decisions}
_COUNTS = {"predict": lambda one, X: array_namespace(X).exp(_linear(one, X))}  # of the logarithmic link
_PROBABILITIES = {
    "predict_proba": _responses("predict_proba"),
    "predict_log_proba": lambda one, X: array_namespace(X).log(_responses("predict_proba")(one, X)),
}
for _cls, _fit, _methods in (
    (Ridge, fit_by_moments, _REGRESSION),
    (LinearRegression, fit_by_moments, _REGRESSION),
    (PoissonRegressor, fit_by_passes, _COUNTS),
    (GammaRegressor, fit_by_passes, _COUNTS),
    (TweedieRegressor, fit_by_passes, _COUNTS),
    (LinearSVR, fit_by_passes, _REGRESSION),
    (LinearSVC, fit_by_passes, _CLASSES),
    (LogisticRegression, fit_by_passes, _CLASSES | _PROBABILITIES),
):
    register_fitter(_cls, _fit, _family_and_setting, **_methods)
