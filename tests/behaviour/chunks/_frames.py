"""Frames in parts as users give them: Dask, Parquet, and blocks of a function."""

from __future__ import annotations

import dask
import dask.dataframe as dd
import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

from manyfit.folds import Blocks


def partitions(frame, rows):
    """A Dask frame of so many rows a partition, of unknown lengths, computed anew in each pass."""
    parts = [frame.iloc[start : start + rows] for start in range(0, len(frame), rows)]
    with dask.config.set({"dataframe.convert-string": False}):  # or scikit-learn cannot read gaps
        return dd.from_map(lambda part: part, parts, meta=frame.iloc[:0])


def parquet(frame, rows, folder):
    """A data set of Parquet files with so many rows a row group; two files."""
    folder.mkdir(exist_ok=True)
    half = len(frame) // 2
    for k, part in enumerate((frame.iloc[:half], frame.iloc[half:])):
        table = pa.Table.from_pandas(part, preserve_index=False)
        pyarrow.parquet.write_table(table, folder / f"part-{k}.parquet", row_group_size=rows)
    return pyarrow.dataset.dataset(folder)


def blocks(X, rows, y=None, weights=None, calls=None):
    """Blocks of so many rows; `calls` counts the passes."""

    def read():
        if calls is not None:
            calls.append(0)
        for start in range(0, len(X), rows):
            own = slice(start, start + rows)
            block = X.iloc[own] if hasattr(X, "iloc") else X[own]
            if weights is not None:
                yield block, y[own], weights[own]
            elif y is not None:
                yield block, y[own]
            else:
                yield block

    return Blocks(read)


def given_as(kind, frame, rows, folder):
    """The frame as an X of a kind."""
    if kind == "dask":
        return partitions(frame, rows)
    if kind == "parquet":
        return parquet(frame, rows, folder / "X")
    if kind == "unknown chunks":
        return partitions(frame.astype(float), rows).to_dask_array()
    X = frame if kind == "blocks of frames" else frame.to_numpy(dtype=np.float64)
    return blocks(X, rows)
