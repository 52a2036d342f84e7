"""What all examples of the documentation need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from manyfit.families.protocol import _registry as _family
from manyfit.folds.rows import _registry as _rows
from tests.cluster._clusters import forking


@pytest.fixture(autouse=True)
def _registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an example registers ends with it."""
    monkeypatch.setattr(_family, "_families", dict(_family._families))
    monkeypatch.setattr(_family, "_affine_steps", dict(_family._affine_steps))
    monkeypatch.setattr(_rows, "_registered", list(_rows._registered))


@pytest.fixture(scope="module", autouse=True)
def _forking() -> Iterator[None]:
    """Workers of the examples start in a tenth of the time."""
    with forking():
        yield
