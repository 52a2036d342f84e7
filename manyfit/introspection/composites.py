"""The estimators inside other estimators: one way to list, walk and replace them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.pipeline import FeatureUnion, Pipeline

from manyfit._compat import COLUMN_TRANSFORMER_REMAINDER
from manyfit.introspection.class_names import sklearn_class_of
from manyfit.introspection.object_state import BY_IDENTITY, DEEPEST, SCALARS, Wrapped, object_state

# Attributes that hold estimators, or lists of (name, estimator[, columns]), before a fit and after it.
_UNFITTED = {
    Pipeline: ("steps",),
    FeatureUnion: ("transformer_list",),
    ColumnTransformer: ("transformers", "remainder"),
    TransformedTargetRegressor: ("regressor",),
}
_FITTED = {
    **_UNFITTED,
    ColumnTransformer: ("transformers_",),
    TransformedTargetRegressor: ("regressor_",),
}
_SINGLE = ("remainder", "regressor", "regressor_")


class Child(NamedTuple):
    """An estimator in a composite, or "passthrough", "drop" or None in its place.

    `columns` are those that a ColumnTransformer selects for it; None in any other composite.
    """

    name: str
    estimator: Any
    columns: Any = None

    @property
    def is_estimator(self) -> bool:
        """Whether there is something to fit."""
        return self.estimator is not None and not isinstance(self.estimator, str)


def build_setting(estimator: Any, params: Mapping[str, Any]) -> Any:
    """A clone of an estimator with the parameters of a setting, of which estimators are cloned, too."""
    return clone(estimator).set_params(**clone(dict(params), safe=False))


def composite_class(thing: Any) -> type | None:
    """scikit-learn's class of a composite, or of our drop-in for it; None for subclasses and all others."""
    cls = sklearn_class_of(type(thing))
    return cls if cls in _UNFITTED else None


def is_transformer_list(items: Any, length: int) -> bool:
    """Whether `items` is a list of tuples of one length, as the constructors of composites expect it."""
    return isinstance(items, (list, tuple)) and all(
        isinstance(item, tuple) and len(item) == length for item in items
    )


def children(composite: Any, *, fitted: bool = False) -> list[Child]:
    """The estimators that a composite holds itself; none for other estimators and malformed lists.

    With `fitted` those that its fit has left, which are others in a ColumnTransformer. Subclasses of
    scikit-learn's composites count, too: ask `composite_class` where they must not.
    """
    cls = next((cls for cls in _UNFITTED if isinstance(composite, cls)), None)
    if cls is None:
        return []
    found = []
    for attribute in (_FITTED if fitted else _UNFITTED)[cls]:
        value = getattr(composite, attribute)
        if attribute in _SINGLE:
            found.append(Child(attribute, value))
        elif is_transformer_list(value, 3 if cls is ColumnTransformer else 2):
            found += [Child(*item) for item in value]
        else:
            return []
    return found


def replace_children(composite: Any, replace: Callable[[Child], Any]) -> None:
    """Put ``replace(child)`` in place of each child of a composite, fitted or not."""
    cls = composite_class(composite)
    if cls is None:
        return
    state = vars(composite)
    for attribute in dict.fromkeys((*_UNFITTED[cls], *_FITTED[cls], COLUMN_TRANSFORMER_REMAINDER)):
        if attribute in state:
            state[attribute] = _replaced(attribute, state[attribute], replace)


def _replaced(attribute: str, value: Any, replace: Callable[[Child], Any]) -> Any:
    if attribute in _SINGLE:
        return replace(Child(attribute, value))
    if is_transformer_list(value, 2) or is_transformer_list(value, 3):
        new = [(item[0], replace(Child(*item)), *item[2:]) for item in value]
        return new if any(a[1] is not b[1] for a, b in zip(new, value, strict=True)) else value
    if isinstance(value, tuple) and len(value) == 3:  # the remainder of a fitted ColumnTransformer
        return value[0], replace(Child(*value)), value[2]
    return value  # scikit-learn refuses it


def pipeline_steps(estimator: Any) -> Iterator[Any]:
    """The steps of a pipeline at any depth, without "passthrough"; any other estimator itself."""
    if not isinstance(estimator, Pipeline):
        yield estimator
        return
    for _, step in estimator.steps:
        if step is not None and step != "passthrough":
            yield from pipeline_steps(step)


def last_step(estimator: Any) -> Any:
    """The last step of a pipeline, also of pipelines in pipelines; any other estimator itself."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def fails_with_its_parts(thing: Any) -> bool:
    """Whether the fit of an unfitted estimator fails if one inside it fails, as that of a composite does.

    Any other estimator that holds some may go on without it: a search gives `error_score`. So may one with a
    function that handles an error, and a composite with a part that no columns may be left for.
    """
    if composite_class(thing) is not None:
        parts = [child for child in children(thing) if child.is_estimator]
        return all(fails_with_its_parts(one.estimator) and not _may_be_idle(one) for one in parts)
    values = [value for _, value in walk(thing)]
    holds_estimator = any(hasattr(value, "get_params") for value in values)
    return not holds_estimator and not any(map(_is_function, [thing, *values]))


def _may_be_idle(child: Child) -> bool:
    """Whether a ColumnTransformer may fit a part on some rows and not on others."""
    return child.name == "remainder" or callable(child.columns)


def _is_function(thing: Any) -> bool:
    return callable(thing) and not isinstance(thing, type)


def params_of(value: Any) -> Mapping[str, Any]:
    """The parameters of an estimator and of those inside it by their full names; none of anything else."""
    if isinstance(value, type) or not hasattr(value, "get_params"):
        return {}
    return dict(value.get_params(deep=True))


def walk(thing: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Every attribute of an unfitted estimator and of all that it holds, as (name, value), depth first.

    It goes through lists, tuples, dicts, ``functools.partial`` and estimators. Items of lists and tuples
    have no name.
    """
    if type(thing) in SCALARS or isinstance(thing, BY_IDENTITY) or depth > DEEPEST:
        return
    for name, value in _contents(thing):
        yield name, value
        yield from walk(value, depth + 1)


def _contents(thing: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, Wrapped):
        yield "", thing._shared_inner
    elif type(thing) in (list, tuple):
        yield from (("", item) for item in thing)
    elif type(thing) is functools.partial:
        yield from (("", part) for part in (thing.func, thing.args, thing.keywords))
    elif type(thing) is dict or hasattr(thing, "get_params"):
        yield from (thing if type(thing) is dict else object_state(thing)).items()
