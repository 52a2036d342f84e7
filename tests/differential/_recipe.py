"""Recipes of data: small frozen descriptions, legible in a failure, from which the arrays are built.

A recipe, and not the arrays, is what hypothesis draws: it shrinks by dropping what is awkward, and its
``repr`` is a reproduction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp
from hypothesis import strategies as st


@dataclass(frozen=True)
class Recipe:
    """What the data of one example looks like; `build` makes it."""

    n: int
    p: int
    seed: int = 0
    base: str = "normal"
    twists: tuple[str, ...] = ()
    target: str = "noisy"
    dtype: str = "float64"
    form: str = "C"
    target_form: str = "array"
    weights: str | None = None

    def build(self) -> Data:
        """Make the arrays; the same recipe gives the same arrays."""
        rng = np.random.default_rng([self.seed, self.n, self.p])
        X = BASES[self.base](rng, self.n, self.p)
        y = TARGETS[self.target](rng, _standardised(X))
        for twist in self.twists:
            X = TWISTS[twist](rng, X)
        with np.errstate(over="ignore", invalid="ignore"):
            X = np.ascontiguousarray(X.astype(self.dtype))
        if y.dtype == np.float64 and self.dtype == "float32":
            y = y.astype(np.float32)
        weights = None if self.weights is None else WEIGHTS[self.weights](rng, self.n)
        groups = rng.integers(0, 4, self.n)
        given = FORMS[self.form](X)
        return Data(given, TARGET_FORMS[self.target_form](y), _plain(given), y, weights, groups)


@dataclass(frozen=True)
class Data:
    """What the search is given (`X`, `y`), and the same as plain arrays (`matrix`, `labels`)."""

    X: Any
    y: Any
    matrix: np.ndarray
    labels: np.ndarray
    weights: Any
    groups: np.ndarray


def _plain(X: Any) -> np.ndarray:
    """The numbers that an estimator sees in `X`: a list or a mixed frame has another dtype than its parts."""
    plain = X.toarray() if sp.issparse(X) else np.asarray(X)
    return plain.astype(np.float64) if plain.dtype.kind not in "f" else plain


def _standardised(X: np.ndarray) -> np.ndarray:
    """Columns of unit variance, so that no target is ruled by one badly scaled column."""
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


# ------------------------------------------------------------------------------------------- the matrix

Base = Callable[[np.random.Generator, int, int], np.ndarray]


def _correlated(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    q, _ = np.linalg.qr(rng.normal(size=(p, p)))
    return rng.normal(size=(n, p)) * np.logspace(0, -4, p) @ q


def _low_rank(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    rank = max(1, p // 2)
    return rng.normal(size=(n, rank)) @ rng.normal(size=(rank, p))


def _hilbert(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return 1.0 / (1.0 + np.arange(n)[:, None] + np.arange(p))


def _near_ties(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Pairs of opposite rows along axes whose variances differ by what float32 can hardly tell."""
    q, _ = np.linalg.qr(rng.normal(size=(p, p)))
    rows = np.arange(n)
    along = (1.0 + 1e-5 * rng.normal(size=p))[rows // 2 % p] * (-1.0) ** rows
    return along[:, None] * q[rows // 2 % p]


BASES: dict[str, Base] = {
    "normal": lambda rng, n, p: rng.normal(size=(n, p)),
    "integers": lambda rng, n, p: rng.integers(-3, 4, (n, p)).astype(float),
    "one-hot": lambda rng, n, p: np.eye(p)[rng.integers(0, p, n)],
    "skewed": lambda rng, n, p: np.exp(2.0 * rng.normal(size=(n, p))),
    "bad scale": lambda rng, n, p: rng.normal(size=(n, p)) * np.logspace(-6, 6, p),
    "correlated": _correlated,
    "low rank": _low_rank,
    "hilbert": _hilbert,
    "near ties": _near_ties,
}


def _set_column(value: Callable[[np.random.Generator, np.ndarray], Any], column: int = 0) -> Callable:
    def twist(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
        X = X.copy()
        X[:, column] = value(rng, X)
        return X

    return twist


def _rare(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    """A one-hot column with a single one: constant in every training part that lacks that row."""
    return np.eye(1, len(X), int(rng.integers(len(X))))[0]


def _constant_outside_first_block(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    """Constant, and not zero, in the training part of the first of three or more unshuffled folds."""
    column = np.full(len(X), 0.1)
    head = max(1, len(X) // 3)
    column[:head] += rng.normal(size=head)
    return column


def _put(value: float) -> Callable:
    def twist(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
        X = X.copy()
        X[int(rng.integers(len(X))), int(rng.integers(X.shape[1]))] = value
        return X

    return twist


def _duplicate_rows(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    return X[np.arange(len(X)) % max(1, len(X) // 2)]


Twist = Callable[[np.random.Generator, np.ndarray], np.ndarray]
TWISTS: dict[str, Twist] = {
    "offset 1e5": lambda rng, X: X + 1e5,
    "offset columns": lambda rng, X: X + 1e5 * rng.normal(size=X.shape[1]),
    "duplicate column": _set_column(lambda rng, X: X[:, 0], -1),
    "scaled duplicate": _set_column(lambda rng, X: 3.0 * X[:, 0], -1),
    "near duplicate": _set_column(lambda rng, X: X[:, 0] + 1e-7 * rng.normal(size=len(X)), -1),
    "duplicate rows": _duplicate_rows,
    "constant column": _set_column(lambda rng, X: 0.1),
    "large constant column": _set_column(lambda rng, X: 1e5 + 0.1),
    "zero column": _set_column(lambda rng, X: 0.0),
    "nearly constant column": _set_column(lambda rng, X: 7.0 + 1e-7 * rng.normal(size=len(X))),
    "rare column": _set_column(_rare),
    "constant in a fold": _set_column(_constant_outside_first_block),
    "small": lambda rng, X: X * 1e-9,
    "large": lambda rng, X: X * 1e9,
    "nan": _put(np.nan),
    "inf": _put(np.inf),
}
# These make most estimators refuse, so they are drawn seldom.
REFUSED_TWISTS = ("nan", "inf")

# ------------------------------------------------------------------------------------------- the target


def _noisy(sd: float, outputs: int = 0) -> Callable[[np.random.Generator, np.ndarray], np.ndarray]:
    def target(rng: np.random.Generator, Z: np.ndarray) -> np.ndarray:
        shape = (outputs,) if outputs else ()
        w = rng.normal(size=(Z.shape[1], *shape))
        return Z @ w + sd * rng.normal(size=(len(Z), *shape))

    return target


def _one_constant_output(rng: np.random.Generator, Z: np.ndarray) -> np.ndarray:
    y = _noisy(0.5, 2)(rng, Z)
    y[:, 1] = 0.1
    return y


def _nan_target(rng: np.random.Generator, Z: np.ndarray) -> np.ndarray:
    y = _noisy(0.5)(rng, Z)
    y[int(rng.integers(len(y)))] = np.nan
    return y


def _parts(rng: np.random.Generator, Z: np.ndarray, *shares: float) -> np.ndarray:
    """Which part of the range a noisy value falls in, cut at quantiles."""
    values = _noisy(0.5)(rng, Z)
    return np.digitize(values, np.quantile(values, shares))


Target = Callable[[np.random.Generator, np.ndarray], np.ndarray]
TARGETS: dict[str, Target] = {
    "noisy": _noisy(0.5),
    "noise": lambda rng, Z: rng.normal(size=len(Z)),
    "r2 near one": _noisy(1e-3),
    "r2 very near one": _noisy(1e-6),
    "exact": _noisy(0.0),
    "offset": lambda rng, Z: 1e5 + _noisy(0.5)(rng, Z),
    "small variance": lambda rng, Z: 1.0 + 1e-6 * _noisy(0.5)(rng, Z),
    "constant": lambda rng, Z: np.full(len(Z), 0.1),
    "integer": lambda rng, Z: np.rint(3.0 * _noisy(0.5)(rng, Z)).astype(np.int64),
    "column": lambda rng, Z: _noisy(0.5)(rng, Z)[:, None],
    "two outputs": lambda rng, Z: _noisy(0.5, 2)(rng, Z) * np.array([1.0, 100.0]),
    "three outputs": _noisy(0.5, 3),
    "one constant output": _one_constant_output,
    "nan": _nan_target,
    "counts": lambda rng, Z: 1 + rng.poisson(np.exp(np.clip(_noisy(0.1)(rng, Z), -2, 3))),
    "text": lambda rng, Z: np.array(["low", "high"])[rng.integers(0, 2, len(Z))],
    "zero counts": lambda rng, Z: rng.poisson(np.exp(np.clip(_noisy(0.1)(rng, Z), -4, 2) - 0.5)),
    "sizes": lambda rng, Z: np.exp(np.clip(_noisy(0.3)(rng, Z), -3, 3)) + 1e-3,
    "large sizes": lambda rng, Z: 1e5 * np.exp(np.clip(_noisy(0.3)(rng, Z), -3, 3)),
    "two classes": lambda rng, Z: (_noisy(0.5)(rng, Z) > 0).astype(np.int64),
    "three classes": lambda rng, Z: rng.integers(0, 3, len(Z)),
    "named classes": lambda rng, Z: np.array(["a", "b", "c"])[rng.integers(0, 3, len(Z))],
    "rare class": lambda rng, Z: (np.arange(len(Z)) == len(Z) // 2).astype(np.int64),
    "separable": lambda rng, Z: _noisy(0.0)(rng, Z) > 0,
    "signs": lambda rng, Z: np.where(_noisy(1.0)(rng, Z) > 0, 1.0, -1.0),
    "ordered classes": lambda rng, Z: np.array(["low", "mid", "high", "top"])[_parts(rng, Z, 0.2, 0.5, 0.8)],
    "uneven classes": lambda rng, Z: np.array(["yes", "no", "maybe"])[_parts(rng, Z, 0.7, 0.92)],
    "one class": lambda rng, Z: np.ones(len(Z), dtype=np.int64),
}
REGRESSION = tuple(TARGETS)[: tuple(TARGETS).index("nan")]
CLASSES = tuple(TARGETS)[tuple(TARGETS).index("two classes") :]
REFUSED_TARGETS = ("nan", "text")

# ------------------------------------------------------------------------------------------- the forms


def _strided(X: np.ndarray) -> np.ndarray:
    wide = np.zeros((2 * len(X), 3 * X.shape[1]), dtype=X.dtype)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def _read_only(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


def _names(X: np.ndarray) -> list[str]:
    return [f"x{j}" for j in range(X.shape[1])]


def _mixed_frame(X: np.ndarray) -> pd.DataFrame:
    frame = pd.DataFrame(X, columns=_names(X), index=np.arange(len(X))[::-1])
    return frame.assign(x0=frame["x0"].astype("float32"))


FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "C": lambda X: X,
    "Fortran": np.asfortranarray,
    "strided": _strided,
    "reversed": lambda X: X[::-1].copy()[::-1],
    "read-only": _read_only,
    "pandas": lambda X: pd.DataFrame(X, columns=_names(X)),
    "mixed pandas": _mixed_frame,
    "polars": lambda X: pl.DataFrame({name: X[:, j] for j, name in enumerate(_names(X))}),
    "list": lambda X: X.tolist(),
    "object": lambda X: X.astype(object),
    "csr": sp.csr_array,
}
TARGET_FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "array": lambda y: y,
    "list": lambda y: y.tolist(),
    "pandas": lambda y: pd.Series(y) if y.ndim == 1 else pd.DataFrame(y),
    "read-only": _read_only,
    "strided": lambda y: np.repeat(y, 2, axis=0)[::2],
    "short": lambda y: y[:-1],
}
WEIGHTS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "random": lambda rng, n: rng.uniform(0.5, 1.5, n),
    "ones": lambda rng, n: np.ones(n),
    "integer": lambda rng, n: rng.integers(1, 4, n),
    "zeros": lambda rng, n: rng.uniform(0.5, 1.5, n) * (rng.random(n) < 0.7),
    "mostly zero": lambda rng, n: (np.arange(n) % 4 == 0).astype(float),
    "huge range": lambda rng, n: 10.0 ** rng.uniform(-6, 6, n),
    "float32": lambda rng, n: rng.uniform(0.5, 1.5, n).astype(np.float32),
    "list": lambda rng, n: rng.uniform(0.5, 1.5, n).tolist(),
    "negative": lambda rng, n: np.where(np.arange(n) == n // 2, -1.0, 1.0),
    "nan": lambda rng, n: np.where(np.arange(n) == n // 2, np.nan, 1.0),
}
REFUSED_WEIGHTS = ("negative", "nan")

# ------------------------------------------------------------------------------------------- strategies


def mostly(draw: st.DrawFn, plain: Any, others: tuple, odds: int = 2) -> Any:
    """`plain` in about `odds` of `odds + 1` draws, and what hypothesis shrinks to."""
    return plain if draw(st.integers(0, odds)) < odds else draw(st.sampled_from(others))


def _shape(draw: st.DrawFn) -> tuple[int, int]:
    kind = mostly(draw, "usual", ("tiny", "tall", "wide"), odds=3)
    if kind == "tiny":
        return draw(st.integers(5, 9)), draw(st.integers(1, 3))
    if kind == "tall":
        return draw(st.integers(60, 120)), draw(st.integers(1, 5))
    if kind == "wide":
        n = draw(st.integers(6, 14))
        return n, n + draw(st.integers(0, 5))
    return draw(st.integers(12, 40)), draw(st.integers(1, 7))


@st.composite
def recipes(draw: st.DrawFn, targets: tuple[str, ...] = REGRESSION) -> Recipe:
    """Data for targets of one kind; about one example in twenty is of the kind estimators refuse."""
    n, p = _shape(draw)
    refuse = mostly(draw, None, ("X", "y", "weights", "length"), odds=24)
    twists = [t for t in TWISTS if t not in REFUSED_TWISTS]
    twist = draw(st.lists(st.sampled_from(twists), max_size=2, unique=True))
    if refuse == "X":
        twist.append(draw(st.sampled_from(REFUSED_TWISTS)))
    target = draw(st.sampled_from(REFUSED_TARGETS if refuse == "y" else targets))
    whole = tuple(form for form in TARGET_FORMS if form != "short")
    accepted = tuple(w for w in WEIGHTS if w not in REFUSED_WEIGHTS)
    weights = draw(st.sampled_from(REFUSED_WEIGHTS)) if refuse == "weights" else mostly(draw, None, accepted)
    return Recipe(
        n=n,
        p=p,
        seed=draw(st.integers(0, 2**16)),
        base=mostly(draw, "normal", tuple(BASES)),
        twists=tuple(twist),
        target=target,
        dtype=_dtype(draw, twist),
        form=mostly(draw, "C", tuple(FORMS)),
        target_form="short" if refuse == "length" else mostly(draw, "array", whole, odds=4),
        weights=weights,
    )


def _dtype(draw: st.DrawFn, twists: list[str]) -> str:
    """Integers only where the twists leave values that an integer can hold."""
    integer = () if {"nan", "inf"} & set(twists) else ("int64", "int32")
    return mostly(draw, "float64", ("float32", *integer), odds=3)
