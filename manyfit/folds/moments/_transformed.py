"""Training moments of one fold behind the affine steps of a pipeline.

An affine step (scaling, rotation, choice of columns) maps moments to moments, so that a pipeline of them
needs no data: the moments change, with the map back to the columns of X.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from manyfit.exceptions import Unsupported
from manyfit.folds.moments._moments import Moments, MomentSource
from manyfit.folds.splits._atoms import Array

# A column whose standard deviation is less than so many machine epsilons of its mean may be a constant.
MIN_SPREAD_EPS = 64.0
# Entries of a map whose products with a few vectors take less time than the start of a sparse product.
SMALL_MAP = 2**15


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of a scatter matrix, largest first and not negative, and eigenvectors as columns.

    `vectors` is None for the coordinate axes.
    """

    values: Array
    vectors: Array | None

    @classmethod
    def of(cls, matrix: Array) -> "Spectrum":
        """Decompose a symmetric matrix, or a diagonal given as a vector."""
        if matrix.ndim == 1:
            if np.all(matrix[1:] <= matrix[:-1]):
                return cls(matrix, None)
            order = np.argsort(-matrix)
            return cls(matrix[order], np.eye(matrix.size)[:, order])
        values, vectors = np.linalg.eigh(matrix)
        return cls(np.maximum(values[::-1], 0.0), vectors[:, ::-1])

    @cached_property
    def oriented(self) -> Array:
        """Eigenvectors with the signs of ``sklearn.utils.extmath.svd_flip(u_based_decision=False)``."""
        vectors = np.eye(self.values.size) if self.vectors is None else self.vectors
        largest = np.argmax(np.abs(vectors), axis=0)
        return vectors * np.sign(vectors[largest, np.arange(vectors.shape[1])])

    def onto_axes(self, b: Array) -> Array:
        """Coordinates of the columns of `b` along the eigenvectors."""
        return b if self.vectors is None else self.vectors.T @ b

    def from_axes(self, b: Array) -> Array:
        """The inverse of `onto_axes`."""
        return b if self.vectors is None else self.vectors @ b


class StepNotes(NamedTuple):
    """Errors and warnings of scikit-learn's steps on the rows of a fold, which a search repeats."""

    unscored: str = ""  # why it cannot transform the test rows; empty if it can
    warnings: tuple[str, ...] = ()  # the texts of its warnings

    def joined(self, other: "StepNotes") -> "StepNotes":
        """The notes of two steps."""
        warnings = tuple(dict.fromkeys([*self.warnings, *other.warnings]))
        return StepNotes(self.unscored or other.unscored, warnings)


NO_NOTES = StepNotes()


