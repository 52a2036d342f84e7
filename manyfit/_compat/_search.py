"""scikit-learn's searches and cross-validation."""

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import numpy as np
import sklearn
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, _validation
from sklearn.model_selection._search import BaseSearchCV
from sklearn.model_selection._search_successive_halving import (
    HalvingGridSearchCV as SklearnHalvingGridSearchCV,
)
from sklearn.model_selection._search_successive_halving import (
    HalvingRandomSearchCV as SklearnHalvingRandomSearchCV,
)
from sklearn.model_selection._validation import _enforce_prediction_order, _fit_and_score, _score
from sklearn.model_selection._validation import _warn_or_raise_about_fit_failures as check_fit_failures
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._metadata_requests import MetadataRequest, MethodMetadataRequest
from sklearn.utils._optional_dependencies import check_matplotlib_support
from sklearn.utils._param_validation import validate_params
from sklearn.utils.metadata_routing import _routing_enabled as routing_enabled
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.metaestimators import _safe_split as safe_split
from sklearn.utils.validation import _check_method_params as check_method_params
from sklearn.utils.validation import _num_samples as num_samples

__all__ = [
    "SEARCH_METHODS",
    "TESTED",
    "BaseSearchCV",
    "SklearnHalvingGridSearchCV",
    "SklearnHalvingRandomSearchCV",
    "check_fit_failures",
    "check_matplotlib_support",
    "check_method_params",
    "columns_of_all_classes",
    "evaluates_all_at_once",
    "fit_and_score",
    "fit_and_score_call",
    "has_input_hook",
    "is_fit_and_score",
    "is_metadata_request",
    "is_tested",
    "num_samples",
    "overrides_format_results",
    "process_routing",
    "replace_globals",
    "routing_enabled",
    "safe_indexing",
    "safe_split",
    "score",
    "swap_parallel",
    "unwrap_delayed",
    "validate_params",
    "warn_untested",
]

TESTED = ("1.7", "1.8", "1.9")
# All that a search of scikit-learn's calls of its own methods while it is fitted.
SEARCH_METHODS = (
    "_run_search",
    "_generate_candidate_params",  # of halving searches
    "_get_scorers",
    "_get_routed_params_for_fit",
    "_check_scorers_accept_sample_weight",
    "_check_input_parameters",
    "_check_refit_for_multimetric",
    "_format_results",
    "_select_best_index",
    "_init_callback_context",
    "get_metadata_routing",
)
_FIT_AND_SCORE_PARAMETERS = frozenset(inspect.signature(_fit_and_score).parameters)

score = _score


def columns_of_all_classes(values: Any, own: Any, classes: Any, method: str) -> Any:
    """Responses with a column for each of `classes`, as ``cross_val_predict`` gives them.

    `own`: the classes that the fit had; None if columns are no classes.
    """
    if own is None or classes is None:
        return values
    return _enforce_prediction_order(np.searchsorted(classes, own), values, len(classes), method)


def is_tested() -> bool:
    """Whether manyfit was tested with the installed minor version of scikit-learn."""
    return ".".join(sklearn.__version__.split(".")[:2]) in TESTED


@functools.cache
def warn_untested(version: str) -> None:
    """Warn once in a process that nothing is shared with this version of scikit-learn."""
    text = (
        f"This version of manyfit was tested with scikit-learn {TESTED[0]} to {TESTED[-1]}. With {version} "
        "it shares no work: scikit-learn makes all fits. A newer manyfit may know this version."
    )
    warnings.warn(text, UserWarning, stacklevel=2)


def fit_and_score(estimator: Any, X: Any, y: Any, **kwargs: Any) -> dict[str, Any]:
    """scikit-learn's fit and score of one setting on one split.

    Arguments that the installed version does not have (the callbacks of 1.9) are dropped.
    """
    function, known = fit_and_score_call(kwargs)
    result: dict[str, Any] = function(estimator, X, y, **known)
    return result


def fit_and_score_call(arguments: Mapping[str, Any]) -> tuple[Callable[..., Any], dict[str, Any]]:
    """scikit-learn's own function for `fit_and_score`, and those of some arguments that it has."""
    known = {name: value for name, value in arguments.items() if name in _FIT_AND_SCORE_PARAMETERS}
    return _fit_and_score, known


def is_fit_and_score(function: Callable[..., Any]) -> bool:
    """Whether a function is scikit-learn's fit and score of one setting on one split."""
    return function is _fit_and_score


def unwrap_delayed(function: Any) -> tuple[Any, dict[str, Any] | None]:
    """The function inside scikit-learn's own `delayed`, and the configuration that is sent with it.

    Any other function is returned as it is, with None.
    """
    if not hasattr(type(function), "with_config_and_warning_filters"):
        return function, None
    return function.function, {**sklearn.get_config(), **getattr(function, "config", {})}


def evaluates_all_at_once(search: Any) -> bool:
    """Whether a search evaluates all its settings in one call, as scikit-learn's two searches do."""
    return type(search)._run_search in (GridSearchCV._run_search, RandomizedSearchCV._run_search)


def has_input_hook() -> bool:
    """Whether scikit-learn's base search calls ``_check_input_parameters``, as it does from 1.8 on."""
    return hasattr(BaseSearchCV, "_check_input_parameters")


def overrides_format_results(search: Any) -> bool:
    """Whether the class of a search builds ``cv_results_`` by a method of its own."""
    return getattr(type(search), "_format_results", None) is not BaseSearchCV._format_results


def is_metadata_request(thing: Any) -> bool:
    """Whether an object holds an estimator's metadata requests; its ``owner`` is that estimator."""
    return isinstance(thing, (MetadataRequest, MethodMetadataRequest))


def replace_globals(function: Callable[..., Any], module: str, **names: Any) -> Callable[..., Any]:
    """A copy of one of scikit-learn's functions, as a function of `module`, that reads other globals.

    ``cross_validate`` and its relatives are checks and formatting around one call of ``Parallel``. The copy
    keeps that code, of the installed version, and replaces the call; scikit-learn itself stays as it is.
    """
    inner = function.__wrapped__  # type: ignore[attr-defined]
    missing = set(names) - set(inner.__globals__)
    if missing:
        raise AttributeError(f"{function.__name__} of scikit-learn {sklearn.__version__} reads no {missing}")
    copied = FunctionType(
        inner.__code__, {**inner.__globals__, **names}, inner.__name__, inner.__defaults__, inner.__closure__
    )
    copied.__kwdefaults__ = inner.__kwdefaults__
    copied.__doc__, copied.__annotations__ = inner.__doc__, inner.__annotations__
    copied.__module__ = module  # where pickle finds it
    constraints = function._skl_parameter_constraints  # type: ignore[attr-defined]
    return validate_params(constraints, prefer_skip_nested_validation=False)(copied)


def swap_parallel(old: type, new: type) -> None:
    """Let scikit-learn's cross-validation functions run their fits through another class than `old`.

    They look ``Parallel`` up in their module when they are called, and stay the same functions wherever they
    are kept. If it is not `old` there, it stays.
    """
    if _validation.Parallel is old:
        _validation.Parallel = new
