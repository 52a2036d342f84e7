"""Fit many scikit-learn models at once: the work that the fits of a search share is done once."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from manyfit._config import config_context, get_config, set_config

if TYPE_CHECKING:
    from manyfit import (
        arrays,
        cluster,
        estimators,
        exceptions,
        families,
        feature_selection,
        folds,
        installation,
        joblib_backend,
        metrics,
        model_selection,
    )
    from manyfit.installation import explain, install, installed, last_report, report_of, uninstall

# Functions of `installation`, which imports scikit-learn. IPython asks for the last two.
_INSTALLATION = [
    "explain",
    "install",
    "installed",
    "last_report",
    "report_of",
    "uninstall",
    "load_ipython_extension",
    "unload_ipython_extension",
]
__all__ = [
    "arrays",
    "cluster",
    "config_context",
    "estimators",
    "exceptions",
    "explain",
    "families",
    "feature_selection",
    "folds",
    "get_config",
    "install",
    "installation",
    "installed",
    "joblib_backend",
    "last_report",
    "metrics",
    "model_selection",
    "report_of",
    "set_config",
    "uninstall",
]
__version__ = "0.1.0"

if not TYPE_CHECKING:  # a type checker would take any name for one of the module

    def __getattr__(name: str) -> Any:
        """Import what `installation` has, or a submodule: `import manyfit` alone imports none of them."""
        if name in _INSTALLATION:
            return getattr(import_module("manyfit.installation"), name)
        if name in __all__:
            return import_module(f"manyfit.{name}")
        raise AttributeError(f"module 'manyfit' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
