"""Every metric that is computed on a device, by scikit-learn's function: many scores, or other results."""

from collections.abc import Callable
from typing import Any

from manyfit.metrics.functions._classification_report import REPORTS
from manyfit.metrics.functions._confusion_tables import TABLES
from manyfit.metrics.functions._contingency_tables import CLUSTER_TABLES
from manyfit.metrics.functions._curves import CURVES
from manyfit.metrics.functions._structured_results import Whole
from manyfit.metrics.kernels._kernel import MetricKernel
from manyfit.metrics.kernels._probability_losses import PROBABILITY_METRICS
from manyfit.metrics.kernels._ranking import RANKING_METRICS
from manyfit.metrics.kernels._regression import NUMBER_METRICS_MANY
from manyfit.metrics.kernels.labels._metrics import LABEL_METRICS

MANY: dict[Callable[..., Any], MetricKernel] = {
    **LABEL_METRICS,
    **NUMBER_METRICS_MANY,
    **PROBABILITY_METRICS,
    **RANKING_METRICS,
}

WHOLE: dict[Callable[..., Any], Whole] = {**TABLES, **REPORTS, **CURVES, **CLUSTER_TABLES}
