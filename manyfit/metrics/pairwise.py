"""scikit-learn's functions of pairs of rows, of arrays on host or device: see `sklearn.metrics.pairwise`."""

import inspect

import sklearn.metrics.pairwise

from manyfit.metrics._functions import FUNCTIONS, made

# Which functions there are is for the installed scikit-learn to say; some are in manyfit.metrics, too.
_OWN = {
    name: FUNCTIONS[name] if name in FUNCTIONS else made(function, __name__)
    for name, function in vars(sklearn.metrics.pairwise).items()
    if inspect.isfunction(function)
    and function.__module__ == sklearn.metrics.pairwise.__name__
    and not name.startswith(("_", "check_"))
    and "X" in inspect.signature(function).parameters
}
globals().update(_OWN)

__all__ = list(_OWN)
