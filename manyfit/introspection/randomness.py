"""Which transformers may be shared: those whose fits on the same input give the same result."""

from __future__ import annotations

import functools
import inspect
import numbers
import random
import types
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, KernelPCA
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import BaseEnsemble, HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    ElasticNet,
    ElasticNetCV,
    Lars,
    Lasso,
    LassoCV,
    LassoLars,
    LogisticRegression,
    LogisticRegressionCV,
    MultiTaskElasticNet,
    MultiTaskElasticNetCV,
    MultiTaskLasso,
    MultiTaskLassoCV,
    Ridge,
    RidgeClassifier,
)
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import KBinsDiscretizer, QuantileTransformer, TargetEncoder
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from sklearn.utils import get_tags

from manyfit._compat import has_callbacks, pca_is_randomized
from manyfit._drop_in_classes import sklearn_class_of
from manyfit.introspection.flags import is_flag
from manyfit.introspection.structural_key import BY_IDENTITY, DEEPEST, SCALARS, Wrapped, object_state

__all__ = ["holds_generator", "is_deterministic", "is_shareable", "writes_in_place"]


class Sizes(NamedTuple):
    """What is known about the input of a fit."""

    n_samples: int | None = None
    n_features: int | None = None
    sparse: bool = False


_UNKNOWN = Sizes()


def _all(verdicts: Iterable[bool | None]) -> bool | None:
    """False if one is False, else None (it depends on sizes that are not known) if one is None."""
    unsure = False
    for verdict in verdicts:
        if verdict is False:
            return False
        unsure = unsure or verdict is None
    return None if unsure else True


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, numbers.Real) else None


def _pca(pca: Any, sizes: Sizes) -> bool | None:
    """PCA draws unless its solver is exact; what "auto" is may depend on the shape."""
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
    return not pca_is_randomized(pca, sizes.n_samples, sizes.n_features)


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
    """Rows are drawn to stop early by, and to bin by where there are many; features, where not all count."""
    stops = model.early_stopping
    most = 10_000 if isinstance(stops, str) and stops == "auto" else 200_000 if stops is False else 0
    if not most or _number(model.max_features) != 1.0:
        return False
    return None if sizes.n_samples is None else sizes.n_samples <= most


def _linear_svc(model: Any, sizes: Sizes) -> bool:
    """The primal solver of the l2 penalty; that of l1 and those of the dual go by chance through the rows."""
    # LinearSVR has neither of the two parameters.
    smooth = getattr(model, "penalty", "l2") == "l2" and getattr(model, "multi_class", "ovr") == "ovr"
    return smooth and _primal(model, sizes)


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

# Exact types whose result does not depend on their random state, and when (read in scikit-learn 1.7 to 1.9).
_IDLE: dict[type, Callable[[Any, Sizes], bool | None]] = {
    PCA: _pca,
    KernelPCA: _kernel_pca,
    KBinsDiscretizer: _subsampling,
    QuantileTransformer: _subsampling,
    # A number as cv is shuffled; a splitter is looked at by itself.
    TargetEncoder: lambda t, sizes: t.shuffle is False or not isinstance(t.cv, numbers.Integral),
    **dict.fromkeys((KFold, StratifiedKFold, GroupKFold, StratifiedGroupKFold), _no_shuffle),
    **dict.fromkeys((Lasso, LassoCV, ElasticNet, ElasticNetCV), _cyclic),
    **dict.fromkeys((MultiTaskLasso, MultiTaskLassoCV, MultiTaskElasticNet, MultiTaskElasticNetCV), _cyclic),
    **dict.fromkeys((LogisticRegression, LogisticRegressionCV), _smooth),
    **dict.fromkeys((Ridge, RidgeClassifier), _ridge),
    **dict.fromkeys((Lars, LassoLars), _no_jitter),
    **dict.fromkeys((SVC, NuSVC), _no_probability),
    # No parameter of theirs, but an attribute of all machines of libsvm.
    **dict.fromkeys((SVR, NuSVR, OneClassSVM), lambda machine, sizes: True),
    **dict.fromkeys((LinearSVC, LinearSVR), _linear_svc),
    **dict.fromkeys((GaussianProcessRegressor, GaussianProcessClassifier), _no_restarts),
    **dict.fromkeys((HistGradientBoostingClassifier, HistGradientBoostingRegressor), _hist_gradient_boosting),
    DummyClassifier: _constant_guess,
}


