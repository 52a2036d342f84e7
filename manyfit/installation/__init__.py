"""manyfit without a change of code: scikit-learn's own searches and cross-validation run on the engine."""

from manyfit.installation._explain import explain
from manyfit.installation._install import (
    install,
    installed,
    load_ipython_extension,
    uninstall,
    unload_ipython_extension,
)
from manyfit.installation._ledger import last_report, report_of

__all__ = [
    "explain",
    "install",
    "installed",
    "last_report",
    "load_ipython_extension",
    "report_of",
    "uninstall",
    "unload_ipython_extension",
]
