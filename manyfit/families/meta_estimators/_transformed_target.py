"""TransformedTargetRegressor: moments of other targets, and predictions that are mapped back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from manyfit._compat import check_parameters, own_output_container
from manyfit.families.columns._functions import ELEMENTWISE
from manyfit.families.meta_estimators._wrapped import TargetFunction, WrappedFamily, register_wrapper
from manyfit.families.protocol import Array, Family, LinearAnswers, Role, Settings, recorded_warnings
from manyfit.folds import Fold, FoldedData, TransformedMoments, Unsupported
from manyfit.metrics.scoring import LinearPredictors

# Functions are inverse to each other for scikit-learn where a round trip changes less than this.
RELATIVE, ABSOLUTE = 1e-7, 1e-9


@register_wrapper
class TransformedTargetFamily(WrappedFamily):
    """TransformedTargetRegressor with elementwise functions, or with a scaler of each target.

    A scaler maps the moments of a fold, and the answers are mapped back to y. A function is applied to y
    once, and its inverse to the predictions.

    Reference: sklearn.compose.TransformedTargetRegressor (1.9).
    """

    wraps = TransformedTargetRegressor
    holds = "regressor"

    @classmethod
    def default(cls) -> Any:
        return LinearRegression()

    def check_wrapper(self) -> None:
        super().check_wrapper()
        functions, transformer = (self.wrapper.func, self.wrapper.inverse_func), self.wrapper.transformer
        given = [one is not None for one in functions]
        if any(given) and not (all(given) and transformer is None):
            raise Unsupported("func and inverse_func are set without each other, or beside transformer")
        if all(given) and not all(isinstance(one, np.ufunc) and one in ELEMENTWISE for one in functions):
            raise Unsupported("func or inverse_func is not one of NumPy's elementwise functions")
        if transformer is not None:
            _check_scaler(transformer)

    @property
    def target_function(self) -> TargetFunction | None:
        if self.wrapper.func is None:
            return None
        inverse = self.wrapper.inverse_func if self.wrapper.check_inverse else None
        return _ApplyChecked(self.wrapper.func, inverse)

    def fit_many(self, estimator: Any, settings: Settings, folded: FoldedData) -> Iterator[LinearAnswers]:
        for i in range(folded.n_splits):
            view = folded.view(i)
            y = folded.fitted_targets(i)
            if y.ndim == 2 and y.shape[1] == 1:
                raise Unsupported("y has two dimensions for one target")
            if self.wrapper.func is not None:
                answers = answers_on(self.inner, estimator, settings, view)
                yield FunctionAnswers(**vars(answers), inverse=self.wrapper.inverse_func)
                continue
            shift, scale = self._learn(y)
            answers = answers_on(self.inner, estimator, settings, view.with_targets(shift, scale))
            yield _mapped_back(answers, shift, scale)

    def _learn(self, y: Array) -> tuple[Array, Array]:
        """Shift and scale of each target, as scikit-learn's own scaler learns them."""
        columns = y if y.ndim == 2 else y[:, None]
        shift, scale = np.zeros(columns.shape[1]), np.ones(columns.shape[1])
        if self.wrapper.transformer is None:
            return shift, scale
        if y.dtype.kind == "f" and y.dtype != np.float64:
            raise Unsupported(f"scikit-learn transforms targets of {y.dtype} in their own precision")
        with recorded_warnings() as found:
            scaler = clone(self.wrapper.transformer).fit(columns)
            some = columns[:: max(1, len(columns) // 10)]
            back = scaler.inverse_transform(scaler.transform(some))
        if found or (self.wrapper.check_inverse and not np.allclose(some, back)):
            raise Unsupported("scikit-learn warns of the transformer of y")
        shift, scale = _shift_and_scale(scaler, shift, scale)
        if not (np.isfinite(shift).all() and np.isfinite(scale).all() and (scale != 0.0).all()):
            raise Unsupported("the transformer of y has no finite scale")
        return shift, scale


def answers_on(family: Family, estimator: Any, settings: Settings, view: TransformedMoments) -> LinearAnswers:
    """The answers of a family that reads moments, for one view."""
    answers = next(iter(family.fit_many(estimator, settings, _OneView(view))))
    if type(answers) is not LinearAnswers:
        raise Unsupported(f"{type(family).__name__} gives {type(answers).__name__}, not LinearAnswers")
    return answers


class _OneView:
    """Folded data of one fold of which a family sees the moments."""

    n_splits, classes = 1, None

    def __init__(self, view: TransformedMoments) -> None:
        self._view = view

    def view(self, i: int) -> TransformedMoments:
        return self._view

    def fold(self, i: int) -> Fold:
        raise TypeError("A family that reads moments asked for rows.")


@dataclass(frozen=True)
class FunctionAnswers(LinearAnswers):
    """Linear predictors of a function of y, whose inverse gives the predictions."""

    inverse: Any = None  # a function of NumPy's that works on each number by itself

    reads_moments = False

    @property
    def alike(self) -> Any:
        return (*super().alike, self.inverse)

    def respond(self, role: Role, fold: Fold) -> dict[str, Array]:
        """Predictions; raises `Unsupported` where scikit-learn may warn or raise."""
        y = fold.targets(role)
        if len(y) > 1 and (y == y[:1]).all(axis=0).any():
            raise Unsupported("a target is constant in the rows to score")
        found = super().respond(role, fold)["predict"]
        try:
            with np.errstate(divide="raise", over="raise", invalid="raise"):
                predicted = self.inverse(found)
        except FloatingPointError as error:
            raise Unsupported(f"scikit-learn may warn of the predictions ({error})") from error
        if not np.isfinite(predicted).all():
            raise Unsupported("a prediction is not finite")
        return {"predict": predicted}


@dataclass(frozen=True)
class _ApplyChecked:
    """A function of y; raises `Unsupported` where scikit-learn may warn of it, or of its inverse."""

    function: Any
    inverse: Any

    def __call__(self, y: Array) -> Array:
        if not isinstance(y, np.ndarray):
            raise Unsupported("a function of y is not applied on a device")
        try:
            with np.errstate(all="raise", under="ignore"):
                z = self.function(y)
                back = y if self.inverse is None else self.inverse(z)
        except FloatingPointError as error:
            raise Unsupported(f"scikit-learn may warn of func ({error})") from error
        if z.dtype.kind != "f" or not np.isfinite(z).all():
            raise Unsupported("func gives numbers that are not finite, or no floats")
        if not (np.abs(y - back) <= ABSOLUTE + RELATIVE * np.minimum(np.abs(y), np.abs(back))).all():
            raise Unsupported(
                "func and inverse_func may not be inverse to each other, of which sklearn warns"
            )
        return np.asarray(z)


def _check_scaler(transformer: Any) -> None:
    kind = type(transformer)
    if kind not in (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler):
        raise Unsupported(f"the transformer {kind.__name__} is not known to be linear in each target")
    if (
        check_parameters(transformer) is not None
        or not transformer.copy
        or getattr(transformer, "clip", False)
    ):
        raise Unsupported(f"{kind.__name__} has parameters that are not shared for targets")
    if own_output_container(vars(transformer)) not in ("default", None):
        raise Unsupported(f"set_output was called on {kind.__name__}")


def _shift_and_scale(scaler: Any, shift: Array, scale: Array) -> tuple[Array, Array]:
    """Shift and scale of a fitted scaler, which maps y to ``(y - shift) / scale``."""
    if isinstance(scaler, MinMaxScaler):
        return -scaler.min_.astype(np.float64) / scaler.scale_, 1.0 / scaler.scale_.astype(np.float64)
    center = scaler.center_ if isinstance(scaler, RobustScaler) else getattr(scaler, "mean_", None)
    if center is not None and getattr(scaler, "with_mean", True):
        shift = shift + center
    if scaler.scale_ is not None:
        scale = scale * scaler.scale_
    return shift, scale


def _mapped_back(answers: LinearAnswers, shift: Array, scale: Array) -> LinearAnswers:
    """Answers for ``(y - shift) / scale`` as answers for y."""
    linear = answers.linear
    linear = LinearPredictors(linear.coef * scale, linear.at_origin * scale + shift, linear.origin)
    roundings = tuple(replace(one, norms=one.norms * np.abs(scale)) for one in answers.roundings)
    return replace(answers, linear=linear, roundings=roundings)
