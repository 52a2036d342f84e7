"""The values of options that manyfit adds to searches."""

from typing import Literal

Sharing = Literal["auto", "exact", "optimum", "none"]
"""How far the settings of a search share their work."""
EarlyStopping = Literal["fold"] | None
"""By which rows fits of boosting estimators stop early; None: as the estimators do by themselves."""
Engine = Literal["sklearnex"] | None
"""The library that makes fits that are made one by one; None: scikit-learn."""
