"""Which weights the last step of a pipeline is fitted and scored with: by name, or by metadata routing."""

from collections.abc import Mapping
from typing import Any

from sklearn.pipeline import Pipeline

from manyfit._compat import process_routing, routing_enabled
from manyfit.folds import Unsupported


def requests_of(estimator: Any) -> str:
    """A key of the metadata that an estimator requests; empty where routing is off."""
    if not routing_enabled() or not hasattr(estimator, "get_metadata_routing"):
        return ""
    return repr(estimator.get_metadata_routing())


def fit_weights(model: Any, path: str, params: Mapping[str, Any]) -> Any:
    """The sample weights that the last step of a model is fitted with, or None.

    Parameters
    ----------
    model : estimator
        A setting: a pipeline, or an estimator without steps.
    path : str
        Of names, to the last step.
    params : dict
        What ``model.fit`` is given beside X and y.

    Raises
    ------
    Unsupported
        If any step is given something else.
    """
    given = _not_none(params)
    if given and routing_enabled():
        return _only_weights(_routed(model, "fit", given))
    name = f"{path}__sample_weight" if path else "sample_weight"
    return _only_weights(given, name)


def require_scored_by_last_step(model: Any, params: Mapping[str, Any]) -> None:
    """Refuse a model whose own ``score`` hands its parameters to anything but its last step, as weights.

    A Pipeline routes `sample_weight` whether there are any or not, and raises where no step takes a stand.

    Raises
    ------
    Unsupported
        If it does so.
    """
    if routing_enabled():
        _only_weights(_routed(model, "score", _not_none(params)))


def _not_none(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}


def _only_weights(given: Mapping[str, Any], name: str = "sample_weight") -> Any:
    if set(given) - {name}:
        raise Unsupported(f"fit parameters {sorted(given)} are not only the weights of the last step")
    return given.get(name)


def _routed(model: Any, method: str, given: dict[str, Any]) -> dict[str, Any]:
    """What a method of the last step is given, if no step before it is given anything."""
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
