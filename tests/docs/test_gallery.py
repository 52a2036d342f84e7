"""The examples of the gallery run. `make docs` shows what they print and draw."""

from __future__ import annotations

import ast
import runpy
from collections.abc import Iterator

import matplotlib
import matplotlib.pyplot as plt
import pytest

from tests.docs._pages import ROOT

EXAMPLES = sorted((ROOT / "examples/gallery").glob("plot_*.py"))
SLOW = {"plot_boosting", "plot_cluster", "plot_nested", "plot_text"}


@pytest.fixture(autouse=True)
def _figures(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Figures are drawn into memory, and closed."""
    backend = matplotlib.get_backend()
    plt.switch_backend("agg")
    yield
    plt.close("all")
    plt.switch_backend(backend)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(one, id=one.stem, marks=[pytest.mark.thorough] if one.stem in SLOW else [])
        for one in EXAMPLES
    ],
)
def test_an_example_runs_and_draws(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out
    assert plt.get_fignums()


def test_the_gallery_has_eight_examples_with_titles():
    titles = [ast.get_docstring(ast.parse(path.read_text())).split("\n", 2)[:2] for path in EXAMPLES]
    assert len(titles) == 8
    assert all(set(line) == {"="} and len(line) == len(title) for title, line in titles)
