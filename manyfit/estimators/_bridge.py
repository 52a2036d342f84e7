"""Who works on the data of a drop-in estimator: ours, cuML, or scikit-learn, on the device or at home."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from manyfit._compat import output_container
from manyfit._twins import twin_of
from manyfit.arrays import Place, container_place, form_of, from_device, tell_fallback
from manyfit.estimators import _there, _with_cuml
from manyfit.estimators._array_params import any_param_away
from manyfit.estimators._call import FITS, STATE, Call, Fitted, is_inside, labels_place, x_place
from manyfit.estimators._exports import ALL, Export
from manyfit.estimators._own import fitter_of
from manyfit.estimators._own_fits import why_not_ours
from manyfit.folds import Unsupported
from manyfit.metrics._deviance_explained import explained_power
from manyfit.metrics._functions import FUNCTIONS


def bridged(name: str, inner: Callable[..., Any]) -> Callable[..., Any]:
    """scikit-learn's method, for data that lie anywhere.

    Parameters
    ----------
    name : str
        Name of the method.
    inner : callable
        scikit-learn's own function. It is called at once, and only it, where all data are the host's own and
        were so at the fit.

    Returns
    -------
    callable
        With its signature and text.
    """

    fits = name in FITS

    @functools.wraps(inner)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        here = not _any_form(args) and not (kwargs and _any_form(kwargs.values()))
        if here and STATE not in vars(self) and not (fits and any_param_away(self)):
            return inner(self, *args, **kwargs)
        if is_inside(self):
            return inner(self, *args, **kwargs)
        try:
            call = Call(self, name, inner, args, kwargs)
        except TypeError:  # arguments that it does not take: Python says so of scikit-learn's
            return inner(self, *args, **kwargs)
        return _answer(call)

    return method


def _any_form(values: Any) -> bool:
    return any(form_of(value) is not None for value in values)


def _answer(call: Call) -> Any:
    if call.fits:
        return _fit(call)
    state = call.state
    if state is None:
        return _ask_unfitted(call)
    if call.name == "score" and state.route != "host":
        metric = _score_of(call)
        if metric is not None:
            return metric(call)
    try:
        if state.route == "cuml":
            return _with_cuml.ask(call, state)
        if state.route in ("own", "scikit-learn"):
            return _there.ask(call, state)
    except Unsupported as reason:
        return _at_home(call, [str(reason)], _home_copy(call.estimator, state))
    return _at_home(call, [state.reason])


# Fits


def _fit(call: Call) -> Any:
    if not call.foreign:  # after a fit on a device
        state = call.state
        if call.name != "partial_fit" or state is None or state.route == "host":
            if call.name != "partial_fit":
                _there.come_home(call.estimator)
            return call.at_home()
    if call.place is None and not (call.state and call.name == "partial_fit"):
        # Only y or weights lie elsewhere; the fit is where X is.
        return _at_home(call, ["it was fitted on the host"])
    reasons = []
    for route in _routes(call):
        try:
            return route(call)
        except Unsupported as reason:
            reasons.append(str(reason))
    return _at_home(call, reasons)


def _routes(call: Call) -> Iterator[Callable[[Call], Any]]:
    """Ways to fit, the best first; what they refuse goes to the next one, and then to the host."""
    state = call.state
    if call.name == "partial_fit" and (state is not None or _is_fitted(call.estimator)):
        yield _go_on
        return
    exported, place = _export_of(call.estimator), call.place
    assert place is not None
    cuml = exported.cuml if exported and place.library in _with_cuml.LIBRARIES else None
    if fitter_of(twin_of(type(call.estimator))) is not None and place.form == "array":
        yield _there.fit_by_ours
    if cuml is not None and cuml.converts:
        yield functools.partial(_with_cuml.fit, cuml=cuml)
    yield _there.fit_by_dispatch
    if cuml is not None and not cuml.converts:
        yield functools.partial(_with_cuml.fit, cuml=cuml)


def why_at_home(estimator: Any, place: Place, n_targets: int = 1) -> str | None:
    """Why a drop-in estimator is fitted on the host to arrays of a place, as far as can be told before.

    Parameters
    ----------
    estimator : estimator
        One of `manyfit.estimators`, unfitted.
    place : Place
        Where X will lie.
    n_targets : int, default=1
        Columns of y.

    Returns
    -------
    str or None
        What each of those who work there says; None if one of them takes it.
    """
    exported, reasons = _export_of(estimator), []
    if hasattr(estimator, "transform") and output_container(estimator) != "default":
        return f"its output is to be a frame of {output_container(estimator)}"
    cuml = exported.cuml if exported and place.library in _with_cuml.LIBRARIES else None
    for ask in (why_not_ours, functools.partial(_there.why_no_dispatch, place=place, n_targets=n_targets)):
        reason = ask(estimator)
        if reason is None:
            return None
        reasons.append(reason)
    if cuml is not None:
        try:
            _with_cuml.made(estimator, cuml)
        except Unsupported as error:
            reasons.append(str(error))
        else:
            return None
    return "; ".join(filter(None, dict.fromkeys(reasons)))


def _go_on(call: Call) -> Any:
    """Learn more, where it was begun."""
    state = call.state or Fitted("host")
    if state.route == "cuml":
        exported = _export_of(call.estimator)
        assert exported is not None and exported.cuml is not None
        try:
            return _with_cuml.fit(call, exported.cuml)
        except Unsupported as error:  # the host knows nothing of what was learnt
            raise ValueError(f"{type(call.estimator).__name__} cannot go on: {error}") from error
    if state.route == "host":
        raise Unsupported(state.reason)
    return _there.ask(call, state)


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def _export_of(estimator: Any) -> Export | None:
    """The line of an estimator; none of a user's subclass, of which ours and cuML know nothing."""
    cls = type(estimator)
    return ALL.get(cls.__name__) if twin_of(cls) is not cls else None


