"""LinearDiscriminantAnalysis: one eigendecomposition of the covariance within classes for all settings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from manyfit._compat import lda_svd_divisor
from manyfit.families.generative._answers import (
    ClassAnswers,
    class_answers,
    given_priors,
    in_row_blocks,
    rowwise,
    strict_arithmetic,
)
from manyfit.families.generative._ledoit_wolf import ClassRows
from manyfit.families.protocol import (
    Array,
    ClassSums,
    Cost,
    Family,
    Responses,
    Setting,
    Settings,
    Shape,
    register_family,
    require_number,
)
from manyfit.folds import ClassedFold, ClassMoments, SingleFold, SomeRows, Unsupported

# scikit-learn's solvers and ours round differently. Settings for which that could move a decision value by
# more than this are left to scikit-learn, and so are rows as near as that to the boundary of two classes.
MOST_ROUNDING = 1e-8
# A bound of that difference in units of the machine epsilon and of ``condition * squared size``.
ROUNDING = 8.0
# Below this ratio of the extreme eigenvalues scikit-learn's least squares may drop a direction.
MIN_SPECTRAL_RATIO = 1e-12


METHODS = ("predict", "decision_function", "predict_proba")


class Discriminant(NamedTuple):
    """One setting: scores ``(x - origin) @ coef + at_origin`` of the classes, up to a number for each row.

    That number is ``(x - origin) @ common + common_at_origin`` for scikit-learn.
    """

    coef: Array  # (p, n_classes)
    at_origin: Array  # (n_classes,)
    common: Array  # (p,)
    common_at_origin: float
    rounding: float


class LinearDiscriminantFamily(Family):
    """LinearDiscriminantAnalysis from the moments of each class.

    All solvers have the scores ``x' C^-1 m - m' C^-1 m / 2 + log(prior)`` of a class with mean m, where C is
    the covariance within classes: shrunken for "lsqr" and "eigen", pooled for "svd". ``shrinkage="auto"``
    shrinks that of each class by itself.

    Reference: sklearn.discriminant_analysis.LinearDiscriminantAnalysis (1.9): ``_solve_lstsq``,
    ``_solve_eigen`` and ``_solve_svd``.
    """

    serves = (LinearDiscriminantAnalysis,)
    free = frozenset({"shrinkage", "priors", "tol"})
    result: Literal["exact"] = "exact"
    reads = ClassSums(device=False, products=True)

    def check(self, estimator: Any, settings: Settings) -> None:
        if estimator.covariance_estimator is not None:
            raise Unsupported("an estimator of covariances is fitted for each setting")
        for setting in settings:
            shrinkage = setting["shrinkage"]
            if shrinkage is not None:
                if estimator.solver == "svd":
                    raise Unsupported("solver='svd' does not shrink")
                if shrinkage != "auto":
                    require_number("shrinkage", shrinkage)
            require_number("tol", setting["tol"])

    def cost(self, estimator: Any, settings: Settings, shape: Shape) -> Cost:
        p, m, k, C = shape.n_features, len(settings), shape.n_splits, max(shape.n_classes, 1)
        sums, solution = shape.n_train * (p + 20.0) * p, 30.0 * p**3
        predictions = 2.0 * shape.n_test * p * C
        return Cost(k * (sums + solution + m * predictions), m * k * (2.0 * sums + solution + predictions))

    def fit_many(
        self, estimator: Any, settings: Settings, folded: ClassedFold | SingleFold
    ) -> Iterator[ClassAnswers]:
        for i in range(folded.n_splits):
            classes, rows = _classes(folded, i)
            _require_components(estimator, classes)
            if estimator.solver != "svd" and classes.origin.size == 1:
                raise Unsupported("shrinkage leaves one column as it is: rounding would rank settings")
            spectra: dict[Any, Spectrum] = {}
            make = partial(_discriminant, classes, rows, estimator.solver, spectra)
            yield class_answers(make, settings, partial(_predictions, classes), classes.labels, 0)


def _classes(folded: ClassedFold | SingleFold, i: int) -> tuple[ClassMoments, ClassRows]:
    fold = folded.fold(i)
    if fold.y_train.ndim != 1:
        raise Unsupported("y has several columns")
    if isinstance(folded, SingleFold) and folded.X.dtype == np.float32:
        raise Unsupported("scikit-learn rounds to float32")
    found = folded.class_moments(i)
    if len(found.labels) < 2 or len(found.labels) == found.counts.sum():
        raise Unsupported("the training rows have one class, or each a class of its own")
    if not (np.isfinite(found.scatters).all() and np.isfinite(found.offsets).all()):
        raise Unsupported("the training rows have no finite moments")
    covariances = found.scatters / found.counts[:, None, None]
    is_in_chunks = isinstance(folded, ClassedFold) and folded.is_in_chunks
    return found, ClassRows(fold, found.labels, found.origin + found.offsets, covariances, is_in_chunks)


def _require_components(estimator: Any, classes: ClassMoments) -> None:
    n, most = estimator.n_components, min(len(classes.labels) - 1, classes.origin.size)
    if n is not None and n > most:
        raise Unsupported(f"n_components={n} is larger than {most}")


@dataclass(frozen=True)
class Spectrum:
    """A covariance matrix, with its eigenvalues in ascending order and eigenvectors."""

    covariance: Array

    @cached_property
    def _pair(self) -> tuple[Array, Array]:
        return tuple(np.linalg.eigh(self.covariance))  # type: ignore[return-value]

    @property
    def values(self) -> Array:
        """Eigenvalues, (p,)."""
        return self._pair[0]

    @property
    def vectors(self) -> Array:
        """Eigenvectors, (p, p), in columns."""
        return self._pair[1]


def _discriminant(
    classes: ClassMoments, rows: ClassRows, solver: str, spectra: dict[Any, Spectrum], setting: Setting
) -> Discriminant:
    n, C = int(classes.counts.sum()), len(classes.labels)
    priors = classes.counts / float(n)
    if setting["priors"] is not None:
        priors = given_priors(setting["priors"], C)
    pooled = solver == "svd"
    if not pooled and (classes.counts == 1).any():
        raise Unsupported("scikit-learn warns of a class of one row")
    shares = np.full(C, 1.0 / lda_svd_divisor(n, C)) if pooled else priors / classes.counts
    scale = _deviations(classes) if pooled else np.ones(classes.origin.size)
    own = setting["shrinkage"] == "auto"  # a shrinkage of each class
    key = shares.tobytes(), own
    if key not in spectra:
        covariance = np.tensordot(*((priors, rows.shrunk) if own else (shares, classes.scatters)), axes=1)
        spectra[key] = Spectrum(covariance / np.outer(scale, scale))
    spectrum, shrinkage = spectra[key], 0.0 if own else setting["shrinkage"] or 0.0
    values = (1.0 - shrinkage) * spectrum.values + shrinkage * spectrum.values.mean()
    if not values[0] > MIN_SPECTRAL_RATIO * values[-1]:
        raise Unsupported("the covariance matrix within classes is (nearly) singular")
    # Means less their mean: a common part of all means does not tell classes apart, and has its own rounding.
    center = priors @ classes.offsets
    apart = (classes.offsets - center) / scale
    along = spectrum.vectors / values
    coef = along @ (spectrum.vectors.T @ apart.T)
    at_center = -0.5 * np.einsum("cp,pc->c", apart, coef) + np.log(priors)
    if pooled:
        middle = np.zeros(len(center))
        whitened = (apart @ spectrum.vectors) / np.sqrt(values)
        _require_rank(values, np.sqrt(n * priors / (C - 1))[:, None] * whitened, setting["tol"])
    else:
        middle = classes.origin + center
    rounding = _rounding((apart + middle) @ spectrum.vectors, values)
    common, coef = along @ (spectrum.vectors.T @ middle), coef / scale[:, None]
    common_at_origin = 0.5 * float(middle @ common) - float(center @ common)
    return Discriminant(coef, at_center - center @ coef, common, common_at_origin, rounding)


def _deviations(classes: ClassMoments) -> Array:
    """Standard deviations of the columns within the classes, by which "svd" scales them."""
    deviations = np.sqrt(np.diagonal(classes.scatters.sum(axis=0)) / classes.counts.sum())
    if not (deviations > 0).all():
        raise Unsupported("a column is constant within the classes")
    return np.asarray(deviations)


def _rounding(means: Array, values: Array) -> float:
    """How far scikit-learn's scores and ours may lie apart; refused if that is far.

    `means`, (n_classes, p), are along the axes of the covariance matrix whose eigenvalues are `values`. They
    count from zero for "lsqr" and "eigen", so that a large common part is lost to rounding.
    """
    size = np.sqrt((means**2 / values).sum(axis=1).max()) + np.sqrt(len(values))
    bound = ROUNDING * np.finfo(np.float64).eps * values[-1] / values[0] * float(size) ** 2
    if bound > MOST_ROUNDING:
        raise Unsupported("the scales of the columns, or their distance from zero, would show in scores")
    return float(bound)


def _require_rank(squares: Array, between: Array, tol: float) -> None:
    """Refuse settings of "svd" whose `tol` drops a direction within or between the classes, or may do so.

    `squares` are squared singular values within the classes; `between`, (n_classes, p), are the means that
    scikit-learn decomposes next.
    """
    least = max(1.001 * tol, 1e-6)
    if not squares[0] > least**2:
        raise Unsupported("tol drops a direction within the classes")
    singular = np.linalg.svd(between, compute_uv=False)[: min(len(between) - 1, len(squares))]
    if not singular[-1] > least * singular[0]:
        raise Unsupported("tol drops a direction between the classes")


def _predictions(classes: ClassMoments, X: Any, models: Sequence[Discriminant]) -> Responses:
    if isinstance(X, SomeRows):

        def of_all(name: str) -> Array:
            return rowwise(partial(_response, classes, models, name), X, axis=1)[0]

        return Responses(**{name: partial(of_all, name) for name in METHODS})
    labels, binary = classes.labels, len(classes.labels) == 2
    rounding = np.array([one.rounding for one in models])

    @cache
    def centred() -> Array:
        return np.asarray(X - classes.origin)

    @cache
    def scores() -> Array:
        """Scores of the classes, (m, n, n_classes)."""
        coef = np.concatenate([one.coef for one in models], axis=1)
        found = (centred() @ coef).reshape(len(X), len(models), -1)
        found += np.stack([one.at_origin for one in models])
        found = np.ascontiguousarray(found.transpose(1, 0, 2))
        best = np.partition(found, -2, axis=2)[:, :, -2:]
        _require_clear((best[:, :, 1] - best[:, :, 0]).min(axis=1), rounding)
        return found

    def decisions() -> Array:
        if binary:
            return np.asarray(scores()[:, :, 1] - scores()[:, :, 0])
        common = centred() @ np.stack([one.common for one in models], axis=1)
        common += np.array([one.common_at_origin for one in models])
        return np.asarray(scores() + common.T[:, :, np.newaxis])

    def probabilities() -> Array:
        if binary:
            p = expit(scores()[:, :, 1] - scores()[:, :, 0])
            return np.stack([1 - p, p], axis=2)
        with strict_arithmetic():
            shares = np.exp(scores() - scores().max(axis=2, keepdims=True))
            return np.asarray(shares / shares.sum(axis=2, keepdims=True))

    return Responses(
        predict=lambda: labels[_codes(X, classes.origin, models, rounding)],
        decision_function=decisions,
        predict_proba=probabilities,
    )


def _response(classes: ClassMoments, models: Sequence[Discriminant], name: str, X: Array) -> tuple[Array]:
    """A response for rows in memory."""
    return (_predictions(classes, X, models)[name],)


def _codes(X: Array, origin: Array, models: Sequence[Discriminant], rounding: Array) -> Array:
    """Positions of the classes of the largest scores, (m, n)."""
    m, n_classes = len(models), len(models[0].at_origin)
    coef = np.stack([one.coef.T for one in models], axis=1).reshape(n_classes * m, -1)
    at_origin = np.stack([one.at_origin for one in models], axis=1)[:, :, np.newaxis]

    def of_block(rows: Array) -> tuple[Array, Array]:
        scores = (coef @ (rows - origin).T).reshape(n_classes, m, len(rows))
        scores += at_origin
        codes, best, second = np.zeros(scores.shape[1:], dtype=np.intp), scores[0], np.full(1, -np.inf)
        for c, score in enumerate(scores[1:], 1):
            np.copyto(codes, c, where=score > best)
            second = np.maximum(second, np.minimum(best, score))
            best = np.maximum(best, score)
        return codes, (best - second).min(axis=1, initial=np.inf)

    width = X.shape[1] + n_classes * m
    codes, leads = zip(*in_row_blocks(of_block, X, width), strict=True)
    _require_clear(np.min(leads, axis=0), rounding)
    return np.concatenate(codes, axis=1)


def _require_clear(leads: Array, rounding: Array) -> None:
    """Refuse settings with a row whose label rounding decides, by the least lead of its largest score."""
    if not (leads > rounding).all():
        raise Unsupported("a row to score lies on the boundary of two classes, to rounding")


register_family(LinearDiscriminantFamily())
