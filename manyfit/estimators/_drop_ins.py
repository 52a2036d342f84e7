"""The drop-in estimators, each made when it is first read, so that only its own module is imported.

Type checkers read the stub beside this module, which ``python -m tests.stubs`` writes.
"""

from __future__ import annotations

from manyfit.estimators._catalog import CATALOG
from manyfit.estimators._factory import load_drop_in

__all__ = list(CATALOG)


def __getattr__(name: str) -> type:
    if name not in CATALOG:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, load_drop_in(name))  # two threads get the same class
