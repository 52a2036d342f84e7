"""Precision, recall, F score and support of labels on a device, and reports of them.

The host reads counts, from which scikit-learn's own functions compute their results.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.metrics import (
    classification_report,
    multilabel_confusion_matrix,
    precision_recall_fscore_support,
)

from manyfit._compat import replace_globals
from manyfit.arrays import array_namespace, to_host
from manyfit.metrics.functions._confusion_tables import LabelRows, metric_of_labels, two_by_two_tables
from manyfit.metrics.functions._structured_results import StructuredMetric, result_to_device
from manyfit.metrics.kernels.labels._counts import as_floating, float_weight
from manyfit.metrics.kernels.labels._precision_recall import (
    counts_by_sample,
    fbeta,
    mean_of_counted,
    precision,
    recall,
    value_of_undefined,
)

# Precision, recall, F score and support: of labels, or averages and None.
Scores = tuple[Any, Any, Any, Any]


def _scores(rows: LabelRows, **options: Any) -> Scores:
    *found, support = _host_scores(rows, *rows.examples, **options)
    p, r, f = (result_to_device(np.stack(found), rows.P)[i, ...] for i in range(3))
    return p, r, f, result_to_device(support, rows.P)


def _host_scores(rows: LabelRows, y: Any, p: Any, w: Any, **options: Any) -> Scores:
    """The result of scikit-learn's ``precision_recall_fscore_support`` for the counts and the examples."""
    means: list[float] = []

    def counted(*arrays: Any, labels: Any, samplewise: bool, **others: Any) -> Any:
        # Raises what scikit-learn raises.
        multilabel_confusion_matrix(*arrays, labels=labels, samplewise=samplewise, **others)
        if samplewise:
            found, lacking = _scores_by_sample(rows, **options)
            means.extend(found)
            return _rows_that_lack(lacking, y.shape[0])
        counts, total = rows.host_counts
        # If no label is right, scikit-learn's counts are floats, which a report prints as such.
        whole = rows.targets.weight is None and (rows.targets.codes is None or counts.hits.any())
        return two_by_two_tables(rows.selected(counts, labels), total, whole)

    scores = replace_globals(precision_recall_fscore_support, __name__, multilabel_confusion_matrix=counted)
    found: Scores = scores(y, p, sample_weight=w, **options)
    return (means[0], means[1], means[2], None) if means else found


def _scores_by_sample(
    rows: LabelRows, *, labels: Any, zero_division: Any, beta: float = 1.0, **_: Any
) -> tuple[list[float], list[bool]]:
    """Three means over rows, and whether some row has nothing predicted, nothing true, or neither."""
    xp, undefined = array_namespace(rows.P), value_of_undefined(zero_division)
    counts, w = counts_by_sample(rows.targets, rows.P, labels), float_weight(rows.targets, rows.P)
    means = [
        mean_of_counted(measure(counts, undefined), w, counts.present)
        for measure in (precision, recall, fbeta(beta))
    ]
    lacking = [
        xp.any(part == 0, axis=1) for part in (counts.predicted, counts.true, counts.predicted + counts.true)
    ]
    found = to_host(xp.concat([*means, *(as_floating(flag, rows.P) for flag in lacking)])).tolist()
    return found[:3], [bool(flag) for flag in found[3:]]


def _rows_that_lack(lacking: list[bool], n_rows: int) -> Any:
    """Tables of rows, (n_rows, 2, 2), about which scikit-learn warns as about those on the device."""
    nothing_predicted, nothing_true, neither = lacking
    tables = np.zeros((n_rows, 2, 2), dtype=np.int64)
    tables[:, 1, 1] = 1
    wrong = [[0, 0]] if neither else [[0, 1]] * nothing_predicted + [[1, 0]] * nothing_true
    for table, (fp, fn) in zip(tables, wrong, strict=False):
        table[:] = [[1, fp], [fn, 0]]
    return tables


def _report(rows: LabelRows, **options: Any) -> Any:
    def scored(y: Any, p: Any, *, sample_weight: Any, **how: Any) -> Scores:
        return _host_scores(rows, y, p, sample_weight, **how)

    report = replace_globals(rows.function, __name__, precision_recall_fscore_support=scored)
    return replace(rows, function=report).on_examples(**options)


_COUNTS = "a few facts of each array, the labels, and how often each is true, predicted and both"

REPORTS: dict[Callable[..., Any], StructuredMetric] = {
    precision_recall_fscore_support: metric_of_labels(_scores, _COUNTS),
    classification_report: metric_of_labels(_report, _COUNTS),
}
