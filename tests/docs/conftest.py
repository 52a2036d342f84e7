"""What all examples of the documentation need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from manyfit.families.protocol import _registry as _family
from manyfit.folds.rows import _registry as _rows
from tests.cluster._clusters import forking


@pytest.fixture(autouse=True)
def _registries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What an example registers ends with it; families of manyfit that it has imported stay."""
    monkeypatch.setattr(_rows, "_registered", list(_rows._registered))
    yield
    for table in (_family._families, _family._affine_steps):
        for cls, served in list(table._served.items()):
            if not type(served).__module__.startswith("manyfit."):
                table.remove(served, cls)


@pytest.fixture(scope="module", autouse=True)
def _forking() -> Iterator[None]:
    """Workers of the examples start in a tenth of the time."""
    with forking():
        yield
