"""Metrics of the order of scores, for many settings at once."""

from collections.abc import Callable, Sequence
from typing import Any

from sklearn.metrics import (
    average_precision_score,
    coverage_error,
    dcg_score,
    label_ranking_average_precision_score,
    label_ranking_loss,
    ndcg_score,
    roc_auc_score,
    top_k_accuracy_score,
)

from manyfit.arrays import array_namespace, device, float_dtype
from manyfit.folds import Unsupported
from manyfit.metrics.kernels._class_scores import (
    all_classes_present,
    all_finite,
    indicators,
    positive_rows,
    present_classes,
    require_columns,
    rows_sum_to_one,
    scores_kernel,
    target_scores,
    with_labels,
)
from manyfit.metrics.kernels._kernel import MetricKernel, Targets, or_nan
from manyfit.metrics.kernels._rank_curve import (
    Curve,
    RankedScores,
    average_precisions,
    curve_area,
    increments,
    rank_curve,
    roc_areas,
)

Array = Any
Labels = Sequence[Any] | None
# A metric of scores (..., n), booleans (..., n) and weights, (n,) or None.
Ranking = Callable[[Array, Array, Array], Array]


@scores_kernel
def _roc_auc(
    targets: Targets,
    P: Array,
    *,
    average: str | None,
    max_fpr: float | None,
    multi_class: str,
    labels: Labels,
) -> Array:
    if max_fpr is not None and not 0 < max_fpr <= 1:
        raise Unsupported(f"max_fpr={max_fpr!r}")

    def ranking(scores: Array, positive: Array, weight: Array) -> Array:
        return roc_areas(scores, positive, weight, max_fpr)

    if targets.numbers is not None:
        return _average_over_labels(ranking, targets.numbers == 1, targets.weight, P, average)
    if P.ndim == 2:
        require_columns(targets, P)
        return or_nan(ranking(P, targets.codes == targets.n_classes - 1, targets.weight), all_finite(P))
    targets = with_labels(targets, labels)
    require_columns(targets, P, two=3)
    if max_fpr not in (None, 1):
        raise Unsupported(f"max_fpr={max_fpr!r} of more than two classes")
    valid = rows_sum_to_one(P) & all_classes_present(targets, labels)
    if multi_class == "ovo" and average in ("macro", "weighted") and targets.weight is None:
        return or_nan(_one_versus_one(targets, P, average), valid & all_finite(P))
    if multi_class != "ovr" or average not in (None, "macro", "weighted", "micro"):
        raise Unsupported(f"multi_class={multi_class!r} with average={average!r} and these weights")
    return or_nan(_average_over_labels(ranking, indicators(targets).T, targets.weight, P, average), valid)


def _one_versus_one(targets: Targets, P: Array, average: str) -> Array:
    """Mean over pairs of classes (Hand & Till, 2001) of the areas of either's scores, in the rows of both.

    One order of the scores of a class serves all of its pairs.
    """
    xp, classes, K = array_namespace(P), indicators(targets), targets.n_classes
    area: dict[tuple[int, int], Array] = {}
    for a in range(K):
        ranked = RankedScores(P[:, :, a])
        totals = [ranked.totals(xp.astype(classes[k, :], float_dtype(P))) for k in range(K)]
        area |= {(a, b): curve_area(Curve(totals[a], totals[b])) for b in range(K) if b != a}
    pairs = [(a, b) for a in range(K) for b in range(a)]
    means = xp.stack([0.5 * (area[pair] + area[pair[::-1]]) for pair in pairs])
    counts = xp.sum(xp.astype(classes, float_dtype(P)), axis=-1)
    found = present_classes(targets)
    weight = xp.stack([counts[a] + counts[b] for a, b in pairs])
    weight = weight if average == "weighted" else xp.ones_like(weight)
    both = xp.stack([found[a] & found[b] for a, b in pairs])
    return _average(means, xp.where(both, weight, xp.zeros_like(weight)))


def _average(values: Array, weight: Array) -> Array:
    """Weighted mean along the first axis, (m,); values without weight may be NaN."""
    xp = array_namespace(values)
    weight = weight[:, None]
    kept = xp.where(weight == 0, xp.zeros_like(values), values)
    return xp.sum(kept * weight, axis=0) / xp.sum(weight, axis=0)


