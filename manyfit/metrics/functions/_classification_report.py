"""Precision, recall, F and support of each label, and reports of them, of rows on a device.

Counts come home, and scikit-learn's own functions make of them what they make of its own.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import (
    classification_report,
    multilabel_confusion_matrix,
    precision_recall_fscore_support,
)

from manyfit._compat import replace_globals
from manyfit.arrays import array_namespace, to_host
from manyfit.metrics.functions._confusion_tables import Labelled, labelled, matrices
from manyfit.metrics.functions._structured_results import Whole, put
from manyfit.metrics.kernels.labels._counts import as_floating, weight_of
from manyfit.metrics.kernels.labels._precision_recall import (
    counts_by_sample,
    fbeta,
    mean_over,
    precision,
    recall,
    undefined_as,
)

Array = Any
# Precision, recall, F score and support: of labels, or averages and None.
Scores = tuple[Any, Any, Any, Any]


def _scores(
    function: Callable[..., Any],
    y_true: Any,
    predicted: Array,
    weight: Array | None,
    **options: Any,
) -> Scores:
    rows = labelled(function, y_true, predicted, weight, options)
    *found, support = _scores_at_home(rows, *rows.sketch, **options)
    p, r, f = (put(np.stack(found), predicted)[i, ...] for i in range(3))
    return p, r, f, put(support, predicted)


def _scores_at_home(rows: Labelled, y: Any, p: Any, w: Any, **options: Any) -> Scores:
    """What scikit-learn's ``precision_recall_fscore_support`` makes of the counts, and of the sketch."""
    means: list[float] = []

    def counted(*arrays: Any, labels: Any, samplewise: bool, **others: Any) -> Any:
        # For what it refuses.
        multilabel_confusion_matrix(*arrays, labels=labels, samplewise=samplewise, **others)
        if samplewise:
            found, lacking = _scores_by_sample(rows, **options)
            means.extend(found)
            return _rows_that_lack(lacking, y.shape[0])
        of, total = rows.at_home
        # Where no label is right, scikit-learn's counts are floating numbers, which a report prints as such.
        whole = rows.targets.weight is None and (rows.targets.codes is None or of.hits.any())
        return matrices(rows.selected(of, labels), total, whole)

    scores = replace_globals(precision_recall_fscore_support, __name__, multilabel_confusion_matrix=counted)
    found: Scores = scores(y, p, sample_weight=w, **options)
    return (means[0], means[1], means[2], None) if means else found


def _scores_by_sample(
    rows: Labelled, *, labels: Any, zero_division: Any, beta: float = 1.0, **_: Any
) -> tuple[list[float], list[bool]]:
    """Three means over rows, and whether some row has nothing predicted, nothing true, or neither."""
    xp, undefined = array_namespace(rows.P), undefined_as(zero_division)
    of, w = counts_by_sample(rows.targets, rows.P, labels), weight_of(rows.targets, rows.P)
    means = [mean_over(measure(of, undefined), w, of.present) for measure in (precision, recall, fbeta(beta))]
    lacking = [xp.any(part == 0, axis=1) for part in (of.predicted, of.true, of.predicted + of.true)]
    found = to_host(xp.concat([*means, *(as_floating(flag, rows.P) for flag in lacking)])).tolist()
    return found[:3], [bool(flag) for flag in found[3:]]


def _rows_that_lack(lacking: list[bool], n_rows: int) -> Any:
    """Tables of rows, (n_rows, 2, 2), of which scikit-learn warns as it does of those on the device."""
    nothing_predicted, nothing_true, neither = lacking
    tables = np.zeros((n_rows, 2, 2), dtype=np.int64)
    tables[:, 1, 1] = 1
    wrong = [[0, 0]] if neither else [[0, 1]] * nothing_predicted + [[1, 0]] * nothing_true
    for table, (fp, fn) in zip(tables, wrong, strict=False):
        table[:] = [[1, fp], [fn, 0]]
    return tables


def _report(
    function: Callable[..., Any],
    y_true: Any,
    predicted: Array,
    weight: Array | None,
    **options: Any,
) -> Any:
    rows = labelled(function, y_true, predicted, weight, options)

    def scored(y: Any, p: Any, *, sample_weight: Any, **how: Any) -> Scores:
        return _scores_at_home(rows, y, p, sample_weight, **how)

    y, p, w = rows.sketch
    return replace_globals(function, __name__, precision_recall_fscore_support=scored)(
        y, p, sample_weight=w, **options
    )


_COUNTS = "a few facts of each array, the labels, and how often each is true, predicted and both"

REPORTS: dict[Callable[..., Any], Whole] = {
    precision_recall_fscore_support: Whole(_scores, _COUNTS),
    classification_report: Whole(_report, _COUNTS),
}
