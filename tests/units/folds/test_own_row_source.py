"""A row source of one's own reads a file in blocks, and an X of any class."""

from __future__ import annotations

import tracemalloc
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from manyfit.estimators import family_of
from manyfit.folds import (
    HostRows,
    Unsupported,
    own_row_source,
    register_row_source,
    unregister_row_source,
)
from manyfit.model_selection import GridSearchCV
from tests._covering import covering
from tests.behaviour.metrics._crossings import there
from tests.differential._subject import sharing_whatever_it_costs


class FileRows(HostRows):
    """Rows of a file of numbers, which is opened for each block and closed again."""

    def __init__(self, X):
        self.shape, self.dtype = X.shape, X.dtype
        self._file, self._start = X.filename, X.offset

    def take(self, rows):
        """Some rows, in memory."""
        return np.array(np.memmap(self._file, self.dtype, "r", self._start, self.shape)[rows])


class CountingRows(FileRows):
    """It also notes how many rows each read has."""

    reads: ClassVar[list[int]] = []

    def take(self, rows):
        taken = super().take(rows)
        self.reads.append(len(taken))
        return taken


ROWS, COLUMNS = 12_000, 30


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Numbers in a file, with targets, as a memory map of which nothing is read."""
    values = np.random.default_rng(1).normal(size=(ROWS, COLUMNS)) + 3.0
    z = (values - 3.0) @ np.random.default_rng(2).normal(size=COLUMNS)
    path = tmp_path_factory.mktemp("rows") / "X.npy"
    np.save(path, values)
    noise = np.random.default_rng(3).normal(size=ROWS)
    y = {
        "numbers": z + noise,
        "labels": np.where(z + 3.0 * noise > 0, "yes", "no"),
        "counts": np.random.default_rng(4).poisson(np.exp(np.clip(z / 10.0, -3.0, 3.0))),
    }
    return np.load(path, mmap_mode="r"), y


@pytest.fixture
def own_source():
    CountingRows.reads = []
    register_row_source(lambda X: isinstance(X, np.memmap), CountingRows)
    yield CountingRows
    unregister_row_source(CountingRows)


SEARCHES = {
    "moments": (Ridge(), {"alpha": [0.1, 10.0, 1e4]}, "numbers", None, 1e-10),
    "moments behind a step": (
        make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [0.1, 1e4]}, "numbers", None, 1e-10,
    ),
    "iterations": (
        make_pipeline(StandardScaler(), LogisticRegression(tol=1e-6)),
        {"logisticregression__C": [1e-4, 1e-2]}, "labels", "neg_log_loss", 1e-5,  # as near as tol asks
    ),
    "a log link": (
        make_pipeline(StandardScaler(), PoissonRegressor(tol=1e-5)),
        {"poissonregressor__alpha": [1.0, 10.0]}, "counts", None, 1e-4,  # as near as tol asks
    ),
}  # fmt: skip


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("shuffle", "model", "grid", "target", "scoring", "tol"),
    covering([False, True], SEARCHES.items(), strength=1),
)
def test_a_file_that_is_read_in_blocks_gives_the_scores_of_scikit_learn(
    model, grid, target, scoring, tol, shuffle, file, own_source
):
    X, y = file[0], file[1][target]
    cv = KFold(5, shuffle=shuffle, random_state=0 if shuffle else None)
    search = GridSearchCV(model, grid, cv=cv, scoring=scoring, refit=False)
    with sharing_whatever_it_costs():  # modules that this imports are no memory of the search
        GridSearchCV(model, grid, cv=2, scoring=scoring, refit=False).fit(X[:99], y[:99])
    own_source.reads.clear()
    tracemalloc.start()
    try:
        with sharing_whatever_it_costs():
            search.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert search.report_.fits_done == 0 and own_source.reads
    assert max(own_source.reads) <= ROWS / 4  # the largest sample of the rows is a quarter
    if target == "numbers":  # iterations keep vectors of their own
        assert peak < 0.75 * X.nbytes, peak / X.nbytes
    expected = SklearnSearch(model, grid, cv=cv, scoring=scoring, refit=False).fit(np.array(X), y)
    for name in (f"split{i}_test_score" for i in range(5)):
        np.testing.assert_allclose(search.cv_results_[name], expected.cv_results_[name], rtol=tol)


def test_a_source_that_reads_everything_at_once_is_seen(file, own_source):
    own_source(file[0]).take(slice(None))
    assert max(own_source.reads) == ROWS  # so the test above can fail


# An X of a class of one's own


class NumberFile:
    """A matrix in a file. scikit-learn can read nothing of it but its size."""

    def __init__(self, memory_map):
        self.shape, self.dtype = memory_map.shape, memory_map.dtype
        self.filename, self.offset = memory_map.filename, memory_map.offset

    def __len__(self):
        return self.shape[0]


@pytest.fixture
def own_class(file):
    CountingRows.reads = []
    register_row_source(lambda X: isinstance(X, NumberFile), CountingRows)
    yield NumberFile(file[0]), np.array(file[0]), file[1]
    unregister_row_source(CountingRows)


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("given", "shuffle", "model", "grid", "target", "scoring", "tol"),
    covering(["object", "source"], [False, True], SEARCHES.items(), strength=1),
)
def test_an_x_of_any_class_gives_the_scores_of_scikit_learn(
    model, grid, target, scoring, tol, shuffle, given, own_class
):
    own, values, y = own_class[0], own_class[1], own_class[2][target]
    X = own if given == "object" else CountingRows(own)
    weights = np.random.default_rng(5).uniform(0.5, 1.5, size=ROWS)
    name = "sample_weight" if not hasattr(model, "steps") else f"{model.steps[-1][0]}__sample_weight"
    cv = ShuffleSplit(3, random_state=0) if shuffle else 4
    search = GridSearchCV(model, grid, cv=cv, scoring=scoring, refit=False)
    planned = search.plan(X, y, **{name: weights})
    assert all(group.strategy.shares_fits for group in planned.groups)
    search.fit(X, y, **{name: weights})
    assert search.report_.fits_done == 0 and max(CountingRows.reads) <= 4096  # rows predicted at a time
    expected = SklearnSearch(model, grid, cv=cv, scoring=scoring, refit=False)
    expected.fit(values, y, **{name: weights})
    for i in range(search.n_splits_):
        one, other = (s.cv_results_[f"split{i}_test_score"] for s in (search, expected))
        np.testing.assert_allclose(one, other, rtol=tol)


def test_one_setting_is_shared_though_it_saves_no_time(own_class):
    X, _, y = own_class
    search = GridSearchCV(LogisticRegression(C=1e-3), {}, refit=False, scoring="neg_log_loss")
    search.fit(X, y["labels"])
    assert search.report_.fits_done == 0


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (Ridge(), {"refit": True}, "refit=True needs a fit by scikit-learn. Set refit=False"),
        (Ridge(), {"verify": 2}, "verify=2 needs a fit by scikit-learn. Set verify=0"),
        (Ridge(), {"sharing": "none"}, "5 of 5 fits are not shared: sharing='none'"),
        (
            DummyClassifier(),
            {},
            "5 of 5 fits are not shared: manyfit knows no work that fits of DummyClassifier have in common",
        ),
        (
            make_pipeline(PolynomialFeatures(), Ridge()),
            {},
            "columns are encoded in frames and NumPy arrays only",
        ),
        (Ridge(), {"scoring": lambda model, X, y: 1.0}, "5 of 5 fits are not shared: the scorer"),
    ],
    ids=["refit", "verify", "sharing", "no family", "step", "scorer"],
)
def test_fits_by_scikit_learn_are_refused_in_plain_words(model, options, message, own_class):
    X, _, y = own_class
    search = GridSearchCV(model, {}, **{"refit": False, **options})
    with pytest.raises(TypeError, match="cannot read X, which CountingRows reads") as error:
        search.fit(X, y["numbers"])
    assert message in str(error.value)
    assert not CountingRows.reads or max(CountingRows.reads) <= ROWS / 4


def test_sums_within_classes_of_rows_of_ones_own_have_no_weights(own_class):
    X, _, y = own_class
    search = GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 1e-2]}, refit=False)
    with pytest.raises(TypeError, match="10 of 10 fits are not shared: sums within classes have no weights"):
        search.fit(X, y["labels"], sample_weight=np.ones(ROWS))
    assert not CountingRows.reads


def test_fits_that_a_family_leaves_to_scikit_learn_are_refused_with_its_reason(own_class, monkeypatch):
    X, _, y = own_class

    def fails(*_):
        raise Unsupported("the fold is too odd")

    monkeypatch.setattr(type(family_of(Ridge)), "fit_many", fails)
    with pytest.raises(TypeError, match="10 of 10 fits are not shared: the fold is too odd"):
        GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, refit=False).fit(X, y["numbers"])


def test_a_splitter_reads_the_rows_of_the_source(own_class):
    class BySign:
        def get_n_splits(self, X=None, y=None, groups=None):
            return 2

        def split(self, X, y=None, groups=None):
            positive = X[np.arange(len(X))][:, 0] > 3.0
            for train in (positive, ~positive):
                yield np.flatnonzero(train), np.flatnonzero(~train)

    X, values, y = own_class
    search, expected = (
        S(Ridge(), {"alpha": [1.0]}, cv=BySign(), refit=False) for S in (GridSearchCV, SklearnSearch)
    )
    search.fit(X, y["numbers"])
    expected.fit(values, y["numbers"])
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"], rtol=1e-10
    )


def test_a_checkpoint_compares_the_rows_of_the_source(own_class, tmp_path):
    _, values, y = own_class
    changed = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", shape=values.shape)
    changed[:] = values
    changed.flush()
    search = GridSearchCV(Ridge(), {"alpha": [1.0]}, refit=False, checkpoint=tmp_path / "search.db")
    search.fit(NumberFile(changed), y["numbers"]).fit(NumberFile(changed), y["numbers"])
    assert search.report_.fits_restored == 5
    changed[0] += 1.0
    changed.flush()
    with pytest.raises(ValueError, match="X: CountingRows .* with different content"):
        search.fit(NumberFile(changed), y["numbers"])


def test_an_x_that_the_factory_refuses_is_left_to_scikit_learn(own_class):
    def refuse(X):
        raise Unsupported("it is not read")

    register_row_source(lambda X: isinstance(X, NumberFile), refuse)
    try:
        assert own_row_source(own_class[0]) is None
    finally:
        unregister_row_source(refuse)
    assert isinstance(own_row_source(own_class[0]), CountingRows)


def test_what_scikit_learn_reads_needs_no_source_of_its_own():
    X = np.arange(12.0).reshape(6, 2)
    register_row_source(lambda X: True, CountingRows)
    try:
        for given in (None, X, sp.csr_array(X), pd.DataFrame(X), X.tolist(), there(X)):
            assert own_row_source(given) is None
    finally:
        unregister_row_source(CountingRows)
