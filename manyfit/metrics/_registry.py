"""Every metric that is computed on a device, by scikit-learn's function: many scores, or other results."""

from collections.abc import Callable
from typing import Any

from manyfit.metrics._cluster_tables import CLUSTER_TABLES
from manyfit.metrics._curves import CURVES
from manyfit.metrics._many import Many
from manyfit.metrics._many_labels import LABEL_METRICS
from manyfit.metrics._many_numbers import NUMBER_METRICS_MANY
from manyfit.metrics._many_probabilities import PROBABILITY_METRICS
from manyfit.metrics._many_ranking import RANKING_METRICS
from manyfit.metrics._reports import REPORTS
from manyfit.metrics._tables import TABLES
from manyfit.metrics._whole import Whole

MANY: dict[Callable[..., Any], Many] = {
    **LABEL_METRICS,
    **NUMBER_METRICS_MANY,
    **PROBABILITY_METRICS,
    **RANKING_METRICS,
}

WHOLE: dict[Callable[..., Any], Whole] = {**TABLES, **REPORTS, **CURVES, **CLUSTER_TABLES}
