"""Searches and cross-validation whose fits share their work."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manyfit.model_selection import _public
    from manyfit.model_selection._public import *  # noqa: F403
    from manyfit.model_selection.validation._published import *  # noqa: F403

    __all__ = _public.__all__
else:  # a type checker would take any name for one of the module
    # Programs that need no more import these alone, in a tenth of the time.
    _SEARCHES = {
        "BaseSearchCV": "_search",
        "GridSearchCV": "_search",
        "RandomizedSearchCV": "search._randomized",
    }

    def __getattr__(name: str) -> Any:
        """Import all public names when the first of them is read: processes of joblib may need none."""
        if name in _SEARCHES:
            module = import_module(f"manyfit.model_selection.{_SEARCHES[name]}")
            globals()[name] = getattr(module, name)
            return globals()[name]
        if name.startswith("_") and name != "__all__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        public = import_module("manyfit.model_selection._public")
        globals().update({one: getattr(public, one) for one in public.__all__}, __all__=public.__all__)
        if name in globals():
            return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*__getattr__("__all__"), *globals()})
