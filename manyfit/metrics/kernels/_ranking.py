"""Metrics of the order of scores, of many settings at once."""

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
    all_finite,
    all_present,
    declared,
    indicators,
    kernel,
    nan_unless,
    of_targets,
    present,
    require_columns,
    rows_sum_to_one,
)
from manyfit.metrics.kernels._kernel import MetricKernel, Targets
from manyfit.metrics.kernels._rank_curve import Curve, Ranked, area_of, areas, curve_of, precisions, steps

Array = Any
Labels = Sequence[Any] | None
# Values of scores (..., n) against booleans (..., n), each of weight (n,) or of 1.
Ranking = Callable[[Array, Array, Array], Array]


@kernel
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
        return areas(scores, positive, weight, max_fpr)

    if targets.numbers is not None:
        return _of_indicators(ranking, targets.numbers == 1, targets.weight, P, average)
    if P.ndim == 2:
        require_columns(targets, P)
        return nan_unless(all_finite(P), ranking(P, targets.codes == targets.n_classes - 1, targets.weight))
    targets = declared(targets, labels)
    require_columns(targets, P, two=3)
    if max_fpr not in (None, 1):
        raise Unsupported(f"max_fpr={max_fpr!r} of more than two classes")
    valid = rows_sum_to_one(P) & all_present(targets, labels)
    if multi_class == "ovo" and average in ("macro", "weighted") and targets.weight is None:
        return nan_unless(valid & all_finite(P), _one_versus_one(targets, P, average))
    if multi_class != "ovr" or average not in (None, "macro", "weighted", "micro"):
        raise Unsupported(f"multi_class={multi_class!r} with average={average!r} and these weights")
    return nan_unless(valid, _of_indicators(ranking, indicators(targets).T, targets.weight, P, average))


def _one_versus_one(targets: Targets, P: Array, average: str) -> Array:
    """Mean over pairs of classes, in the rows of both, of the areas of either one's scores.

    As Hand & Till (2001) have it. One order of each class's scores serves all of its pairs.
    """
    xp, classes, K = array_namespace(P), indicators(targets), targets.n_classes
    area: dict[tuple[int, int], Array] = {}
    for a in range(K):
        ranked = Ranked(P[:, :, a])
        totals = [ranked.totals(xp.astype(classes[k, :], float_dtype(P))) for k in range(K)]
        area |= {(a, b): area_of(Curve(totals[a], totals[b])) for b in range(K) if b != a}
    pairs = [(a, b) for a in range(K) for b in range(a)]
    means = xp.stack([0.5 * (area[pair] + area[pair[::-1]]) for pair in pairs])
    counts = xp.sum(xp.astype(classes, float_dtype(P)), axis=-1)
    found = present(targets)
    weight = xp.stack([counts[a] + counts[b] for a, b in pairs])
    weight = weight if average == "weighted" else xp.ones_like(weight)
    both = xp.stack([found[a] & found[b] for a, b in pairs])
    return _average(means, xp.where(both, weight, xp.zeros_like(weight)))


def _average(values: Array, weight: Array) -> Array:
    """Weighted mean along the first axis, of shape (m,); values of no weight may be NaN."""
    xp = array_namespace(values)
    weight = weight[:, None]
    kept = xp.where(weight == 0, xp.zeros_like(values), values)
    return xp.sum(kept * weight, axis=0) / xp.sum(weight, axis=0)


@kernel
def _average_precision(targets: Targets, P: Array, *, average: str | None, pos_label: Any) -> Array:
    scores = _average_precisions(targets, P, average, pos_label)
    if targets.weight is None:
        return scores
    return nan_unless(array_namespace(P).any(targets.weight != 0), scores)


def _average_precisions(targets: Targets, P: Array, average: str | None, pos_label: Any) -> Array:
    if targets.numbers is not None or P.ndim == 3:
        if pos_label != 1:
            raise Unsupported(f"pos_label={pos_label!r} of more than two classes")
        if targets.numbers is not None:
            return _of_indicators(precisions, targets.numbers == 1, targets.weight, P, average)
        require_columns(targets, P, two=3)
        scores = _of_indicators(precisions, indicators(targets).T, targets.weight, P, average)
        return nan_unless(all_present(targets, None), scores)
    require_columns(targets, P)
    classes = targets.classes.tolist()
    if pos_label not in classes and len(classes) == 2:
        raise Unsupported(f"pos_label={pos_label!r} that is not a label")
    positive = targets.codes == (classes.index(pos_label) if pos_label in classes else -1)
    return nan_unless(all_finite(P), precisions(P, positive, targets.weight))


def _of_indicators(ranking: Ranking, positive: Array, weight: Array, P: Array, average: str | None) -> Array:
    """Averages of a metric of two classes, of indicators (n, L) and scores (m, n, L); all L if it is None."""
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
            # As scikit-learn's: 0 where nothing is positive.
            scores = xp.where(xp.sum(support) <= 1e-8, xp.zeros_like(scores), scores)
    else:
        raise Unsupported(f"average={average!r}")
    return nan_unless(all_finite(P), scores)


def _indicated(positive: Array, P: Array) -> tuple[int, int, int]:
    """The shape of scores, (m, n, L), that indicators (n, L) fit."""
    if P.ndim != 3 or tuple(P.shape[1:]) != tuple(positive.shape):
        raise Unsupported(f"Scores of shape {tuple(P.shape)} of indicators of shape {tuple(positive.shape)}")
    m, n, L = P.shape
    return m, n, L


