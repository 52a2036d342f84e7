"""Confusion matrices of true and predicted labels on a device.

Rows are counted on the device. scikit-learn's own function raises and warns, for representative rows on the
host.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.metrics import class_likelihood_ratios, confusion_matrix, multilabel_confusion_matrix

from manyfit._compat import replace_globals
from manyfit.arrays import array_namespace, to_device_of, to_host
from manyfit.metrics.functions._representative_rows import (
    N_FACTS,
    host_dtype,
    make_rows,
    raise_sklearn_error,
    value_facts,
)
from manyfit.metrics.functions._structured_results import StructuredMetric, result_to_device
from manyfit.metrics.kernels._kernel import Targets, make_targets
from manyfit.metrics.kernels._label_codes import distinct_labels
from manyfit.metrics.kernels.labels._counts import (
    Counts,
    contingency,
    count_labels,
    float_weight,
    label_presence,
    ratio,
)
from manyfit.metrics.kernels.labels._precision_recall import (
    counts_by_sample,
    label_places,
    select_labels,
    take_columns,
)

Array = Any


@dataclass(frozen=True)
class LabelRows:
    """True and predicted labels of n rows on a device, for one of scikit-learn's functions.

    `P` are codes, (1, n), or indicators, (1, n, n_labels), as of one setting. `examples` are true labels,
    predicted labels and weights of a few rows on the host that have the same labels. `whole_weights`: weights
    are integers, or None.
    """

    function: Callable[..., Any]
    targets: Targets
    P: Array
    examples: tuple[Any, Any, Any]
    whole_weights: bool

    def on_examples(self, **options: Any) -> Any:
        """The function of the examples, which raises and warns as for all rows."""
        y, p, w = self.examples
        return self.function(y, p, sample_weight=w, **options)

    @cached_property
    def counts(self) -> Counts:
        """Counts of labels, (1, K), on the device."""
        return count_labels(self.targets, self.P)

    @cached_property
    def total(self) -> Any:
        """Number or weight of all rows."""
        w = float_weight(self.targets, self.P)
        return self.P.shape[1] if w is None else array_namespace(w).sum(w)

    @cached_property
    def host_counts(self) -> tuple[Counts, Any]:
        """Counts, and the weight of all rows, on the host after one transfer."""
        xp = array_namespace(self.P)
        parts = [*self.counts[:3], xp.zeros_like(self.counts.hits) + self.total]
        hits, predicted, true, total = to_host(xp.stack(parts))
        return Counts(hits, predicted, true, np.ones(hits.shape, dtype=bool)), total[0, 0]

    def selected(self, counts: Counts, labels: Any) -> Counts:
        """Counts, on host or device, of some labels in their order; None selects all."""
        if labels is None:
            return counts
        return select_labels(counts, label_places(self.targets, counts.hits.shape[1], labels))


def label_rows(
    function: Callable[..., Any], y_true: Any, predicted: Array, weight: Array | None, options: dict[str, Any]
) -> LabelRows:
    """Labels, (n,) or (n, n_labels), on a device, with representative rows; `y_true` may be on the host.

    The host waits for facts of the arrays, for the labels twice, and for which side they are on. `function`
    with its `options` is called if it will refuse the arrays; Unsupported if it accepts arrays that are no
    labels.
    """
    arrays = {"y_true": y_true, "y_pred": predicted, "sample_weight": weight}
    texts = isinstance(y_true, np.ndarray) and y_true.dtype.kind not in "biuf"
    if texts and y_true.ndim == predicted.ndim == 1:
        # A device holds no texts. scikit-learn names the labels that do not go together.
        arrays |= {"y_true": np.unique(y_true.astype(str)), "y_pred": distinct_labels(predicted)}
    shaped = y_true.ndim == predicted.ndim in (1, 2) and y_true.shape[1:] == predicted.shape[1:]
    if texts or not shaped or (weight is not None and weight.ndim != 1):
        raise_sklearn_error(function, arrays, options)
    y_true, xp, n = to_device_of(y_true, predicted), array_namespace(predicted), predicted.shape[0]
    given = [y_true, predicted, *([] if weight is None else [weight])]
    known = to_host(xp.concat([value_facts(array) for array in given])).reshape(-1, N_FACTS).tolist()
    if any(not whole or not (y_true.ndim == 1 or only_two) for _, _, only_two, whole in known[:2]):
        raise_sklearn_error(function, arrays, options)
    targets, P = make_targets("labels", y_true, predicted[None, ...], weight)
    if y_true.ndim == 1:
        sides = _labels_of_sides(targets, P)
        # Enough rows that the labels of each side are no smaller a part of them than of all rows.
        n_rows = min(n, 2 * max(map(len, sides)))
        # Each in its own dtype: a report names the first of 0, 0.0 and False.
        kinds = map(host_dtype, given)
        rows = [np.resize(side.astype(kind), n_rows) for side, kind in zip(sides, kinds, strict=False)]
    else:
        n_rows = min(n, 4)
        rows = [make_rows(known[i], given[i], n_rows) for i in range(2)]
    whole_weights = weight is None or xp.isdtype(weight.dtype, ("bool", "integral"))
    w = None if weight is None else make_rows(known[2], weight, n_rows)
    return LabelRows(function, targets, P, (rows[0], rows[1], w), whole_weights)


def _labels_of_sides(targets: Targets, P: Array) -> list[Any]:
    """True labels, and predicted ones, on the host."""
    xp, classes = array_namespace(P), np.asarray(targets.classes)
    in_truth, in_predicted = label_presence(targets, P)
    found = to_host(xp.stack([in_truth, in_predicted[0, :]]))
    return [classes[flags] for flags in found]


def as_integers(values: Array, whole: bool) -> Array:
    """Counts as integers, if they are whole."""
    xp = array_namespace(values)
    return xp.astype(xp.round(values), xp.int64) if whole else values


def two_by_two_tables(counts: Counts, total: Any, whole: bool) -> Array:
    """Tables (q, 2, 2) from counts (1, q), on host or device."""
    xp = array_namespace(counts.hits)
    fp, fn = counts.predicted - counts.hits, counts.true - counts.hits
    cells = xp.stack([(total - counts.hits - fp - fn)[0, :], fp[0, :], fn[0, :], counts.hits[0, :]], axis=1)
    return as_integers(xp.reshape(cells, (-1, 2, 2)), whole)


def _multilabel_confusion(rows: LabelRows, *, labels: Any, samplewise: bool) -> Array:
    rows.on_examples(labels=labels, samplewise=samplewise)
    w = float_weight(rows.targets, rows.P)
    if not samplewise:
        return two_by_two_tables(rows.selected(rows.counts, labels), rows.total, w is None)
    counts = counts_by_sample(rows.targets, rows.P, labels)
    n_labels = rows.P.shape[2] if labels is None else len(labels)
    w = 1 if w is None else w
    weighted = Counts(counts.hits * w, counts.predicted * w, counts.true * w, counts.present)
    return two_by_two_tables(weighted, n_labels * w, rows.whole_weights)


def _confusion(rows: LabelRows, *, labels: Any, normalize: str | None) -> Array:
    rows.on_examples(labels=labels, normalize=normalize)
    return confusion_table(rows, labels, normalize)


def confusion_table(rows: LabelRows, labels: Any, normalize: str | None = None) -> Array:
    """The confusion matrix, on the device of the labels."""
    xp = array_namespace(rows.P)
    cells = contingency(rows.targets, rows.P).cells[0, ...]
    if labels is not None:
        cells = _select_cells(cells, label_places(rows.targets, rows.targets.n_classes, labels))
    if normalize is None:
        return as_integers(cells, rows.whole_weights)
    axis = {"true": 1, "pred": 0, "all": (0, 1)}[normalize]
    return ratio(cells, xp.sum(cells, axis=axis, keepdims=True), 0.0)


def _select_cells(cells: Array, places: list[int]) -> Array:
    """Rows and columns of a square table at some places; one place past the last is empty.

    If a label is given several times, scikit-learn counts the last one.
    """
    last = {place: i for i, place in enumerate(places)}
    index = [place if last[place] == i else cells.shape[0] for i, place in enumerate(places)]
    return take_columns(take_columns(cells, index).T, index).T


def _likelihood_ratios(rows: LabelRows, *, labels: Any, **options: Any) -> tuple[Array, Array]:
    def counted(*arrays: Any, labels: Any, **others: Any) -> Any:
        confusion_matrix(*arrays, labels=labels, **others)
        return to_host(confusion_table(rows, labels))

    ratios = replace(rows, function=replace_globals(rows.function, __name__, confusion_matrix=counted))
    found = result_to_device(np.asarray(ratios.on_examples(labels=labels, **options)), rows.P)
    return found[0, ...], found[1, ...]


def metric_of_labels(compute: Callable[..., Any], host_reads: str) -> StructuredMetric:
    """A metric ``compute(rows, **options)`` of `LabelRows`."""

    def metric(
        function: Callable[..., Any], y_true: Any, predicted: Array, weight: Array | None, **options: Any
    ) -> Any:
        return compute(label_rows(function, y_true, predicted, weight, options), **options)

    return StructuredMetric(metric, host_reads)


_FACTS = "a few facts of each array, the labels, and which of them are true and which predicted"

TABLES: dict[Callable[..., Any], StructuredMetric] = {
    confusion_matrix: metric_of_labels(_confusion, _FACTS),
    multilabel_confusion_matrix: metric_of_labels(_multilabel_confusion, _FACTS),
    class_likelihood_ratios: metric_of_labels(_likelihood_ratios, f"{_FACTS}, and the table of counts"),
}
