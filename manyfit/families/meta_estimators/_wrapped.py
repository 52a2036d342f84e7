"""A family inside a meta-estimator: the family of the estimator that it holds, with other targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from manyfit.families.protocol import WRAPPERS, Array, Cost, Family, MomentSums, Settings, Shape
from manyfit.folds import Unsupported
from manyfit.introspection.class_names import ClassTable

TargetFunction = Callable[[Array], Array]

W = TypeVar("W", bound="type[WrappedFamily]")


class WrappedFamily(Family):
    """The family of an estimator that a meta-estimator clones and fits.

    Steps inside the meta-estimator count as steps before it, so the estimator is never a pipeline. What the
    family of the estimator, `inner`, serves, reads and lets vary is what this family does. `wrapper` is the
    unfitted meta-estimator without the estimator.
    """

    wraps: ClassVar[type]  # the meta-estimator, by exact type
    holds: ClassVar[str]  # its parameter that is the estimator
    # Whether its `fit` hands `sample_weight` on without metadata routing.
    takes_weights: ClassVar[bool] = True

    def __init__(self, inner: Family, wrapper: Any) -> None:
        self.inner, self.wrapper = inner, wrapper
        self.serves, self.free, self.result = inner.serves, inner.free, inner.result
        self.reads, self.path_params = inner.reads, inner.path_params

    @classmethod
    def default(cls) -> Any:
        """The estimator of a meta-estimator that was given None."""
        raise Unsupported(f"{cls.wraps.__name__} holds no estimator")

    def check_wrapper(self) -> None:
        """Raise `Unsupported` with the reason if the parameters of the meta-estimator are not served."""
        if not isinstance(self.reads, MomentSums):
            raise Unsupported(f"{self.name} is shared around estimators that read moments")

    @property
    def name(self) -> str:
        """The class of the meta-estimator."""
        return self.wraps.__name__

    @property
    def target_function(self) -> TargetFunction | None:
        """The elementwise function of y whose moments are read; None for y itself."""
        return None

    def check(self, estimator: Any, settings: Settings) -> None:
        self.inner.check(estimator, settings)

    def other_stopping_rule(self, estimator: Any, shape: Shape) -> str | None:
        return self.inner.other_stopping_rule(estimator, shape)

    def cost(self, estimator: Any, settings: Settings, shape: Shape) -> Cost:
        return self.inner.cost(estimator, settings, shape)


_wrappers = ClassTable[type[WrappedFamily]](WRAPPERS)


def register_wrapper(cls: W) -> W:
    """Let a wrapped family answer for its meta-estimator; returns it."""
    _wrappers.register(cls, cls.wraps)
    return cls


def wrapper_of(cls: type) -> type[WrappedFamily] | None:
    """The wrapped family for exactly this type of meta-estimator, or None."""
    return _wrappers.get(cls)


def family_in(kind: type, family: Family, wrapper: Any) -> Family:
    """The family of a meta-estimator of class `kind`, by that of the estimator that it holds.

    `wrapper` is the meta-estimator without the estimator. Raises `Unsupported` if its parameters are not
    served.
    """
    found = wrapper_of(kind)
    assert found is not None
    wrapped = found(family, wrapper)
    wrapped.check_wrapper()
    return wrapped


def target_function(family: Family | None) -> TargetFunction | None:
    """The elementwise function of y whose moments a family reads; None for y itself.

    It raises `Unsupported` where scikit-learn may warn.
    """
    return family.target_function if isinstance(family, WrappedFamily) else None


def is_of_manyfit(family: Family) -> bool:
    """Whether a family, or the one that it wraps, is not a user's own."""
    own = family.inner if isinstance(family, WrappedFamily) else family
    return type(own).__module__.startswith("manyfit.")


def inner_estimator(estimator: Any, cls: type) -> Any:
    """The estimator that a meta-estimator holds; `estimator` itself without a wrapped family for `cls`.

    `cls` is its class, for a drop-in estimator that of scikit-learn.
    """
    wrapper = wrapper_of(cls)
    if wrapper is None:
        return estimator
    held = getattr(estimator, wrapper.holds)
    return wrapper.default() if held is None else held
