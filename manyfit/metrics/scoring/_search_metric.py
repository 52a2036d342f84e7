"""The metric of a scorer for many settings at once: NaN wherever scikit-learn might warn, raise or differ."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from manyfit._compat import check_metric_options
from manyfit.arrays import array_namespace, device, float_dtype, numpy_dtype
from manyfit.folds import Array, Unsupported
from manyfit.metrics.kernels._kernel import MetricKernel, Targets, or_nan, score_in_chunks
from manyfit.metrics.kernels._label_codes import codes_or_none
from manyfit.metrics.scoring._targets import ScoredTargets

# From responses of some settings to what a kernel reads, and whether each setting's score is certain, (m,).
Reader = Callable[[Array], tuple[Array, Array | None]]

FLOATS = (np.float64, np.float32)
# scikit-learn warns about metrics with this option if a class has no row with weight, or no prediction.
WARNS_UNDEFINED = "zero_division"
# Part of scikit-learn's own tolerance of sums of probabilities: beyond it, it might warn.
SUM_SLACK = 0.5


@dataclass(frozen=True)
class SearchMetric:
    """A scorer's metric, without its sign, for the responses of many settings.

    It reads the response of the first of the estimator's `methods` that has one. `prepare` looks at the
    targets, and at dtype and shape of the responses; it returns the kernel's targets and a `Reader`, or None
    to leave all settings to scikit-learn. ``score(targets, P)`` is a kernel with its options.
    """

    methods: tuple[str, ...]
    prepare: Callable[[ScoredTargets, Array], tuple[Targets, Reader] | None]
    score: Callable[[Targets, Array], Array]

    def __call__(self, truth: ScoredTargets, responses: Array) -> Array:
        """Scores of m settings on the device of the responses, for which the host does not wait.

        Responses are numbers, labels or scores, (m, n) or (m, n, n_classes); on a device labels are codes.
        Scores are scikit-learn's but for the order of summation. NaN: call the scorer itself.
        """
        xp = array_namespace(responses)
        with np.errstate(all="ignore"):
            fits = responses.shape[0] and responses.shape[1:2] == truth.y.shape and truth.one_output
            prepared = self.prepare(truth, responses) if fits else None
            if prepared is None:
                return _all_nan(responses)
            targets, read = prepared
            if not isinstance(responses, np.ndarray):
                targets = replace(
                    targets,
                    numbers=truth.to_device_of(targets.numbers, responses, "y"),
                    codes=truth.to_device_of(targets.codes, responses, "y"),
                    weight=truth.to_device_of(targets.weight, responses, "weights"),
                )

            def scores(P: Array) -> Array:
                P, certain = read(P)
                try:
                    out = self.score(targets, P)
                except Unsupported:
                    return _all_nan(P)
                if out.ndim > 1:  # several numbers for a setting are no score
                    return _all_nan(P)
                return out if certain is None else or_nan(out, certain)

            out = xp.astype(score_in_chunks(scores, responses), float_dtype(responses), copy=False)
            return or_nan(out, xp.isfinite(out))


def _all_nan(responses: Array) -> Array:
    xp = array_namespace(responses)
    return xp.full(responses.shape[0], np.nan, dtype=float_dtype(responses), device=device(responses))


def search_metric(
    function: Callable[..., Any],
    metric: MetricKernel,
    options: Mapping[str, Any],
    methods: tuple[str, ...],
    other: MetricKernel | None = None,
) -> SearchMetric | None:
    """A metric with the scorer's options; None if an option is not supported, or refused by scikit-learn.

    scikit-learn also warns where the metric `other` of the same predictions is not defined.
    """
    if not set(options) <= set(metric.options):
        return None
    try:
        check_metric_options(function, options)
    except ValueError:
        return None
    chosen = {**metric.options, **options}

    def prepare(truth: ScoredTargets, responses: Array) -> tuple[Targets, Reader] | None:
        return _PREPARE[metric.kind](truth, responses, chosen, metric)

    def score(targets: Targets, P: Array) -> Array:
        out = metric.kernel(targets, P, **chosen)
        if other is None:
            return out
        xp, also = array_namespace(out), other.kernel(targets, P, **other.options)
        # 1 may stand for an undefined ratio.
        return or_nan(out, xp.isfinite(also) & (also != 1) & (out != 1))

    return SearchMetric(methods, prepare, score)


def _as_they_are(P: Array) -> tuple[Array, None]:
    return P, None


def _numbers(
    truth: ScoredTargets, responses: Array, _: Mapping[str, Any], metric: MetricKernel
) -> tuple[Targets, Reader] | None:
    # For equal targets, rounding decides whether R2 is 1, 0 or anything else.
    if not metric.rowwise and (len(truth.y) < 2 or not truth.varied):
        return None
    y = _in_precision(truth, responses)
    return None if y is None else (Targets(numbers=y, weight=truth.weight), _as_they_are)


def _in_precision(truth: ScoredTargets, predicted: Array) -> Array | None:
    """Targets in the precision in which scikit-learn computes; None if it should compute itself.

    See ``sklearn.metrics._regression._check_reg_targets_with_floating_dtype`` (1.7 to 1.9).
    """
    dtype = numpy_dtype(predicted)
    if predicted.ndim != 2 or dtype not in FLOATS:
        return None
    if truth.y.dtype not in FLOATS and truth.y.dtype.kind not in "iu":
        return None
    dtypes = [dtype]
    if truth.given_dtype is not None and truth.y.dtype.kind == "f":
        dtypes.append(truth.y.dtype)
    if truth.weight is not None:
        dtypes.append(truth.weight.dtype)
    precision = np.result_type(*dtypes)
    if precision == np.float32 and truth.y.dtype.kind in "iu" and isinstance(predicted, np.ndarray):
        return (
            None  # sums of float32 in another order differ in the seventh digit, and y has no such rounding
        )
    return truth.y.astype(precision, copy=False)


def _class_targets(truth: ScoredTargets, options: Mapping[str, Any], metric: MetricKernel) -> Targets | None:
    """Codes of the targets; None if the metric is not defined for them, or the positive class is unknown."""
    classes, positive = truth.classes, options.get("pos_label")
    if classes is None or truth.codes is None or (positive is not None and positive not in classes.tolist()):
        return None
    if not metric.rowwise and not truth.has_all_classes:
        return None
    return Targets(codes=truth.codes, classes=classes, weight=truth.weight)


def _labels(
    truth: ScoredTargets, responses: Array, options: Mapping[str, Any], metric: MetricKernel
) -> tuple[Targets, Reader] | None:
    targets, on_host = _class_targets(truth, options, metric), isinstance(responses, np.ndarray)
    if targets is None or responses.ndim != 2:
        return None
    if on_host and responses.dtype.kind != truth.y.dtype.kind:
        return None
    classes = targets.classes.tolist()
    if options.get("average") == "binary" and (len(classes) != 2 or options.get("pos_label") not in classes):
        return None
    labels = options.get("labels")
    if labels is not None and not set(np.asarray(labels).ravel().tolist()) <= set(classes):
        return None
    if np.isfinite(options.get("replace_undefined_by", np.nan)):
        return None  # its value would hide that scikit-learn warns
    if metric.rowwise and on_host and truth.y.dtype.kind in "biuU" and truth.y.dtype == responses.dtype:
        # Rows are right or wrong: labels are compared as they are, which takes a fraction of the time. Floats
        # and objects may hold values that scikit-learn does not take for labels.
        return Targets(codes=truth.y, classes=targets.classes, weight=targets.weight), _as_they_are
    if WARNS_UNDEFINED not in options:
        return targets, _codes_of(targets) if on_host else _as_they_are

    def all_predicted(P: Array) -> tuple[Array, Array | None]:
        codes, certain = _codes_of(targets)(P) if on_host else (P, None)
        xp, rows = array_namespace(P), codes
        if truth.weight is not None and on_host:
            rows = codes[:, truth.weight > 0]
        elif truth.weight is not None:
            rows = xp.where(truth.to_device_of(truth.weight, P, "weights") > 0, codes, -1)
        found = xp.all(xp.stack([xp.any(rows == k, axis=1) for k in range(len(classes))]), axis=0)
        return codes, found if certain is None else found & certain

    return targets, all_predicted


def _codes_of(targets: Targets) -> Reader:
    """A reader of labels on the host: settings that predict something else than classes are not certain."""

    def read(P: Array) -> tuple[Array, Array | None]:
        codes = codes_or_none(targets.classes, P)
        if codes is not None:
            return codes, None
        rows = [codes_or_none(targets.classes, row) for row in P]
        wrong = np.zeros(P.shape[1], dtype=np.int8)
        return np.stack([wrong if row is None else row for row in rows]), np.asarray(
            [row is not None for row in rows]
        )

    return read


def _scores(
    truth: ScoredTargets, responses: Array, options: Mapping[str, Any], metric: MetricKernel
) -> tuple[Targets, Reader] | None:
    targets = _class_targets(truth, options, metric)
    if targets is None or numpy_dtype(responses) not in FLOATS:
        return None
    classes, positive = targets.classes.tolist(), options.get("pos_label", 1)
    if positive not in (1, None) or ("k" in options and options["k"] >= len(classes)):
        return None  # scikit-learn warns that the k best hold all classes
    if len(classes) > 2:
        read = _summing_to_one if metric.kind == "probabilities" else _as_they_are
        return (targets, read) if responses.ndim == 3 else None
    texts = targets.classes.dtype.kind in "OU"
    if "pos_label" in options and (texts if positive is None else classes not in ([0, 1], [-1, 1])):
        return None  # scikit-learn asks which label is the positive one
    return targets, _second_column if responses.ndim == 3 else _as_they_are


def _second_column(P: Array) -> tuple[Array, None]:
    """Scores of the second of two classes, which are all that scikit-learn reads."""
    return (np.ascontiguousarray(P[:, :, 1]) if isinstance(P, np.ndarray) else P[:, :, 1]), None


def _summing_to_one(P: Array) -> tuple[Array, Array]:
    xp = array_namespace(P)
    sums = P @ xp.ones(P.shape[2], dtype=P.dtype, device=device(P))
    return P, xp.max(xp.abs(sums - 1), axis=1) <= SUM_SLACK * float(xp.finfo(P.dtype).eps) ** 0.5


_PREPARE = {"numbers": _numbers, "labels": _labels, "scores": _scores, "probabilities": _scores}
