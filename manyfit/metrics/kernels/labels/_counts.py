"""How often many settings predict which labels: the counts that metrics of labels are made of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyfit.arrays import array_namespace, device, float_dtype, to_device_of
from manyfit.folds import Unsupported
from manyfit.metrics.kernels._kernel import DEVICE_BYTES, Targets, in_chunks
from manyfit.metrics.kernels._label_codes_numpy import BLOCK

Array = Any

# Most cells of the table of one setting; scikit-learn's own of so many labels is sparse.
MAX_CELLS = 2**24
# Most cells of a table for which one count of pairs is quicker, on the host, than three of single labels.
SMALL_TABLE = 2**12


@dataclass(frozen=True)
class Counts:
    """Weights of rows by label, of m settings and K labels; each of shape (m, K), and floating but the last.

    Attributes
    ----------
    hits : array
        Of rows where the label is both true and predicted.
    predicted, true : array
        Of rows where it is the one or the other.
    present : array of bool
        Whether there is such a row, whatever its weight.
    """

    hits: Array
    predicted: Array
    true: Array
    present: Array


@dataclass(frozen=True)
class Table:
    """Contingency of true and predicted labels of m settings.

    Attributes
    ----------
    cells : array of shape (m, K, K)
        Weight of the rows with a pair of labels, the true one first; floating.
    in_truth : array of bool of shape (K,)
        Whether some row has this label, whatever its weight.
    in_predicted : array of bool of shape (m, K)
        The same of predictions.
    """

    cells: Array
    in_truth: Array
    in_predicted: Array


def weight_of(targets: Targets, like: Array) -> Array | None:
    """Sample weights in the widest floating dtype, in which scikit-learn sums them; None stays."""
    if targets.weight is None:
        return None
    return array_namespace(like).astype(targets.weight, float_dtype(like), copy=False)


def counts(targets: Targets, P: Array) -> Counts:
    """Counts of labels, from codes of shape (m, n) or indicators of shape (m, n, n_labels)."""
    if targets.codes is None:
        return _counts_of_indicators(targets, P)
    if isinstance(P, np.ndarray):
        return _counts_on_host(targets, P)
    xp, dtype, K = array_namespace(P), float_dtype(P), targets.n_classes
    w = weight_of(targets, P)
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
    true, chosen, w = is_on(targets.numbers), is_on(P), weight_of(targets, P)

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


def is_on(indicators: Array) -> Array:
    """Indicators as booleans."""
    xp = array_namespace(indicators)
    return indicators if xp.isdtype(indicators.dtype, "bool") else indicators != 0


def _counts_on_host(targets: Targets, P: Any) -> Counts:
    K, w = targets.n_classes, weight_of(targets, P)
    if K * K <= SMALL_TABLE:
        table = contingency(targets, P)
        predicted, true = table.cells.sum(axis=1), table.cells.sum(axis=2)
        hits = table.cells.diagonal(axis1=1, axis2=2)
        return Counts(hits, predicted, true, table.in_truth | table.in_predicted)
    right = targets.codes == P
    hits = _bincount(P, K, right if w is None else right * w)
    predicted, true = _bincount(P, K, w), _bincount(targets.codes[None], K, w)
    in_truth, in_predicted = presence(targets, P)
    return Counts(hits, predicted, np.broadcast_to(true, hits.shape), in_truth | in_predicted)


def _bincount(codes: Any, K: int, weight: Any = None) -> Any:
    """Weight of each code from 0 to K - 1 in each row, of shape (m, K); on the host."""

    def count(block: slice) -> Any:
        return _count(codes[:, block], K, None if weight is None else weight[..., block])

    return _over_columns(count, codes, K)


def _count(codes: Any, K: int, weight: Any) -> Any:
    """What `_bincount` gives, of all rows in one call."""
    m = len(codes)
    apart = codes + K * np.arange(m)[:, None] if m > 1 else codes
    if weight is not None:
        weight = np.broadcast_to(weight, codes.shape).reshape(-1)
    return np.bincount(apart.reshape(-1), weight, minlength=m * K).reshape(m, K).astype(np.float64)


def _over_columns(count: Callable[[slice], Any], rows: Any, n_cells: int) -> Any:
    """Sum of counts over blocks of columns that a second-level cache holds, if the cells are few."""
    m, n = rows.shape
    width = max(BLOCK // m, 4 * n_cells)
    return sum(count(slice(j, j + width)) for j in range(0, n, width))


def weight_where(flags: Any, weight: Any) -> Any:
    """Number, or weight, of the columns where booleans of shape (m, n) are true, (m,); on the host."""
    if weight is None:
        # Row by row: along an axis NumPy converts the booleans before it counts them.
        return np.asarray([np.count_nonzero(row) for row in flags], dtype=np.float64)
    return _over_columns(lambda block: flags[:, block] @ weight[block], flags, 1)


def presence(targets: Targets, P: Array) -> tuple[Array, Array]:
    """Which classes are true, (K,), and which are predicted, (m, K), by some row."""
    K = targets.n_classes
    if isinstance(P, np.ndarray):
        return _bincount(targets.codes[None], K)[0] > 0, _bincount(P, K) > 0
    xp = array_namespace(P)
    in_truth = xp.stack([xp.any(targets.codes == k) for k in range(K)])
    return in_truth, xp.stack([xp.any(xp.equal(P, k), axis=1) for k in range(K)], axis=1)


def contingency(targets: Targets, P: Array) -> Table:
    """Tables of true and predicted codes.

    Raises
    ------
    Unsupported
        If a table would have too many cells.
    """
    xp, K = array_namespace(P), targets.n_classes
    if K * K > MAX_CELLS:
        raise Unsupported(f"a table of {K} by {K} labels for each setting")
    cells = _cells_on_host(targets, P) if isinstance(P, np.ndarray) else _cells(targets, P)
    if targets.weight is not None:
        return Table(cells, *presence(targets, P))
    return Table(cells, xp.sum(cells[0, ...], axis=1) > 0, xp.sum(cells, axis=1) > 0)


def _cells_on_host(targets: Targets, P: Any) -> Any:
    K, w = targets.n_classes, weight_of(targets, P)

    def count(block: slice) -> Any:
        pairs = targets.codes[block] * K + P[:, block]
        return _count(pairs, K * K, None if w is None else w[block])

    return _over_columns(count, P, K * K).reshape(len(P), K, K)


def _cells(targets: Targets, P: Array) -> Array:
    """Products of indicators of predicted labels with weighted indicators of true ones."""
    xp, dtype, K, (m, n) = array_namespace(P), float_dtype(P), targets.n_classes, P.shape
    w = weight_of(targets, P)
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


def from_tables(scores: Callable[[Table], Array], targets: Targets, P: Array) -> Array:
    """Scores of m settings from their tables, of as many settings at a time as memory is meant to hold."""
    n, K = P.shape[1], targets.n_classes
    # in_chunks reckons 8 n bytes for a setting, of which a table has 8 K^2.
    max_bytes = DEVICE_BYTES * n // max(n, K * K)
    return in_chunks(lambda part: scores(contingency(targets, part)), P, max_bytes)


def refusals(targets: Targets, P: Array, whole: bool = True) -> Array | None:
    """Which settings scikit-learn refuses for their labels, all if no row has weight; None if none.

    Parameters
    ----------
    targets : Targets
        Of n rows.
    P : array of shape (m, n) or (m, n, n_labels)
        Codes or indicators.
    whole : bool
        If False, fractions are labels as well.

    Returns
    -------
    array of bool of shape (m,), or None
        Where the predictions lie.
    """
    xp = array_namespace(P)
    refused = _no_labels(targets, P, whole) if targets.codes is not None else _no_indicators(targets, P)
    if targets.weight is None:
        return refused
    no_weight = xp.broadcast_to(xp.all(targets.weight == 0), (P.shape[0],))
    return no_weight if refused is None else refused | no_weight


def _no_labels(targets: Targets, P: Array, whole: bool) -> Array | None:
    """Which settings have labels that are numbers but not finite, or not whole ones."""
    classes = np.asarray(targets.classes)
    if classes.dtype.kind != "f":
        return None
    bad = ~np.isfinite(classes)
    if whole:
        bad |= np.trunc(classes) != classes
    if not bad.any():
        return None
    in_truth, in_predicted = presence(targets, P)
    return array_namespace(P).any((in_truth | in_predicted) & to_device_of(bad, P), axis=1)


def _no_indicators(targets: Targets, P: Array) -> Array:
    """Which settings have targets or predictions that are not all 0 or 1, of shape (m,).

    Raises
    ------
    Unsupported
        If there are not several columns of them.
    """
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


def refuse(scores: Array, refused: Array | None) -> Array:
    """Scores of shape (m,) or (m, q), NaN where a setting is refused."""
    if refused is None:
        return scores
    xp = array_namespace(scores)
    refused = xp.reshape(refused, (-1,) + (1,) * (scores.ndim - 1))
    return xp.where(refused, xp.full_like(scores, np.nan), scores)


def ratio(a: Array, b: Array, otherwise: float) -> Array:
    """a / b, and a value of its own where b is zero."""
    xp = array_namespace(b)
    zero = b == 0
    return xp.where(zero, xp.full_like(b, otherwise), a / xp.where(zero, xp.ones_like(b), b))


def as_floating(flags: Array, like: Array) -> Array:
    """Booleans or integers in the widest floating dtype."""
    return array_namespace(like).astype(flags, float_dtype(like))
