"""Genotypes of two bits each, which are unpacked block by block."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manyfit.folds.splits._atoms import Array

# The first bytes of a .bed file whose rows are variants.
MAGIC = b"\x6c\x1b\x01"
# Copies of the first allele for the codes 00, 01, 10 and 11; 01 stands for a missing genotype.
COPIES = (2.0, np.nan, 1.0, 0.0)
# The codes of the four genotypes of each byte, the first in its lowest bits.
CODES = (np.arange(256)[:, None] >> np.array([0, 2, 4, 6])) & 3
# How often each code is among them.
COUNTS = np.stack([(code == CODES).sum(axis=1) for code in range(4)], axis=1)


class Genotypes:
    """Genotypes of two bits each as a matrix of float32, whose rows are unpacked when they are read.

    Parameters
    ----------
    packed : path or uint8 array of shape (n_variants, ceil(n_samples / 4))
        A ``.bed`` file of PLINK 1 in the order of variants, or its bytes without the three first ones. A row
        is a variant, a column a sample; the first sample of a byte has its lowest bits.
    n_samples : int
        The number of samples, which the ``.fam`` file beside a ``.bed`` file lists.
    values : sequence of 4 numbers, default=(2.0, nan, 1.0, 0.0)
        What the codes 00, 01, 10 and 11 stand for; by default the number of copies of the first allele.
        NaN marks missing genotypes.
    missing : "mean" or float, default="mean"
        What missing genotypes are replaced by: the mean of the others of the variant, or a number.
    standardize : bool, default=False
        Whether each variant is centred, and divided by ``sqrt(2 f (1 - f))``, where ``2 f`` is its mean
        before. Variants of which all samples are the same, or missing, are then 0.

    Attributes
    ----------
    shape : tuple of int
        Numbers of variants and samples.
    dtype : dtype
        float32.

    Notes
    -----
    ``genotypes[start:stop]`` unpacks some variants. Searches and estimators that read chunks take the object
    as X. For the principal components of samples, fit ``TruncatedSVD`` to standardized genotypes: its
    ``components_`` have a column for each sample.

    Examples
    --------
    >>> import numpy as np
    >>> from manyfit.folds import Genotypes
    >>> Genotypes(np.array([[0b11100100], [0b00001011]], dtype=np.uint8), n_samples=3)[:]
    array([[2. , 1.5, 1. ],
           [0. , 1. , 2. ]], dtype=float32)
    """

    dtype, ndim = np.dtype(np.float32), 2

    def __init__(
        self,
        packed: Any,
        n_samples: int,
        *,
        values: Sequence[float] = COPIES,
        missing: str | float = "mean",
        standardize: bool = False,
    ) -> None:
        self._stride = -(-int(n_samples) // 4)
        self._path = Path(packed).absolute() if isinstance(packed, str | os.PathLike) else None
        self._packed = None if self._path is not None else packed
        n = self._rows_of_file() if self._path is not None else self._rows_of_array()
        self.shape, self.store = (n, int(n_samples)), self._path or id(packed)
        self._values = np.array(values, dtype=np.float64)
        if self._values.shape != (4,):
            raise ValueError(f"Genotypes takes four values, one for each code, and got {len(values)}.")
        if missing != "mean" and isinstance(missing, str):
            raise ValueError(f"missing is 'mean' or a number, and got {missing!r}.")
        self._by_mean, self._standardize = missing == "mean", standardize
        if not self._by_mean:
            self._values[np.isnan(self._values)] = missing

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def is_in_memory(self) -> bool:
        """Whether the bytes are an array of this process, not of a file that others can open."""
        return isinstance(self._packed, np.ndarray)

    def __getitem__(self, rows: Any) -> Array:
        """Some variants, unpacked: an index as that of an array, of rows."""
        n, p = self.shape
        rows = slice(None) if rows is ... else rows
        if not isinstance(rows, slice) or rows.step not in (None, 1):
            chosen = np.arange(n)[rows]
            if not chosen.size:
                return np.empty((*chosen.shape, p), dtype=self.dtype)
            first = int(chosen.min())
            return np.asarray(self._unpack(first, int(chosen.max()) + 1)[chosen - first])
        start, stop, _ = rows.indices(n)
        return self._unpack(start, max(start, stop))

    def _unpack(self, start: int, stop: int) -> Array:
        packed, (_, p) = self._bytes(start, stop), self.shape
        # Four float32 are moved as one number of 16 bytes.
        out = np.empty((stop - start, self._stride), dtype=np.complex128)
        if self._standardize or (self._by_mean and np.isnan(self._values).any()):
            for own, table, row in zip(out, _tables(self._values_of(packed)), packed, strict=True):
                np.take(table, row, out=own, mode="clip")
        else:
            np.take(_tables(self._values[None])[0], packed, out=out, mode="clip")  # unbuffered
        return out.view(np.float32)[:, :p]

    def _values_of(self, packed: Array) -> Array:
        """What the codes of some variants stand for, (n, 4)."""
        n = len(packed)
        counts = np.array([np.bincount(row, minlength=256) for row in packed]).reshape(n, 256) @ COUNTS
        beyond = 4 - (4 * self._stride - self.shape[1])
        for codes in CODES[packed[:, -1], beyond:].T:  # of no sample
            counts[np.arange(n), codes] -= 1
        known = np.isfinite(self._values)
        used = counts[:, known]
        total = used.sum(axis=1)
        mean = used @ self._values[known] / np.maximum(total, 1)
        values = np.where(known, self._values, mean[:, None])
        if not self._standardize:
            return np.asarray(values)
        variance = mean * (1.0 - mean / 2.0)
        varies = ((used > 0).sum(axis=1) > 1) & (variance > 0.0)
        values -= mean[:, None]
        values /= np.sqrt(np.where(varies, variance, 1.0))[:, None]
        return np.asarray(np.where(varies[:, None], values, 0.0))

    def _bytes(self, start: int, stop: int) -> Array:
        if self._packed is not None:
            return np.asarray(self._packed[start:stop])
        assert self._path is not None
        size = (stop - start) * self._stride
        found = np.fromfile(self._path, np.uint8, size, offset=len(MAGIC) + start * self._stride)
        return found.reshape(stop - start, self._stride)

    def _rows_of_file(self) -> int:
        assert self._path is not None
        with self._path.open("rb") as file:
            first = file.read(len(MAGIC))
        if first != MAGIC:
            raise ValueError(
                f"{self._path} begins with {first!r}, not {MAGIC!r}, as a .bed file in the order of variants."
            )
        size = self._path.stat().st_size - len(MAGIC)
        if not size or size % self._stride:
            raise ValueError(
                f"{self._path} has {size} bytes of genotypes, which are no variants of {self._stride} bytes."
            )
        return size // self._stride

    def _rows_of_array(self) -> int:
        shape: tuple[int, ...] = getattr(self._packed, "shape", ())
        dtype = getattr(self._packed, "dtype", None)
        if len(shape) != 2 or shape[1] != self._stride or dtype != np.uint8:
            raise ValueError(
                f"Genotypes takes a path, or an array of uint8 with {self._stride} columns here, "
                f"and got one of shape {shape} and dtype {dtype}."
            )
        return int(shape[0])


def _tables(values: Array) -> Array:
    """The four float32 of each byte as a number of 16 bytes, (n, 256), for values of the codes (n, 4)."""
    return np.ascontiguousarray(values.astype(np.float32)[:, CODES]).view(np.complex128)[:, :, 0]
