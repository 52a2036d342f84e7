"""Support vector machines: one kernel matrix of a fold serves all fits of libsvm."""

import copy
import itertools
import numbers
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.base import clone, is_classifier
from sklearn.svm import SVC, SVR, NuSVC, NuSVR

from manyfit._compat import svm_on_rows
from manyfit.families.kernels._single_precision import (
    EPS,
    KernelFunction,
    KernelRows,
    SigmoidFunction,
    SparseKernelRows,
    blocks,
)
from manyfit.families.protocol import (
    Array,
    Cost,
    FoldFamily,
    ModelAnswers,
    Responses,
    Setting,
    Settings,
    Shape,
    refused_warnings,
    register_family,
    require_number,
)
from manyfit.folds import Fold, Unsupported

KERNELS = ("linear", "poly", "rbf", "sigmoid")
# Nanoseconds for an entry of a kernel matrix: of a fit and its predictions by libsvm, from rows and for each
# of their columns, and from a kernel matrix; of a kernel matrix, with a look at the rounding of each entry.
FROM_ROWS, PER_COLUMN, FROM_MATRIX = 9.0, 0.25, 6.5
MATRIX, PRODUCT = {"rbf": 7.0, "poly": 10.5, "linear": 10.5, "sigmoid": 14.0}, 0.02
# The same of sparse rows: a product, and what each entry of a row adds to a fit.
SPARSE_PRODUCT, PER_ENTRY = 40.0, 10.0
# Nanoseconds of what a fold takes beside.
OF_FOLD = 1e6
# Predictions that may be off by more, relative to their range, are made from the rows.
MOST_ERROR = 1e-11
# Numbers of a kernel matrix of rows to predict that are in memory at once: 32 MB.
PREDICTED = 2**22


class SupportVectorFamily(FoldFamily):
    """SVC, NuSVC, SVR and NuSVR: libsvm gets the kernel matrix, computed once a fold.

    The fits are libsvm's own, equal to the bit: see `_single_precision`. Predictions read a kernel matrix
    too; labels that its last digits could change are predicted again from the rows. In memory are the
    products of the training rows and one kernel matrix.
    """

    def __init__(self, cls: type) -> None:
        self.serves = (cls,)
        own = {"C", "nu", "epsilon"} & set(cls().get_params())
        self.free = frozenset({"gamma", "coef0", "degree", "tol", *own})

    def check(self, estimator: Any, settings: Settings) -> None:
        kernel = estimator.kernel
        if not isinstance(kernel, str) or kernel not in KERNELS:
            shown = repr(kernel) if isinstance(kernel, str) else "a function"
            raise Unsupported(f"kernel is {shown}; kernel matrices of {', '.join(KERNELS)} are shared")
        for name in ("probability", "verbose", "break_ties"):
            if getattr(estimator, name, False) not in (False, "deprecated"):
                raise Unsupported(f"{name}={getattr(estimator, name)!r} is fitted by scikit-learn alone")
        for setting in settings:
            _require_numbers(setting)

    def cost(self, estimator: Any, settings: Settings, shape: Shape) -> Cost:
        n, p, k = float(shape.n_train), shape.n_features, shape.n_splits
        matrices = len({(s["gamma"], s["coef0"], s["degree"]) for s in settings})
        product, of_row = PRODUCT * p, PER_COLUMN * p
        if shape.n_entries is not None:
            product, of_row = SPARSE_PRODUCT, PER_ENTRY * shape.n_entries / max(n, 1.0)
        shared = product + matrices * MATRIX[estimator.kernel] + len(settings) * FROM_MATRIX
        individual = len(settings) * (FROM_ROWS + of_row)
        memory = int(8 * n * n) * (1 + (matrices > 1))
        return Cost(k * (OF_FOLD + n * n * shared), k * n * n * individual, k * len(settings), memory)

    def fit_fold(self, estimator: Any, settings: Settings, fold: Fold) -> ModelAnswers:
        if np.ndim(fold.y_train) != 1:
            raise Unsupported("y has several columns")
        if fold.fit_weight is not None and not (fold.fit_weight > 0).all():
            # libsvm drops these rows; scikit-learn then counts columns of a kernel matrix without them.
            raise Unsupported("some weights are not positive")
        X = _readable(fold.X_train)
        rows = KernelRows(X) if isinstance(X, np.ndarray) else SparseKernelRows(X)
        weights = {} if fold.fit_weight is None else {"sample_weight": fold.fit_weight}
        functions = [_kernel_function(estimator, setting, rows.X) for setting in settings]
        models, refused = dict[int, Any](), dict[int, str]()
        for j, matrix in _kernel_matrices(rows, functions, refused):
            model = clone(estimator).set_params(**settings[j], kernel="precomputed")
            try:
                with refused_warnings("a fit"):
                    model.fit(matrix, fold.y_train, **weights)
                models[j] = model
            except Unsupported as error:
                refused[j] = str(error)
                if model.max_iter != -1:
                    # Others of the fold are likely to end at max_iter, too, and be fitted again.
                    refused.update({i: str(error) for i in range(len(settings)) if i not in models})
                    break
        bare = [clone(estimator).set_params(**setting) for setting in settings]
        places = range(len(settings))
        found = [Fitted(bare[j], rows, functions[j], models[j]) if j in models else None for j in places]
        classes = next(iter(models.values())).classes_ if models and is_classifier(estimator) else None
        return ModelAnswers(found, _responses, refused, classes, fits_made=len(models))


