"""The shape of the source: rooms, sizes, what importing loads. Each check is also seen to fire."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from manyfit import _compat
from manyfit._compat import nested
from tests.docstrings import WITHOUT_FRONT, complaints, rooms
from tests.structure import (
    IMPORT_ALL,
    ORDER,
    WITH_A_LIBRARY,
    circular_imports,
    crowded,
    imports,
    private_imports,
    private_names,
    too_long,
    upward_imports,
)

ROOT = Path(__file__).parent.parent


def modules(*folders: str) -> Iterator[tuple[str, str, bool]]:
    """Source, dotted path and whether it is a package, of each module in folders of the project."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            yield path.read_text(), ".".join(parts[:-1] if is_package else parts), is_package


def import_all(folder: Path, package: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", IMPORT_ALL, str(folder), package, ",".join(WITH_A_LIBRARY)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


# Imports between rooms


@pytest.mark.invariant("Rooms import only from the rooms below them")
def test_rooms_import_downward_only():
    found = [line for module in modules("manyfit") for line in upward_imports(*module)]
    assert found == []


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("from manyfit.model_selection import GridSearchCV", "estimators._x"),
        ("import manyfit.folds", "arrays._x"),
        ("from manyfit import folds", "arrays._x"),
        ("from ..folds import Splits", "arrays._x"),
        ("from .. import folds", "arrays._x"),
        ("def f():\n    from manyfit.folds import Splits", "arrays._x"),
        ("if TYPE_CHECKING:\n    from manyfit.folds import Splits", "arrays._x"),
        ("import manyfit.arrays", "_compat"),
        ("from manyfit.cellar import wine", "arrays._x"),
        ("from manyfit.metrics.scoring import Scored", "metrics.kernels._x"),
        ("from manyfit.metrics.kernels.labels._x import y", "metrics.kernels._z"),
        ("", "cellar._x"),
    ],
)
def test_an_upward_import_is_found(source, module):
    assert len(upward_imports(source, f"manyfit.{module}")) == 1


def test_an_upward_relative_import_of_a_package_is_found():
    assert upward_imports("from ..folds import Splits", "manyfit.arrays", is_package=True)
    assert not upward_imports("from ._transfer import to_host", "manyfit.arrays", is_package=True)


def test_no_room_imports_the_private_modules_of_another():
    found = [line for module in modules("manyfit") for line in private_imports(*module)]
    assert found == []


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("from manyfit.arrays._clip import clip", "manyfit.folds._x"),
        ("from manyfit.arrays import _clip", "manyfit.folds.splits._x"),
        ("from manyfit.arrays.transfer._counts import Transfers", "manyfit.folds._x"),
        ("import manyfit.arrays._clip", "manyfit"),
    ],
)
def test_an_import_of_a_private_module_is_found(source, module):
    assert len(private_imports(source, module)) == 1


def test_no_module_of_the_benchmarks_imports_itself_by_way_of_others():
    assert circular_imports(modules("benchmarks", "examples")) == []


def test_a_circle_of_imports_is_found():
    sources = {
        "p": "from p import a",
        "p.a": "from p.b import x",
        "p.b": "if TYPE_CHECKING:\n    from p import c",
        "p.c": "def f():\n    import p.a",
        "p.d": "import p.a",
    }
    found = circular_imports((source, module, module == "p") for module, source in sources.items())
    assert found == ["p.a", "p.b", "p.c"]


# Private names of other projects


@pytest.mark.invariant("Only _compat names private parts of other projects")
def test_private_names_are_in_compat_only():
    found = [
        line
        for source, module, is_package in modules("manyfit")
        if not module.startswith("manyfit._compat")
        for line in private_names(source, module, is_package)
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "import sklearn.utils._tags",
        "from sklearn.utils._tags import get_tags",
        "from sklearn.utils import _safe_indexing",
        "def f():\n    from joblib._parallel_backends import ThreadingBackend",
        "import sklearn.utils\nsklearn.utils._tags.get_tags(x)",
        "import sklearn.utils as u\nu._safe_indexing(x, y)",
        "from sklearn.linear_model import Ridge\nRidge._get_tags(x)",
    ],
)
def test_a_private_name_is_found(source):
    assert len(private_names(source, "manyfit.folds._x")) == 1


ALLOWED = {
    upward_imports: [
        "from manyfit.arrays import to_host",
        "from manyfit import arrays, _compat, __version__",
        "from ..arrays import to_host",
        "from ._splits import Splits",
        "import numpy.model_selection",
    ],
    private_imports: [
        "from manyfit.arrays import clip",
        "from manyfit import _compat",
        "from manyfit._compat import x",
        "from manyfit.folds.splits._atoms import Rows",
    ],
    private_names: [
        "from __future__ import annotations",
        "import sklearn\nsklearn.__version__",
        "from manyfit.folds.splits._splits import Splits\nSplits._store",
        "from ._splits import _Ranges\nself._x",
    ],
}


@pytest.mark.parametrize(("check", "source"), [(check, one) for check in ALLOWED for one in ALLOWED[check]])
def test_what_is_allowed_is_not_reported(check, source):
    assert check(source, "manyfit.folds._x") == []


def test_compat_names_what_others_import_from_it():
    others = (module for module in modules("manyfit") if not module[1].startswith("manyfit._compat"))
    targets = {target for module in others for target in imports(*module)}
    before = "manyfit._compat."
    used = {target.removeprefix(before) for target in targets if target.startswith(before)}
    names = {name for name, value in vars(_compat).items() if name[0] != "_" and not inspect.ismodule(value)}
    assert used == {*names, *(f"nested.{name}" for name in nested.__all__)}


# Sizes


