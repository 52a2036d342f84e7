"""Blocks whose numbers change between passes: the error names the first of them that is read again."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from manyfit.folds import Blocks
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
