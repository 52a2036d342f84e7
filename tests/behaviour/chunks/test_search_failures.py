"""Chunks that a search cannot read, or may not: the error names the rows, and what to do."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler as SklearnScaler
from sklearn.tree import DecisionTreeRegressor

from manyfit.estimators import StandardScaler
from manyfit.folds import as_chunk_rows
from manyfit.folds.rows.chunks import _rows
from manyfit.model_selection import GridSearchCV
from tests.behaviour.chunks._files import Array, Dataset, limit_for, memory_map
from tests.behaviour.chunks._frames import blocks
from tests.behaviour.chunks._searches import GRID, LABELS, RIDGE, N, P, X, Y, assert_same


def test_verify_and_single_fits_are_refused():
    file = Dataset(X, (10, P))
    options = {"refit": False, "memory_limit": limit_for(X, 90)}
    with pytest.raises(TypeError, match="verify=1 needs a fit by scikit-learn"):
        GridSearchCV(RIDGE, GRID, verify=1, **options).fit(file, Y)
    with pytest.raises(TypeError, match="15 of 15 fits cannot be made from chunks: sharing='none'"):
        GridSearchCV(RIDGE, GRID, sharing="none", **options).fit(file, Y)
    assert not file.reads


# Bad input


@pytest.mark.parametrize(
    ("model", "y"),
    [(RIDGE, Y), (make_pipeline(SklearnScaler(), LogisticRegression()), LABELS)],
    ids=["ridge", "logistic"],
)
def test_nan_in_one_chunk_is_named_by_its_row(model, y):
    values = X.copy()
    values[407, 2] = np.nan
    file = Dataset(values)
    with pytest.raises(ValueError, match="Input X contains NaN or infinity, first in row 407 of 1499"):
        GridSearchCV(model, {}, refit=False, memory_limit=limit_for(X, 50)).fit(file, y)
    assert sum(file.reads) < N + 50  # no second pass


def test_scikit_learn_is_left_the_nan_of_a_memory_map(tmp_path):
    values = X.copy()
    values[407, 2] = np.nan
    search = GridSearchCV(RIDGE, {}, refit=False, error_score="raise", memory_limit=limit_for(X, 50))
    with pytest.raises(ValueError, match="Input X contains NaN"):
        search.fit(memory_map(values, tmp_path), Y)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (Dataset(X[:-1]), ValueError, "inconsistent numbers of samples"),
        (Dataset(X[:, 0]), ValueError, "Expected 2D array, got 1D array instead"),
        (Dataset(X.astype(complex)), ValueError, "X is a h5py.Dataset of dtype complex128"),
        (Dataset(X.astype(object)), ValueError, "X is a h5py.Dataset of dtype object"),
        (Array(X, (600, P)), MemoryError, "A chunk of rows of X, with all columns, takes"),
    ],
    ids=["lengths", "1-d", "complex", "object", "chunk"],
)
def test_input_that_cannot_be_read_is_refused_before_it_is_read(given, error, message):
    with pytest.raises(error, match=message):
        GridSearchCV(RIDGE, GRID, refit=False, memory_limit=1000).fit(given, Y)
    assert not given.reads


def test_an_empty_file_is_refused_as_scikit_learn_does():
    with pytest.raises(ValueError, match=r"0 sample|n_samples|Cannot have number of splits"):
        GridSearchCV(RIDGE, GRID, refit=False, memory_limit=10).fit(Dataset(X[:0]), Y[:0])


class Broken(Dataset):
    """Blocks from row 300 on cannot be read the first `times`."""

    def __init__(self, values, times):
        super().__init__(values)
        self.times, self.tried = times, 0

    def __getitem__(self, rows):
        if isinstance(rows, slice) and rows.stop > 300 and rows.stop - rows.start > 1:
            self.tried += 1
            if self.tried <= self.times:
                raise OSError("the disk is gone")
        return super().__getitem__(rows)


def test_a_block_that_cannot_be_read_is_tried_again_and_named_by_its_rows(monkeypatch):
    monkeypatch.setattr(_rows, "RETRY_AFTER_S", (0.0, 0.001))
    search = GridSearchCV(RIDGE, GRID, refit=False, memory_limit=limit_for(X, 90))
    with pytest.raises(OSError, match="the disk is gone") as got:
        search.fit(gone := Broken(X, 9), Y)
    assert "Rows 270 to 359 of X, a h5py.Dataset, could not be read." in got.value.__notes__
    assert gone.tried == 3
    assert_same(search.fit(Broken(X, 2), Y), SklearnSearch(RIDGE, GRID, refit=False).fit(X, Y), 1e-12)


@pytest.mark.parametrize("known", [True, False])
def test_the_chunk_of_dask_that_cannot_be_computed_is_named_with_its_rows(known):
    """A read has three chunks of 30 rows."""

    def fail(block, block_info=None):
        if block_info[0]["chunk-location"][0] == 7:
            raise RuntimeError("no such number")
        return block

    lazy = da.from_array(X, chunks=(30, P)).map_blocks(fail, dtype=float, meta=X[:0])
    search = GridSearchCV(RIDGE, GRID, refit=False, memory_limit=limit_for(X, 90))
    with pytest.raises(RuntimeError, match="no such number") as got:
        search.fit(lazy if known else lazy.to_dask_dataframe(columns=[*"abcdef"]), Y)
    kind = "array.Array" if known else "dataframe.DataFrame"
    place = "Chunk 7 (rows 210 to 239)" if known else "Chunk 7, from row 210 on,"
    assert f"{place} of X, a dask.{kind}, could not be read." in got.value.__notes__


@pytest.mark.parametrize(("scaled", "fails"), [(False, "rows"), (True, "rows"), (True, "what is scaled")])
def test_a_source_whose_read_failed_is_read_again_by_a_later_search(scaled, fails, monkeypatch):
    monkeypatch.setattr(_rows, "RETRY_AFTER_S", ())
    file = Broken(X.copy(), 0)
    rows = as_chunk_rows(file, limit_for(X, 90))
    plain = rows
    if scaled:
        rows = StandardScaler().fit(X).transform(rows)
    search = GridSearchCV(RIDGE, GRID, refit=False).fit(rows, Y)  # which keeps sums of all rows
    file.times, file.tried = 1, 0
    with pytest.raises(OSError, match="the disk is gone"):
        search.fit(rows if fails == "rows" else plain, Y)
    file._values[7:11] *= 3.0  # as if the file had been written again
    expected = SklearnSearch(RIDGE, GRID, refit=False).fit(file._values, Y)
    assert_same(search.fit(rows, Y), expected, 1e-10)


def test_blocks_of_other_dtypes_are_refused():
    lazy = da.from_array(X.astype(np.float32), chunks=(100, P)).map_blocks(
        lambda block: block.astype(np.float64), dtype=np.float32, meta=X[:0].astype(np.float32)
    )
    search = GridSearchCV(RIDGE, GRID, refit=False, memory_limit=limit_for(X, 30))
    with pytest.raises(ValueError, match="X gave numbers of dtype float64, not float32"):
        search.fit(lazy, Y)


def test_blocks_of_other_columns_are_refused():
    def narrow(block):
        return block[:, :-1]

    lazy = da.from_array(X, chunks=(100, P)).map_blocks(narrow, dtype=float, meta=X[:0])
    search = GridSearchCV(RIDGE, GRID, refit=False, memory_limit=limit_for(X, 90))
    with pytest.raises(ValueError, match=r"X gave an array of shape \(.*, 5\), not \(.*, 6\)"):
        search.fit(lazy, Y)


@pytest.mark.parametrize("model", [DecisionTreeRegressor(), DecisionTreeRegressor(random_state=0)])
def test_the_reason_why_a_tree_reads_no_chunks(model):
    search = GridSearchCV(model, {"max_depth": [2, 3]}, refit=False, memory_limit=limit_for(X, 90))
    with pytest.raises(TypeError, match="10 of 10 .*: DecisionTreeRegressor reads the rows of a fold as one"):
        search.fit(Dataset(X), Y)


def test_blocks_without_targets_say_what_is_missing():
    message = r"(Ridge|Pipeline) needs y, and got X alone, a Blocks of arrays .* yield \(X, y\)"
    for model in (Ridge(), make_pipeline(StandardScaler(), Ridge())):
        with pytest.raises(ValueError, match=message):
            GridSearchCV(model, {}, refit=False, memory_limit="10kB").fit(blocks(np.eye(40), 5))


@pytest.mark.filterwarnings("ignore:One or more of the (test|train) scores are non-finite:UserWarning")
@pytest.mark.parametrize(
    "model", [GaussianNB(), LogisticRegression(tol=1e-8, max_iter=1000)], ids=["sums", "iterations"]
)
def test_a_scorer_that_fails_leaves_the_others_their_scores(model):
    """scikit-learn has no log loss of test rows that lack a class."""
    labels = np.where(X[:, 0] > X[:, 0].mean(), "high", "low")
    labels[::3] = "mid"
    two = np.flatnonzero(labels != "mid")[:300]
    splits = [(np.setdiff1d(np.arange(N), two), two), (np.arange(900), np.arange(900, N))]
    options = {
        "cv": splits,
        "refit": False,
        "scoring": ["accuracy", "neg_log_loss"],
    }
    expected, search = (
        cls(model, {}, return_train_score=True, **options, **more)
        for cls, more in (
            (SklearnSearch, {}),
            (GridSearchCV, {"memory_limit": limit_for(X, 90)}),
        )
    )
    with pytest.warns(UserWarning, match="Scoring failed"):
        expected.fit(X, labels)
    with pytest.warns(UserWarning, match="(?s)Scoring failed.* in log_loss.*ValueError: y_true"):
        search.fit(Dataset(X, (10, P)), labels)
    for name, own in expected.cv_results_.items():
        if name.startswith("split"):
            np.testing.assert_allclose(search.cv_results_[name], own, atol=1e-6, err_msg=name)
    assert np.isnan(search.cv_results_["split0_test_neg_log_loss"]).all()
    raising = GridSearchCV(model, {}, error_score="raise", memory_limit=limit_for(X, 90), **options)
    with pytest.raises(TypeError, match="a scorer failed"):
        raising.fit(Dataset(X, (10, P)), labels)


TWO_LOSSES = {"one": "neg_log_loss", "two": "neg_log_loss"}


@pytest.mark.filterwarnings("ignore:Only one class is present", "ignore:No positive class found")
@pytest.mark.filterwarnings("ignore:One or more of the (test|train) scores are non-finite:UserWarning")
@pytest.mark.parametrize(
    ("model", "scoring"),
    [
        (RidgeClassifier(), "neg_log_loss"),
        (GaussianNB(), "neg_log_loss"),
        (GaussianNB(), TWO_LOSSES),
        (LogisticRegression(tol=1e-8, max_iter=1000), "neg_log_loss"),
        (LogisticRegression(tol=1e-8, max_iter=1000), TWO_LOSSES),
        # The first of them decides on the positive class, and the second does not fail on the first fold.
        (LogisticRegression(tol=1e-8, max_iter=1000), ["roc_auc", "average_precision"]),
    ],
    ids=["moments", "sums", "two of sums", "iterations", "two of iterations", "shared predictions"],
)
def test_scorers_that_fail_are_no_failed_fits(model, scoring):
    """scikit-learn has no probabilities of RidgeClassifier, and no log loss of classes that a fit lacks."""
    labels = np.where(X[:, 0] > X[:, 0].mean(), "second", "first")
    labels[: -(-N // 3)] = "third"
    options = {"cv": KFold(3), "refit": False, "scoring": scoring, "return_train_score": True}
    expected = SklearnSearch(model, {}, **options)
    search = GridSearchCV(model, {}, memory_limit=limit_for(X, 90), **options)
    warned = []
    for one, given in ((expected, X), (search, Dataset(X, (10, P)))):
        with pytest.warns(UserWarning, match="Scoring failed") as found:
            one.fit(given, labels)
        warned.append(sorted(str(one.message).partition("Details")[0] for one in found))
        assert not [one for one in found if issubclass(one.category, FitFailedWarning)]
    assert warned[0] == warned[1]
    assert search.report_.fits_shared == 3
    for name, own in expected.cv_results_.items():
        if name.startswith("split"):
            np.testing.assert_allclose(search.cv_results_[name], own, atol=1e-5, err_msg=name)
