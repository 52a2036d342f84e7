"""scikit-learn's scores of clusterings, for arrays on host or device: see `sklearn.metrics.cluster`.

Functions that return no score, such as ``contingency_matrix``, are scikit-learn's own.
"""

import sklearn.metrics.cluster

from manyfit.metrics.functions.wrapper import FUNCTIONS

_NAMES = {
    name: FUNCTIONS.get(name, getattr(sklearn.metrics.cluster, name))
    for name in sklearn.metrics.cluster.__all__
}
globals().update(_NAMES)

__all__ = list(_NAMES)
