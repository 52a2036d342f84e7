"""What the pages name exists: paths, modules and links; and they name no place of one machine."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

from tests.docs._pages import PAGES, ROOT, anchors, links, spans


def missing_paths(page: str) -> list[str]:
    """Files and folders of the project that a page names in a code span and that are not there."""
    named = [span.partition("::")[0] for span in spans(page)]
    ours = [span for span in named if re.fullmatch(r"(manyfit|tests|docs|benchmarks|examples)/[\w/.]*", span)]
    return [span for span in ours if not (ROOT / span).exists()]


@pytest.mark.invariant("Examples, tables and paths on the pages are true")
@pytest.mark.parametrize("name", PAGES)
def test_every_path_that_is_named_exists(name: str) -> None:
    assert missing_paths(PAGES[name].read_text()) == []


def misplaced(page: str) -> list[str]:
    """Modules of manyfit that a page names and are not there: without a folder, in the one named last."""
    folder, found = ROOT, []
    for span in spans(page):
        path = ROOT / span if span.startswith("manyfit/") else folder / span
        if span.startswith("manyfit/"):
            folder = path.parent if path.suffix else path
        is_module = re.fullmatch(r"[\w/]*\b_\w+\.py", span) is not None
        if is_module and not path.exists():
            found.append(span)
    return found


def test_files_lie_in_the_folder_that_is_named_before_them() -> None:
    assert misplaced(PAGES["docs/architecture.md"].read_text()) == []
    here = "`manyfit/folds/rows/_host.py`, `_csr.py`, `chunks/__init__.py`, "
    assert misplaced(here + "`_atoms.py`") == ["_atoms.py"]


def test_what_is_missing_is_found() -> None:
    here = "tests/docs/test_names.py"
    assert missing_paths(f"`{here}`, `manyfit/folds/`, `manyfit/cellar/`") == ["manyfit/cellar/"]


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    page = PAGES[name]
    for target in links(page.read_text()):
        file, _, anchor = target.partition("#")
        other = page if not file else (page.parent / file)
        assert file.startswith("https://") or other.exists(), target
        assert not anchor or anchor in anchors(other.read_text()), target


@pytest.mark.parametrize("name", PAGES)
def test_modules_and_names_that_are_imported_exist(name: str) -> None:
    """Dotted names of manyfit in code spans, and what examples import from it."""
    text = PAGES[name].read_text()
    for span in spans(text):
        if re.fullmatch(r"manyfit(\.\w+)+", span):
            pkgutil.resolve_name(span)
    for module, names in re.findall(r"^from (manyfit[\w.]*) import ([\w, ]+)", text, re.M):
        for one in names.split(","):
            assert hasattr(importlib.import_module(module), one.strip()), (module, one)


@pytest.mark.parametrize("name", PAGES)
def test_pages_name_no_place_of_one_machine(name: str) -> None:
    assert re.findall(r"(?<![\w.])/(?:home|root|tmp|usr|work|opt)/\S*", PAGES[name].read_text()) == []
