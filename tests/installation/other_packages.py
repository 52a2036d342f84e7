"""Searches of other packages, as they are and while manyfit is installed.

``python -m tests.installation.other_packages`` runs those of imbalanced-learn, scikit-optimize,
sklearn-genetic-opt and dask-ml that can be imported, and prints for each whether its results are the same,
and what manyfit served. It ends with 1 if results differ.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import manyfit


def imbalanced_learn() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Its pipelines, which resample training rows, in scikit-learn's searches; and its ensembles."""
    from imblearn.ensemble import BalancedRandomForestClassifier, EasyEnsembleClassifier
    from imblearn.over_sampling import SMOTE, RandomOverSampler
    from imblearn.pipeline import make_pipeline
    from imblearn.under_sampling import RandomUnderSampler

    X, y = load_breast_cancer(return_X_y=True)
    smote = make_pipeline(StandardScaler(), SMOTE(random_state=0), LogisticRegression())
    under = make_pipeline(RandomUnderSampler(random_state=0), GaussianNB())
    over = make_pipeline(RandomOverSampler(random_state=0), KNeighborsClassifier())
    grid = {"logisticregression__C": [0.1, 1.0], "smote__k_neighbors": [3, 5]}
    yield "SMOTE in a grid", lambda: GridSearchCV(smote, grid, cv=3, scoring="f1").fit(X, y)
    yield (
        "under-sampling",
        lambda: GridSearchCV(under, {"gaussiannb__var_smoothing": [1e-9, 1e-3]}, cv=3).fit(X, y),
    )
    yield (
        "over-sampling",
        lambda: GridSearchCV(over, {"kneighborsclassifier__n_neighbors": [3, 9]}, cv=3).fit(X, y),
    )
    forest = BalancedRandomForestClassifier(10, random_state=0)
    yield "balanced forest", lambda: GridSearchCV(forest, {"n_estimators": [5, 10]}, cv=3).fit(X, y)
    easy = EasyEnsembleClassifier(n_estimators=3, random_state=0)
    yield "easy ensemble", lambda: cross_validate(easy, X, y, cv=3)
    yield "cross_validate", lambda: cross_validate(smote, X, y, cv=3, scoring=["f1", "roc_auc"])


def scikit_optimize() -> Iterator[tuple[str, Callable[[], Any]]]:
    """`BayesSearchCV`, which derives from scikit-learn's base class."""
    from skopt import BayesSearchCV
    from skopt.space import Real

    X, y = load_breast_cancer(return_X_y=True)
    space = {"C": Real(1e-3, 1e2, prior="log-uniform"), "gamma": Real(1e-4, 1e-1, prior="log-uniform")}
    yield (
        "BayesSearchCV",
        lambda: BayesSearchCV(SVC(), space, n_iter=8, cv=3, random_state=0).fit(X[:200], y[:200]),
    )
    ridge = {"alpha": Real(1e-3, 1e3, prior="log-uniform")}
    data = load_diabetes(return_X_y=True)
    yield (
        "with points",
        lambda: BayesSearchCV(Ridge(), ridge, n_iter=6, n_points=3, cv=3, random_state=0).fit(*data),
    )


def sklearn_genetic() -> Iterator[tuple[str, Callable[[], Any]]]:
    """`GASearchCV` and `GAFeatureSelectionCV`, which cross-validate their generations."""
    from sklearn_genetic import GAFeatureSelectionCV, GASearchCV
    from sklearn_genetic.space import Integer

    def seeded(make: Callable[[], Any]) -> Any:
        import random

        random.seed(0), np.random.seed(0)
        return make()

    X, y = load_breast_cancer(return_X_y=True)
    space, tree = {"max_depth": Integer(2, 6, random_state=0)}, DecisionTreeClassifier(random_state=0)
    options = {"cv": 3, "population_size": 6, "generations": 3, "verbose": False}
    yield "GASearchCV", lambda: seeded(lambda: GASearchCV(tree, param_grid=space, **options).fit(X, y))
    yield (
        "GAFeatureSelectionCV",
        lambda: seeded(lambda: GAFeatureSelectionCV(GaussianNB(), **options).fit(X, y)),
    )


def dask_ml() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Searches of dask-ml, which have a base class of their own."""
    from dask_ml.model_selection import GridSearchCV as DaskGridSearchCV
    from dask_ml.model_selection import IncrementalSearchCV  # noqa: F401

    data = load_diabetes(return_X_y=True)
    yield (
        "GridSearchCV",
        lambda: DaskGridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=3, scheduler="sync").fit(*data),
    )


def subclasses() -> Iterator[tuple[str, Callable[[], Any]]]:
    """A subclass of each search of scikit-learn's, as users write them."""

    class Named(GridSearchCV):
        def describe(self) -> str:
            return f"{self.best_score_:.3f}"

    class Counted(RandomizedSearchCV):
        def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
            self.n_rows_ = len(X)
            return super().fit(X, y, **params)

    data = load_diabetes(return_X_y=True)
    yield "more methods", lambda: Named(Ridge(), {"alpha": [0.1, 1.0]}, cv=3).fit(*data)
    drawn = {"alpha": np.logspace(-3, 3, 50)}
    yield "fit overridden", lambda: Counted(Ridge(), drawn, n_iter=5, random_state=0, cv=3).fit(*data)


def results(found: Any) -> dict[str, Any]:
    """The scores and settings of a search, or the arrays of `cross_validate`."""
    table = found if isinstance(found, dict) else getattr(found, "cv_results_", None) or vars(found)
    kept = {
        name: one
        for name, one in table.items()
        if name == "params" or ("score" in name and "time" not in name)
    }
    return kept | {"best": getattr(found, "best_params_", None)}


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two results are equal but for rounding."""
    if one.keys() != other.keys():
        return False
    for name, value in one.items():
        if "score" in name and np.asarray(value).dtype.kind == "f":
            if not np.allclose(value, other[name], rtol=1e-9, atol=1e-12, equal_nan=True):
                return False
        elif repr(value) != repr(other[name]):
            return False
    return True


def main() -> int:
    """Run all searches twice, and print a line for each."""
    warnings.simplefilter("ignore")
    outcomes = []
    for package in (subclasses, imbalanced_learn, scikit_optimize, sklearn_genetic, dask_ml):
        try:
            cases = list(package())
        except Exception as error:
            print(f"{package.__name__:17} {type(error).__name__}: {str(error)[:80]}")
            continue
        for name, make in cases:
            outcome, shared = compared(make)
            outcomes.append(outcome)
            print(f"{package.__name__:17} {name:20} {outcome:8} {shared}", flush=True)
    return int("DIFFERS" in outcomes)


def compared(make: Callable[[], Any]) -> tuple[str, str]:
    """Whether a search gives the same results while manyfit is installed, and what was shared."""
    try:
        expected = results(make())
    except Exception as error:
        return "does not run as it is", f"{type(error).__name__}: {str(error)[:80]}"
    before = manyfit.last_report()
    with manyfit.installed():
        found = results(make())
    report = manyfit.last_report()
    if report is before:
        return "same" if same(expected, found) else "DIFFERS", "runs as without manyfit"
    why = "; ".join(report.left_to_sklearn)
    shared = f"{report.fits_shared} of {report.fits_requested} fits shared" + (f" ({why})" if why else "")
    return "same" if same(expected, found) else "DIFFERS", shared


if __name__ == "__main__":
    sys.exit(main())