def _require_numbers(setting: Setting) -> None:
    """Raise `Unsupported` for a number that scikit-learn refuses, or computes with in its own way."""
    for name, value in setting.items():
        if name == "gamma" and isinstance(value, str):
            if value not in ("scale", "auto"):
                raise Unsupported(f"gamma={value!r} is not known")
        elif name == "coef0":
            require_number("coef0", abs(value) if isinstance(value, numbers.Real) else value)
        else:
            require_number(name, value, positive=name in ("C", "nu", "tol"))
        if name == "degree" and not isinstance(value, numbers.Integral):
            raise Unsupported(f"degree={value!r} is not an integer")


def _kernel_function(estimator: Any, setting: Setting, X: Any) -> KernelFunction:
    """The kernel function of a setting, as scikit-learn has it for the training rows."""
    gamma = setting["gamma"]
    if estimator.kernel == "linear":
        return KernelFunction(1.0, 0.0, 1)
    if gamma == "scale":
        variance = X.var() if isinstance(X, np.ndarray) else X.multiply(X).mean() - X.mean() ** 2
        gamma = 1.0 / (X.shape[1] * variance) if variance != 0 else 1.0
    elif gamma == "auto":
        gamma = 1.0 / X.shape[1]
    if estimator.kernel == "rbf":
        return KernelFunction(float(gamma))
    if estimator.kernel == "sigmoid":
        return SigmoidFunction(float(gamma), float(setting["coef0"]))
    return KernelFunction(float(gamma), float(setting["coef0"]), int(setting["degree"]))


def _kernel_matrices(
    rows: KernelRows, functions: Sequence[KernelFunction], refused: dict[int, str]
) -> Iterator[tuple[int, Array]]:
    """Settings with their kernel matrix, which lasts until the next; those without one are `refused`."""
    distinct, products = list(dict.fromkeys(functions)), rows.products()
    matrix = np.empty_like(products) if len(distinct) > 1 else products
    for function in distinct:
        members = [j for j, own in enumerate(functions) if own == function]
        try:
            rows.matrix(function, products, out=matrix)
        except Unsupported as error:
            refused.update(dict.fromkeys(members, str(error)))
            continue
        for j in members:
            yield j, matrix


def _readable(X: Any) -> Any:
    """Rows as scikit-learn gives them to libsvm."""
    if not (isinstance(X, np.ndarray) or scipy.sparse.issparse(X)):
        raise Unsupported("the rows lie on a device")
    if 0 in X.shape:
        raise Unsupported("there are no rows or no columns")
    if isinstance(X, np.ndarray):
        X = np.ascontiguousarray(X, dtype=np.float64)
    else:
        X = X.astype(np.float64)  # a copy
        X.sort_indices()
        if not X.nnz or not X.has_canonical_format or X.indices.dtype != np.int32:
            raise Unsupported("the sparse rows have no entries, or repeated or too many ones")
    if not np.isfinite(X if isinstance(X, np.ndarray) else X.data).all():
        raise Unsupported("X holds NaN or infinity")
    return X


class Fitted(NamedTuple):
    """What is fitted for a setting."""

    estimator: Any  # with its parameters
    rows: KernelRows  # the training rows
    function: KernelFunction
    model: Any  # fitted on a kernel matrix

    def on_rows(self) -> Any:
        """The model as scikit-learn's fit on rows gives it."""
        return svm_on_rows(clone(self.estimator), self.model, self.rows.X, self.function.gamma)

    def error(self, X: Any) -> float:
        """A bound of how far numbers for rows X may be from scikit-learn's."""
        largest = max(self.rows.largest, float(self.rows.squares_of(X).max()))
        one = self.function.absolute_error(self.rows.product_error(largest, X), largest)
        size = self.function.largest_value(largest) + one
        weight = float(np.abs(self.model.dual_coef_).sum())
        return weight * (one + (len(self.model.support_) + 2) * EPS * size)


