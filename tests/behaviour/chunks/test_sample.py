"""A search with `sample` is the search on some rows in memory, which are read of an X in chunks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.random import sample_without_replacement

from manyfit.folds import Blocks
from manyfit.model_selection import GridSearchCV, RandomizedSearchCV
from tests.behaviour.chunks._files import Dataset, given_as, limit_for
from tests.behaviour.chunks._frames import given_as as frame_as

rng = np.random.default_rng(0)
N, P, SOME = 599, 4, 120
X = rng.normal(size=(N, P))
Y = X[:, 0] + rng.normal(size=N)
ROWS = np.sort(sample_without_replacement(N, SOME, random_state=3))
TREE, GRID = DecisionTreeRegressor(random_state=0), {"max_depth": [2, 3]}
LIMIT = limit_for(X, 20)


def _same(search, expected):
    for name, values in expected.cv_results_.items():
        if name.startswith(("split", "mean_test")):
            np.testing.assert_array_equal(search.cv_results_[name], values, err_msg=name)


@pytest.mark.invariant("a search with sample is the search on these rows in memory")
@pytest.mark.parametrize("kind", ["h5py", "dask", "memory"])
def test_any_estimator_is_searched_on_a_sample(kind, tmp_path):
    given = X if kind == "memory" else given_as(kind, X, 20, tmp_path)
    search = GridSearchCV(TREE, GRID, sample=SOME, random_state=3, memory_limit=LIMIT)
    plan = search.plan(given, Y)
    assert "the search is made on a sample of 120 of 599 rows, drawn by random_state=3: folds, sc" in str(
        plan
    )
    _same(search.fit(given, Y), expected := SklearnSearch(TREE, GRID).fit(X[ROWS], Y[ROWS]))
    assert search.report_.sample in plan.reading and "Sample" not in search.report_.sample
    assert "The search is made on a sample of 120 of 599 rows" in str(search.report_)
    # What was fitted to the sample predicts and scores all rows, block by block.
    np.testing.assert_array_equal(search.predict(given), expected.predict(X))
    np.testing.assert_allclose(search.score(given, Y), expected.score(X, Y), rtol=1e-12)


def test_parts_weights_and_groups():
    groups, weights = np.arange(N) % 7, rng.uniform(size=N)
    search = RandomizedSearchCV(
        TREE, GRID, n_iter=2, cv=GroupKFold(3), sample=SOME / N, random_state=3, memory_limit=LIMIT
    ).fit(Dataset(X), Y, groups=groups, sample_weight=weights)
    assert search.report_.sample.startswith("the search is made on a sample of 120 of 599 rows")
    assert search.sample_indices_.size == 120 and (np.diff(search.sample_indices_) > 0).all()
    grid = {name: [one[name] for one in search.cv_results_["params"]] for name in GRID}
    expected = SklearnSearch(TREE, grid, cv=GroupKFold(3))
    _same(search, expected.fit(X[ROWS], Y[ROWS], groups=groups[ROWS], sample_weight=weights[ROWS]))


@pytest.mark.cases(2)
@pytest.mark.parametrize("kind", ["parquet", "blocks of frames", "dask"])
def test_frames_of_categories(kind, tmp_path):
    frame = pd.DataFrame({"a": X[:, 0], "c": rng.choice(["x", "y", "z"], size=N)})
    columns = ColumnTransformer([("a", StandardScaler(), ["a"]), ("c", OneHotEncoder(), ["c"])])
    model, grid = make_pipeline(columns, RandomForestClassifier(2, random_state=0)), {}
    labels = np.where(Y > 0, "high", "low")
    given = frame_as(kind, frame, 100, tmp_path)
    search = GridSearchCV(model, grid, sample=SOME, random_state=3, memory_limit=8000).fit(given, labels)
    some = frame.iloc[ROWS]
    _same(search, expected := SklearnSearch(model, grid).fit(some, labels[ROWS]))
    np.testing.assert_array_equal(search.predict_proba(given), expected.predict_proba(frame))


def test_targets_of_blocks_and_a_plan_that_draws():
    def read():
        for start in range(0, N, 100):
            yield X[start : start + 100], Y[start : start + 100]

    search = GridSearchCV(TREE, GRID, sample=0.2, random_state=None, memory_limit=LIMIT)
    planned = search.plan(Blocks(read)).reading[0]
    search.fit(Blocks(read))
    assert search.report_.sample == planned and "of 599 rows" in planned
    again = GridSearchCV(TREE, GRID, sample=N, memory_limit=X.nbytes).fit(Blocks(read))
    _same(again, SklearnSearch(TREE, GRID).fit(X, Y))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"sample": N + 1}, ValueError, "sample=600 rows were asked for, and X has 599 rows"),
        ({"sample": 300, "memory_limit": 9000}, MemoryError, "300 rows of X takes 9,600 bytes, and memory_"),
        ({"sample": 0}, ValueError, "sample"),
        ({"sample": 1.5}, ValueError, "sample"),
        ({"sample": True}, ValueError, "sample"),
    ],
)
def test_samples_that_cannot_be_drawn(options, error, message):
    with pytest.raises(error, match=message):
        GridSearchCV(TREE, GRID, **{"memory_limit": LIMIT, **options}).fit(Dataset(X), Y)


def test_a_kernel_a_matrix_without_an_index_and_a_short_y():
    labels, kernel, search = np.where(Y > 0, "high", "low"), X @ X.T, {"sample": SOME, "random_state": 3}
    model, grid = SVC(kernel="precomputed"), {"C": [0.1, 1.0]}
    expected = SklearnSearch(model, grid).fit(kernel[np.ix_(ROWS, ROWS)], labels[ROWS])
    _same(GridSearchCV(model, grid, **search).fit(kernel, labels), expected)
    expected = SklearnSearch(TREE, GRID).fit(scipy.sparse.csr_matrix(X)[ROWS], Y[ROWS])
    _same(GridSearchCV(TREE, GRID, **search).fit(scipy.sparse.coo_matrix(X), Y), expected)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        GridSearchCV(TREE, GRID, sample=10, random_state=3).fit(X, Y[:-1])


def test_refusals_name_the_sample():
    with pytest.raises(TypeError, match="make the search on some rows by sample=100_000, or pass X"):
        GridSearchCV(TREE, GRID, refit=False, memory_limit=LIMIT).fit(Dataset(X), Y)
    with pytest.raises(
        TypeError, match="alone or in a Pipeline; or make the search on some rows, by sample="
    ):
        GridSearchCV(Ridge(), {}, memory_limit=LIMIT).fit(Dataset(X), Y)


def test_a_checkpoint_of_a_sample_needs_an_integer_to_draw_it(tmp_path):
    options = {"checkpoint": tmp_path / "search.db", "memory_limit": LIMIT}
    with pytest.raises(ValueError, match="random_state of the search is None, so that its settings or rows"):
        GridSearchCV(TREE, GRID, sample=SOME, **options).fit(Dataset(X), Y)
    for restored in (0, 10):
        search = GridSearchCV(TREE, GRID, sample=SOME, random_state=3, **options).fit(Dataset(X), Y)
        assert search.report_.fits_restored == restored
    with pytest.raises(ValueError, match="X"):  # another sample is another search
        GridSearchCV(TREE, GRID, sample=SOME, random_state=4, **options).fit(Dataset(X), Y)
    GridSearchCV(TREE, GRID, checkpoint=tmp_path / "other.db").fit(X, Y)


def test_rows_that_do_not_fit_the_sample_are_refused():
    search = GridSearchCV(TREE, GRID, sample=SOME)
    for y in (Y[:-1], np.r_[Y, 0.0]):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            search.fit(X, y)
    with pytest.raises(ValueError, match="cv lists rows by their numbers in X"):
        search.set_params(cv=[(np.arange(9), np.arange(9, 20))]).fit(X, Y)
