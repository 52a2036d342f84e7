"""Metrics of many settings in a search: where scikit-learn would give the number without a word, ours."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit._compat import check_metric_options
from manyfit.arrays import array_namespace, device, float_dtype, numpy_dtype
from manyfit.folds import Unsupported
from manyfit.metrics.kernels._kernel import MetricKernel, Targets, in_chunks
from manyfit.metrics.kernels._label_codes_numpy import codes_and_known
from manyfit.metrics.scoring._numpy_regression import numbers
from manyfit.metrics.scoring._targets import ScoredTargets, Scores, SearchMetric

Array = NDArray[Any]

# Of metrics with this option scikit-learn warns where no row that counts has a class, or is predicted it.
UNDEFINED_WITHOUT = "zero_division"


def batched_many(
    function: Callable[..., Any],
    many: MetricKernel,
    options: Mapping[str, Any],
    methods: tuple[str, ...],
    other: MetricKernel | None = None,
) -> SearchMetric | None:
    """A metric with some options as a search scores by it.

    Parameters
    ----------
    function : callable
        scikit-learn's metric.
    many : Many
        The same of many settings.
    options : dict
        Options of the scorer.
    methods : tuple of str
        See `SearchMetric`.
    other : Many, optional
        A metric of the same predictions of which scikit-learn warns as well where it is not defined.

    Returns
    -------
    Batched or None
        None if an option is not supported, or refused by scikit-learn.
    """
    if not set(options) <= set(many.options):
        return None
    try:
        check_metric_options(function, options)
    except ValueError:
        return None
    chosen = {**many.options, **options}
    prepare = {"numbers": _of_numbers, "labels": _of_labels, "scores": _of_scores}[many.kind]

    def prepared(truth: ScoredTargets, responses: Array) -> Scores | None:
        found = prepare(truth, responses, chosen)
        if found is None:
            return None
        targets, seen = found
        beside = truth.beside(responses)
        targets = replace(
            targets,
            numbers=beside(targets.numbers, "y"),
            codes=beside(targets.codes, "y"),
            weight=beside(targets.weight, "weights"),
        )

        def scores(P: Array) -> Array:
            P, sure = seen(P)
            try:
                out = many.kernel(targets, P, **chosen)
                also = out if other is None else other.kernel(targets, P, **other.options)
            except Unsupported:
                return _unknown(P)
            if other is not None:
                xp = array_namespace(out)
                # 1 may stand for what is not defined.
                out = xp.where(xp.isfinite(also) & (also != 1) & (out != 1), out, np.nan)
            if out.ndim > 1:  # several numbers a setting are no score
                return _unknown(P)
            return out if sure is None else array_namespace(out).where(sure, out, np.nan)

        return scores

    return SearchMetric(methods, prepared)


def _unknown(responses: Array) -> Array:
    """NaN for each setting, where the responses lie."""
    xp = array_namespace(responses)
    return xp.full(responses.shape[0], np.nan, dtype=float_dtype(responses), device=device(responses))


def scores_there(batched: SearchMetric, truth: ScoredTargets, responses: Array) -> Array:
    """Scores of m settings by responses that are not NumPy's, where they lie.

    Parameters
    ----------
    batched : Batched
        From `batched_many`.
    truth : Truth
        Of n rows; on the host.
    responses : array of shape (m, n) or (m, n, n_classes)
        Numbers, scores, or codes of labels: the positions of their classes.

    Returns
    -------
    array of shape (m,)
        There, of the widest floating dtype. NaN as in `SearchMetric`.

    Notes
    -----
    What is needed of the targets is sent there; nothing comes back, and the host does not wait.
    """
    with np.errstate(all="ignore"):
        fits = responses.shape[1:2] == truth.y.shape and truth.plain
        scores = batched.prepare(truth, responses) if fits else None
        if scores is None:
            return _unknown(responses)
        xp = array_namespace(responses)
        return xp.astype(in_chunks(scores, responses), float_dtype(responses), copy=False)


# What a kernel is given of some responses, and of which settings one is sure; None: of all that it gives.
Seen = Callable[[Array], tuple[Array, Array | None]]


def _of_numbers(truth: ScoredTargets, responses: Array, _: Mapping[str, Any]) -> tuple[Targets, Seen] | None:
    y = numbers(truth, responses)
    # Where all targets are the same, a rounding decides between 1, 0 and anything.
    if y is None or len(y) < 2 or not truth.varied:
        return None
    return Targets(numbers=y, weight=truth.weight), lambda P: (P, None)


def _classes(truth: ScoredTargets, options: Mapping[str, Any]) -> Array | None:
    """The classes, where rows of each of them count and the positive one is among them."""
    classes, codes, positive = truth.classes, truth.codes, options.get("pos_label")
    if classes is None or codes is None or (positive is not None and positive not in classes.tolist()):
        return None
    counted = codes if truth.weight is None else codes[truth.weight > 0]
    return classes if np.bincount(counted, minlength=len(classes)).all() else None


def _of_labels(
    truth: ScoredTargets, responses: Array, options: Mapping[str, Any]
) -> tuple[Targets, Seen] | None:
    classes, there = _classes(truth, options), not isinstance(responses, np.ndarray)
    if classes is None or responses.ndim != 2:
        return None
    if not there and responses.dtype.kind != truth.y.dtype.kind:
        return None
    if options.get("average") == "binary" and (
        len(classes) != 2 or options.get("pos_label") not in classes.tolist()
    ):
        return None
    labels = options.get("labels")
    if labels is not None and not set(np.asarray(labels).ravel().tolist()) <= set(classes.tolist()):
        return None
    if np.isfinite(options.get("replace_undefined_by", np.nan)):
        return None  # then its value does not tell where scikit-learn warns
    all_predicted = UNDEFINED_WITHOUT in options
    counted: Any = slice(None) if truth.weight is None else truth.weight > 0

    def seen_there(P: Array) -> tuple[Array, Array | None]:
        if not all_predicted:
            return P, None
        xp = array_namespace(P)
        rows = P if truth.weight is None else xp.where(truth.beside(P)(truth.weight) > 0, P, -1)
        found = [xp.any(rows == k, axis=1) for k in range(len(classes))]
        return P, xp.all(xp.stack(found), axis=0)

    def seen(P: Array) -> tuple[Array, Array | None]:
        codes, known = codes_and_known(classes, P)
        sure = np.asarray(known.all(axis=1))
        if all_predicted:
            for k in range(len(classes)):
                sure &= (codes[:, counted] == k).any(axis=1)
        return codes, sure

    targets = Targets(codes=truth.codes, classes=classes, weight=truth.weight)
    return targets, seen_there if there else seen


def _of_scores(
    truth: ScoredTargets, responses: Array, options: Mapping[str, Any]
) -> tuple[Targets, Seen] | None:
    classes = _classes(truth, options)
    if (
        classes is None
        or numpy_dtype(responses) not in (np.float64, np.float32)
        or options.get("pos_label", 1) not in (1, None)
    ):
        return None
    if "k" in options and options["k"] >= len(classes):
        return None  # scikit-learn warns that all are right
    targets = Targets(codes=truth.codes, classes=classes, weight=truth.weight)
    if len(classes) > 2:
        return (targets, lambda P: (P, None)) if responses.ndim == 3 else None
    if "pos_label" in options and classes.tolist() != [0, 1] and classes.tolist() != [-1, 1]:
        return None  # scikit-learn asks which label is the positive one
    if responses.ndim == 3:
        return targets, lambda P: (_contiguous(P[:, :, 1]), None)
    return targets, lambda P: (P, None)


def _contiguous(P: Array) -> Array:
    return np.ascontiguousarray(P) if isinstance(P, np.ndarray) else P
