"""What test_structure.py checks about the source, as functions of the source's text."""

from __future__ import annotations

import ast
import functools
from collections.abc import Container, Iterable, Iterator

# From top to bottom: a module may import from its own room and from those after it. A room within a room, or
# a module that stands alone, has a line of its own; the room's other modules stand at the room's line.
ORDER = (
    "installation",
    "feature_selection",
    "model_selection",
    "model_selection.search.adaptive",
    "model_selection.search.adaptive.incremental",
    "model_selection.search._randomized",
    "model_selection._search",
    "model_selection.search",
    "model_selection.validation",
    "model_selection.running",
    "model_selection.validation.moment_scores",
    "model_selection.planning._planner",
    "model_selection.strategies",
    "model_selection.planning",
    "model_selection.planning.places",
    "model_selection.planning.steps",
    "model_selection.planning._pieces",
    "model_selection.planning._plan",
    "model_selection.planning._pipeline_spec",
    "model_selection.planning._metadata_routing",
    "model_selection.results.displays",
    "model_selection.results",
    "model_selection.checkpoint",
    "model_selection.sharing",
    "model_selection.sharing.transformers",
    "model_selection.sharing._fold_cache",
    "model_selection.sharing.rows",
    "model_selection.sharing.nested",
    "model_selection.early_stopping",
    "model_selection.job",
    "joblib_backend",
    "estimators",
    "estimators.backends",
    "estimators._method_call",
    "estimators._array_parameters",
    "estimators._catalog",
    "estimators._ridge_checks",
    "cluster",
    "cluster.pool",
    "cluster.worker",
    "cluster.inspection",
    "families",
    "families.meta_estimators",
    "families.smooth",
    "families.smooth.solver",
    "families.boosting_libraries",
    "families.nested",
    "families.generative",
    "families.neighbours",
    "families.kernels",
    "families.least_squares",
    "families.least_squares.left_out",
    "families.columns",
    "families._affine_steps",
    "families.protocol",
    "metrics",
    "metrics.scoring",
    "metrics.functions",
    "metrics.clustering",
    "metrics.distances",
    "metrics._deferred_checks",
    "metrics.kernels.labels",
    "metrics.kernels",
    "folds",
    "folds.encodings",
    "folds.rows",
    "folds.passes",
    "folds.moments",
    "folds._mixed_matrix",
    "folds.splits",
    "folds._blas_threads",
    "introspection",
    "arrays",
    "arrays.transfer",
    "arrays._namespace",
    "_config",
    "exceptions",
    "_compat",
)
LONGEST_MODULE = 400  # lines
# Modules and folders in a folder, beside the two that Python itself looks for, `__init__` and `__main__`. The
# package itself has two more: half of its names are scikit-learn's.
MOST_ENTRIES, MOST_ROOMS = 12, 14
# Names with an underscore that are documented for users all the same.
DOCUMENTED = {"os._exit"}
# Modules that cannot do without a library: what the first search with a client loads, without `distributed`,
# and the families of two libraries.
WITH_A_LIBRARY = (
    "_device_arrays",
    "_lightgbm",
    "_memory_guard",
    "_parallel_call",
    "_run_batches",
    "_shared_arguments",
    "_xgboost",
    "fetch",
    "item_run",
    "placement",
    "run_items",
    "task_pool",
    "tasks",
)


def imports(source: str, module: str, is_package: bool) -> Iterator[str]:
    """Dotted path of everything that a module imports, at any depth, relative imports resolved.

    ``from a import b`` gives ``a.b``: b may be a module or a name in it.
    """
    for node in _import_statements(source):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            origin = _origin(node, module, is_package)
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def _import_statements(source: str) -> tuple[ast.Import | ast.ImportFrom, ...]:
    return tuple(node for node in _nodes(source) if isinstance(node, ast.Import | ast.ImportFrom))


@functools.cache  # several checks read each module
def _nodes(source: str) -> tuple[ast.Import | ast.ImportFrom | ast.Attribute, ...]:
    """The import statements of a module, and its private attributes of names and of their attributes."""
    return tuple(
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.Attribute) and _private(node.attr) and _root(node) not in (None, "self"))
    )


