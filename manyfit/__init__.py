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
        folds,
        joblib_backend,
        metrics,
        model_selection,
    )

# Each is imported when it is first read: `import manyfit` alone imports none of them.
_SUBMODULES = [
    "arrays",
    "cluster",
    "estimators",
    "exceptions",
    "families",
    "folds",
    "joblib_backend",
    "metrics",
    "model_selection",
]
__all__ = [
    "arrays",
    "cluster",
    "config_context",
    "estimators",
    "exceptions",
    "families",
    "folds",
    "get_config",
    "joblib_backend",
    "metrics",
    "model_selection",
    "set_config",
]
__version__ = "0.1.0"

if not TYPE_CHECKING:  # a type checker would take any name for one of the module

    def __getattr__(name: str) -> Any:
        """Import a submodule."""
        if name in _SUBMODULES:
            return import_module(f"manyfit.{name}")
        raise AttributeError(f"module 'manyfit' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
