"""Searches over frames with numbers, gaps and categories, behind steps that read columns."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)

from tests.differential._recipe import mostly
from tests.differential._splits import Splits, splits

Rng = np.random.Generator
Column = Callable[[Rng, int], Any]

# ------------------------------------------------------------------------------------------- the columns


def _with(values: np.ndarray, rows: Any, gap: Any) -> np.ndarray:
    values = values.astype(object if gap is None or isinstance(gap, str) else values.dtype)
    values[rows] = gap
    return values


def _third(n: int) -> slice:
    return slice(0, n // 3)


def _rare(n: int) -> slice:
    return slice(n - 1, n)


def _beside_third(n: int) -> slice:
    return slice(n // 3, n)


def _words(rng: Rng, n: int) -> np.ndarray:
    return rng.choice(np.array(["a", "bb", "c", "Ä"], dtype=object), n, p=[0.5, 0.3, 0.15, 0.05])


def _some(rng: Rng, n: int) -> np.ndarray:
    return rng.random(n) < 0.2


NUMBERS: dict[str, Column] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "gaps": lambda rng, n: _with(rng.normal(2.0, 1.0, n), _some(rng, n), np.nan),
    "positive": lambda rng, n: rng.lognormal(0.0, 1.0, n),
    "ties": lambda rng, n: _with(rng.integers(0, 3, n) / 4.0, _some(rng, n), np.nan),
    "gaps in one fold": lambda rng, n: _with(rng.normal(size=n), _third(n), np.nan),
    "empty but in one fold": lambda rng, n: _with(rng.normal(size=n), _beside_third(n), np.nan),
    "one gap": lambda rng, n: _with(rng.normal(size=n), _rare(n), np.nan),
    "empty": lambda rng, n: np.full(n, np.nan),
    "constant": lambda rng, n: np.full(n, 0.1),
    "constant but in one fold": lambda rng, n: _with(np.full(n, 3.0), _third(n), 1.0),
    "constant and gaps": lambda rng, n: _with(np.full(n, 5.0), _some(rng, n), np.nan),
    "offset": lambda rng, n: _with(1e6 + rng.normal(size=n), _some(rng, n), np.nan),
    "float32": lambda rng, n: rng.normal(size=n).astype(np.float32),
    "integers": lambda rng, n: rng.integers(-2, 3, n),
    "bools": lambda rng, n: rng.random(n) < 0.5,
    "Int64": lambda rng, n: pd.array(rng.integers(0, 4, n), dtype="Int64"),
    "Int64 and gaps": lambda rng, n: pd.arrays.IntegerArray(rng.integers(0, 4, n), _some(rng, n)),
    "Float64 and gaps": lambda rng, n: pd.arrays.FloatingArray(rng.normal(size=n), _some(rng, n)),
    "boolean and gaps": lambda rng, n: pd.arrays.BooleanArray(rng.random(n) < 0.5, _some(rng, n)),
    "Arrow": lambda rng, n: pd.array(rng.normal(size=n), dtype="double[pyarrow]"),
    "Arrow and gaps": lambda rng, n: pd.array(
        [None if gap else v for gap, v in zip(_some(rng, n), rng.normal(size=n), strict=True)],
        dtype="double[pyarrow]",
    ),
    "infinite": lambda rng, n: _with(rng.normal(size=n), _rare(n), np.inf),
    "objects": lambda rng, n: _with(rng.normal(size=n), _some(rng, n), None),
}
WORDS: dict[str, Column] = {
    "words": _words,
    "unseen": lambda rng, n: _with(_words(rng, n), _third(n), "new"),
    "rare": lambda rng, n: _with(_words(rng, n), _rare(n), "rare"),
    "NaN": lambda rng, n: _with(_words(rng, n), _some(rng, n), np.nan),
    "None": lambda rng, n: _with(_words(rng, n), _some(rng, n), None),
    "NaN and None": lambda rng, n: _with(_with(_words(rng, n), _some(rng, n), np.nan), _some(rng, n), None),
    "NaN in one fold": lambda rng, n: _with(_words(rng, n), _third(n), np.nan),
    "pandas.NA": lambda rng, n: _with(_words(rng, n), _some(rng, n), pd.NA),
    "one word": lambda rng, n: np.full(n, "a", dtype=object),
    "two words": lambda rng, n: rng.choice(np.array(["no", "yes"], dtype=object), n),
    "several types": lambda rng, n: _with(_words(rng, n), _some(rng, n), 3),
    "strings": lambda rng, n: pd.array(_with(_words(rng, n), _some(rng, n), None), dtype="string"),
    "Arrow strings": lambda rng, n: pd.array(_words(rng, n), dtype="string[pyarrow]"),
    "category": lambda rng, n: pd.Categorical(_words(rng, n), ["unused", "c", "bb", "a", "Ä"], ordered=True),
    "category and gaps": lambda rng, n: pd.Categorical(_with(_words(rng, n), _some(rng, n), None)),
    "numbered category": lambda rng, n: pd.Categorical(rng.integers(0, 3, n)),
    "small integers": lambda rng, n: rng.integers(0, 3, n),
    "bools": lambda rng, n: rng.random(n) < 0.5,
    "objects of integers": lambda rng, n: rng.integers(0, 3, n).astype(object),
    "objects of bools": lambda rng, n: (rng.random(n) < 0.5).astype(object),
    "floats and gaps": lambda rng, n: _with(rng.integers(0, 3, n) * 1.0, _some(rng, n), np.nan),
    "dates": lambda rng, n: pd.to_datetime(rng.choice([datetime.date(2020, 1, d) for d in (1, 2, 3)], n)),
    "tuples": lambda rng, n: pd.Series([(int(i),) for i in rng.integers(0, 2, n)], dtype=object).to_numpy(),
}
REFUSED_NUMBERS = ("infinite", "objects", "empty", "boolean and gaps", "Int64 and gaps")
REFUSED_WORDS = ("several types", "pandas.NA", "NaN and None", "dates", "tuples", "strings")
FORMS = ("pandas", "polars", "object", "float", "integer names", "names of two types", "one name twice")
WEIGHTS: dict[str, Callable[[Rng, int], np.ndarray]] = {
    "random": lambda rng, n: rng.uniform(0.5, 2.0, n),
    "zeros": lambda rng, n: (rng.random(n) < 0.7) * 1.0,
}


@dataclass(frozen=True)
class FrameRecipe:
    """The columns of a frame by name; `build` makes it."""

    n: int
    numbers: tuple[str, ...]
    words: tuple[str, ...]
    form: str = "pandas"
    seed: int = 0
    classes: int = 0
    weights: str | None = None

    @property
    def names(self) -> list[str]:
        """Names of the columns, numbers first."""
        return [f"n{j}" for j in range(len(self.numbers))] + [f"w{j}" for j in range(len(self.words))]

    def build(self) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """X, y and weights; the same recipe gives the same data."""
        rng = np.random.default_rng(self.seed)
        made = [NUMBERS[kind](rng, self.n) for kind in self.numbers]
        made += [WORDS[kind](rng, self.n) for kind in self.words]
        frame = pd.DataFrame(dict(zip(self.names, made, strict=True)))
        y = rng.normal(size=self.n)
        for column in frame:
            codes = pd.factorize(frame[column].astype(str))[0]
            y = y + np.where(codes % 3 == 0, 1.0, -0.5)
        if self.classes:
            y = np.digitize(y, np.quantile(y, np.linspace(0, 1, self.classes + 1)[1:-1]))
        weights = None if self.weights is None else WEIGHTS[self.weights](rng, self.n)
        return self._formed(frame), y, weights

    def _formed(self, frame: pd.DataFrame) -> Any:
        if self.form == "polars":
            return pl.DataFrame({name: pl.Series(name, _plain(frame[name]), strict=False) for name in frame})
        if self.form == "object":
            return frame.to_numpy(dtype=object)
        if self.form == "float":
            return frame[self.names[: len(self.numbers)]].to_numpy(dtype=np.float64, na_value=np.nan)
        if self.form == "integer names":
            return frame.set_axis(range(frame.shape[1]), axis=1)
        if self.form == "names of two types":
            return frame.rename(columns={self.names[0]: 0})
        if self.form == "one name twice":
            return frame.set_axis([self.names[0], *self.names[:-1]], axis=1)
        return frame


def _plain(column: pd.Series) -> list[Any]:
    values = column.astype(object).tolist()
    return [None if v is pd.NA or v is pd.NaT else v for v in values]


# --------------------------------------------------------------------------------------------- the steps

IMPUTERS = (
    SimpleImputer(),
    SimpleImputer(strategy="median"),
    SimpleImputer(strategy="most_frequent"),
    SimpleImputer(strategy="constant"),
    SimpleImputer(strategy="constant", fill_value=-2),
    SimpleImputer(add_indicator=True),
    SimpleImputer(keep_empty_features=True),
    SimpleImputer(missing_values=0),
)
SCALERS = (
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    MinMaxScaler(),
    MinMaxScaler((-3, 5)),
    MinMaxScaler(clip=True),
    MaxAbsScaler(),
    RobustScaler(),
    RobustScaler(quantile_range=(5.0, 60.0), unit_variance=True),
    FunctionTransformer(np.log1p),
    FunctionTransformer(np.tanh),
    FunctionTransformer(),
    Binarizer(threshold=0.5),
    KBinsDiscretizer(3, encode="ordinal", strategy="uniform"),
    KBinsDiscretizer(2, encode="onehot-dense", quantile_method="averaged_inverted_cdf"),
    KBinsDiscretizer(4, encode="onehot", quantile_method="linear"),
    PCA(1),
    VarianceThreshold(),
    "passthrough",
)
# Steps that make columns of others, and learn nothing.
MAKERS = (
    PolynomialFeatures(),
    PolynomialFeatures(3, include_bias=False),
    PolynomialFeatures((2, 3), interaction_only=True),
    PolynomialFeatures(2, order="F"),
    Normalizer(),
    Normalizer("l1"),
    Normalizer("max"),
    SplineTransformer(degree=2, knots=np.array([[-2.0], [0.0], [1.0], [3.0]])),
    SplineTransformer(knots=np.array([[-1.0] * 2, [0.5] * 2, [2.0] * 2]), extrapolation="linear"),
    SplineTransformer(
        degree=1, knots=np.array([[-1.0], [2.0]]), extrapolation="continue", include_bias=False
    ),
    SplineTransformer(degree=2, knots="quantile"),
)
WORD_IMPUTERS = (
    "passthrough",
    SimpleImputer(strategy="most_frequent"),
    SimpleImputer(strategy="constant"),
    SimpleImputer(strategy="constant", fill_value="bb"),
    SimpleImputer(strategy="most_frequent", missing_values=None),
)
ENCODERS = (
    OneHotEncoder(handle_unknown="ignore"),
    OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    OneHotEncoder(),
    OneHotEncoder(drop="first"),
    OneHotEncoder(drop="if_binary", handle_unknown="ignore"),
    OneHotEncoder(min_frequency=4, handle_unknown="infrequent_if_exist"),
    OneHotEncoder(min_frequency=0.2, handle_unknown="ignore", sparse_output=False),
    OneHotEncoder(max_categories=2, handle_unknown="infrequent_if_exist", sparse_output=False),
    OneHotEncoder(max_categories=1, handle_unknown="warn"),
    OneHotEncoder(max_categories=3, drop="first", handle_unknown="infrequent_if_exist"),
    OneHotEncoder(dtype=np.float32, handle_unknown="ignore"),
    OneHotEncoder(categories=[["bb", "a", "nowhere"]], handle_unknown="ignore", sparse_output=False),
    OneHotEncoder(categories=[["a", "bb", "c", "Ä", "new", "rare", np.nan]], min_frequency=3),
    OneHotEncoder(categories=[[0, 1, 2]], dtype=int, handle_unknown="infrequent_if_exist"),
    OneHotEncoder(drop=["a"], handle_unknown="ignore", sparse_output=False),
    OneHotEncoder(drop="first", max_categories=2, dtype=np.int8, handle_unknown="infrequent_if_exist"),
    OrdinalEncoder(categories=[["c", "bb", "a"]], handle_unknown="use_encoded_value", unknown_value=-1),
    OrdinalEncoder(max_categories=2, handle_unknown="use_encoded_value", unknown_value=1),
    OrdinalEncoder(dtype=np.uint8, handle_unknown="use_encoded_value", unknown_value=7),
    OrdinalEncoder(),
    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan),
    OrdinalEncoder(encoded_missing_value=-3, handle_unknown="use_encoded_value", unknown_value=9),
    OrdinalEncoder(min_frequency=3, handle_unknown="use_encoded_value", unknown_value=-1),
)


@dataclass(frozen=True)
class FrameProblem:
    """A search over a frame, without the class of search."""

    recipe: FrameRecipe
    estimator: Any
    grid: dict[str, list[Any]]
    splits: Splits
    options: dict[str, Any]


def _kind(draw: st.DrawFn, kinds: dict[str, Column], refused: tuple[str, ...]) -> str:
    """A kind of column; seldom one that most steps refuse."""
    return mostly(
        draw, draw(st.sampled_from([kind for kind in kinds if kind not in refused])), refused, odds=19
    )


def _number_steps(draw: st.DrawFn) -> Any:
    steps = [mostly(draw, IMPUTERS[0], IMPUTERS, odds=1)]
    steps += draw(st.lists(st.sampled_from(SCALERS), max_size=2))
    if draw(st.integers(0, 2)) == 0:
        steps.insert(draw(st.integers(0, len(steps))), draw(st.sampled_from(MAKERS)))
    if draw(st.booleans()):
        steps.reverse()
    return make_pipeline(*steps) if draw(st.booleans()) else steps[0]


def _word_steps(draw: st.DrawFn) -> Any:
    first = mostly(draw, "passthrough", WORD_IMPUTERS, odds=1)
    encoder = mostly(draw, ENCODERS[1], ENCODERS, odds=1)
    return encoder if first == "passthrough" else make_pipeline(first, encoder)


def _chosen(draw: st.DrawFn, recipe: FrameRecipe, start: int, stop: int) -> Any:
    """Columns from `start` to `stop`, by one of the ways to name them."""
    width, by_name = len(recipe.names), recipe.form in ("pandas", "polars")
    mask = (np.arange(width) >= start) & (np.arange(width) < stop)
    ways = [list(range(start, stop)), slice(start, stop), mask, [j - width for j in range(start, stop)][::-1]]
    if recipe.form == "float":
        return draw(st.sampled_from(ways[:2]))
    if by_name:
        ways += [recipe.names[start:stop], recipe.names[start:stop][::-1]]
    if recipe.form == "pandas":
        ways.append(make_column_selector(dtype_include=None if start else "number", pattern=None))
        ways.append(make_column_selector("w" if start else "n"))
    return draw(st.sampled_from(ways))


def _columns(draw: st.DrawFn, recipe: FrameRecipe) -> ColumnTransformer:
    n, width = len(recipe.numbers), len(recipe.names)
    parts = []
    if n:
        parts.append(("numbers", _number_steps(draw), _chosen(draw, recipe, 0, n)))
    if width > n and recipe.form != "float":
        parts.append(("words", _word_steps(draw), _chosen(draw, recipe, n, width)))
    if n and draw(st.integers(0, 4)) == 0:
        parts.append(("again", _number_steps(draw), _chosen(draw, recipe, 0, 1)))
    remainder = mostly(draw, "drop", ("passthrough", SimpleImputer()), odds=2)
    threshold = mostly(draw, 0.3, (0.0, 1.0), odds=2)
    weights = mostly(draw, None, ({"numbers": 2.0}, {"remainder": 0.5}), odds=9)
    columns = ColumnTransformer(
        parts, remainder=remainder, sparse_threshold=threshold, transformer_weights=weights
    )
    return columns.set_output(transform="pandas") if draw(st.integers(0, 7)) == 0 else columns


@st.composite
def frame_problems(draw: st.DrawFn, model: str) -> FrameProblem:
    """A search over a frame, with "ridge" or "logistic" as the last step."""
    # Iterations of scikit-learn end far from the optimum where columns are far from zero.
    numbers = {kind: NUMBERS[kind] for kind in NUMBERS if (kind, model) != ("offset", "logistic")}
    recipe = FrameRecipe(
        n=draw(st.integers(30, 60)),
        numbers=tuple(_kind(draw, numbers, REFUSED_NUMBERS) for _ in range(draw(st.integers(1, 3)))),
        words=tuple(_kind(draw, WORDS, REFUSED_WORDS) for _ in range(draw(st.integers(0, 2)))),
        form=mostly(draw, "pandas", FORMS, odds=2),
        seed=draw(st.integers(0, 999)),
        classes=draw(st.integers(2, 3)) if model == "logistic" else 0,
        weights=mostly(draw, None, tuple(WEIGHTS), odds=3),
    )
    kind = mostly(draw, "columns", ("union", "chain"), odds=3)
    if kind == "columns":
        first = _columns(draw, recipe)
    else:
        first = (
            make_union(_number_steps(draw), _number_steps(draw)) if kind == "union" else _number_steps(draw)
        )
    if draw(st.integers(0, 3)) == 0:
        first = Pipeline([("inner", first)])
    steps: list[tuple[str, Any]] = [("first", first)]
    if draw(st.integers(0, 2)) == 0:
        steps.append(("second", draw(st.sampled_from((*SCALERS, *IMPUTERS, *MAKERS)))))
    grid: dict[str, list[Any]] = {}
    if model == "ridge":
        solver = mostly(draw, "auto", ("cholesky", "svd", "sparse_cg"), odds=3)
        last = mostly(draw, Ridge(solver=solver), (LinearRegression(),), odds=6)
        grid["last__fit_intercept"] = mostly(draw, [True], ([True, False],), odds=3)
        if type(last) is Ridge:
            grid["last__alpha"] = [0.1, 10.0]
    else:
        last = LogisticRegression(tol=1e-10, max_iter=2000)
        grid["last__C"] = [0.1, 1.0]
    if kind == "columns" and type(first) is ColumnTransformer and draw(st.integers(0, 3)) == 0:
        grid[f"first__{first.transformers[-1][0]}"] = [first.transformers[-1][1], "drop"]
    options = {
        "scoring": ["r2", "neg_mean_squared_error"] if model == "ridge" else "neg_log_loss",
        "refit": False,
        "return_train_score": draw(st.booleans()),
        "error_score": mostly(draw, np.nan, (0.5, "raise"), odds=3),
    }
    return FrameProblem(
        recipe, Pipeline([*steps, ("last", last)]), grid, draw(splits(classes=model == "logistic")), options
    )
