"""Classes by the names under which users import them, and what serves them."""

from __future__ import annotations

import functools
import importlib
import subprocess
import sys
import threading

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV as Theirs
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import SVC

from manyfit.families.meta_estimators import _wrapped
from manyfit.families.nested import _continuable
from manyfit.families.protocol import _registry
from manyfit.introspection import _unused_seeds
from manyfit.introspection.class_names import ClassTable, has_own_methods, imported, is_instance, public_name
from manyfit.model_selection import GridSearchCV as Ours
from manyfit.model_selection.sharing.nested import _rule

TABLES = {
    "families": _registry._families,
    "affine steps": _registry._affine_steps,
    "column steps": _registry._column_steps,
    "wrappers": _wrapped._wrappers,
    "nested rules": _rule.RULES,
}

GRIDS = {Ridge: {"alpha": [1e-2, 1.0, 1e3]}, KNeighborsRegressor: {"n_neighbors": [1, 2, 3]}}


class Imposter(SVC):
    """Another class of a name that scikit-learn has."""


Imposter.__name__, Imposter.__module__ = "SVC", "sklearn.svm._classes"


def test_the_public_name_is_that_of_the_very_class():
    assert public_name(SVC) == "sklearn.svm.SVC" and imported("sklearn.svm.SVC") is SVC
    assert public_name(Imposter) == "" and public_name(type("Mine", (SVC,), {})) == ""
    assert public_name(type(None)) == ""
    assert imported("sklearn.svm.NoSuch") is None and imported("no_such_module.SVC") is None


def test_instances_are_known_by_names_as_by_classes():
    names = "no_such_module.Estimator", "sklearn.svm.SVC"
    assert is_instance(SVC(), *names) and is_instance(Imposter(), *names) and not is_instance(Ridge(), *names)
    assert not is_instance(SVC())


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
@pytest.mark.invariant("Modules of the catalogs serve the classes that these name, and no others")
def test_each_module_serves_the_classes_that_the_catalog_names(table):
    modules = set(table.modules.values())
    for module in modules:
        importlib.import_module(module)
    for name in table.modules:
        home, _, cls = name.rpartition(".")
        found = getattr(importlib.import_module(home), cls)
        assert public_name(found) == name and has_own_methods(found)
    served = {
        public_name(cls): getattr(one, "__module__", None)
        for cls, one in table._served.items()
        if getattr(one, "__module__", None) in modules and cls is not type(None)
    }
    assert served == table.modules


@pytest.mark.parametrize("names", [_unused_seeds._RULES, _continuable._SIZES], ids=["seeds", "sizes"])
def test_rules_name_classes(names):
    for name in names:
        home, _, cls = name.rpartition(".")
        found = getattr(importlib.import_module(home), cls)
        assert public_name(found) == name and has_own_methods(found)


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table whose module, once it is imported, lets "ours" serve `Ridge` and `SVC`."""
    found = ClassTable(dict.fromkeys(("sklearn.linear_model.Ridge", "sklearn.svm.SVC"), "imported_late"))
    lines = (
        "from sklearn.linear_model import Ridge",
        "from sklearn.svm import SVC",
        "from tests.units.introspection import test_class_names as here",
        "here.CURRENT.register('ours', Ridge, SVC)",
    )
    (tmp_path / "imported_late.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys.modules[__name__], "CURRENT", found, raising=False)
    yield found
    sys.modules.pop("imported_late", None)


def test_a_module_is_imported_for_its_own_classes_only(table):
    assert table.get(type("Mine", (Ridge,), {})) is None and table.get(int) is None
    assert "imported_late" not in sys.modules
    assert table.get(Ridge) == "ours" and table.get(SVC) == "ours"


def test_what_a_user_registers_replaces_ours_whichever_is_first(table):
    table.register("theirs", Ridge)
    assert table.get(SVC) == "ours" and table.get(Ridge) == "theirs"
    table.remove("ours", Ridge, SVC)
    assert table.get(SVC) is None and table.get(Ridge) == "theirs"
    table.remove("theirs", Ridge)
    assert table.get(Ridge) is None, "it was ours no more"


def test_threads_that_ask_at_once_get_the_same(table):
    found, ready = [], threading.Barrier(4)

    def ask():
        ready.wait()
        found.append(table.get(Ridge))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["ours"] * 4


FIRST_SEARCH = """
import sys
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
X, y = load_diabetes(return_X_y=True)
GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}).fit(X, y)
before = set(sys.modules)

