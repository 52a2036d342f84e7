"""Tables by scikit-learn's function: kernels for many settings, and results on a device that are no score.

The scorers of a search read `METRIC_KERNELS`, too, on the host as on a device.
"""

from collections.abc import Callable
from typing import Any

from manyfit.metrics.functions._classification_report import REPORTS
from manyfit.metrics.functions._confusion_tables import TABLES
from manyfit.metrics.functions._contingency_tables import CLUSTER_TABLES
from manyfit.metrics.functions._curves import CURVES
from manyfit.metrics.functions._structured_results import StructuredMetric
from manyfit.metrics.kernels._kernel import MetricKernel
from manyfit.metrics.kernels._probability_losses import PROBABILITY_METRICS
from manyfit.metrics.kernels._ranking import RANKING_METRICS
from manyfit.metrics.kernels._regression import REGRESSION_METRICS
from manyfit.metrics.kernels.labels._metrics import LABEL_METRICS

METRIC_KERNELS: dict[Callable[..., Any], MetricKernel] = {
    **LABEL_METRICS,
    **REGRESSION_METRICS,
    **PROBABILITY_METRICS,
    **RANKING_METRICS,
}

STRUCTURED_METRICS: dict[Callable[..., Any], StructuredMetric] = {
    **TABLES,
    **REPORTS,
    **CURVES,
    **CLUSTER_TABLES,
}
