"""Fit many scikit-learn models at once: the work that the fits of a search share is done once."""

from manyfit._config import config_context, get_config, set_config

__all__ = ["config_context", "get_config", "set_config"]
__version__ = "0.1.0"
