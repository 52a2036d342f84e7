"""Which class of search is fuzzed: manyfit's, or by ``MANYFIT_SUBJECT=sklearn`` scikit-learn's own.

Against itself scikit-learn must show no difference, which tells a fault of the fuzzer from one of manyfit.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from sklearn.model_selection import GridSearchCV as Reference

from manyfit.estimators import Cost
from manyfit.families.protocol._registry import _families
from manyfit.model_selection import GridSearchCV


def _nothing(*_: Any) -> Cost:
    """What sharing costs; a function, since families are pickled with the work of a cluster."""
    return Cost(0.0, 1.0)


def subject() -> Any:
    """The class of search under test."""
    return Reference if os.environ.get("MANYFIT_SUBJECT") == "sklearn" else GridSearchCV


def _every_family() -> set[Any]:
    """All families, but for those of libraries that nobody has imported."""
    for name, module in _families.modules.items():
        if name.partition(".")[0] in sys.modules:
            importlib.import_module(module)
    return set(_families._served.values())


@contextmanager
def sharing_whatever_it_costs() -> Iterator[None]:
    """Let every family share where it can: on data as small as the fuzzer's it would seldom pay."""
    with ExitStack() as patches:
        for family in _every_family():
            patches.enter_context(mock.patch.object(family, "cost", _nothing))
        yield
