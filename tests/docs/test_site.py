"""The site has every page, and its reference every name of the classes and functions that manyfit adds."""

import importlib
import re

from tests.docs._pages import ROOT

SITE = ROOT / "docs/site"


def test_every_page_has_a_place_on_the_site():
    lists = re.findall(r"```\{toctree\}\n(.*?)```", (SITE / "index.md").read_text(), re.S)
    listed = {re.sub(r".*<(.*)>", r"\1", line) for text in lists for line in text.split("\n") if line}
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert pages | {"README", "CHANGELOG", "CONTRIBUTING", "SECURITY", "api", "gallery/index"} == {
        name for name in listed if not name.startswith(":")
    }


def test_the_reference_names_what_can_be_imported():
    blocks = re.findall(
        r"currentmodule:: (\S+)\n.*?:toctree: reference\n\n(.*?)```", (SITE / "api.md").read_text(), re.S
    )
    assert blocks
    named = set()
    for module, names in blocks:
        for name in names.split():
            path = f"{module}.{name}".split(".")
            room = importlib.import_module(".".join(path[:-1]))
            assert path[-1] in room.__all__, name
            named.add(path[-1])
    public = importlib.import_module("manyfit.model_selection._public")
    theirs = dir(importlib.import_module("sklearn.model_selection"))
    own = {name for name in public.__all__ if name not in theirs}
    assert own <= named