@pytest.mark.invariant("No module is longer than the limit")
def test_no_module_is_too_long():
    folders = ("manyfit", "tests", "benchmarks", "examples")
    found = [line for source, module, _ in modules(*folders) for line in too_long(source, module)]
    assert found == []


def test_a_long_module_is_found():
    assert too_long("x = 1\n" * 401, "m") == ["m has 401 lines, 400 at most"]
    assert too_long("x = 1\n" * 400, "m") == []


def entries() -> Iterator[tuple[str, list[str]]]:
    """Folders of the package, each with the names of its modules and of its folders that hold modules."""
    for folder in [ROOT / "manyfit", *sorted((ROOT / "manyfit").rglob("*/"))]:
        inside = [path.stem for path in folder.glob("*.py")]
        if inside:
            inside += [path.parent.name for path in folder.glob("*/__init__.py")]
            yield str(folder.relative_to(ROOT)), inside


def test_no_folder_is_crowded():
    assert [line for folder in entries() for line in crowded(*folder)] == []
    assert ("manyfit/arrays/transfer", 5) in [(folder, len(inside)) for folder, inside in entries()]


def test_a_crowded_folder_is_found():
    assert crowded("f", ["__init__", *"abcdefghijklm"]) == ["f has 13 entries, 12 at most"]
    assert crowded("f", ["__init__", "__main__", *"abcdefghijkl"]) == []


# What importing does


@pytest.mark.invariant("Importing manyfit loads no optional library and starts no thread")
def test_importing_all_of_manyfit_loads_no_optional_library_and_starts_nothing():
    done = import_all(ROOT, "manyfit")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    imported = int(re.fullmatch(r"imported (\d+) modules\n", done.stderr).group(1))
    names = [name.rpartition(".")[2] for _, name, _ in modules("manyfit")]
    assert imported == sum(name not in WITH_A_LIBRARY for name in names)
    assert set(names) > set(WITH_A_LIBRARY)


@pytest.mark.parametrize(
    ("source", "report"),
    [
        ("import matplotlib", "matplotlib is imported by .*_inner.py, line 1"),
        ("try:\n    import cupy\nexcept ImportError:\n    pass", "cupy is imported by .*_inner.py, line 2"),
        ("import dask.distributed", "distributed is imported by .*distributed.*"),
        (
            "import threading, time\n"
            "threading.Thread(target=time.sleep, args=(9,), name='t', daemon=True).start()",
            "the thread t was started",
        ),
    ],
)
def test_what_importing_loads_is_found(source, report, tmp_path):
    (tmp_path / "sample").mkdir()
    (tmp_path / "sample" / "__init__.py").touch()
    (tmp_path / "sample" / "_inner.py").write_text(source)
    assert re.match(report, import_all(tmp_path, "sample").stdout)


# Public names


def missing_names(room: str) -> list[str]:
    module = importlib.import_module(room)
    if not getattr(module, "__all__", None):
        return [f"{room} has no __all__"]
    return [f"{room}.{name} does not exist" for name in module.__all__ if not hasattr(module, name)]


def test_every_room_says_what_is_public_and_has_it():
    assert rooms(), "no room was found"
    assert [line for room in rooms() for line in missing_names(room)] == []
    folders = {path.parent.name for path in (ROOT / "manyfit").glob("*/*.py")} - WITHOUT_FRONT
    assert folders == {room.removeprefix("manyfit.") for room in rooms()}, "a room without __init__.py"
    assert folders <= set(ORDER)


@pytest.fixture
def sample(tmp_path, monkeypatch):
    """Make an importable package from the text of its ``__init__.py``."""

    def make(text: str) -> str:
        (tmp_path / "sample_room.py").write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "sample_room", raising=False)
        return "sample_room"

    yield make
    sys.modules.pop("sample_room", None)


@pytest.mark.parametrize(
    ("text", "found"),
    [("__all__ = ['here', 'gone']\nhere = 1", ".gone does not exist"), ("here = 1", " has no __all__")],
)
def test_a_missing_name_is_found(text, found, sample):
    assert missing_names(sample(text)) == [f"sample_room{found}"]


BAD_DOCSTRINGS = '''
"""A room."""
from dataclasses import dataclass
from typing import Protocol

__all__ = ["C", "P", "R", "bare", "good"]

def bare(x):
    """Do it."""

def good(x: int) -> None:
    """Do it.

    Parameters
    ----------
    x : int
        How often.
    """

class C:
    """A class."""

    def undocumented(self):
        return 1

    def short(self, x):
        """Return it."""
        return x

class P(Protocol):
    """A protocol."""

@dataclass
class R:
    """A record.

    Attributes
    ----------
    a : int
        A field.
    """

    a: int
'''


def test_bad_docstrings_are_found(sample):
    found = re.findall(r"sample_room\.([\w.]+): (\w+)", "\n".join(complaints(sample(BAD_DOCSTRINGS))))
    assert found == [("C.undocumented", "GL08"), ("bare", "PR01")]


# The versions that the project states and those that it tests


@pytest.mark.invariant("The oldest supported version of each dependency is tested")
def test_the_lower_bounds_are_the_versions_of_the_oldest_run():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    dependencies = project["dependencies"] + project["optional-dependencies"]["cluster"]
    texts = [text.partition(",")[0] for text in dependencies]
    bounds = dict(text.split(">=") for text in texts if ">=" in text)
    pins = dict(
        line.split("==") for line in (ROOT / "tests/oldest.txt").read_text().splitlines() if "==" in line
    )
    assert pins.keys() == bounds.keys()
    for name, bound in bounds.items():
        assert f"{pins[name]}.".startswith(f"{bound}."), name