@scores_kernel
def _average_precision(targets: Targets, P: Array, *, average: str | None, pos_label: Any) -> Array:
    several = targets.numbers is not None or P.ndim == 3
    if several and pos_label != 1:
        raise Unsupported(f"pos_label={pos_label!r} of more than two classes")
    if targets.codes is not None:
        require_columns(targets, P, two=3)
    if several:
        positive = indicators(targets).T if targets.numbers is None else targets.numbers == 1
        scores = _average_over_labels(average_precisions, positive, targets.weight, P, average)
    else:
        positive = positive_rows(targets, pos_label)
        scores = or_nan(average_precisions(P, positive, targets.weight), all_finite(P))
    if several and targets.codes is not None:
        scores = or_nan(scores, all_classes_present(targets, None))
    return scores if targets.weight is None else or_nan(scores, array_namespace(P).any(targets.weight != 0))


def _average_over_labels(
    ranking: Ranking, positive: Array, weight: Array, P: Array, average: str | None
) -> Array:
    """Average over labels of a metric of two classes, for indicators (n, L) and scores (m, n, L).

    None: the values of all labels, (m, L).
    """
    xp, (m, n, L) = array_namespace(P), _indicated(positive, P)
    if average == "micro":
        each = None if weight is None else xp.reshape(xp.broadcast_to(weight[:, None], (n, L)), (-1,))
        scores = ranking(xp.reshape(P, (m, n * L)), xp.reshape(positive, (-1,)), each)
    elif average == "samples":
        rows = ranking(P, positive, None)
        scores = xp.mean(rows, axis=-1) if weight is None else _average(rows.T, weight)
    elif average in (None, "macro", "weighted"):
        columns = xp.stack([ranking(P[:, :, k], positive[:, k], weight) for k in range(L)])
        scores = columns.T if average is None else xp.mean(columns, axis=0)
        if average == "weighted":
            support = xp.astype(positive, float_dtype(P))
            support = xp.sum(support if weight is None else support * weight[:, None], axis=0)
            scores = _average(columns, support)
            # 0 without positives, as in scikit-learn.
            scores = xp.where(xp.sum(support) <= 1e-8, xp.zeros_like(scores), scores)
    else:
        raise Unsupported(f"average={average!r}")
    return or_nan(scores, all_finite(P))


def _indicated(positive: Array, P: Array) -> tuple[int, int, int]:
    """The shape (m, n, L) of scores, which indicators (n, L) must fit."""
    if P.ndim != 3 or tuple(P.shape[1:]) != tuple(positive.shape):
        raise Unsupported(f"Scores of shape {tuple(P.shape)} of indicators of shape {tuple(positive.shape)}")
    m, n, L = P.shape
    return m, n, L


@scores_kernel
def _top_k_accuracy(targets: Targets, P: Array, *, k: int, normalize: bool, labels: Labels) -> Array:
    targets = with_labels(targets, labels)
    require_columns(targets, P, two=3)
    xp, codes, valid = array_namespace(P), targets.codes, all_finite(P) & all_classes_present(targets, labels)
    if P.ndim == 3:
        own = target_scores(targets, P)[..., None]
        later = xp.arange(P.shape[2], dtype=codes.dtype, device=device(codes)) > codes[:, None]
        # Among equal scores the greater class comes first.
        higher = (own < P) | ((own == P) & later[None, ...])
        hits = xp.sum(xp.astype(higher, xp.int64), axis=-1) < k
    elif k == 1:
        unit = (xp.min(P, axis=1) >= 0) & (xp.max(P, axis=1) <= 1)
        threshold = xp.astype(unit, P.dtype) * 0.5
        hits = (threshold[:, None] < P) == (codes == 1)
    else:
        hits = xp.ones_like(P, dtype=xp.bool)
    return or_nan(targets.mean(hits) if normalize else targets.sum(hits), valid)


# Several labels: rows of scores (m, n, L) against indicators or gains (n, L)


def _rowwise_kernel(score: Callable[..., Array]) -> Callable[..., Array]:
    """A kernel for the weighted mean of scores of rows: ``score(Y, P, **options)`` has shape (m, n)."""

    @scores_kernel
    def scores(targets: Targets, P: Array, **options: Any) -> Array:
        if targets.numbers is None:
            raise Unsupported("Labels in place of an array of shape (n, n_labels)")
        _indicated(targets.numbers, P)
        return or_nan(targets.mean(score(targets.numbers, P, **options)), all_finite(P))

    return scores


