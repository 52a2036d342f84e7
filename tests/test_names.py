"""Every public name of scikit-learn's modules is found in the module of ours that has the same name."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest
import sklearn.metrics.pairwise

import manyfit
from tests.docstrings import rooms

MODULES = ("metrics", "metrics.cluster", "metrics.pairwise", "model_selection")


def public_names(module) -> set[str]:
    """Those in ``__all__``; where there is none, what the module defines."""
    if hasattr(module, "__all__"):
        return set(module.__all__)
    return {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    }


@pytest.mark.parametrize("name", MODULES)
def test_every_name_of_scikit_learn_is_here(name):
    theirs, ours = (importlib.import_module(f"{package}.{name}") for package in ("sklearn", "manyfit"))
    assert public_names(theirs) <= set(ours.__all__)
    for public in ours.__all__:
        value = getattr(ours, public)
        if not getattr(value, "__module__", "manyfit.").startswith("manyfit."):
            assert value is getattr(theirs, public), "another object than scikit-learn's"


def test_drop_in_estimators_have_scikit_learns_names():
    from manyfit import estimators
    from manyfit.estimators._catalog import CATALOG

    assert set(CATALOG) <= set(estimators.__all__)
    own = set(estimators.__all__) - set(CATALOG)
    assert all(value.__module__.startswith("manyfit.") for value in (getattr(estimators, n) for n in own))


def test_constants_of_pairs_are_scikit_learns():
    from manyfit.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, distance_metrics

    assert PAIRWISE_KERNEL_FUNCTIONS is sklearn.metrics.pairwise.PAIRWISE_KERNEL_FUNCTIONS
    assert distance_metrics is sklearn.metrics.pairwise.distance_metrics


def test_what_stands_in_two_modules_is_one_function():
    assert manyfit.metrics.cluster.rand_score is manyfit.metrics.rand_score
    assert manyfit.metrics.pairwise.euclidean_distances is manyfit.metrics.euclidean_distances


EXPERIMENTAL = """
import sklearn.model_selection
from manyfit.model_selection import *
from manyfit.model_selection import HalvingGridSearchCV, HalvingRandomSearchCV
assert "HalvingGridSearchCV" not in vars(sklearn.model_selection), "it is not enabled in scikit-learn"
from sklearn.experimental import enable_halving_search_cv
assert issubclass(HalvingGridSearchCV, sklearn.model_selection.HalvingGridSearchCV)
assert issubclass(HalvingRandomSearchCV, sklearn.model_selection.HalvingRandomSearchCV)
"""


@pytest.mark.thorough
def test_experimental_searches_need_not_be_enabled():
    subprocess.run([sys.executable, "-W", "error", "-c", EXPERIMENTAL], check=True)


LAZY = """
import sys
import manyfit
loaded = {name for name in sys.modules if name.startswith("manyfit.")}
assert loaded <= {"manyfit._config", "manyfit._config._options"}, loaded
assert not {"sklearn", "dask", "numpy"} & set(sys.modules)
names = dir(manyfit)
assert set(manyfit.__all__) <= set(names)
assert {name for name in sys.modules if name.startswith("manyfit.")} == loaded, "dir() imports"
from manyfit.model_selection import GridSearchCV, RandomizedSearchCV
loaded = {name for name in sys.modules if name.startswith("manyfit.")}
assert len(loaded) < 40 and not {"manyfit.families", "manyfit.folds"} & loaded, "a search is defined, not run"
import pickle
import manyfit.estimators
assert not {"sklearn.cluster", "sklearn.manifold"} & set(sys.modules), "a class is made when it is asked for"
same = pickle.loads(pickle.dumps(manyfit.estimators.KMeans()))
assert type(same) is manyfit.estimators.KMeans and "sklearn.cluster" in sys.modules
for name in sys.argv[1:]:
    assert getattr(manyfit, name) is sys.modules[f"manyfit.{name}"]
assert "distributed" not in sys.modules
"""


def test_submodules_and_classes_are_imported_when_they_are_read():
    names = [room.removeprefix("manyfit.") for room in rooms()]
    assert {*names, "exceptions"} == {n for n in manyfit.__all__ if inspect.ismodule(getattr(manyfit, n))}
    subprocess.run([sys.executable, "-W", "error", "-c", LAZY, *names, "exceptions"], check=True)


SECONDS = """
import time
from sklearn.model_selection import GridSearchCV
start = time.process_time()
from manyfit.model_selection import GridSearchCV
print(time.process_time() - start)
"""


@pytest.mark.thorough
def test_a_search_takes_a_moment_to_import():
    command = [sys.executable, "-c", SECONDS]
    took = [float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(3)]
    assert min(took) < 0.15


def test_a_name_that_is_not_there_is_an_attribute_error():
    for module in (manyfit, manyfit.model_selection, manyfit.estimators):
        with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'nothing'"):
            _ = module.nothing


def test_the_cluster_shows_what_users_need():
    assert manyfit.cluster.__all__ == ["ClusterDescription", "WorkerDied", "describe", "local_cluster"]
