"""A search on chunks that was cut off goes on at the last merged range of its checkpoint."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB

from manyfit.folds import Blocks
from manyfit.folds.rows._chunk_reduction import GROUP_READS
from manyfit.folds.rows.chunks._parquet import ParquetRows
from manyfit.model_selection import GridSearchCV
from manyfit.model_selection.checkpoint import _ranges
from tests.behaviour.chunks._files import limit_for
from tests.behaviour.chunks._frames import parquet

rng = np.random.default_rng(0)
N, P, ROWS = 1200, 4, 30  # 40 reads in five groups
X = rng.normal(size=(N, P)) + 3.0
FRAME = pd.DataFrame(X, columns=[*"abcd"])
Y = X @ rng.normal(size=P) + rng.normal(size=N)
LABELS = np.where(np.median(Y) < Y, "high", "low")
SEARCHES = {
    "moments": (Ridge(), {"alpha": [0.1, 10.0]}, Y, KFold(3)),
    "shuffled": (Ridge(), {"alpha": [0.1, 10.0]}, Y, KFold(3, shuffle=True, random_state=0)),
    "classes": (GaussianNB(), {"var_smoothing": [1e-9, 1e-2]}, LABELS, KFold(3)),
}


class Reads:
    """The parts that are read, of which that after the first `most` of a pass cannot be."""

    def __init__(self, monkeypatch):
        self.parts, self.most = [], None
        read = ParquetRows.read_columns

        def read_columns(rows, k, columns):
            if self.most is not None and k >= self.most and self.parts[-1:] == [k - 1]:
                raise RuntimeError("the power is gone")
            self.parts.append(k)
            return read(rows, k, columns)

        monkeypatch.setattr(ParquetRows, "read_columns", read_columns)


@pytest.fixture
def reads(monkeypatch):
    monkeypatch.setattr(_ranges, "LONGEST_WAIT_S", 0.0)  # each range is written
    monkeypatch.setattr(_ranges, "WRITING_SHARE", np.inf)
    return Reads(monkeypatch)


def _search(name, checkpoint):
    model, grid, _, cv = SEARCHES[name]
    return GridSearchCV(
        model, grid, cv=cv, refit=False, memory_limit=limit_for(X, ROWS), checkpoint=checkpoint
    )


@pytest.mark.invariant("a search in chunks that was cut off goes on at the last merged range")
@pytest.mark.parametrize("name", SEARCHES)
def test_a_pass_that_was_cut_off_goes_on_at_the_last_merged_range(name, reads, tmp_path):
    model, grid, y, cv = SEARCHES[name]
    given, file = parquet(FRAME, ROWS, tmp_path / "X"), tmp_path / "search.db"
    whole = _search(name, tmp_path / "whole.db").fit(given, y)
    n_whole, reads.parts = len(reads.parts), []
    reads.most = 3 * GROUP_READS + 4
    with pytest.raises(RuntimeError, match="the power is gone"):
        _search(name, file).fit(given, y)
    reads.most, reads.parts = None, []
    search = _search(name, file).fit(given, y)
    assert len(reads.parts) == n_whole - 3 * GROUP_READS
    expected = SklearnSearch(model, grid, cv=cv, refit=False).fit(FRAME, y)
    for i in range(3):
        of_split = f"split{i}_test_score"
        np.testing.assert_array_equal(search.cv_results_[of_split], whole.cv_results_[of_split])
        np.testing.assert_allclose(search.cv_results_[of_split], expected.cv_results_[of_split], rtol=1e-12)
    # The results of a search that has ended are read from the file, and nothing else is.
    reads.parts = []
    assert _search(name, file).fit(given, y).report_.fits_restored == 6
    assert not reads.parts


def test_ranges_of_other_reads_are_not_used(reads, tmp_path):
    given, file = parquet(FRAME, ROWS, tmp_path / "X"), tmp_path / "search.db"
    reads.most = 3 * GROUP_READS + 4
    with pytest.raises(RuntimeError, match="the power is gone"):
        _search("moments", file).fit(given, Y)
    reads.most = None
    other = _search("moments", file).set_params(memory_limit=limit_for(X, 2 * ROWS)).fit(given, Y)
    expected = SklearnSearch(Ridge(), {"alpha": [0.1, 10.0]}, cv=KFold(3)).fit(FRAME, Y)
    np.testing.assert_allclose(
        other.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"], rtol=1e-12
    )


def test_a_file_is_known_by_its_size_and_time(reads, tmp_path):
    given, file = parquet(FRAME, ROWS, tmp_path / "X"), tmp_path / "search.db"
    _search("moments", file).fit(given, Y)
    path = tmp_path / "X" / "part-0.parquet"
    times = os.stat(path)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns + 1))
    with pytest.raises(ValueError, match="belongs to another search.*\n- X: "):
        _search("moments", file).fit(given, Y)


def test_blocks_are_known_by_their_rows(tmp_path):
    def read():
        for start in range(0, N, ROWS):
            yield X[start : start + ROWS]

    file = tmp_path / "search.db"
    _search("moments", file).fit(Blocks(read), Y)
    again = _search("moments", file).fit(Blocks(lambda: read()), Y)
    assert again.report_.fits_restored == 6
    with pytest.raises(ValueError, match="belongs to another search.*\n- X: "):
        _search("moments", file).fit(Blocks(lambda: (block + 1.0 for block in read())), Y)
