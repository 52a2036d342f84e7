"""manyfit's options, and the sizes of memory that options name."""

from manyfit._config._options import config_context, get_config, set_config, set_in_block

__all__ = ["config_context", "get_config", "set_config", "set_in_block"]