@dataclass(frozen=True)
class FeatureMoments:
    """Moments of features and targets, in the coordinates of one step; float64, on the host.

    `rows` counts repetitions, `weight` sums the weights. The mean of the features is `x_origin`, a point amid
    the data, plus `x_offset`, (p,). `xx` is the centred scatter of the features, (p, p), a vector if it is
    diagonal; `xy`, (p, q), and `yy`, (q,), are those with and of the targets.
    """

    rows: float
    weight: float
    x_origin: Array
    x_offset: Array
    y_mean: Array
    xx: Array
    xy: Array
    yy: Array

    @classmethod
    def split(cls, moments: Moments, p: int) -> "FeatureMoments":
        """The moments of ``[X, y]`` with X in the first `p` columns."""
        scatter = moments.scatter
        return cls(
            moments.rows, moments.weight, moments.origin[:p], moments.offset[:p], moments.mean[p:],
            scatter[:p, :p], scatter[:p, p:], np.diagonal(scatter)[p:],
        )  # fmt: skip

    @property
    def x_mean(self) -> Array:
        """Weighted mean of the features, of shape (p,)."""
        return self.x_origin + self.x_offset

    @cached_property
    def variances(self) -> Array:
        """Population variance of each feature."""
        diagonal = self.xx if self.xx.ndim == 1 else np.diagonal(self.xx)
        return diagonal / self.weight

    @cached_property
    def _spectra(self) -> dict[str, Spectrum]:
        return {}

    @property
    def spectrum(self) -> Spectrum:
        """Eigendecomposition of the centred scatter; computed once for all steps and settings."""
        if "centred" not in self._spectra:
            self._spectra["centred"] = Spectrum.of(self.xx)
        return self._spectra["centred"]

    @property
    def raw_spectrum(self) -> Spectrum:
        """Eigendecomposition of the scatter about the origin, for models without an intercept."""
        if "raw" not in self._spectra:
            # After centring the mean is rounding: no more than the rounding of the scatter.
            rounding = np.finfo(np.float64).eps ** 2 * (self.variances * self.weight)
            is_centred = np.all(self.weight * self.x_mean**2 <= rounding)
            self._spectra["raw"] = self.spectrum if is_centred else Spectrum.of(self.raw_xx)
        return self._spectra["raw"]

    @property
    def raw_xx(self) -> Array:
        """Scatter of the features about the origin, (p, p)."""
        xx = np.diag(self.xx) if self.xx.ndim == 1 else self.xx
        return xx + self.weight * np.outer(self.x_mean, self.x_mean)

    @cached_property
    def raw_xy(self) -> Array:
        """Scatter of features and targets about the origin."""
        return self.xy + self.weight * np.outer(self.x_mean, self.y_mean)

    def scaled(self, shift: Array, scale: Array) -> "FeatureMoments":
        """Features ``(x - shift) / scale``."""
        xx = self.xx / scale**2 if self.xx.ndim == 1 else self.xx / scale / scale[:, None]
        return replace(
            self,
            x_origin=(self.x_origin - shift) / scale,
            x_offset=self.x_offset / scale,
            xx=xx,
            xy=self.xy / scale[:, None],
        )

    def selected(self, index: Array) -> "FeatureMoments":
        """Some of the features."""
        xx = self.xx[index] if self.xx.ndim == 1 else self.xx[np.ix_(index, index)]
        return replace(
            self, x_origin=self.x_origin[index], x_offset=self.x_offset[index], xx=xx, xy=self.xy[index]
        )

    def with_targets(self, shift: Array, scale: Array) -> "FeatureMoments":
        """Targets ``(y - shift) / scale``."""
        return self._same_features((self.y_mean - shift) / scale, self.xy / scale, self.yy / scale**2)

    def of_targets(self, index: Any) -> "FeatureMoments":
        """Some of the targets."""
        return self._same_features(self.y_mean[index], self.xy[:, index], self.yy[index])

    def _same_features(self, y_mean: Array, xy: Array, yy: Array) -> "FeatureMoments":
        """The same features with other targets; eigendecompositions are computed once for all."""
        found = replace(self, y_mean=y_mean, xy=xy, yy=yy)
        found.__dict__["_spectra"] = self._spectra
        return found

    def mapped(self, matrix: Any, constant: Array) -> "FeatureMoments":
        """Features ``x @ matrix + constant``, with a sparse matrix of shape (p, p_new)."""
        return replace(
            self,
            x_origin=self.x_origin @ matrix + constant,
            x_offset=self.x_offset @ matrix,
            xx=(matrix.T @ (matrix.T @ self.xx).T).T,
            xy=matrix.T @ self.xy,
        )

    def rotated(self, shift: Array, vectors: Array, diagonal: Array | None = None) -> "FeatureMoments":
        """Features ``(x - shift) @ vectors``; `diagonal` is their scatter where it is known to be so."""
        xx = self.xx
        if diagonal is None:
            diagonal = vectors.T @ (xx[:, None] * vectors if xx.ndim == 1 else xx @ vectors)
        return replace(
            self,
            x_origin=(self.x_origin - shift) @ vectors,
            x_offset=self.x_offset @ vectors,
            xx=diagonal,
            xy=vectors.T @ self.xy,
        )


