"""Passes over rows of numbers beside one-hot columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from manyfit.folds._blas_threads import map_threads
from manyfit.folds._mixed_matrix import MixedMatrix, OneHot, cross_table
from manyfit.folds.passes._protocol import EPS, Curvature, Passes, Residual, by_outputs
from manyfit.folds.passes._samples import RowSample
from manyfit.folds.splits._atoms import Array, Rows
from manyfit.folds.splits._row_index import n_rows, row_blocks

# Rows that are read at a time: their linear predictors for some dozens of columns fit a second-level cache.
PIECE_ROWS = 2048
# Columns of coefficients from which on the looking up of codes is quick.
QUICK_MIXED_COLUMNS = 32


class MixedPasses(Passes):
    """Passes over a `MixedMatrix`: tables of coefficients are looked up by code, and sums are by code.

    Its rows are kept a second time, in the order of the atoms. The origin is zero for one-hot columns.
    """

    eps, quick_columns, kept_per_column = EPS, QUICK_MIXED_COLUMNS, 0
    single_is_quicker = False

    def __init__(self, X: MixedMatrix, rows: Sequence[Rows], origin: Array) -> None:
        self.X, self.rows, self.rows_read = X, rows, 0
        self.origin = np.zeros(X.shape[1])
        self.origin[X.places] = origin[X.places]
        self._atoms = [_centred(X.take(own), self.origin) for own in rows]
        self._pieces = [
            _Piece(a, atom, place, given)
            for a, (atom, own) in enumerate(zip(self._atoms, rows, strict=True))
            for place, given in zip(
                row_blocks(slice(0, n_rows(own)), PIECE_ROWS), row_blocks(own, PIECE_ROWS), strict=True
            )
        ]

    def sample(self, rows: Rows) -> "MixedSample":
        return MixedSample(_centred(self.X.take(rows), self.origin), rows)

    def gradient(self, theta: Array, counts: Array, residual: Residual) -> Array:
        m, K, d = theta.shape
        used = [np.flatnonzero(own) for own in counts.T]
        # Atoms that the same columns train on share their tables.
        known = {own.tobytes(): own for own in used if own.size}
        parts = {key: _Coefficients.of(self.X, theta[own]) for key, own in known.items()}
        keys = [own.tobytes() for own in used]
        pieces = [piece for piece in self._pieces if used[piece.atom].size]
        self.rows_read += sum(n_rows(rows) for rows, own in zip(self.rows, used, strict=True) if own.size)

        def work(piece: _Piece) -> Array:
            a = piece.atom
            with np.errstate(over="ignore", invalid="ignore"):  # set for each thread
                Z = piece.predictors(parts[keys[a]])
                R = residual(Z, piece.rows, used[a]).transpose(2, 0, 1).reshape(Z.shape[2], K * used[a].size)
                out = np.empty((d, R.shape[1]))
                out[self._number_places] = piece.numbers.T @ R
                out[self._code_places] = piece.by_code @ R
                return out

        sums = [np.zeros((d, K * own.size)) for own in used]
        for piece, part in zip(pieces, map_threads(work, pieces), strict=True):
            sums[piece.atom] += part
        out = np.zeros((m, K, d))
        for a, own in enumerate(used):
            out[own] += sums[a].reshape(d, K, own.size).transpose(2, 1, 0) * counts[own, a][:, None, None]
        return out

    @cached_property
    def _code_places(self) -> Array:
        """The one-hot columns, in the order of the blocks."""
        return np.concatenate([np.empty(0, dtype=int), *(np.r_[one.columns] for one in self.X.blocks)])

    @cached_property
    def _number_places(self) -> Array:
        """The places of the columns of numbers, and of the value at the origin."""
        return np.append(self.X.places, self.X.shape[1])

    def gram(self, theta: Array, curvature: Curvature, dtype: Any, features: Array | None = None) -> Array:
        """See `Passes`; in float64."""
        chosen = _Chosen.of(self.X, np.arange(self.X.shape[1]) if features is None else features)
        curvatures = self._curvatures(theta, curvature)

        def work(a: int) -> Array:
            return by_outputs(*curvatures[a], chosen.width, partial(_cross_sums, self._atoms[a], chosen))

        return np.stack(map_threads(work, range(len(self.rows))))

    def squares(self, theta: Array, curvature: Curvature) -> Array:
        K, d = theta.shape[1:]
        out = np.zeros((len(self.rows), K, d))
        for a, (D, _) in enumerate(self._curvatures(theta, curvature)):
            atom = self._atoms[a]
            out[a][:, self._number_places] = D @ atom.numbers**2
            for block in atom.blocks:
                out[a][:, block.columns] = [np.bincount(block.codes, one, block.width) for one in D]
        return out.reshape(len(out), -1)

    def _curvatures(self, theta: Array, curvature: Curvature) -> list[tuple[Array, Array | None]]:
        """Curvatures of the rows of each atom, (K, n_a) each."""
        K, coefficients = theta.shape[1], _Coefficients.of(self.X, theta)

        def work(piece: _Piece) -> tuple[Array, Array | None]:
            with np.errstate(over="ignore", invalid="ignore"):
                D, P = curvature(piece.predictors(coefficients), piece.rows)
            return D[:, 0], None if P is None else P[:, 0]

        found = map_threads(work, self._pieces)
        self.rows_read += sum(map(n_rows, self.rows))
        return [_side_by_side(found, self._pieces, a, K) for a in range(len(self.rows))]


@dataclass(frozen=True)
class _Piece:
    """Some rows of an atom: `place` among the rows of the atom, `rows` among those of X."""

    atom: int
    X: MixedMatrix
    place: Any
    rows: Rows

    @property
    def numbers(self) -> Array:
        return self.X.numbers[self.place]

    @cached_property
    def by_code(self) -> Any:
        return self.X.by_code(self.place)

    def predictors(self, coefficients: "_Coefficients") -> Array:
        """Linear predictors of the rows, (K, m, b)."""
        K = coefficients.n_outputs
        Z = self.numbers @ coefficients.numbers
        self.X.add_tables(coefficients.tables, self.place, Z)
        return Z.reshape(len(Z), K, Z.shape[1] // K).transpose(1, 2, 0)


@dataclass(frozen=True)
class _Coefficients:
    """Coefficients of K outputs and m columns: of the numbers and the origin, (q + 1, K m), and tables."""

    n_outputs: int
    numbers: Array
    tables: list[Array]

    @classmethod
    def of(cls, X: MixedMatrix, theta: Array) -> "_Coefficients":
        m, K, d = theta.shape
        flat = np.ascontiguousarray(theta.transpose(2, 1, 0)).reshape(d, K * m)
        return cls(K, flat[np.append(X.places, d - 1)], X.tables(flat))


@dataclass(frozen=True)
class MixedSample(RowSample):
    """Rows of a `MixedMatrix`, whose numbers are centred and end with a column of ones."""

    def predictors(self, theta: Any) -> Any:
        every = slice(0, self.n_rows)
        Z = _Piece(0, self.X, every, every).predictors(_Coefficients.of(self.X, theta[:, None]))
        return np.ascontiguousarray(Z[0])

    @property
    def n_rows(self) -> int:
        return len(self.X.numbers)

    def mean_square(self) -> Any:
        return self.column_squares().sum() / (self.n_rows * self.X.shape[1])

    def column_squares(self) -> Array:
        out = np.empty(self.X.shape[1])
        with np.errstate(over="ignore"):
            out[self.X.places] = (self.X.numbers[:, :-1] ** 2).sum(axis=0)
        for block in self.X.blocks:
            out[block.columns] = np.bincount(block.codes, minlength=block.width)
        return out


@dataclass(frozen=True)
class _Chosen:
    """Some columns of a `MixedMatrix`, the value at the origin the last.

    `numbers` are chosen columns of numbers with their places, `blocks` the positions of blocks with those of
    their codes that are chosen, None for all, and the places of these.
    """

    width: int
    numbers: tuple[Array, Array]
    blocks: tuple[tuple[int, Array | None, Array], ...]

    @classmethod
    def of(cls, X: MixedMatrix, features: Array) -> "_Chosen":
        place = np.full(X.shape[1] + 1, -1)
        place[features] = np.arange(len(features))
        place[-1] = len(features)
        numbers = place[np.append(X.places, X.shape[1])]
        kept = np.flatnonzero(numbers >= 0)
        blocks = []
        for i, block in enumerate(X.blocks):
            own = place[block.columns]
            codes = np.flatnonzero(own >= 0)
            if codes.size:
                blocks.append((i, None if codes.size == block.width else codes, own[codes]))
        return cls(len(features) + 1, (kept, numbers[kept]), tuple(blocks))


def _cross_sums(X: MixedMatrix, chosen: _Chosen, weights: Array) -> Array:
    """``Z' W Z`` for the chosen columns of rows Z whose numbers end with a column of ones."""
    columns, places = chosen.numbers
    numbers = X.numbers[:, columns]
    weighted = numbers * weights[:, None]
    blocks = [(_only(X.blocks[i], codes), own) for i, codes, own in chosen.blocks]
    ends = np.cumsum([columns.size, *(own.size for _, own in blocks)]).tolist()
    number, parts = slice(0, columns.size), [slice(*pair) for pair in pairwise(ends)]
    # First in the order of numbers and blocks, the part below the diagonal.
    sums = np.zeros((chosen.width, chosen.width))
    sums[number, number] = weighted.T @ numbers
    for j, (block, own) in enumerate(blocks):
        by_code = [np.bincount(block.codes, one, block.width)[: own.size] for one in weighted.T]
        sums[parts[j], number] = np.stack(by_code, axis=1)
        # The last column of numbers is 1, and a row has one code.
        np.fill_diagonal(sums[parts[j], parts[j]], by_code[-1])
        for i, (other, theirs) in enumerate(blocks[:j]):
            sums[parts[j], parts[i]] = cross_table(block, other, weights)[: own.size, : theirs.size]
    lower = np.tril(sums, -1)
    order = np.argsort(np.concatenate([places, *(own for _, own in blocks)]))
    return np.asarray((lower + lower.T + np.diag(np.diagonal(sums)))[np.ix_(order, order)])


def _only(block: OneHot, codes: Array | None) -> OneHot:
    """A block of some of the codes, in order, and one more for all others."""
    if codes is None:
        return block
    number = np.full(block.width, codes.size)
    number[codes] = np.arange(codes.size)
    return OneHot(block.start, codes.size + 1, number[block.codes])


def _centred(X: MixedMatrix, origin: Array) -> MixedMatrix:
    """The same rows with numbers less the origin, and a column of ones after them."""
    numbers = np.ones((X.shape[0], X.places.size + 1))
    np.subtract(X.numbers, origin[X.places], out=numbers[:, :-1])
    return MixedMatrix(numbers, X.places, X.blocks)


def _side_by_side(
    found: Sequence[tuple[Array, Array | None]], pieces: Sequence[_Piece], a: int, K: int
) -> tuple[Array, Array | None]:
    """Curvatures of all pieces of an atom."""
    own = [one for one, piece in zip(found, pieces, strict=True) if piece.atom == a]
    D = np.concatenate([np.empty((K, 0)), *(one[0] for one in own)], axis=1)
    joint = [one[1] for one in own if one[1] is not None]
    return D, np.concatenate(joint, axis=1) if joint else None
