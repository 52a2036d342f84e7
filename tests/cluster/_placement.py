"""Three workers, and a search whose data travel apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from manyfit.model_selection import GridSearchCV
from tests.cluster._awkward import Awkward

X = np.random.default_rng(0).normal(size=(6_000, 5))
Y = np.random.default_rng(1).integers(0, 2, 6_000)


def search(n: int = 3, client: Any = None, **params: Any) -> GridSearchCV:
    return GridSearchCV(Awkward(**params), {"value": range(n)}, cv=KFold(2), refit=False, client=client)


def scores(found: GridSearchCV) -> Any:
    return found.cv_results_["mean_test_score"]