def _responses(X: Any, fitted: Sequence[Fitted]) -> Responses:
    found = _Predictor(_readable(X), fitted)
    if not is_classifier(fitted[0].estimator):
        return Responses(predict=found.numbers)
    return Responses(predict=found.labels, decision_function=found.values)


class _Predictor:
    """Predictions for some rows X by what is fitted for each setting."""

    def __init__(self, X: Any, fitted: Sequence[Fitted]) -> None:
        self._X, self._fitted, self._models = X, fitted, [one.model for one in fitted]

    def numbers(self) -> Array:
        """Predictions of regressors, (n_settings, n)."""
        X, found = self._X, np.empty((len(self._models), self._X.shape[0]))
        for j, part, K in self._kernels():
            found[j, part] = self._models[j].predict(K)
        for one, predicted in zip(self._fitted, found, strict=True):
            # Rounding errors of many products add up as their squares do.
            likely = one.error(X) / np.sqrt((X.shape[1] + 2.0) * (len(one.model.support_) + 1.0))
            if not (np.isfinite(likely) and likely <= MOST_ERROR * np.ptp(predicted)):
                predicted[:] = one.on_rows().predict(X)
        return found

    def _kernels(self) -> Iterator[tuple[int, slice, Array]]:
        """Kernel values of a block of the rows for a setting, (block, n_train), until the next."""
        places, rows = dict[KernelFunction, list[int]](), self._fitted[0].rows
        for j, one in enumerate(self._fitted):
            places.setdefault(one.function, []).append(j)
        for part in blocks(self._X.shape[0], rows.X.shape[0], PREDICTED):
            products, squares = rows.against(self._X[part])
            for function, members in places.items():
                K = function.values(products, squares)
                if not np.isfinite(K).all():
                    raise Unsupported("kernel values overflow")
                for j in members:
                    yield j, part, K

    def labels(self) -> Array:
        """Labels (n_settings, n), equal to the bit to scikit-learn's."""
        found = []
        for j, votes in enumerate(self._of_pairs()):
            labels = _elected(self._models[j].classes_, votes)
            doubtful = np.flatnonzero((np.abs(votes) <= self._fitted[j].error(self._X)).any(axis=1))
            if doubtful.size:
                labels[doubtful] = self._fitted[j].on_rows().predict(self._X[doubtful])
            found.append(labels)
        return np.stack(found)

    def values(self) -> Array:
        """Decision values (n_settings, n) or (n_settings, n, columns).

        Two rows whose values are equal up to rounding may be equal in scikit-learn's fit, which ranks see.
        """
        models, pairs = self._models, self._of_pairs()
        in_pairs = all(len(one.classes_) == 2 or one.decision_function_shape == "ovo" for one in models)
        found = pairs if in_pairs else self._respond(models)
        found = [values[:, 0] if values.shape[1] == 1 else values for values in found]
        for j, (votes, values) in enumerate(zip(pairs, found, strict=True)):
            error = self._fitted[j].error(self._X)
            doubtful = np.asarray((np.abs(votes) <= error).any(axis=1))
            for column in votes.T:
                order = np.argsort(column)
                close = np.flatnonzero(np.diff(column[order]) <= 2.0 * error)
                doubtful[order[close]] = doubtful[order[close + 1]] = True
            if doubtful.any():
                values[doubtful] = self._fitted[j].on_rows().decision_function(self._X[doubtful])
        return np.stack(found)

    def _of_pairs(self) -> list[Array]:
        """By setting: a decision value for each pair of classes, (n, pairs)."""
        models = [copy.copy(model) for model in self._models]
        return self._respond([model.set_params(decision_function_shape="ovo") for model in models])

    def _respond(self, models: Sequence[Any]) -> list[Array]:
        """By setting: decision values of its model, (n, columns)."""
        found: list[list[Array]] = [[] for _ in models]
        for j, _, K in self._kernels():
            found[j].append(models[j].decision_function(K).reshape(len(K), -1))
        return [np.concatenate(of) for of in found]


def _elected(classes: Array, votes: Array) -> Array:
    """The class that wins most of its pairs, the first of equal ones, as in libsvm; no value is near 0."""
    if len(classes) == 2:  # scikit-learn turns the sign
        return classes[(votes[:, 0] > 0.0).astype(np.intp)]
    won = np.zeros((len(votes), len(classes)), dtype=np.intp)
    for (i, j), column in zip(itertools.combinations(range(len(classes)), 2), votes.T, strict=True):
        won[:, i] += column > 0.0
        won[:, j] += column <= 0.0
    return classes[won.argmax(axis=1)]


for _cls in (SVC, NuSVC, SVR, NuSVR):
    register_family(SupportVectorFamily(_cls))