def randomness_rule(kind: type) -> Callable[[Any, Sizes], bool | None] | None:
    # IterativeImputer is experimental: naming the class would need an import that switches it on for all.
    if kind.__name__ == "IterativeImputer" and kind.__module__ == SimpleImputer.__module__.replace(
        "_base", "_iterative"
    ):
        return _iterative_imputer
    return _IDLE.get(kind)


SEEDS = ("random_state", "seed", "random_seed", "rng")
GENERATORS = (
    np.random.RandomState,
    np.random.Generator,
    np.random.BitGenerator,
    np.random.SeedSequence,
    random.Random,
)


def _seeded(state: dict[Any, Any]) -> bool:
    return all(isinstance(state[name], numbers.Integral) for name in SEEDS if name in state)


def _draws(function: Callable[..., Any], given: dict[str, Any]) -> bool:
    """Whether a function takes a random state and is left without one (mutual_info_classif)."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or not set(SEEDS) & set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]):
        return False
    defaults = {name: p.default for name, p in inspect.signature(function).parameters.items()}
    return not _seeded({name: value for name, value in (defaults | given).items() if name in SEEDS})


def _judge_callable(thing: Any, depth: int) -> bool | None:
    if isinstance(thing, functools.partial):
        if _draws(thing.func, thing.keywords):
            return False
        inner = (
            True
            if isinstance(thing.func, types.FunctionType)
            else is_deterministic(thing.func, _UNKNOWN, depth)
        )
        return _all(
            [
                inner,
                is_deterministic(thing.args, _UNKNOWN, depth),
                is_deterministic(thing.keywords, _UNKNOWN, depth),
            ]
        )
    if isinstance(thing, type) or not callable(thing):
        return True
    if _draws(thing, {}):
        return False
    owner = getattr(thing, "__self__", None)  # RandomState().normal, or the method of an object
    return (
        True
        if owner is None or isinstance(owner, types.ModuleType)
        else is_deterministic(owner, _UNKNOWN, depth)
    )


_tag_of_type: dict[type, bool] = {}  # scikit-learn's own classes: the tag is a matter of the platform


def tagged_random(thing: Any) -> bool:
    kind = type(thing)
    if kind in _tag_of_type:
        return _tag_of_type[kind]
    if not hasattr(thing, "__sklearn_tags__") or sklearn_class_of(kind) in (
        Pipeline,
        FeatureUnion,
        ColumnTransformer,
    ):
        return False  # the tag of these three says nothing about what is inside
    try:
        tagged = bool(get_tags(thing).non_deterministic)
    except Exception:  # a user's own tags: scikit-learn says what is wrong with them
        return True
    if sklearn_class_of(kind).__module__.startswith("sklearn."):
        _tag_of_type[kind] = tagged
    return tagged


def _judge_object(thing: Any, sizes: Sizes, depth: int) -> bool | None:
    if has_callbacks(thing) or tagged_random(thing):
        return False  # callbacks are to see every fit
    state = object_state(thing)
    idle = randomness_rule(sklearn_class_of(type(thing)))
    own = idle(thing, sizes) if idle is not None and not _seeded(state) else _seeded(state)
    if own is False:
        return False
    # Inside scikit-learn's own composites the rows stay and the columns are not known.
    composite = sklearn_class_of(type(thing)) in (Pipeline, FeatureUnion, ColumnTransformer)
    below = Sizes(sizes.n_samples) if composite else _UNKNOWN
    passed_over: tuple[str, ...] = SEEDS
    if isinstance(thing, BaseEnsemble) and sklearn_class_of(type(thing)).__module__.startswith("sklearn."):
        passed_over = (*SEEDS, "estimator")  # an ensemble seeds its members from its own random state
    parts = (
        is_deterministic(value, below, depth) for name, value in state.items() if name not in passed_over
    )
    return _all([own, _all(parts)])


def is_deterministic(thing: Any, sizes: Sizes = _UNKNOWN, depth: int = 0) -> bool | None:
    """Whether fits of a transformer on the same input give the same result.

    Parameters
    ----------
    thing : object
        An unfitted estimator, or anything nested in one.
    sizes : Sizes
        What is known about the input.
    depth : int, default=0
        How deep in the structure `thing` lies.

    Returns
    -------
    bool or None
        None if that depends on sizes that are not known.
    """
    if type(thing) in SCALARS or isinstance(thing, (np.ndarray, np.generic)) or scipy.sparse.issparse(thing):
        return True
    if depth > DEEPEST or isinstance(thing, GENERATORS):
        return False
    if isinstance(thing, Wrapped):
        return is_deterministic(thing._shared_inner, sizes, depth)
    if type(thing) in (list, tuple, set, frozenset):
        return _all(is_deterministic(value, sizes, depth + 1) for value in thing)
    if type(thing) is dict:
        return _seeded(thing) and _all(is_deterministic(value, sizes, depth + 1) for value in thing.values())
    if type(thing) is FrozenEstimator:  # its fit does nothing
        return not holds_generator(thing.estimator)
    if isinstance(thing, (*BY_IDENTITY, types.MethodType, functools.partial)):
        return _judge_callable(thing, depth + 1)
    return _judge_object(thing, sizes, depth + 1) if hasattr(thing, "__dict__") else True


def is_shareable(
    transformer: Any, n_samples: int | None = None, n_features: int | None = None, *, sparse: bool = False
) -> bool:
    """Whether a transformer fitted once may stand for other fits of equal transformers on the same input.

    Parameters
    ----------
    transformer : estimator
        Unfitted.
    n_samples, n_features : int or None, default=None
        Shape of the input. With both None: whether it may be shared for some shape.
    sparse : bool, default=False
        Whether the input is a scipy sparse matrix or array.

    Returns
    -------
    bool
        False where anything in it has a random state that is not an integer and uses it, or says by its tags
        that it is not deterministic.
    """
    verdict = is_deterministic(transformer, Sizes(n_samples, n_features, sparse))
    return verdict is not False if n_samples is None and n_features is None else verdict is True


_COPIES = ("copy", "copy_X", "copy_x")


def writes_in_place(thing: Any, depth: int = 0) -> bool:
    """Whether an estimator is told to work in its input (``copy=False``), at any depth.

    What reads that input later, say another part of a FeatureUnion or a training score, then finds other
    numbers in it. Only a fit on rows of its own gives what scikit-learn gives.

    Parameters
    ----------
    thing : object
        An unfitted estimator, or anything nested in one.
    depth : int, default=0
        How deep in the structure `thing` lies.

    Returns
    -------
    bool
        True as well for what is told so by other names that scikit-learn uses (`copy_X`, `copy_x`).
    """
    if type(thing) in SCALARS or isinstance(thing, BY_IDENTITY) or depth > DEEPEST:
        return False
    if isinstance(thing, Wrapped):
        return writes_in_place(thing._shared_inner, depth)
    if type(thing) in (list, tuple):
        return any(writes_in_place(item, depth + 1) for item in thing)
    if type(thing) is functools.partial:
        return writes_in_place([thing.func, thing.args, thing.keywords], depth)
    state = thing if type(thing) is dict else object_state(thing) if hasattr(thing, "get_params") else {}
    return any(is_flag(state.get(name, True), False) for name in _COPIES) or any(
        writes_in_place(value, depth + 1) for value in state.values()
    )


_WIDEST = 1_000  # a generator does not hide among more items than this


def holds_generator(fitted: Any, depth: int = 0) -> bool:
    """Whether a fitted transformer keeps a random generator: its `transform` then changes it."""
    if isinstance(fitted, GENERATORS):
        return True
    if depth > 6 or type(fitted) in SCALARS or isinstance(fitted, (np.ndarray, *BY_IDENTITY)):
        return False
    if isinstance(fitted, Wrapped):
        fitted = getattr(fitted, "_shared_fitted", None)
    if type(fitted) in (list, tuple, dict):
        if len(fitted) > _WIDEST:
            return False
        items = fitted.values() if type(fitted) is dict else fitted
        return any(holds_generator(item, depth + 1) for item in items)
    if not hasattr(fitted, "__dict__"):
        return False
    rule = randomness_rule(sklearn_class_of(type(fitted)))
    if rule is not None and rule(fitted, _UNKNOWN) is True:
        return False
    return any(holds_generator(value, depth + 1) for value in vars(fitted).values())
