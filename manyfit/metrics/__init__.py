"""Metrics and scorers for many settings in one call."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyfit.metrics import _public
    from manyfit.metrics._public import *  # noqa: F403
    from manyfit.metrics._published import *  # noqa: F403
    from manyfit.metrics.scoring import *  # noqa: F403

    __all__ = _public.__all__
else:  # a type checker would take any name for one of the module
    from manyfit.introspection.late_names import late_names

    # Searches and families need no more than the scorers.
    __getattr__, __dir__ = late_names(__name__, "scoring", "_public")