from manyfit.model_selection import GridSearchCV
search = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}).fit(X, y)
assert search.report_.fits_done == 0, "the family answers"
new = set(sys.modules) - before
FAMILIES = {name for name in new if name.startswith("manyfit.families.") and name.count(".") == 3}
rooms = {name.split(".")[2] for name in FAMILIES}
assert rooms == {"protocol", "columns", "least_squares", "meta_estimators", "nested"}, rooms
served = {name for name in FAMILIES if name.split(".")[2] == "least_squares"}
assert "manyfit.families.least_squares._ridge" in served
assert "manyfit.families.least_squares._coordinate_descent" not in served
heavy = {"cluster", "decomposition", "ensemble", "feature_selection", "impute", "neighbors", "tree"}
assert not {f"sklearn.{name}" for name in heavy} & new
others = {"array_api_extra", "dask", "distributed", "matplotlib", "pandas", "polars", "sqlite3"}
assert not others & {name.partition(".")[0] for name in new}
for room in ("estimators", "metrics.distances", "metrics.functions", "model_selection.checkpoint"):
    assert f"manyfit.{room}" not in new, room
ours = sum(name.partition(".")[0] == "manyfit" for name in new)
theirs = sum(name.partition(".")[0] == "sklearn" for name in new)
assert ours < MOST_OURS and theirs < MOST_THEIRS, (ours, theirs)

from sklearn.neighbors import KNeighborsRegressor
GridSearchCV(KNeighborsRegressor(), {"n_neighbors": [1, 3]}).fit(X, y)
assert "manyfit.families.neighbours._regressor" in sys.modules
assert "manyfit.families.neighbours._radius" not in sys.modules
"""


@pytest.mark.invariant("A first search imports the families of its estimators alone")
def test_a_first_search_imports_what_it_needs():
    code = FIRST_SEARCH.replace("MOST_OURS", "280").replace("MOST_THEIRS", "12")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.invariant("A class whose methods were replaced is fitted by itself")
@pytest.mark.parametrize(("cls", "method"), [(KNeighborsRegressor, "predict"), (Ridge, "fit")])
def test_replaced_methods_are_called(cls, method, monkeypatch):
    X = np.random.default_rng(0).normal(size=(60, 3))
    y, name = X[:, 0], next(iter(GRIDS[cls]))
    original = getattr(cls, method)

    def halved(self, *data):
        found = original(self, *data)
        if found is not self:
            return found / 2
        self.coef_ = self.coef_ / 2
        return self

    monkeypatch.setattr(cls, method, halved)
    ours, theirs = (GridSearchCV(cls(), GRIDS[cls]).fit(X, y) for GridSearchCV in (Ours, Theirs))
    assert ours.report_.fits_shared == 0 and ours.best_params_[name] == theirs.best_params_[name]
    np.testing.assert_array_equal(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])
    monkeypatch.setattr(cls, method, functools.wraps(original)(lambda *args: original(*args)))
    assert Ours(cls(), GRIDS[cls]).fit(X, y).report_.fits_shared > 0


IN_PLACE = """
import numpy as np, sklearn.linear_model
from sklearn.linear_model import Ridge
from manyfit.model_selection import GridSearchCV

class Mine(Ridge):
    def predict(self, X):
        return super().predict(X) / 2

sklearn.linear_model.Ridge = Mine
X = np.random.default_rng(0).normal(size=(60, 3))
for model in (Mine(), Ridge()):
    GridSearchCV(sklearn.linear_model.LinearRegression(), {"fit_intercept": [True]}).fit(X, X[:, 0])
    assert GridSearchCV(model, {"alpha": [1.0, 9.0]}).fit(X, X[:, 0]).report_.fits_shared == 0
"""


def test_a_class_in_the_place_of_scikit_learns_is_not_served():
    subprocess.run([sys.executable, "-c", IN_PLACE], check=True)
