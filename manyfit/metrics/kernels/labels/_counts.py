"""Counts of true and predicted labels, from which metrics of labels follow."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from manyfit.arrays import array_namespace, device, float_dtype, to_device_of
from manyfit.folds import Unsupported
from manyfit.metrics.kernels._kernel import DEVICE_BYTES, Targets, or_nan, score_in_chunks

Array = Any

# Most cells in the table of one setting; scikit-learn's table for so many labels is sparse.
MAX_CELLS = 2**24
# Most cells for which counting pairs of labels, on the host, is quicker than three counts of labels.
SMALL_TABLE = 2**12


class Counts(NamedTuple):
    """Weights of rows by label, each (m, K): rows with the label `true`, `predicted`, or both (`hits`).

    `present` says whether a row has the label, true or predicted, whatever its weight.
    """

    hits: Array
    predicted: Array
    true: Array
    present: Array


@dataclass(frozen=True)
class Table:
    """Contingency tables of m settings.

    `cells`, (m, K, K), are weights of rows by true and predicted label. `in_truth`, (K,), and `in_predicted`,
    (m, K), say whether a row has a label, whatever its weight.
    """

    cells: Array
    in_truth: Array
    in_predicted: Array


def float_weight(targets: Targets, like: Array) -> Array | None:
    """Sample weights in the widest floating dtype, in which scikit-learn sums them; None stays."""
    if targets.weight is None:
        return None
    return array_namespace(like).astype(targets.weight, float_dtype(like), copy=False)


def count_labels(targets: Targets, P: Array) -> Counts:
    """Counts of labels from codes, (m, n), or indicators, (m, n, n_labels)."""
    if targets.codes is None:
        return _counts_of_indicators(targets, P)
    if isinstance(P, np.ndarray):
        return _counts_on_host(targets, P)
    xp, dtype, K = array_namespace(P), float_dtype(P), targets.n_classes
    w = float_weight(targets, P)
    w = xp.ones(P.shape[1], dtype=dtype, device=device(P)) if w is None else w
    columns = []
    for k in range(K):
        chosen, true = xp.equal(P, k), targets.codes == k
        both = xp.stack([w, w * xp.astype(true, dtype)], axis=1)
        sums = xp.astype(chosen, dtype) @ both
        present = xp.any(chosen, axis=1) | xp.any(true)
        columns.append((sums[:, 1], sums[:, 0], xp.broadcast_to(xp.sum(both[:, 1]), (P.shape[0],)), present))
    return Counts(*(xp.stack(list(column), axis=1) for column in zip(*columns, strict=True)))


def _counts_of_indicators(targets: Targets, P: Array) -> Counts:
    xp, dtype = array_namespace(P), float_dtype(P)
    true, chosen, w = as_flags(targets.numbers), as_flags(P), float_weight(targets, P)

    def total(rows: Array) -> Array:
        rows = xp.astype(rows, dtype)
        return xp.sum(rows if w is None else rows * w[:, None], axis=-2)

    predicted = total(chosen)
    return Counts(
        total(true & chosen),
        predicted,
        xp.broadcast_to(total(true), predicted.shape),
        xp.ones_like(predicted, dtype=xp.bool),
    )


def as_flags(indicators: Array) -> Array:
    """Indicators as booleans."""
    xp = array_namespace(indicators)
    return indicators if xp.isdtype(indicators.dtype, "bool") else indicators != 0


def _counts_on_host(targets: Targets, P: Any) -> Counts:
    K, w = targets.n_classes, float_weight(targets, P)
    if K * K <= SMALL_TABLE:
        table = contingency(targets, P)
        predicted, true = table.cells.sum(axis=1), table.cells.sum(axis=2)
        hits = table.cells.diagonal(axis1=1, axis2=2)
        return Counts(hits, predicted, true, table.in_truth | table.in_predicted)
    right = targets.codes == P
    hits = _bincount(P, K, right if w is None else right * w)
    predicted, true = _bincount(P, K, w), _bincount(targets.codes[None], K, w)
    in_truth, in_predicted = label_presence(targets, P)
    return Counts(hits, predicted, np.broadcast_to(true, hits.shape), in_truth | in_predicted)


def _bincount(codes: Any, K: int, weight: Any = None) -> Any:
    """Weight of each code from 0 to K - 1 in each row, (m, K), on the host."""
    m = len(codes)
    apart = codes + K * np.arange(m)[:, None] if m > 1 else codes
    if weight is not None:
        weight = np.broadcast_to(weight, codes.shape).reshape(-1)
    return np.bincount(apart.reshape(-1), weight, minlength=m * K).reshape(m, K).astype(np.float64)


def sum_where(flags: Any, weight: Any) -> Any:
    """Number or weight, (m,), of the columns where booleans (m, n) are true, on the host.

    Weights are added in scikit-learn's order: a product of BLAS rounds equal rows differently.
    """
    if weight is None:
        # Row by row: along an axis NumPy converts the booleans first.
        return np.asarray([np.count_nonzero(row) for row in flags], dtype=np.float64)
    return np.asarray([np.multiply(row, weight).sum() for row in flags], dtype=np.float64)


def label_presence(targets: Targets, P: Array) -> tuple[Array, Array]:
    """Which classes are true, (K,), and which are predicted, (m, K), in some row."""
    K = targets.n_classes
    if isinstance(P, np.ndarray):
        return _bincount(targets.codes[None], K)[0] > 0, _bincount(P, K) > 0
    xp = array_namespace(P)
    in_truth = xp.stack([xp.any(targets.codes == k) for k in range(K)])
    return in_truth, xp.stack([xp.any(xp.equal(P, k), axis=1) for k in range(K)], axis=1)


def contingency(targets: Targets, P: Array) -> Table:
    """Tables of true and predicted codes; Unsupported if a table would have too many cells."""
    xp, K = array_namespace(P), targets.n_classes
    if K * K > MAX_CELLS:
        raise Unsupported(f"a table of {K} by {K} labels for each setting")
    if isinstance(P, np.ndarray):
        weight = float_weight(targets, P)
        cells = _bincount(targets.codes * K + P, K * K, weight).reshape(-1, K, K)
    else:
        cells = _cells(targets, P)
    if targets.weight is not None:
        return Table(cells, *label_presence(targets, P))
    return Table(cells, xp.sum(cells[0, ...], axis=1) > 0, xp.sum(cells, axis=1) > 0)


def _cells(targets: Targets, P: Array) -> Array:
    """Products of indicators of predicted labels with weighted indicators of true ones."""
    xp, dtype, K, (m, n) = array_namespace(P), float_dtype(P), targets.n_classes, P.shape
    w = float_weight(targets, P)
    names = xp.arange(K, device=device(P))
    cells = xp.zeros((K, m, K), dtype=dtype, device=device(P))
    step = max(1, DEVICE_BYTES // (8 * K))
    for j in range(0, n, step):
        end = min(j + step, n)
        true = xp.astype(targets.codes[j:end, None] == names, dtype)
        true = true if w is None else true * w[j:end, None]
        part = P[:, j:end]
        cells = cells + xp.stack([xp.astype(part == k, dtype) @ true for k in range(K)])
    return xp.permute_dims(cells, (1, 2, 0))


def score_tables(scores: Callable[[Table], Array], targets: Targets, P: Array) -> Array:
    """Scores of m settings from their tables, as many settings at a time as memory allows."""
    n, K = P.shape[1], targets.n_classes
    # score_in_chunks reckons with 8 n bytes for a setting; its table has 8 K^2.
    max_bytes = DEVICE_BYTES * n // max(n, K * K)
    return score_in_chunks(lambda part: scores(contingency(targets, part)), P, max_bytes)


def refused_settings(targets: Targets, P: Array, whole: bool = True) -> Array | None:
    """Settings, (m,), that scikit-learn refuses for their labels, all if no row has weight; None if none.

    Unless `whole`, fractions are labels as well.
    """
    xp = array_namespace(P)
    refused = _no_labels(targets, P, whole) if targets.codes is not None else _no_indicators(targets, P)
    if targets.weight is None:
        return refused
    no_weight = xp.broadcast_to(xp.all(targets.weight == 0), (P.shape[0],))
    return no_weight if refused is None else refused | no_weight


def _no_labels(targets: Targets, P: Array, whole: bool) -> Array | None:
    """Settings with labels that are numbers but not finite, or not whole."""
    classes = np.asarray(targets.classes)
    if classes.dtype.kind != "f":
        return None
    bad = ~np.isfinite(classes)
    if whole:
        bad |= np.trunc(classes) != classes
    if not bad.any():
        return None
    in_truth, in_predicted = label_presence(targets, P)
    return array_namespace(P).any((in_truth | in_predicted) & to_device_of(bad, P), axis=1)


def _no_indicators(targets: Targets, P: Array) -> Array:
    """Settings, (m,), with targets or predictions other than 0 and 1; Unsupported for a single column."""
    xp = array_namespace(P)
    if P.ndim != 3 or P.shape[2] < 2:
        raise Unsupported("indicators of one label")
    odd = [_is_no_indicator(rows) for rows in (targets.numbers, P)]
    return xp.any(odd[0]) | xp.any(odd[1], axis=(1, 2))


def _is_no_indicator(values: Array) -> Array:
    xp = array_namespace(values)
    if xp.isdtype(values.dtype, "bool"):
        return xp.zeros_like(values)
    return (values != 0) & (values != 1)


def nan_where(scores: Array, refused: Array | None) -> Array:
    """Scores, (m,) or (m, q), NaN for settings that are refused."""
    return scores if refused is None else or_nan(scores, ~refused)


def ratio(a: Array, b: Array, otherwise: float) -> Array:
    """a / b, and another value where b is zero."""
    xp = array_namespace(b)
    zero = b == 0
    return xp.where(zero, xp.full_like(b, otherwise), a / xp.where(zero, xp.ones_like(b), b))


def as_floating(flags: Array, like: Array) -> Array:
    """Booleans or integers in the widest floating dtype."""
    return array_namespace(like).astype(flags, float_dtype(like))
