"""Blocks whose numbers change between passes: the error names the first of them that is read again."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manyfit.folds import Blocks
from manyfit.folds.rows.chunks._blocks import _checksum, _is_same
from manyfit.model_selection import GridSearchCV

rng = np.random.default_rng(0)
N = 499
X = rng.normal(size=(N, 2)) * [1.0, 10.0] + [3.0, 0.0]
Y = X[:, 0] + rng.normal(size=N)
CHANGES = {
    "one number": lambda block: block + 1e-6 * (np.arange(block.size).reshape(block.shape) == 6),
    "order": lambda block: block[::-1],
    "rounding": lambda block: block * (1.0 + 2e-16),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", ["array", "frame", "gaps"])
def test_a_block_whose_numbers_change_between_passes_is_named(change, kind):
    values, calls = X, []
    if kind == "gaps":
        values = np.where(np.arange(2 * N).reshape(N, 2) % 7 == 1, np.nan, values)

    def read():
        calls.append(0)
        for start in range(0, N, 50):
            block = values[start : start + 50]
            block = CHANGES[change](block) if start == 150 and len(calls) > 1 else block
            yield block if kind == "array" else pd.DataFrame(block, columns=["a", "b"])

    model = make_pipeline(SimpleImputer(), Ridge()) if kind == "gaps" else Ridge()
    search = GridSearchCV(model, {}, refit=False, memory_limit=4_000)
    if change == "rounding":
        assert search.fit(Blocks(read), Y).report_.fits_shared == 5
    else:
        column = "" if kind == "array" else "in column 'a' "
        with pytest.raises(
            ValueError, match=f"Block 3 of X has other numbers {column}than in the first pass"
        ):
            search.fit(Blocks(read), Y)


@pytest.mark.parametrize("kind", ["array", "frame", "polars", "first pass only"])
def test_blocks_may_be_made_in_the_same_memory(kind):
    """As ``file.readinto(buffer)`` does."""

    def read():
        buffer, targets, weights = np.empty((50, 2)), np.empty(50), np.empty(50)
        buffer = np.asfortranarray(buffer) if kind == "polars" else buffer
        make = {"frame": partial(pd.DataFrame, columns=["a", "b"], copy=False), "polars": pl.DataFrame}
        block = make.get(kind, np.asarray)(buffer)
        for start in range(0, 450, 50):
            buffer[:], targets[:] = X[start : start + 50], Y[start : start + 50]
            yield block, targets, np.abs(targets, out=weights)

    grid = {"alpha": [1.0, 100.0]}
    memory = 1_000_000 if kind == "first pass only" else 4_000
    search = GridSearchCV(Ridge(), grid, refit=False, memory_limit=memory, scoring="neg_mean_absolute_error")
    expected = SklearnSearch(Ridge(), grid, refit=False, scoring="neg_mean_absolute_error")
    expected.fit(X[:450], Y[:450], sample_weight=np.abs(Y[:450]))
    found = search.fit(Blocks(read)).cv_results_["mean_test_score"]
    np.testing.assert_allclose(found, expected.cv_results_["mean_test_score"], rtol=1e-10)


@pytest.mark.parametrize("kind", ["array", "Fortran", "float32", "integers", "frame"])
def test_a_change_beside_a_large_column_is_noticed(kind):
    """Each column is compared by its own size, and rows by their places."""
    calls = []
    times = 1.7e10 + 60.0 * np.arange(N)
    values = np.column_stack([times, X])
    if kind == "integers":
        values = np.column_stack([times, 1000 * X]).astype(np.int64)
    if kind == "float32":
        values = np.column_stack([20_000 + np.arange(N) / 2, X]).astype(np.float32)

    def read(change):
        calls.append(0)
        for start in range(0, N, 100):
            block = values[start : start + 100].copy("F" if kind == "Fortran" else "K")
            if len(calls) > 1 and start == 200:
                block[:, 2] = change(block[:, 2])
            yield pd.DataFrame(block, columns=["a", "b", "c"]) if kind == "frame" else block

    changes = {
        "a number": lambda column: column + (2 * column.std() * (np.arange(100) == 40)).astype(column.dtype),
        "neighbours": lambda column: column[[*range(40), 41, 40, *range(42, 100)]],
    }
    scaled = make_pipeline(StandardScaler(), Ridge())
    search = GridSearchCV(scaled, {}, refit=False, memory_limit=3 * values[:100].nbytes, cv=2)
    for change in changes.values():
        calls.clear()
        with pytest.raises(ValueError, match="Block 2 of X has other numbers"):
            search.fit(Blocks(partial(read, change)), Y)
    calls.clear()
    search.fit(Blocks(partial(read, lambda column: column)), Y)
    assert len(calls) > 2


@pytest.mark.parametrize("shape", [(70, 9000), (9000, 1), (3000, 7), (1, 3), (0, 1)])
def test_checksums_are_of_columns(shape):
    values = np.random.default_rng(1).normal(size=shape) + 5.0
    values[:, -1:][::2] = np.nan
    known = _checksum(values)
    filled = np.nan_to_num(values)
    np.testing.assert_allclose(known[0, [0, 2]].T, np.stack([filled.sum(0), np.abs(filled).sum(0)], 1))
    np.testing.assert_array_equal(known[1, 0, -1], np.isnan(values).sum() if values.size else 0)
    assert _is_same(known, _checksum(np.asfortranarray(values * (1 + 2e-16))), values.dtype)
    changed = values.copy()
    if len(values) > 1:
        changed[:, -1] = np.roll(values[:, -1], 1)  # the gaps are the others
        assert not _is_same(known, _checksum(changed), values.dtype)