@dataclass(frozen=True)
class TransformedMoments:
    """The training set of one fold after some affine steps ``z = (x - origin) @ linear + z_origin``."""

    plain: FeatureMoments  # without weights, as transformers are fitted
    # With the weights of the fit, for the last step. The same object if there are none.
    weighted: FeatureMoments
    # (p_X,), a point amid the data, so that the map loses no digits if X lies far from 0; ``z_origin`` is
    # ``plain.x_origin``.
    origin: Array
    # None: the identity; (p,): factors of columns `columns` of X; or (p_X, p), sparse without moments.
    linear: Any
    columns: Array | None  # (p,), the column of X behind each feature; None after a rotation
    # ``is_constant(columns)`` says which columns of X hold one value in the training set, exactly.
    is_constant: Callable[[Array], Array]
    eps: float  # machine epsilon of the dtype of X, in which scikit-learn would compute
    single_target: bool  # whether y is one-dimensional
    is_sparse: bool = False  # whether scikit-learn has the features as a sparse matrix
    # (p,), variances that the features would have if the columns that make up each of them all moved
    # together: rounding of the variances is relative to these. None if that is not known.
    sizes: Array | None = None
    notes: StepNotes = NO_NOTES

    @classmethod
    def root(
        cls,
        plain: Moments,
        weighted: Moments,
        is_constant: Callable[[Array], Array],
        X: MomentSource,
        single_target: bool,
    ) -> "TransformedMoments":
        """The training set before any step: the columns of X itself."""
        p = X.shape[1]
        constant = _constant_columns(plain, p, is_constant)
        features = FeatureMoments.split(_cleared(plain, constant), p)
        behind = features if weighted is plain else FeatureMoments.split(_cleared(weighted, constant), p)
        eps = float(np.finfo(X.dtype if X.dtype.kind == "f" else np.float64).eps)
        origin = features.x_origin
        return cls(features, behind, origin, None, np.arange(p), is_constant, eps, single_target)

    @classmethod
    def of_map(cls, origin: Array, matrix: Any, constant: Array, n_rows: int) -> "TransformedMoments":
        """Features ``x @ matrix + constant``, with a sparse matrix, whose moments are not known.

        Passes over the rows need no more. They use it often: a small matrix is kept as an array.
        """
        none = np.empty(0)
        features = FeatureMoments(
            float(n_rows), float(n_rows), origin @ matrix + constant, np.zeros(constant.size), none,
            none, none, none,
        )  # fmt: skip
        if matrix.shape[0] * matrix.shape[1] <= SMALL_MAP:
            matrix = matrix.toarray()
        eps = float(np.finfo(np.float64).eps)
        return cls(features, features, origin, matrix, None, lambda columns: columns < 0, eps, True)

    @property
    def n_features(self) -> int:
        """Number of features after the steps."""
        return self.plain.x_mean.size

    def _behind(
        self, step: Callable[[FeatureMoments], FeatureMoments], **changes: Any
    ) -> "TransformedMoments":
        """The moments behind a step, and other changes."""
        plain = step(self.plain)
        weighted = plain if self.weighted is self.plain else step(self.weighted)
        return replace(self, plain=plain, weighted=weighted, **changes)

    def scaled(self, shift: Array, scale: Array) -> "TransformedMoments":
        """Features ``(z - shift) / scale``."""
        return self._behind(
            lambda m: m.scaled(shift, scale),
            linear=1.0 / scale if self.linear is None else self.linear / scale,
            sizes=None if self.sizes is None else self.sizes / scale**2,
        )

    def selected(self, index: Array) -> "TransformedMoments":
        """Some of the features."""
        linear = np.ones(self.n_features) if self.linear is None else self.linear
        return self._behind(
            lambda m: m.selected(index),
            linear=linear[..., index],
            columns=None if self.columns is None else self.columns[index],
            sizes=None if self.sizes is None else self.sizes[index],
        )

    def rotated(self, shift: Array, vectors: Array, diagonal: Array | None = None) -> "TransformedMoments":
        """Features ``(z - shift) @ vectors``; `diagonal` is their plain scatter if known to be diagonal."""
        changes = {"linear": self.to_X(vectors), "columns": None, "sizes": None}
        return self._behind(
            lambda m: m.rotated(shift, vectors, diagonal if m is self.plain else None), **changes
        )

    def with_targets(self, shift: Array, scale: Array) -> "TransformedMoments":
        """Targets ``(y - shift) / scale``."""
        return self._behind(lambda m: m.with_targets(shift, scale))

    def of_targets(self, index: Any) -> "TransformedMoments":
        """Some of several targets, or one alone."""
        return self._behind(
            lambda m: m.of_targets(index), single_target=self.single_target or len(index) == 1
        )

    def for_targets(self, y_mean: Array, xy: Array, yy: Array) -> "TransformedMoments":
        """The same features with q other targets; `xy`, (p_X, q), is their scatter with the columns of X.

        Weights have to be none, and the steps to read no target.
        """
        assert self.weighted is self.plain
        of_y = y_mean, self.from_X(xy), yy
        return self._behind(lambda m: m._same_features(*of_y), single_target=y_mean.size == 1)

    def mapped(self, matrix: Any, constant: Array) -> "TransformedMoments":
        """Features ``x @ matrix + constant`` of the columns of X, with a sparse matrix of shape (p_X, p)."""
        assert self.linear is None
        sizes = (abs(matrix).T @ np.sqrt(self.plain.variances)) ** 2
        changes = {"linear": matrix.toarray(), "columns": None, "sizes": sizes}
        return self._behind(lambda m: m.mapped(matrix, constant), **changes)

    @property
    def _columns(self) -> Array:
        assert self.columns is not None  # only a rotation loses them, and makes `linear` a matrix
        return self.columns

    def from_X(self, gradient: Array) -> Array:
        """Derivatives by coefficients of X, (p_X, m), as derivatives by those of the features, (p, m)."""
        if self.linear is None:
            return gradient
        if self.linear.ndim == 2:
            return self.linear.T @ gradient
        return self.linear[:, None] * gradient[self._columns]

    def squares_from_X(self, diagonal: Array) -> Array:
        """Second derivatives by coefficients of X, (p_X, m), as such by those of the features, (p, m).

        They are approximate if a feature is made of several columns.
        """
        if self.linear is None:
            return diagonal
        if self.linear.ndim == 2:
            squares = self.linear**2 if isinstance(self.linear, np.ndarray) else self.linear.power(2)
            return np.asarray(squares.T @ diagonal)
        return self.linear[:, None] ** 2 * diagonal[self._columns]

    def to_X(self, coef: Array) -> Array:
        """Coefficients of the features, (p, m), as coefficients of the columns of X, (p_X, m)."""
        if self.linear is None:
            return coef
        if self.linear.ndim == 2:
            return self.linear @ coef
        out = np.zeros((self.origin.size, coef.shape[1]))
        out[self.columns] = self.linear[:, None] * coef
        return out


def _constant_columns(moments: Moments, p: int, is_constant: Callable[[Array], Array]) -> Array:
    """The columns of X that hold one value, exactly; columns with a variance above rounding are not read.

    Raises `Unsupported` if a column is not constant, but its variance may be rounding.
    """
    mean, variance = moments.mean[:p], np.diagonal(moments.scatter)[:p] / moments.weight
    doubtful = np.flatnonzero(~(variance > (MIN_SPREAD_EPS * np.finfo(np.float64).eps * mean) ** 2))
    constant = is_constant(doubtful) if doubtful.size else np.empty(0, dtype=bool)
    if not constant.all():
        raise Unsupported("a feature is nearly constant: rounding decides")
    return doubtful


def _cleared(moments: Moments, constant: Array) -> Moments:
    """The moments with the scatter of constant columns exactly 0, not its rounding."""
    if not constant.size:
        return moments
    scatter = moments.scatter.copy()
    scatter[constant] = 0.0
    scatter[:, constant] = 0.0
    return replace(moments, scatter=scatter)
