"""Estimators of scikit-learn that have a random state and, under some settings, do not use it."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any, NamedTuple

from manyfit._compat import pca_solver
from manyfit.introspection.class_names import public_name


class Sizes(NamedTuple):
    """Facts about the input of a fit."""

    n_samples: int | None = None
    n_features: int | None = None
    sparse: bool = False


UNKNOWN_SIZES = Sizes()


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, numbers.Real) else None


def _pca(pca: Any, sizes: Sizes) -> bool | None:
    """PCA draws unless its solver is exact; "auto" depends on the shape of the input."""
    if pca.svd_solver in ("full", "covariance_eigh"):
        return True
    if pca.svd_solver != "auto" or sizes.sparse:  # "auto" is arpack for sparse input, from a random start
        return False
    if pca.n_components is None or pca.n_components == "mle":
        return True  # "covariance_eigh" or "full", whatever the shape
    k = _number(pca.n_components)
    if k is None or 0 < k < 1:
        return k is not None
    if sizes.n_samples is None or sizes.n_features is None:
        return None
    return pca_solver(pca, sizes.n_samples, sizes.n_features) != "randomized"


def _kernel_pca(pca: Any, sizes: Sizes) -> bool | None:
    if pca.eigen_solver != "auto":
        return pca.eigen_solver == "dense"
    k = _number(pca.n_components)
    if k is None or k >= 10:
        # The number of components is then min(n, k): fewer than 10 only where n is under 200.
        return True
    return None if sizes.n_samples is None else sizes.n_samples <= 200


def _subsampling(transformer: Any, sizes: Sizes) -> bool | None:
    most = _number(transformer.subsample)
    if most is None:
        return True
    return None if sizes.n_samples is None else sizes.n_samples <= most


def _iterative_imputer(imputer: Any, sizes: Sizes) -> bool:
    return (
        not imputer.sample_posterior
        and imputer.imputation_order != "random"
        and imputer.n_nearest_features is None
    )


def _hist_gradient_boosting(model: Any, sizes: Sizes) -> bool | None:
    """It draws rows for early stopping, rows for binning if there are many, and a share of the features."""
    stops = model.early_stopping
    most = 10_000 if isinstance(stops, str) and stops == "auto" else 200_000 if stops is False else 0
    if not most or _number(model.max_features) != 1.0:
        return False
    return None if sizes.n_samples is None else sizes.n_samples <= most


def _linear_svc(model: Any, sizes: Sizes) -> bool:
    """Only the primal solver of the l2 penalty is deterministic; all others shuffle the rows."""
    # LinearSVR has neither of the two parameters.
    smooth = getattr(model, "penalty", "l2") == "l2" and getattr(model, "multi_class", "ovr") == "ovr"
    return smooth and _primal(model, sizes)


def _no_drawn_folds(encoder: Any, sizes: Sizes) -> bool:
    """A number as cv shuffles; a splitter is checked by itself."""
    return encoder.shuffle is False or not isinstance(encoder.cv, numbers.Integral)


def _one_of(name: str, *values: Any) -> Callable[[Any, Sizes], bool]:
    return lambda thing, sizes: any(
        type(getattr(thing, name)) is type(value) and getattr(thing, name) == value for value in values
    )


_cyclic = _one_of("selection", "cyclic")
_smooth = _one_of("solver", "lbfgs", "newton-cg", "newton-cholesky")
_ridge = _one_of("solver", "auto", "svd", "cholesky", "lsqr", "sparse_cg", "lbfgs")
_no_shuffle = _one_of("shuffle", False)
_no_probability = _one_of("probability", False, "deprecated")
_primal = _one_of("dual", False)
_no_jitter = _one_of("jitter", None)
_no_restarts = _one_of("n_restarts_optimizer", 0)
_constant_guess = _one_of("strategy", "prior", "most_frequent", "constant")

# Libraries whose fits take a fixed seed if they are given none.
_SEEDED_BY_DEFAULT = ("lightgbm", "xgboost")
# When a random state does not matter, by module and names of exact types (read in scikit-learn 1.7 to 1.9).
# None: that depends on sizes that are not known.
_RULES: dict[str, Callable[[Any, Sizes], bool | None]] = {
    f"sklearn.{module}.{name}": rule
    for module, names, rule in (
        ("decomposition", "PCA", _pca),
        ("decomposition", "KernelPCA", _kernel_pca),
        ("dummy", "DummyClassifier", _constant_guess),
        ("ensemble", "HistGradientBoostingClassifier HistGradientBoostingRegressor", _hist_gradient_boosting),
        ("gaussian_process", "GaussianProcessClassifier GaussianProcessRegressor", _no_restarts),
        ("linear_model", "ElasticNet ElasticNetCV Lasso LassoCV", _cyclic),
        ("linear_model", "MultiTaskElasticNet MultiTaskElasticNetCV", _cyclic),
        ("linear_model", "MultiTaskLasso MultiTaskLassoCV", _cyclic),
        ("linear_model", "Lars LassoLars", _no_jitter),
        ("linear_model", "LogisticRegression LogisticRegressionCV", _smooth),
        ("linear_model", "Ridge RidgeClassifier", _ridge),
        ("model_selection", "GroupKFold KFold TimeSeriesSplit", _no_shuffle),
        ("model_selection", "StratifiedGroupKFold StratifiedKFold", _no_shuffle),
        ("preprocessing", "KBinsDiscretizer QuantileTransformer", _subsampling),
        ("preprocessing", "TargetEncoder", _no_drawn_folds),
        ("svm", "LinearSVC LinearSVR", _linear_svc),
        ("svm", "NuSVC SVC", _no_probability),
        # They have no such parameter, but every class of libsvm has the attribute.
        ("svm", "NuSVR OneClassSVM SVR", lambda machine, sizes: True),
    )
    for name in names.split()
}


def ignores_random_state(estimator: Any, cls: type, sizes: Sizes) -> bool | None:
    """Whether an estimator of scikit-learn's class `cls` draws nothing, or the same in each fit.

    None if that depends on sizes that are not known.
    """
    if type(estimator).__module__.partition(".")[0] in _SEEDED_BY_DEFAULT:
        return estimator.random_state is None
    # IterativeImputer is experimental: an import of the class would switch it on for everybody.
    if cls.__name__ == "IterativeImputer" and cls.__module__.startswith("sklearn.impute."):
        return _iterative_imputer(estimator, sizes)
    # A search of manyfit's room above: its random state draws the rows of `sample`, and nothing else.
    if (cls.__module__, cls.__name__) == ("manyfit.model_selection._search", "GridSearchCV"):
        return estimator.sample is None
    rule = _RULES.get(public_name(cls))
    return False if rule is None else rule(estimator, sizes)
