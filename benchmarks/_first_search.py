"""A process that makes its first search, and writes what it cost: arguments are a library and a search."""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from typing import Any

# Of each estimator: its module in scikit-learn, its other parameters, and the grid.
SEARCHES: dict[str, tuple[str, dict[str, Any], dict[str, list[Any]]]] = {
    "Ridge": ("linear_model", {}, {"alpha": [0.1, 1.0, 10.0]}),
    "LogisticRegression": ("linear_model", {}, {"C": [0.1, 1.0, 10.0]}),
    "SVC": ("svm", {}, {"C": [0.1, 1.0, 10.0]}),
    "KNeighborsClassifier": ("neighbors", {}, {"n_neighbors": [3, 5, 7]}),
    "RandomForestClassifier": ("ensemble", {"random_state": 0}, {"n_estimators": [2, 4, 8]}),
}


def measure(library: str, name: str) -> dict[str, Any]:
    """CPU seconds of the first and the second search of this process, and the modules that they imported.

    The first search of manyfit is timed with the import of its class. scikit-learn's classes, and the data,
    are imported before.
    """
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import GridSearchCV

    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    module, given, grid = SEARCHES[name]
    estimator = getattr(import_module(f"sklearn.{module}"), name)(**given)
    before, times = set(sys.modules), [time.process_time()]
    search: Any = GridSearchCV if library == "sklearn" else None
    for _ in range(2):
        search = search or import_module("manyfit.model_selection").GridSearchCV
        search(estimator, grid).fit(X, y)
        times.append(time.process_time())
    new = [module.partition(".")[0] for module in set(sys.modules) - before]
    modules = {of: new.count(of) for of in ("manyfit", "sklearn")}
    return {"first": times[1] - times[0], "second": times[2] - times[1], "modules": modules}


if __name__ == "__main__":
    json.dump(measure(*sys.argv[1:]), sys.stdout)
