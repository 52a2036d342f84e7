"""Dask frames whose partitions are frames of another library than pandas."""

from __future__ import annotations

import dask.dataframe as dd
import numpy as np
import pandas as pd

from tests.behaviour.chunks._frames import partitions
from tests.behaviour.chunks.test_inputs import EXPECTED, FRAME, Y, _scores, _search


def test_partitions_of_cudf_become_those_of_pandas_where_they_are_read(monkeypatch):
    """A class of another module stands for frames of cuDF, which need a GPU."""

    class DataFrame(pd.DataFrame):
        _constructor = property(lambda self: DataFrame)

        def __getitem__(self, key):
            raise AssertionError("not read as a frame of pandas")

    asked = []

    def to_backend(self, backend):
        asked.append(backend)
        return self.map_partitions(pd.DataFrame, meta=FRAME.iloc[:0])

    DataFrame.__module__ = "another.library"
    monkeypatch.setattr(dd.DataFrame, "to_backend", to_backend)
    given = partitions(FRAME, 100)
    given = given.map_partitions(DataFrame, meta=DataFrame(given._meta))
    assert type(given._meta) is DataFrame
    np.testing.assert_allclose(_scores(_search().fit(given, Y)), _scores(EXPECTED), rtol=1e-10)
    assert set(asked) == {"pandas"}
    _search().fit(partitions(FRAME, 100), Y)
    assert len(asked) == 1
