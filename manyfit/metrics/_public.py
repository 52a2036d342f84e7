"""The public names of `manyfit.metrics`, which imports them when the first of them is read."""

from sklearn.metrics import get_scorer_names

from manyfit.metrics import _published, cluster, pairwise
from manyfit.metrics._published import *  # noqa: F403
from manyfit.metrics.scoring import check_scoring, get_scorer, make_scorer

__all__: list[str] = ["check_scoring", "cluster", "get_scorer", "get_scorer_names", "make_scorer", "pairwise"]
__all__ += _published.__all__
