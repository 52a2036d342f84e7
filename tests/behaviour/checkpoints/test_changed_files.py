"""Files that are read in chunks and change between two searches with one checkpoint: no score is restored."""

from __future__ import annotations

import os
import shutil
from types import SimpleNamespace

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
import zarr
from sklearn.linear_model import Ridge

from manyfit.folds import as_chunk_rows
from manyfit.model_selection import GridSearchCV

rng = np.random.default_rng(0)
N, P, ROWS = 1200, 4, 60
X = rng.normal(size=(N, P))
OTHER = X[::-1]
Y = X @ rng.normal(size=P) + rng.normal(size=N)
LIMIT = 25_000  # less than X, and more than two chunks


def _hdf5(path, values=None, **options):
    """An HDF5 data set, which is written if values are given."""
    if values is not None:
        with h5py.File(path, "w") as file:
            file.create_dataset("X", data=values, chunks=(ROWS, P))
    return h5py.File(path, "r", **options)["X"]


def _parquet(path, values):
    frame = pd.DataFrame(values, columns=[*"abcd"])
    pa.parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), path, row_group_size=ROWS)


def virtual(folder):
    """A virtual data set, whose numbers lie in another file."""
    _hdf5(folder / "source.h5", X).file.close()
    layout = h5py.VirtualLayout(X.shape, "f8")
    layout[:] = h5py.VirtualSource(folder / "source.h5", "X", X.shape)
    with h5py.File(folder / "X.h5", "w") as file:
        file.create_virtual_dataset("X", layout)
    with h5py.File(folder / "X.h5", "r") as file:
        yield file["X"]
    _hdf5(folder / "source.h5", OTHER).file.close()
    yield _hdf5(folder / "X.h5")


def external(folder):
    """A data set whose numbers lie in a file of their own."""
    X.tofile(folder / "X.bin")
    with h5py.File(folder / "X.h5", "w") as file:
        places = [(os.fspath(folder / "X.bin"), 0, h5py.h5f.UNLIMITED)]
        file.create_dataset("X", X.shape, "f8", external=places)
    with h5py.File(folder / "X.h5", "r") as file:
        yield file["X"]
    OTHER.tofile(folder / "X.bin")
    yield _hdf5(folder / "X.h5")


def replaced(folder):
    """A file that is replaced after it was opened."""
    opened = _hdf5(folder / "X.h5", X)
    _hdf5(folder / "new.h5", OTHER).file.close()
    os.replace(folder / "new.h5", folder / "X.h5")
    yield opened
    opened.file.close()
    yield _hdf5(folder / "X.h5")


def in_memory(folder):
    """A file that was read into memory, and has changed since."""
    opened = _hdf5(folder / "X.h5", X, driver="core")
    (folder / "X.h5").unlink()
    _hdf5(folder / "X.h5", OTHER).file.close()
    yield opened
    yield _hdf5(folder / "X.h5", driver="core")


def folders(folder):
    """Folders whose names are a feature."""
    for k, values in ((1, X[: N // 2]), (2, X[N // 2 :])):
        (folder / "X" / f"k={k}").mkdir(parents=True)
        _parquet(folder / "X" / f"k={k}" / "part.parquet", values)
    yield folder / "X"
    os.rename(folder / "X" / "k=2", folder / "X" / "k=50")
    yield folder / "X"


def row_groups(folder):
    """Some row groups of a file."""
    _parquet(folder / "X.parquet", np.concatenate([X, OTHER]))
    whole = pa.dataset.dataset(folder / "X.parquet")
    (file,) = whole.get_fragments()
    for start in (0, N // ROWS):
        some = file.subset(row_group_ids=[*range(start, start + N // ROWS)])
        yield pa.dataset.FileSystemDataset([some], whole.schema, whole.format, whole.filesystem)


def links(folder):
    """Chunks in a folder that is linked into a Zarr array."""
    zarr.create_array(folder / "X", data=X, chunks=(ROWS, P))
    shutil.move(folder / "X" / "c", folder / "chunks")
    os.symlink(folder / "chunks", folder / "X" / "c")
    yield zarr.open_array(folder / "X", mode="r")
    zarr.create_array(folder / "other", data=OTHER, chunks=(ROWS, P))
    shutil.rmtree(folder / "chunks")
    shutil.move(folder / "other" / "c", folder / "chunks")
    yield zarr.open_array(folder / "X", mode="r")


CASES = [virtual, external, replaced, in_memory, folders, row_groups, links]


@pytest.mark.invariant("A checkpoint serves its own search and no other")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_files_that_have_changed_are_another_x(case, tmp_path):
    search = GridSearchCV(
        Ridge(), {"alpha": [0.1, 10.0]}, refit=False, memory_limit=LIMIT, checkpoint=tmp_path / "search.db"
    )
    versions = case(tmp_path)
    given = next(versions)
    search.fit(given, Y)
    assert search.fit(given, Y).report_.fits_restored == 10  # the same X is known
    with pytest.raises(ValueError, match="belongs to another search.*\n- X: "):
        search.fit(next(versions), Y)


def test_only_whole_files_of_this_machine_are_known_by_their_stamps(tmp_path):
    for k in range(4):
        part = pd.DataFrame(X[k::4], columns=[*"abcd"])
        part.to_csv(tmp_path / f"{k}.csv", index=False)
    assert as_chunk_rows(pa.dataset.dataset(tmp_path, format="csv"), LIMIT).file_identity() is None
    opened = _hdf5(tmp_path / "X.h5", X)
    assert as_chunk_rows(opened, LIMIT).file_identity() is not None
    opened.file.close()
    zarr.create_array(tmp_path / "X.zarr", data=X, chunks=(ROWS, P))
    local = zarr.open_array(tmp_path / "X.zarr", mode="r")
    assert as_chunk_rows(local, LIMIT).file_identity() is not None
    remote = SimpleNamespace(path=os.fspath(tmp_path / "X.zarr"))  # a path of another machine
    other = SimpleNamespace(
        **{name: getattr(local, name) for name in ("shape", "dtype", "chunks", "path")}, store=remote
    )
    rows = as_chunk_rows(local, LIMIT)
    rows._X = other
    assert rows.file_identity() is None


def test_the_message_names_the_files(tmp_path):
    def search(path):
        model = GridSearchCV(Ridge(), {}, refit=False, memory_limit=LIMIT, checkpoint=tmp_path / "search.db")
        return model.fit(path, Y)

    file = tmp_path / "X.parquet"
    _parquet(file, X)
    search(file)
    copy = tmp_path / "copy.parquet"
    shutil.copy2(file, copy)
    said = r"'\S*/copy.parquet', \(1200, 4\) of float64 here. Its files have .* a copy, counts as another X"
    with pytest.raises(ValueError, match=said):
        search(copy)
    os.replace(copy, file)
    with pytest.raises(ValueError, match=r"- X: '\S*/X.parquet', \(1200, 4\) of float64. Its files have"):
        search(file)
