"""Searches and cross-validation whose fits share their work."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyfit.model_selection import _public
    from manyfit.model_selection._public import *  # noqa: F403
    from manyfit.model_selection.validation._published import *  # noqa: F403

    __all__ = _public.__all__
else:  # a type checker would take any name for one of the module
    from manyfit.introspection.late_names import late_names

    # Programs that need no more than the first two import these alone, in a tenth of the time.
    __getattr__, __dir__ = late_names(__name__, "_search", "search._randomized", "_public")
