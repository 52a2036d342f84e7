"""Tables of true and predicted labels of rows on a device.

Rows are counted there. What scikit-learn raises or warns of, its own function does, of a sketch of the rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.metrics import class_likelihood_ratios, confusion_matrix, multilabel_confusion_matrix

from manyfit._compat import replace_globals
from manyfit.arrays import array_namespace, to_device_of, to_host
from manyfit.metrics.functions._representative_rows import (
    N_FACTS,
    drawn,
    facts,
    kind_at_home,
    refuse_as_scikit_learn,
)
from manyfit.metrics.functions._structured_results import Whole, put
from manyfit.metrics.kernels._kernel import Targets, as_targets
from manyfit.metrics.kernels._label_codes import distinct
from manyfit.metrics.kernels.labels._counts import Counts, contingency, counts, presence, ratio, weight_of
from manyfit.metrics.kernels.labels._precision_recall import counts_by_sample, places_of, taken

Array = Any


@dataclass(frozen=True)
class Labelled:
    """True and predicted labels of n rows on a device.

    Attributes
    ----------
    targets : Targets
        With codes, or with indicators as numbers.
    P : array of shape (1, n) or (1, n, n_labels)
        Codes or indicators, as of one setting.
    sketch : tuple of (ndarray, ndarray, ndarray or None)
        Few rows on the host that have the same labels, true and predicted, and their weights.
    whole_weights : bool
        Whether weights, if there are any, are integers.
    """

    targets: Targets
    P: Array
    sketch: tuple[Any, Any, Any]
    whole_weights: bool

    @cached_property
    def counts(self) -> Counts:
        """Counts of labels, of shape (1, K), where the labels lie."""
        return counts(self.targets, self.P)

    @cached_property
    def total(self) -> Any:
        """Number or weight of all rows."""
        w = weight_of(self.targets, self.P)
        return self.P.shape[1] if w is None else array_namespace(w).sum(w)

    @cached_property
    def at_home(self) -> tuple[Counts, Any]:
        """Counts, and what all rows count, on the host, which they reach together."""
        of, xp = self.counts, array_namespace(self.P)
        parts, (m, K) = (of.hits, of.predicted, of.true), of.hits.shape
        if self.targets.weight is None:
            found, total = to_host(xp.stack(parts)), self.total
        else:
            flat = [xp.reshape(part, (-1,)) for part in (*parts, self.total)]
            found = to_host(xp.concat(flat))
            found, total = found[:-1].reshape(3, m, K), found[-1]
        return Counts(found[0], found[1], found[2], np.ones((m, K), dtype=bool)), total

    def selected(self, of: Counts, labels: Any) -> Counts:
        """Counts, on host or device, of some labels in their order; of None all."""
        return of if labels is None else taken(of, places_of(self.targets, of.hits.shape[1], labels))


def labelled(
    function: Callable[..., Any], y_true: Any, predicted: Array, weight: Array | None, options: dict[str, Any]
) -> Labelled:
    """Labels of rows on a device, with a sketch of them.

    The host waits for facts of the arrays, twice for the labels, and for which of them are on which side.

    Parameters
    ----------
    function : callable
        scikit-learn's, of which `options` are the other arguments: it is called where it will refuse these.
    y_true : array of shape (n,) or (n, n_labels)
        Host or device.
    predicted : array of shape (n,) or (n, n_labels)
        On a device.
    weight : array of shape (n,), or None
        Where `predicted` lies.

    Raises
    ------
    Unsupported
        If they are not labels, and scikit-learn does not refuse them.
    """
    arrays = {"y_true": y_true, "y_pred": predicted, "sample_weight": weight}
    texts = isinstance(y_true, np.ndarray) and y_true.dtype.kind not in "biuf"
    if texts and y_true.ndim == predicted.ndim == 1:
        # A device has none. scikit-learn says which labels do not go together.
        arrays |= {"y_true": np.unique(y_true.astype(str)), "y_pred": distinct(predicted)}
    shaped = y_true.ndim == predicted.ndim in (1, 2) and y_true.shape[1:] == predicted.shape[1:]
    if texts or not shaped or (weight is not None and weight.ndim != 1):
        refuse_as_scikit_learn(function, arrays, options)
    y_true, xp, n = to_device_of(y_true, predicted), array_namespace(predicted), predicted.shape[0]
    given = [y_true, predicted, *([] if weight is None else [weight])]
    known = to_host(xp.concat([facts(array) for array in given])).reshape(-1, N_FACTS).tolist()
    if any(not whole or not (y_true.ndim == 1 or only_two) for _, _, only_two, whole in known[:2]):
        refuse_as_scikit_learn(function, arrays, options)
    targets, P = as_targets("labels", y_true, predicted[None, ...], weight)
    if y_true.ndim == 1:
        sides = _labels_of_sides(targets, P)
        # So many that each side has as large a part of its rows different as all rows have, or none.
        n_rows = min(n, 2 * max(map(len, sides)))
        # Each in its own kind: of 0, 0.0 and False, a report names the one that comes first.
        kinds = map(kind_at_home, given)
        rows = [np.resize(side.astype(kind), n_rows) for side, kind in zip(sides, kinds, strict=False)]
    else:
        n_rows = min(n, 4)
        rows = [drawn(known[i], given[i], n_rows) for i in range(2)]
    whole_weights = weight is None or xp.isdtype(weight.dtype, ("bool", "integral"))
    w = None if weight is None else drawn(known[2], weight, n_rows)
    return Labelled(targets, P, (rows[0], rows[1], w), whole_weights)


def _labels_of_sides(targets: Targets, P: Array) -> list[Any]:
    """True labels, and predicted ones, on the host."""
    xp, classes = array_namespace(P), np.asarray(targets.classes)
    in_truth, in_predicted = presence(targets, P)
    found = to_host(xp.stack([in_truth, in_predicted[0, :]]))
    return [classes[there] for there in found]


def in_integers(values: Array, whole: bool) -> Array:
    """Counts as integers, if they are whole."""
    xp = array_namespace(values)
    return xp.astype(xp.round(values), xp.int64) if whole else values


def matrices(of: Counts, total: Any, whole: bool) -> Array:
    """Two by two tables, (q, 2, 2), of counts of shape (1, q), on host or device."""
    xp = array_namespace(of.hits)
    fp, fn = of.predicted - of.hits, of.true - of.hits
    cells = xp.stack([(total - of.hits - fp - fn)[0, :], fp[0, :], fn[0, :], of.hits[0, :]], axis=1)
    return in_integers(xp.reshape(cells, (-1, 2, 2)), whole)


def _multilabel_confusion(
    function: Callable[..., Any],
    y_true: Any,
    predicted: Array,
    weight: Array | None,
    *,
    labels: Any,
    samplewise: bool,
) -> Array:
    options = {"labels": labels, "samplewise": samplewise}
    rows = labelled(function, y_true, predicted, weight, options)
    y, p, w = rows.sketch
    function(y, p, sample_weight=w, **options)
    if not samplewise:
        return matrices(rows.selected(rows.counts, labels), rows.total, weight is None)
    of = counts_by_sample(rows.targets, rows.P, labels)
    n_labels = predicted.shape[1] if labels is None else len(labels)
    w = weight_of(rows.targets, rows.P)
    w = 1 if w is None else w
    weighted = Counts(of.hits * w, of.predicted * w, of.true * w, of.present)
    return matrices(weighted, n_labels * w, rows.whole_weights)


def _confusion(
    function: Callable[..., Any],
    y_true: Any,
    predicted: Array,
    weight: Array | None,
    *,
    labels: Any,
    normalize: str | None,
) -> Array:
    options = {"labels": labels, "normalize": normalize}
    rows = labelled(function, y_true, predicted, weight, options)
    y, p, w = rows.sketch
    function(y, p, sample_weight=w, **options)
    return table_of(rows, labels, normalize)


def table_of(rows: Labelled, labels: Any, normalize: str | None = None) -> Array:
    """The confusion matrix, where the labels lie."""
    xp = array_namespace(rows.P)
    cells = contingency(rows.targets, rows.P).cells[0, ...]
    if labels is not None:
        cells = _of_labels(cells, places_of(rows.targets, rows.targets.n_classes, labels))
    if normalize is None:
        return in_integers(cells, rows.whole_weights)
    axis = {"true": 1, "pred": 0, "all": (0, 1)}[normalize]
    return ratio(cells, xp.sum(cells, axis=axis, keepdims=True), 0.0)


def _of_labels(cells: Array, places: list[int]) -> Array:
    """Rows and columns of a square table, in an order; one past the last is of no row.

    Of a label that is asked for several times, scikit-learn counts the last one.
    """
    xp, K = array_namespace(cells), cells.shape[0]
    last = {place: i for i, place in enumerate(places)}
    index = [place if last[place] == i else K for i, place in enumerate(places)]
    index = to_device_of(np.asarray(index, dtype=np.int64), cells)
    for axis in (0, 1):
        nothing = xp.zeros_like(xp.take(cells, index[:1] * 0, axis=axis))
        cells = xp.take(xp.concat([cells, nothing], axis=axis), index, axis=axis)
    return cells


def _likelihood_ratios(
    function: Callable[..., Any],
    y_true: Any,
    predicted: Array,
    weight: Array | None,
    *,
    labels: Any,
    **options: Any,
) -> tuple[Array, Array]:
    rows = labelled(function, y_true, predicted, weight, {"labels": labels, **options})

    def counted(*arrays: Any, labels: Any, **others: Any) -> Any:
        confusion_matrix(*arrays, labels=labels, **others)
        return to_host(table_of(rows, labels))

    y, p, w = rows.sketch
    ratios = replace_globals(function, __name__, confusion_matrix=counted)
    found = put(np.asarray(ratios(y, p, labels=labels, sample_weight=w, **options)), predicted)
    return found[0, ...], found[1, ...]


_FACTS = "a few facts of each array, the labels, and which of them are true and which predicted"

TABLES: dict[Callable[..., Any], Whole] = {
    confusion_matrix: Whole(_confusion, _FACTS),
    multilabel_confusion_matrix: Whole(_multilabel_confusion, _FACTS),
    class_likelihood_ratios: Whole(_likelihood_ratios, f"{_FACTS}, and the table of counts"),
}
