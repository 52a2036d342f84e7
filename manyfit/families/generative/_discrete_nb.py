"""Naive Bayes of counts: one count of each feature in each class answers every smoothing and prior.

scikit-learn's own formulas are applied to its own counts, so that no bit differs.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, MultinomialNB
from sklearn.preprocessing import binarize

from manyfit.families.generative._answers import (
    ClassAnswers,
    class_answers,
    fit_once,
    given_priors,
    joint_probabilities,
    labels_of_largest,
    one_fit_cost,
    rowwise,
    strict_arithmetic,
)
from manyfit.families.protocol import (
    Array,
    ClassSums,
    Cost,
    FoldFamily,
    FoldRows,
    Responses,
    Setting,
    Settings,
    Shape,
    register_family,
    require_number,
)
from manyfit.folds import ClassedFold, FoldedData, SomeRows, Unsupported

# scikit-learn warns of a smaller alpha, or takes the logarithm of zero.
MIN_ALPHA = 1e-10
# The weights of some settings, with which chunks are read once, take at most this part of the memory limit.
WEIGHT_PARTS = 8


class Smoothing(NamedTuple):
    """One setting: `log_prior`, (n_classes,), and the parameters that say what becomes of the counts."""

    alpha: float
    norm: bool
    log_prior: Array


class Linear(NamedTuple):
    """Joint log-likelihoods ``x @ weights.T + at_zero`` of one setting."""

    weights: Array  # (n_classes, n_columns)
    at_zero: Array | float  # (n_classes,)


class CountFamily(FoldFamily):
    """Classifiers that count: `_linear` says what one setting makes of the counts of a fit.

    The weights of one setting at a time are in memory, since text has many features.

    Reference: sklearn.naive_bayes (1.9): ``_update_feature_log_prob``, ``_update_class_log_prior`` and
    ``_joint_log_likelihood`` of each class.
    """

    free = frozenset({"alpha", "force_alpha", "fit_prior", "class_prior"})
    reads: FoldRows = ClassSums(sparse=True, weights=True, device=False, counts=True)

    def check(self, estimator: Any, settings: Settings) -> None:
        for setting in settings:
            require_number("alpha", setting["alpha"])
            if setting["alpha"] < MIN_ALPHA:
                raise Unsupported(f"alpha={setting['alpha']!r} is less than {MIN_ALPHA:g}")

    def cost(self, estimator: Any, settings: Settings, shape: Shape) -> Cost:
        return one_fit_cost(len(settings), shape, fit=8.0, predict=2.0 * max(shape.n_classes, 1))

    def fit_many(self, estimator: Any, settings: Settings, folded: FoldedData) -> Iterator[ClassAnswers]:
        # Parameters that the counts do not depend on, at values that are always taken.
        params = {name: value for name, value in _PLAIN.items() if name in self.free}
        for i in range(folded.n_splits):
            fits_made = int(not isinstance(folded, ClassedFold))
            fitted = _counted(estimator, folded, i) or fit_once(estimator, params, folded.fold(i))
            if not fitted.class_count_.sum() > 0:
                raise Unsupported("the weights of the training rows are all zero")
            predictions = partial(self._predictions, fitted)
            yield class_answers(
                partial(_smoothing, fitted), settings, predictions, fitted.classes_, fits_made
            )

    def _linear(self, fitted: Any, one: Smoothing) -> Linear:
        raise NotImplementedError

    def _columns(self, fitted: Any, X: Any) -> Any:
        """The columns that likelihoods are linear in, for rows of X."""
        return X

    def _predictions(self, fitted: Any, X: Any, models: Sequence[Smoothing]) -> Responses:
        classes = fitted.classes_
        if isinstance(X, SomeRows):
            joint = self._joint_in_chunks(fitted, X, models)
        else:
            columns = self._columns(fitted, X)
            joint = np.empty((len(models), X.shape[0], len(classes)))
            for out, one in zip(joint, models, strict=True):
                with strict_arithmetic():
                    linear = self._linear(fitted, one)
                np.add(columns @ linear.weights.T, linear.at_zero, out=out)
        return Responses(
            predict=lambda: labels_of_largest(joint, classes),
            predict_proba=lambda: joint_probabilities(joint),
        )

    def _joint_in_chunks(self, fitted: Any, X: SomeRows, models: Sequence[Smoothing]) -> Array:
        """Joint log-likelihoods of models, (m, n, n_classes), for rows that may be read for each call."""
        weight_bytes = 8 * len(fitted.classes_) * X.shape[1]
        size = max(1, X.X.source.memory // WEIGHT_PARTS // weight_bytes)
        found = list[Array]()
        for start in range(0, len(models), size):
            with strict_arithmetic():
                linear = [self._linear(fitted, one) for one in models[start : start + size]]
            found += rowwise(partial(_joint, partial(self._columns, fitted), linear), X, axis=1)
        return np.concatenate(found)


_PLAIN = {"alpha": 1.0, "force_alpha": True, "fit_prior": True, "class_prior": None, "norm": False}


class MultinomialFamily(CountFamily):
    """MultinomialNB: ``log((N + alpha) / sum(N + alpha))`` of the counts N of a class."""

    serves = (MultinomialNB,)

    def _linear(self, fitted: Any, one: Smoothing) -> Linear:
        return Linear(_log_shares(fitted.feature_count_, one.alpha), one.log_prior)


class ComplementFamily(CountFamily):
    """ComplementNB: the counts of all other classes; its priors count for a single class only."""

    serves = (ComplementNB,)
    free = CountFamily.free | {"norm"}

    def _linear(self, fitted: Any, one: Smoothing) -> Linear:
        others = fitted.feature_all_ + one.alpha - fitted.feature_count_
        others /= others.sum(axis=1, keepdims=True)
        logs = np.log(others, out=others)
        return Linear(logs / logs.sum(axis=1, keepdims=True) if one.norm else -logs, 0.0)


class BernoulliFamily(CountFamily):
    """BernoulliNB: whether a feature is above `binarize`, and whether it is not."""

    serves = (BernoulliNB,)

    def _linear(self, fitted: Any, one: Smoothing) -> Linear:
        totals = fitted.class_count_ + one.alpha * 2
        present = np.log(fitted.feature_count_ + one.alpha) - np.log(totals.reshape(-1, 1))
        absent = np.log(1 - np.exp(present))
        return Linear(present - absent, one.log_prior + absent.sum(axis=1))

    def _columns(self, fitted: Any, X: Any) -> Any:
        return X if fitted.binarize is None else binarize(X, threshold=fitted.binarize)


class CategoricalFamily(CountFamily):
    """CategoricalNB: likelihoods are linear in indicators of the categories of all features."""

    serves = (CategoricalNB,)
    reads = FoldRows(weights=True, device=False)

    def _linear(self, fitted: Any, one: Smoothing) -> Linear:
        logs = [_log_shares(counts, one.alpha) for counts in fitted.category_count_]
        return Linear(np.concatenate(logs, axis=1), one.log_prior)

    def _columns(self, fitted: Any, X: Any) -> Any:
        """Indicators as CSR, whose products add the features in their order, as scikit-learn does."""
        codes, sizes = X.astype(np.int64), np.array([one.shape[1] for one in fitted.category_count_])
        if (codes < 0).any() or (codes >= sizes).any():
            raise Unsupported("rows to score have categories that the training rows lack")
        (n, p), ends = codes.shape, np.cumsum(sizes)
        index, starts = (codes + (ends - sizes)).ravel(), np.arange(0, n * p + 1, p)
        return scipy.sparse.csr_array((np.ones(n * p), index, starts), shape=(n, int(ends[-1])))


def _counted(estimator: Any, folded: FoldedData, i: int) -> Any:
    """The counts of one split, of sparse rows in chunks, as a fit has them; None for other rows."""
    if not isinstance(folded, ClassedFold):
        return None
    threshold = getattr(estimator, "binarize", None)
    counts = folded.class_counts(i, threshold)
    if len(counts.labels) < 2:
        raise Unsupported("the training rows have one class")
    return SimpleNamespace(
        classes_=counts.labels,
        class_count_=counts.weights,
        feature_count_=counts.sums,
        feature_all_=counts.sums.sum(axis=0),
        binarize=threshold,
    )


def _joint(columns: Callable[[Any], Any], linear: Sequence[Linear], X: Any) -> tuple[Array]:
    """Joint log-likelihoods of some settings for rows of X, (m, n, n_classes)."""
    X = columns(X)
    return (np.stack([X @ one.weights.T + one.at_zero for one in linear]),)


def _smoothing(fitted: Any, setting: Setting) -> Smoothing:
    return Smoothing(setting["alpha"], setting.get("norm", False), _class_log_prior(fitted, setting))


def _log_shares(counts: Array, alpha: float) -> Array:
    """Logarithms of the shares of the columns in a class, (n_classes, n_columns), after smoothing."""
    smoothed = counts + alpha
    totals = smoothed.sum(axis=1).reshape(-1, 1)
    # In place: new pages of memory take longer than the logarithms.
    shares = np.log(smoothed, out=smoothed)
    shares -= np.log(totals)
    return np.asarray(shares)


def _class_log_prior(fitted: Any, setting: Setting) -> Array:
    """Logarithms of the prior probabilities of the classes."""
    n_classes = len(fitted.classes_)
    if setting["class_prior"] is not None:
        return np.asarray(np.log(given_priors(setting["class_prior"], n_classes)))
    if setting["fit_prior"]:
        with np.errstate(divide="ignore"):  # scikit-learn does not warn of a class without weight
            logs = np.log(fitted.class_count_)
        return np.asarray(logs - np.log(fitted.class_count_.sum()))
    return np.full(n_classes, -np.log(n_classes))


register_family(MultinomialFamily())
register_family(ComplementFamily())
register_family(BernoulliFamily())
register_family(CategoricalFamily())
