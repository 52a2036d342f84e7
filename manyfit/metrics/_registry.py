"""Every metric that takes the predictions of many settings, by scikit-learn's function."""

from collections.abc import Callable
from typing import Any

from manyfit.metrics._many import Many
from manyfit.metrics._many_labels import LABEL_METRICS
from manyfit.metrics._many_numbers import NUMBER_METRICS_MANY
from manyfit.metrics._many_probabilities import PROBABILITY_METRICS
from manyfit.metrics._many_ranking import RANKING_METRICS

MANY: dict[Callable[..., Any], Many] = {
    **LABEL_METRICS,
    **NUMBER_METRICS_MANY,
    **PROBABILITY_METRICS,
    **RANKING_METRICS,
}
