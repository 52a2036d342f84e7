"""pandas, polars and sparse input, feature names, output containers, dtypes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn import config_context, model_selection
from sklearn.compose import make_column_transformer
from sklearn.feature_selection import VarianceThreshold
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, PolynomialFeatures, StandardScaler

from manyfit.model_selection import GridSearchCV, cross_val_score
from manyfit.model_selection.sharing import _fold_cache as _lend
from tests._covering import covering, spread
from tests._same_results import X, Y, assert_same_results, both
from tests._search_fixtures import RANDOM_LASSO

NAMES = list("abcde")
FRAME = pd.DataFrame(X, columns=NAMES)
GRIDS = [
    (Ridge(), {"alpha": [0.1, 1.0]}),
    (make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [0.1, 1.0]}),
    (make_pipeline(StandardScaler(), RANDOM_LASSO), {"lasso__alpha": [0.1, 1.0]}),
    (make_pipeline(PolynomialFeatures(), Ridge()), {"ridge__alpha": [0.1, 1.0]}),
]


CONTAINERS = {
    "pandas": (FRAME, pd.Series(Y)),
    "odd index": (FRAME, pd.Series(Y, index=np.arange(len(Y))[::-1])),
    "polars": (pl.DataFrame(X, schema=NAMES), pl.Series(Y)),
    "float32": (FRAME.astype("float32"), Y.astype("float32")),
    "mixed dtypes": (FRAME.assign(f=np.arange(len(Y)) % 3), Y),
    "lists": (X.tolist(), Y.tolist()),
    "fortran": (np.asfortranarray(X), Y[:, None]),
    "integers": (np.round(X * 10).astype(np.int32), Y),
}


@pytest.mark.cases(3)
@pytest.mark.parametrize(("estimator", "grid", "X", "y"), covering(GRIDS, CONTAINERS.values(), strength=1))
def test_containers(estimator, grid, X, y):
    # float32: two ways of summing agree to its own digits.
    rtol = 1e-4 if hasattr(X, "dtypes") and "float32" in str(X.dtypes) else 1e-9
    ours = GridSearchCV(estimator, grid, cv=3, return_train_score=True).fit(X, y)
    theirs = model_selection.GridSearchCV(estimator, grid, cv=3, return_train_score=True).fit(X, y)
    assert_same_results(ours, theirs, rtol=rtol)
    if hasattr(X, "columns"):
        names = getattr(theirs, "feature_names_in_", None)  # 1.7 reads none from a current polars
        np.testing.assert_array_equal(getattr(ours, "feature_names_in_", None), names)


@pytest.mark.parametrize(
    ("estimator", "grid", "output"), covering(GRIDS[1:], ["pandas", "polars"], strength=1)
)
def test_set_output(estimator, grid, output):
    with config_context(transform_output=output):
        both(estimator, grid, FRAME, return_train_score=True)


def test_columns_by_name():
    frame = FRAME.assign(kind=np.arange(len(Y)) % 3)
    first = make_column_transformer((OneHotEncoder(), ["kind"]), (StandardScaler(), NAMES))
    for last in (Ridge(), RANDOM_LASSO):
        name = type(last).__name__.lower()
        both(make_pipeline(first, last), {f"{name}__alpha": [0.1, 1.0]}, frame, return_train_score=True)


@pytest.mark.parametrize(
    "container", spread([scipy.sparse.csr_array, scipy.sparse.csr_matrix, scipy.sparse.coo_array], 1)
)
def test_sparse(container):
    sparse = container(np.where(np.abs(X) > 0.7, X, 0.0))
    for first in (MaxAbsScaler(), VarianceThreshold()):
        both(make_pipeline(first, Ridge()), {"ridge__alpha": [0.1, 1.0]}, sparse)
        both(make_pipeline(first, RANDOM_LASSO), {"lasso__alpha": [0.1, 1.0]}, sparse)


class _Rows:
    """Rows in a class of a user, with a meaning of its own for names of sizes."""

    def __init__(self, rows):
        self.rows, self.shape = rows, rows.shape

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.rows, dtype)

    def memory_usage(self):
        return "much"


def test_rows_of_a_class_that_does_not_tell_its_size():
    for first in (VarianceThreshold(), StandardScaler()):
        pipeline = make_pipeline(first, LogisticRegression())
        both(pipeline, {"logisticregression__C": [0.1, 1.0]}, _Rows(X), (Y > 0).astype(int))


def test_frames_are_copied_only_where_steps_are_shared(monkeypatch):
    copied = []
    monkeypatch.setattr(_lend, "private_copy", lambda X: copied.append(X) or X.copy())
    frame = pd.DataFrame(X)
    cross_val_score(RANDOM_LASSO, frame, Y, cv=3)
    both(RANDOM_LASSO, {"alpha": [0.1, 1.0]}, X=frame, cv=3)
    both(RANDOM_LASSO, {"alpha": [0.1, 1.0]}, X=frame, cv=3, n_jobs=2)
    assert not copied
    both(make_pipeline(StandardScaler(), RANDOM_LASSO), {"lasso__alpha": [0.1, 1.0]}, X=frame, cv=3)
    assert copied