def _rows_precision(Y: Array, P: Array) -> Array:
    xp, positive = array_namespace(P), Y != 0
    scores = average_precisions(P, positive)
    # If all labels are relevant, or none, every order is right.
    trivial = xp.all(positive, axis=-1) | ~xp.any(positive, axis=-1)
    return xp.where(trivial, xp.ones_like(scores), scores)


def _rows_loss(Y: Array, P: Array) -> Array:
    xp, positive = array_namespace(P), Y != 0
    curve = rank_curve(RankedScores(P), positive)
    wrong = xp.sum(increments(curve.positives) * curve.negatives, axis=-1)
    pairs = curve.positives[..., -1] * curve.negatives[..., -1]
    return wrong / xp.where(pairs == 0, xp.ones_like(pairs), pairs) * xp.astype(pairs != 0, wrong.dtype)


def _rows_coverage(Y: Array, P: Array) -> Array:
    xp, positive = array_namespace(P), Y != 0
    least = xp.min(xp.where(positive, P, xp.full_like(P, xp.inf)), axis=-1, keepdims=True)
    return xp.sum(xp.astype(least <= P, float_dtype(P)), axis=-1)


def _rows_gain(Y: Array, P: Array, k: int | None, log_base: float, ignore_ties: bool) -> Array:
    """Discounted gains, (m, n); equal scores share their discounts."""
    xp, dtype, dev, L = array_namespace(P), float_dtype(P), device(P), P.shape[-1]
    places = xp.arange(L, dtype=dtype, device=dev)
    base = xp.log(xp.asarray(log_base, dtype=dtype, device=dev))
    discount = base / xp.log(places + 2)
    if k is not None:
        discount = xp.where(places < k, discount, xp.zeros_like(discount))
    if ignore_ties:
        # As scikit-learn: ascending order, reversed.
        order = xp.flip(xp.argsort(P, axis=-1, stable=False), axis=-1)
        gains = xp.take_along_axis(xp.broadcast_to(xp.astype(Y, dtype), P.shape), order, axis=-1)
        return xp.sum(gains * discount, axis=-1)
    ranked = RankedScores(P)
    summed = xp.cumulative_sum(discount)
    discounts = increments(xp.reshape(xp.take(summed, xp.reshape(ranked.ends, (-1,))), P.shape))
    counts = increments(xp.astype(ranked.ends + 1, dtype))
    means = increments(ranked.totals(Y)) / xp.where(counts == 0, xp.ones_like(counts), counts)
    return xp.sum(means * discounts, axis=-1)


def _rows_normalized_gain(Y: Array, P: Array, k: int | None, ignore_ties: bool) -> Array:
    xp = array_namespace(P)
    gain = _rows_gain(Y, P, k, 2, ignore_ties)
    best = _rows_gain(Y, xp.astype(Y, float_dtype(P))[None, ...], k, 2, ignore_ties=True)
    scores = xp.where(best == 0, xp.zeros_like(gain), gain / xp.where(best == 0, xp.ones_like(best), best))
    # scikit-learn refuses negative gains.
    return or_nan(scores, xp.min(Y) >= 0)


RANKING_METRICS: dict[Callable[..., Any], MetricKernel] = {
    roc_auc_score: MetricKernel(
        _roc_auc, "scores", {"average": "macro", "max_fpr": None, "multi_class": "raise", "labels": None}
    ),
    average_precision_score: MetricKernel(_average_precision, "scores", {"average": "macro", "pos_label": 1}),
    top_k_accuracy_score: MetricKernel(
        _top_k_accuracy, "scores", {"k": 2, "normalize": True, "labels": None}
    ),
    label_ranking_average_precision_score: MetricKernel(_rowwise_kernel(_rows_precision), "scores"),
    label_ranking_loss: MetricKernel(_rowwise_kernel(_rows_loss), "scores"),
    coverage_error: MetricKernel(_rowwise_kernel(_rows_coverage), "scores"),
    dcg_score: MetricKernel(
        _rowwise_kernel(_rows_gain), "scores", {"k": None, "log_base": 2, "ignore_ties": False}
    ),
    ndcg_score: MetricKernel(
        _rowwise_kernel(_rows_normalized_gain), "scores", {"k": None, "ignore_ties": False}
    ),
}
