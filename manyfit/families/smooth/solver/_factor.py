"""Factors of penalised Hessians, which are solved for the gradient of each column."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor
from scipy.linalg.blas import dtrsv, strsv
from scipy.linalg.lapack import dpotrs, spotrs

from manyfit.families.protocol import Array
from manyfit.families.smooth.solver._objective import Intercept

# Coefficients up to which LAPACK's function is as fast as two of BLAS.
ONE_CALL = 64


@dataclass(frozen=True)
class PartialHessian:
    """A Hessian of the mean loss, whole or in part; coefficients are in the order of a (K, d) array.

    `diagonal`, (K d,), is known whole; `block`, (k, k), for the coefficients at `place`, an index or a slice.
    All other second derivatives count as zero.
    """

    diagonal: Array
    block: Array
    place: Any


class HessianFactor:
    """The factor of a penalised Hessian of K outputs.

    The loss depends only on differences of several outputs. Gradients, and steps from where all coefficients
    are zero, sum to zero over the outputs, so that any curvature may be added for their sum. Without it only
    the penalty, or nothing, would hold the sum.
    """

    def __init__(
        self, hessian: PartialHessian, penalty: float, intercept: Intercept, n_outputs: int, dtype: Any
    ) -> None:
        self._dtype, self._place, own = dtype, hessian.place, hessian.diagonal
        shift = np.full(own.size, penalty).reshape(n_outputs, -1)
        # A free intercept is not penalised; 1 keeps the factor regular if there is no intercept.
        shift[:, -1] = {"free": 0.0, "penalised": penalty, "none": 1.0}[intercept]
        # Any positive number is a preconditioner in place of a diagonal entry that is not finite.
        own = np.where(np.isfinite(own), own, 1.0)
        # A little keeps coefficients that neither the loss nor the penalty holds.
        diagonal = own + shift.ravel() + 1e-16 * (own.max(initial=0.0) + penalty) + 1e-300
        is_known = hessian.block.size and np.isfinite(hessian.block).all()
        common = (
            _common_curvature(own[self._place].reshape(n_outputs, -1)) if is_known and n_outputs > 1 else None
        )
        if common is not None:
            diagonal[self._place] += np.tile(common, n_outputs)
        # Scaled to a unit diagonal, so that columns of any size keep their digits in any precision.
        self._scale = 1.0 / np.sqrt(diagonal)
        self._factor = self._factored(hessian.block, self._scale[self._place], common) if is_known else None

    @property
    def weakest(self) -> float:
        """The least pivot, as a share of the diagonal."""
        return 1.0 if self._factor is None else float(np.diagonal(self._factor[0]).min(initial=1.0)) ** 2

    def _factored(self, block: Array, scale: Array, common: Array | None) -> Any:
        shift_of_unit = 16.0 * float(np.finfo(self._dtype).eps)
        while True:
            unit = block * scale
            unit *= scale[:, None]
            if common is not None:
                by_output = scale.reshape(-1, common.size)
                parts = unit.reshape(*by_output.shape, *by_output.shape)
                np.einsum("kjlj->klj", parts)[...] += common * by_output[:, None] * by_output
            unit = unit.astype(self._dtype, copy=False)
            np.fill_diagonal(unit, 1.0 + shift_of_unit)
            try:
                # The transpose is the same matrix, in the memory order of LAPACK.
                return cho_factor(unit.T, lower=True, overwrite_a=True, check_finite=False)
            except np.linalg.LinAlgError:
                # Rounding made it indefinite. A larger shift only shortens the step.
                shift_of_unit *= 10.0

    def solve(self, g: Array) -> Array:
        """The inverse of the Hessian times `g`, of shape (K d,)."""
        scaled = g * self._scale
        if self._factor is not None:
            own = scaled[self._place]
            # Gradients may be smaller than single precision holds.
            size = float(np.abs(own).max(initial=0.0))
            if 0.0 < size < np.inf:
                unit = _solved(self._factor[0], (own / size).astype(self._dtype))
                scaled[self._place] = size * unit.astype(np.float64)
        return np.asarray(self._scale * scaled, dtype=np.float64)


def _solved(factor: Array, b: Array) -> Array:
    """The solution of ``L L' x = b``; `b` is overwritten.

    `cho_solve` looks for LAPACK's function each time, which takes longer than a small solution. That function
    is made for many right-hand sides: for one, and a large factor, two calls of BLAS take less time.
    """
    double = factor.dtype == np.float64
    if b.size > ONE_CALL:
        trsv = dtrsv if double else strsv
        b = trsv(factor, b, lower=1, overwrite_x=1)
        return np.asarray(trsv(factor, b, lower=1, trans=1, overwrite_x=1))
    potrs = dpotrs if double else spotrs
    return np.asarray(potrs(factor, b, lower=1, overwrite_b=1)[0])


def _common_curvature(own: Array) -> Array:
    """Curvature for the sum over the outputs of each feature, from those by one output twice, (K, q).

    It lies between their least and their mean, so that neither is small beside it.
    """
    return np.asarray(np.sqrt(np.maximum(own.min(axis=0), 0.0) * np.maximum(own.mean(axis=0), 0.0)))