@kernel
def _top_k_accuracy(targets: Targets, P: Array, *, k: int, normalize: bool, labels: Labels) -> Array:
    targets = declared(targets, labels)
    require_columns(targets, P, two=3)
    xp, codes, valid = array_namespace(P), targets.codes, all_finite(P) & all_present(targets, labels)
    if P.ndim == 3:
        own = of_targets(targets, P)[..., None]
        later = xp.arange(P.shape[2], dtype=codes.dtype, device=device(codes)) > codes[:, None]
        # Of equal scores the one of the greater class comes first.
        higher = (own < P) | ((own == P) & later[None, ...])
        hits = xp.sum(xp.astype(higher, xp.int64), axis=-1) < k
    elif k == 1:
        unit = (xp.min(P, axis=1) >= 0) & (xp.max(P, axis=1) <= 1)
        threshold = xp.astype(unit, P.dtype) * 0.5
        hits = (threshold[:, None] < P) == (codes == 1)
    else:
        hits = xp.ones_like(P, dtype=xp.bool)
    scores = targets.mean(hits)
    if not normalize:
        hits = xp.astype(hits, float_dtype(P))
        scores = xp.sum(hits if targets.weight is None else hits * targets.weight, axis=-1)
    return nan_unless(valid, scores)


# Several labels: rows of scores (m, n, L) against indicators or gains (n, L)


def _of_rows(score: Callable[..., Array]) -> Callable[..., Array]:
    """A kernel that takes the weighted mean of scores of rows, ``score(Y, P, **options)`` of shape (m, n)."""

    @kernel
    def scores(targets: Targets, P: Array, **options: Any) -> Array:
        if targets.numbers is None:
            raise Unsupported("Labels in place of an array of shape (n, n_labels)")
        _indicated(targets.numbers, P)
        return nan_unless(all_finite(P), targets.mean(score(targets.numbers, P, **options)))

    return scores


def _trivial(positive: Array) -> Array:
    """Rows of which all labels are relevant, or none: any order is right."""
    xp = array_namespace(positive)
    return xp.all(positive, axis=-1) | ~xp.any(positive, axis=-1)


def _rows_precision(Y: Array, P: Array) -> Array:
    xp, positive = array_namespace(P), Y != 0
    scores = precisions(P, positive)
    return xp.where(_trivial(positive), xp.ones_like(scores), scores)


def _rows_loss(Y: Array, P: Array) -> Array:
    xp, positive = array_namespace(P), Y != 0
    curve = curve_of(Ranked(P), positive)
    wrong = xp.sum(steps(curve.positives) * curve.negatives, axis=-1)
    pairs = curve.positives[..., -1] * curve.negatives[..., -1]
    return wrong / xp.where(pairs == 0, xp.ones_like(pairs), pairs) * xp.astype(pairs != 0, wrong.dtype)


def _rows_coverage(Y: Array, P: Array) -> Array:
    xp, positive = array_namespace(P), Y != 0
    least = xp.min(xp.where(positive, P, xp.full_like(P, xp.inf)), axis=-1, keepdims=True)
    return xp.sum(xp.astype(least <= P, float_dtype(P)), axis=-1)


def _rows_gain(Y: Array, P: Array, k: int | None, log_base: float, ignore_ties: bool) -> Array:
    """Discounted gains, (m, n); those of equal scores share their discounts."""
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
    ranked = Ranked(P)
    summed = xp.cumulative_sum(discount)
    discounts = steps(xp.reshape(xp.take(summed, xp.reshape(ranked.ends, (-1,))), P.shape))
    counts = steps(xp.astype(ranked.ends + 1, dtype))
    means = steps(ranked.totals(Y)) / xp.where(counts == 0, xp.ones_like(counts), counts)
    return xp.sum(means * discounts, axis=-1)


def _rows_normalized_gain(Y: Array, P: Array, k: int | None, ignore_ties: bool) -> Array:
    xp = array_namespace(P)
    gain = _rows_gain(Y, P, k, 2, ignore_ties)
    best = _rows_gain(Y, xp.astype(Y, float_dtype(P))[None, ...], k, 2, ignore_ties=True)
    scores = xp.where(best == 0, xp.zeros_like(gain), gain / xp.where(best == 0, xp.ones_like(best), best))
    # Negative gains are refused.
    return nan_unless(xp.min(Y) >= 0, scores)


RANKING_METRICS: dict[Callable[..., Any], MetricKernel] = {
    roc_auc_score: MetricKernel(
        _roc_auc, "scores", {"average": "macro", "max_fpr": None, "multi_class": "raise", "labels": None}
    ),
    average_precision_score: MetricKernel(_average_precision, "scores", {"average": "macro", "pos_label": 1}),
    top_k_accuracy_score: MetricKernel(
        _top_k_accuracy, "scores", {"k": 2, "normalize": True, "labels": None}
    ),
    label_ranking_average_precision_score: MetricKernel(_of_rows(_rows_precision), "scores"),
    label_ranking_loss: MetricKernel(_of_rows(_rows_loss), "scores"),
    coverage_error: MetricKernel(_of_rows(_rows_coverage), "scores"),
    dcg_score: MetricKernel(_of_rows(_rows_gain), "scores", {"k": None, "log_base": 2, "ignore_ties": False}),
    ndcg_score: MetricKernel(_of_rows(_rows_normalized_gain), "scores", {"k": None, "ignore_ties": False}),
}
