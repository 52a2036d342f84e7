"""scikit-learn's public names under `sklearn.metrics`: our functions, and its own displays and classes.

Type checkers read the stub beside this module, which ``python -m tests.stubs`` writes.
"""

from types import ModuleType

import sklearn.metrics

from manyfit.metrics.functions.wrapper import FUNCTIONS, NOT_METRICS

# The installed scikit-learn decides which names exist.
_PASSED_ON = {
    name: value
    for name in sklearn.metrics.__all__
    if name not in (*FUNCTIONS, *NOT_METRICS)
    and not isinstance(value := getattr(sklearn.metrics, name), ModuleType)
}
globals().update(FUNCTIONS, **_PASSED_ON)

__all__ = [*FUNCTIONS, *_PASSED_ON]