def _origin(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    kept = len(parts) - node.level + is_package
    return ".".join([*parts[:kept], *([node.module] if node.module else [])])


def upward_imports(source: str, module: str, is_package: bool = False) -> list[str]:
    """Imports of a manyfit module that do not point to its own room or one below.

    The front of a room, its ``__init__.py``, may import from all that the room holds.
    """
    room = _room(module)
    if room in (None, "__main__"):  # manyfit/__init__.py and __main__.py stand above all rooms
        return []
    if room not in ORDER:
        return [f"{module} is in no room that tests/structure.py knows"]
    found = []
    for target in imports(source, module, is_package):
        other = _room(target)
        if target.partition(".")[0] != "manyfit" or other in ("__version__", "*"):
            continue
        if other not in ORDER or ORDER.index(other) < ORDER.index(room):
            found.append(f"{module} imports {target}")
    return found


def _room(dotted: str) -> str | None:
    """The innermost room that `ORDER` names for a module, or for a name that is imported."""
    parts = dotted.split(".")[1:]
    for n in range(len(parts), 0, -1):
        if ".".join(parts[:n]) in ORDER:
            return ".".join(parts[:n])
    return parts[0] if parts else None


def circular_imports(modules: Iterable[tuple[str, str, bool]]) -> list[str]:
    """Modules that import themselves by way of others, from (source, dotted path, is a package) of each."""
    modules = list(modules)
    known = {module for _, module, _ in modules}
    imported = {
        module: {_module_of(target, known) for target in imports(source, module, is_package)} - {module}
        for source, module, is_package in modules
    }

    def reached(module: str) -> set[str]:
        found: set[str] = set()
        todo = [module]
        while todo:
            new = imported.get(todo.pop(), set()) - found
            found |= new
            todo += new
        return found

    return sorted(module for module in known if module in reached(module))


def _module_of(target: str, known: Container[str]) -> str:
    """The module that holds an imported name: the longest part of its path that is a module."""
    while target and target not in known:
        target = target.rpartition(".")[0]
    return target


def private_imports(source: str, module: str, is_package: bool = False) -> list[str]:
    """Imports of a private module, or of a private name in one, of another room of manyfit."""
    found = []
    for target in imports(source, module, is_package):
        package, _, rest = target.partition(".")
        room, _, inside = rest.partition(".")
        if package != "manyfit" or room == (_room(module) or "").partition(".")[0]:
            continue
        if any(_private(part) for part in inside.split(".")):
            found.append(f"{module} imports {target}")
    return found


def crowded(folder: str, entries: list[str]) -> list[str]:
    """Whether a folder holds more entries than a reader takes in at once."""
    n = len([entry for entry in entries if entry not in ("__init__", "__main__")])
    most = MOST_ROOMS if folder == "manyfit" else MOST_ENTRIES
    return [f"{folder} has {n} entries, {most} at most"] if n > most else []


def private_names(source: str, module: str, is_package: bool = False) -> list[str]:
    """Private modules and names of other projects that a module imports or reaches by attribute."""
    found = [
        f"{module} imports {target}"
        for target in imports(source, module, is_package)
        if not target.startswith("manyfit") and any(_private(part) for part in target.split("."))
    ]
    foreign = set(_foreign_names(source))
    for node in _nodes(source):
        if isinstance(node, ast.Attribute) and _root(node) in foreign:
            if ast.unparse(node) in DOCUMENTED:
                continue
            found.append(f"{module} uses {ast.unparse(node)}")
    return found


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _foreign_names(source: str) -> Iterator[str]:
    """Names that a module binds to other projects' modules and objects."""
    for node in _import_statements(source):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] != "manyfit":
                    yield alias.asname or alias.name.partition(".")[0]
        elif not node.level and not str(node.module).startswith("manyfit"):
            yield from (alias.asname or alias.name for alias in node.names)


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def too_long(source: str, module: str) -> list[str]:
    """Whether a module has more lines than a reader keeps in mind."""
    lines = len(source.splitlines())
    return [f"{module} has {lines} lines, {LONGEST_MODULE} at most"] if lines > LONGEST_MODULE else []


# Run in a process of its own: argv is the folder, the name of a package, modules to leave out. Imports all
# others while recording who asks for an optional library; the library then looks as if it were not installed.
IMPORT_ALL = """
import importlib, os, pkgutil, sys, threading, traceback

OPTIONAL = {"cupy", "cuml", "cudf", "torch", "pandas", "polars", "dask_ml", "matplotlib", "distributed"}
OPTIONAL |= {"dask_cuda", "pynvml", "cryptography"}
folder, package, with_a_library = sys.argv[1:]
sys.path.insert(0, folder)

class Recorder:
    def find_spec(self, name, path=None, target=None):
        if name not in OPTIONAL:
            return None
        frames = [f for f in traceback.extract_stack()[:-1] if "importlib" not in f.filename]
        # scikit-learn's own try/except around pandas is not ours to prevent.
        if f"{os.sep}sklearn{os.sep}" not in frames[-1].filename:
            print(f"{name} is imported by {frames[-1].filename}, line {frames[-1].lineno}")
        raise ModuleNotFoundError(f"{name} is blocked by this test", name=name)

sys.meta_path.insert(0, Recorder())
modules = [package]
root = importlib.import_module(package)
for info in pkgutil.walk_packages(root.__path__, package + "."):
    if info.name.rpartition(".")[2] in with_a_library.split(","):
        continue
    importlib.import_module(info.name)
    modules.append(info.name)
for thread in threading.enumerate():
    if thread is not threading.main_thread():
        print(f"the thread {thread.name} was started")
print(f"imported {len(modules)} modules", file=sys.stderr)
"""
