"""Answers of linear models whose responses are functions of the linear predictor: classifiers, log links.

They lie where the rows do. A device holds no texts: labels on it are positions among the classes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from manyfit.arrays import array_namespace, block_size, float_dtype
from manyfit.families.protocol import STOPS_EARLY, Answers, Array, Role
from manyfit.families.smooth.solver._losses import expit, softmax
from manyfit.families.smooth.solver._solution import PathSolution
from manyfit.folds import Fold
from manyfit.metrics.scoring import LinearPredictors

__all__ = ["GLMAnswers", "Probabilities"]

# Predictions whose labels are checked at a time: 8 MiB of float64, several times in memory.
PREDICTED = 2**20


@dataclass(frozen=True)
class Link:
    """From linear predictors to the responses of scikit-learn's estimator."""

    classes: Array | None = None  # in the order of the outputs; None for regressors
    # Whether the estimator answers float32 rows in float32; liblinear's coefficients are float64.
    keeps_single: bool = True

    def responses(self, Z: Any) -> dict[str, Any]:
        """Responses by method name from linear predictors (m, n, K), which may be overwritten.

        They lie where `Z` does. On a device labels are positions in `classes`.
        """
        raise NotImplementedError


class LogLink(Link):
    """``exp(z)``.

    Reference: sklearn.linear_model.PoissonRegressor.predict (1.9).
    """

    def responses(self, Z: Any) -> dict[str, Any]:
        with np.errstate(over="ignore"):
            return {"predict": array_namespace(Z).exp(Z[:, :, 0])}


class Identity(Link):
    """The linear predictor itself.

    Reference: sklearn.svm.LinearSVR.predict (1.9).
    """

    def responses(self, Z: Any) -> dict[str, Any]:
        return {"predict": Z[:, :, 0]}


class Decisions(Link):
    """Decision values, and the class of the largest.

    Reference: sklearn.svm.LinearSVC (1.9): ``decision_function`` and ``predict``.
    """

    def responses(self, Z: Any) -> dict[str, Any]:
        xp = array_namespace(Z)
        decisions = Z if Z.shape[2] > 1 else Z[:, :, 0]
        codes = xp.argmax(Z, axis=2) if Z.shape[2] > 1 else xp.astype(decisions > 0, xp.int64)
        assert self.classes is not None
        labels = self.classes[codes] if isinstance(codes, np.ndarray) else codes
        return {"decision_function": decisions, "predict": labels}


class Probabilities(Decisions):
    """Decision values, the class of the largest, and the probabilities of the classes.

    Reference: sklearn.linear_model.LogisticRegression (1.9): ``decision_function``, ``predict``,
    ``predict_proba``.
    """

    def responses(self, Z: Any) -> dict[str, Any]:
        xp, out = array_namespace(Z), super().responses(Z)
        with np.errstate(over="ignore"):  # for libraries that compute with NumPy
            if Z.shape[2] > 1:
                return {**out, "predict_proba": softmax(xp.asarray(Z, copy=True), axis=2)}
            p = expit(xp.asarray(out["decision_function"], copy=True))  # in the dtype of Z
        return {**out, "predict_proba": xp.stack([1.0 - p, p], axis=2)}


@dataclass(frozen=True)
class GLMAnswers(Answers):
    """Answers that a link makes of linear predictors.

    Attributes
    ----------
    fitted : Fitted
        Linear predictors of each setting, refused ones included, and how sure they are.
    link : Link
        From linear predictors to responses.
    refused : mapping of int to str
        See `Answers`.
    """

    fitted: PathSolution
    link: Link
    refused: Mapping[int, str] = field(default_factory=dict)

    varies_within_tol = True

    @property
    def linear(self) -> LinearPredictors:
        """Linear predictors of each setting."""
        return self.fitted.linear

    @property
    def rows_read(self) -> int:  # type: ignore[override]
        """Rows of X that were read for this split, see `PathSolution`."""
        return self.fitted.rows_read

    @property
    def fits_made(self) -> int:  # type: ignore[override]
        """Fits of scikit-learn's that were made for this split."""
        return self.fitted.fits_made

    @property
    def classes(self) -> Array | None:  # type: ignore[override]
        """Classes in the order of the columns of probabilities; None for regressors."""
        return self.link.classes

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        """Linear predictors of a row."""
        return int(self.linear.coef.shape[2])

    def subset(self, settings: Sequence[int]) -> "GLMAnswers":
        """The answers of some settings."""
        return GLMAnswers(self.fitted.subset(list(settings)), self.link)

    def respond(self, role: Role, fold: Fold) -> dict[str, Any]:
        """Responses from one product of the rows with the coefficients of all settings."""
        return self.link.responses(self.linear(fold.rows(role), self.link.keeps_single))

    def shifted(self, side: float) -> "GLMAnswers":
        """Other answers that `tol` would allow, on one side (1) or the other (-1) of the optimum."""
        linear, error = self.fitted.linear, self.fitted.error
        moved = LinearPredictors(
            linear.coef + side * error.coef, linear.at_origin + side * error.at_origin, linear.origin
        )
        return replace(self, fitted=replace(self.fitted, linear=moved))

    def near_boundary(self, role: Role, fold: Fold) -> Any:
        """Number of rows whose label `tol` leaves open, (m,), where the rows lie."""
        X, (_, m, K) = fold.rows(role), self.linear.coef.shape
        size = block_size(max(1, PREDICTED // (X.shape[0] * K)))
        parts = [self.fitted.subset(range(m)[j : j + size]) for j in range(0, m, size)]
        counts = [_near(part, X, self.link.keeps_single) for part in parts]
        return counts[0] if len(counts) == 1 else array_namespace(*counts).concat(counts)


def _near(fitted: PathSolution, X: Any, keeps_single: bool) -> Any:
    Z, error = (one(X, keeps_single) for one in (fitted.linear, fitted.error))
    xp = array_namespace(Z)
    if Z.shape[2] == 1:
        # A sparse model whose coefficients are all zero has no error.
        near = ((xp.abs(Z) <= xp.abs(error)) & (error != 0.0))[:, :, 0]
    else:
        near = _lead(Z) <= xp.max(error, axis=2) - xp.min(error, axis=2)
    return xp.sum(xp.astype(near, float_dtype(Z)), axis=1)


def _lead(Z: Any) -> Any:
    """The largest along the last axis less the next."""
    if isinstance(Z, np.ndarray):
        best = np.partition(Z, -2, axis=2)[:, :, -2:]
    else:
        best = array_namespace(Z).sort(Z, axis=2)[:, :, -2:]
    return best[:, :, 1] - best[:, :, 0]


NOT_CONVERGED = "the iterations of the shared fits did not converge"


def linked_answers(fitted: Iterable[PathSolution], link: Link) -> Iterator[GLMAnswers]:
    """The answers of each split, without settings that did not converge, or may not in scikit-learn."""
    for one in fitted:
        refused = dict.fromkeys(map(int, np.flatnonzero(~one.converged)), NOT_CONVERGED)
        refused.update(dict.fromkeys(map(int, np.flatnonzero(~one.trusted)), STOPS_EARLY))
        yield GLMAnswers(one, link, refused)