# Fitted estimators


def _ask_unfitted(call: Call) -> Any:
    """A method of what was fitted to the host's own data, or not at all, with data that lie elsewhere."""
    if call.place is None:
        return call.settle(call.at_home())
    if get_tags(call.estimator).requires_fit:
        check_is_fitted(call.estimator)
        return _at_home(call, ["it was fitted on the host"])
    dispatch = _there.dispatch_of(call.estimator)
    place = call.place
    if dispatch is None or place.form != "array" or place.library not in _there.DISPATCHED:
        return _at_home(call, ["scikit-learn works on it on the host only"])
    try:
        reason = dispatch.refuses(call.estimator)
        return _at_home(call, [reason]) if reason else _there.ask(call, Fitted("scikit-learn"))
    except Unsupported as error:
        return _at_home(call, [str(error)])


def _home_copy(estimator: Any, state: Fitted) -> Any:
    return _with_cuml.at_home(estimator, state) if state.route == "cuml" else _there.at_home(estimator)


def _score_of(call: Call) -> Callable[[Call], float] | None:
    """The score as a function of the predictions, where scikit-learn's is one."""
    score = getattr(twin_of(type(call.estimator)), "score", None)
    if score is ClassifierMixin.score:
        return functools.partial(_score, metric=FUNCTIONS["accuracy_score"])
    if score is RegressorMixin.score:
        return functools.partial(_score, metric=FUNCTIONS["r2_score"])
    power = explained_power(call.estimator)
    if power is None:
        return None
    return functools.partial(_score, metric=functools.partial(FUNCTIONS["d2_tweedie_score"], power=power))


def _score(call: Call, metric: Callable[..., Any]) -> float:
    """A metric of targets and predictions, on a device where one of them is there."""
    predicted, y = call.estimator.predict(call.X), call.y
    weight = call.given.get("sample_weight")
    place = container_place(predicted) or container_place(y)
    if place is None or place.form != "array":
        return float(metric(*map(from_device, (y, predicted)), sample_weight=from_device(weight)))
    arrays = [None if one is None else place.array(one) for one in (y, predicted, weight)]
    return float(metric(*arrays[:2], sample_weight=arrays[2]))


# The host


def _at_home(call: Call, reasons: list[str], estimator: Any = None) -> Any:
    """Bring all data to the host, work there, and bring the result back."""
    reason = "; ".join(dict.fromkeys(reasons))
    if call.foreign and not (call.place is None or call.place.home):
        cls = type(call.estimator)
        tell_fallback(cls, f"{cls.__name__} works on the host, to which its data are brought: {reason}.")
    if call.fits and call.name != "partial_fit":
        _there.come_home(call.estimator)
    result = call.at_home(estimator)
    if call.fits:
        state = Fitted("host", labels_place(call.y), place=x_place(call.X), reason=reason)
        setattr(call.estimator, STATE, state)
    return call.settle(result)
