"""The values of options that manyfit adds to searches."""

import operator
from typing import Literal

from manyfit._config.sizes import parse_size

Sharing = Literal["auto", "exact", "optimum", "none"]
"""How far the settings of a search share their work."""
EarlyStopping = Literal["fold"] | None
"""By which rows fits of boosting estimators stop early; None: as the estimators do by themselves."""
Engine = Literal["sklearnex"] | None
"""The library that makes fits that are made one by one; None: scikit-learn."""

# Bytes for cached outputs of shared steps, blocks of predictions and folds, unless the user gives a limit.
DEFAULT_MEMORY_LIMIT = 2**30


def memory_limit_in_bytes(limit: int | str | None) -> int:
    """The user's ``memory_limit`` in bytes; raises a ValueError if it is not a positive number of bytes."""
    if limit is None:
        return DEFAULT_MEMORY_LIMIT
    try:
        if isinstance(limit, bool):
            raise ValueError("no number of bytes")
        size = parse_size(limit) if isinstance(limit, str) else operator.index(limit)
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"memory_limit should be bytes or a text like '512MB'; got {limit!r}.") from error
    if size <= 0:
        raise ValueError(f"memory_limit should be more than 0 bytes; got {limit!r}.")
    return size
