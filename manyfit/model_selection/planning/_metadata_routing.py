"""Finds the weights that the last step of a pipeline receives: by name, or by metadata routing."""

from collections.abc import Mapping
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from manyfit._compat import process_routing, routing_enabled
from manyfit.families import inner_estimator, wrapper_of
from manyfit.folds import Unsupported
from manyfit.introspection.class_names import sklearn_class_of


def requests_of(estimator: Any) -> str:
    """A key of the metadata that an estimator requests; empty where routing is off."""
    if not routing_enabled() or not hasattr(estimator, "get_metadata_routing"):
        return ""
    return repr(estimator.get_metadata_routing())


def fit_weights(model: Any, path: str, params: Mapping[str, Any]) -> Any:
    """The sample weights among the `params` of ``model.fit`` that reach the last step, at `path`; or None.

    Raises `Unsupported` if any step receives something else, or if the fit of the last step takes no weights.
    """
    given = _not_none(params)
    if given and routing_enabled():
        weights = _only_weights(_routed(model, "fit", given))
    else:
        weights = _only_weights(given, f"{path}__sample_weight" if path else "sample_weight")
    if weights is not None:
        last = model.get_params()[path] if path else model
        inner = inner_estimator(last, sklearn_class_of(type(last)))
        if inner is not last and routing_enabled():
            raise Unsupported(f"weights are routed through a {type(last).__name__}")
        wrapper = wrapper_of(sklearn_class_of(type(last)))
        if wrapper is not None and not wrapper.takes_weights:
            raise Unsupported(f"the fit of {type(last).__name__} takes no sample_weight without routing")
        if not has_fit_parameter(inner, "sample_weight"):
            raise Unsupported(f"the fit of {type(last).__name__} takes no sample_weight")
    return weights


def require_scored_by_last_step(model: Any, params: Mapping[str, Any]) -> None:
    """Raise `Unsupported` unless ``model.score`` hands its parameters to the last step only, as weights.

    A Pipeline routes `sample_weight` even without a value, and raises if no step requests or refuses it.
    """
    _only_weights(_routed(model, "score", _not_none(params)))


def _not_none(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}


def _only_weights(given: Mapping[str, Any], name: str = "sample_weight") -> Any:
    if set(given) - {name}:
        raise Unsupported(f"fit parameters {sorted(given)} are not only the weights of the last step")
    return given.get(name)


def _routed(model: Any, method: str, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments that reach a method of the last step, if no step before it receives any."""
    while type(model) is Pipeline and (given or method == "score"):
        if method == "score":
            given = {"sample_weight": None, **given}
        try:
            routed = process_routing(model, method, **given)
        except Exception as error:  # raised again by the fit
            raise Unsupported(f"the metadata cannot be routed ({type(error).__name__})") from None
        (last, final) = model.steps[-1]
        for name, methods in routed.items():
            if name != last and any(methods.values()):
                raise Unsupported(f"metadata routing hands {sorted(given)} to the step {name!r}")
        model, given = final, dict(routed[last][method])
    return given
