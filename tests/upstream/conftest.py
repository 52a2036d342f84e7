"""Fixtures that scikit-learn's conftest gives its tests, and which of its cases `make test` runs."""

from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# Of its searches by halving, which only derive from our base class, a test runs its first and its last case.
HALVING = "test_successive_halving.py"


@pytest.fixture
def global_random_seed() -> int:
    """The seed that scikit-learn's suite runs with by default."""
    return 42


@pytest.hookimpl(tryfirst=True)  # before -m
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is for array libraries that are not installed: scikit-learn would skip each case."""
    cases = [item for item in items if item.path.parent == HERE and hasattr(item, "callspec")]
    absent = {id(item) for item in cases if not _is_installed(item.callspec.params.get("array_namespace"))}
    config.hook.pytest_deselected(items=[item for item in items if id(item) in absent])
    items[:] = [item for item in items if id(item) not in absent]
    halving = [item for item in cases if item.path.name == HALVING]
    for before, item, behind in zip([None, *halving], halving, [*halving[1:], None], strict=False):
        if all(one is not None and one.function is item.function for one in (before, behind)):
            item.add_marker(pytest.mark.thorough)


def _is_installed(library: object) -> bool:
    return not isinstance(library, str) or find_spec(library) is not None
