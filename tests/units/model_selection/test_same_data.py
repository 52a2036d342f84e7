"""Whether somebody wrote into a copy: every kind of data, and every kind of change that can be read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn import model_selection as sk
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeRegressor

from manyfit import model_selection as ours
from manyfit.model_selection.sharing.rows._own_rows import has_mutable_items, own_copy
from manyfit.model_selection.sharing.rows._same_data import unchanged
from tests._same_results import assert_same_results, both

LONG = "a text that is longer than a pointer"
WORDS = ["b", LONG, "a", ""]
TEXTS = np.array(WORDS, dtype=np.dtypes.StringDType())
MISSING = np.array(["b", np.nan, LONG, "a"], dtype=np.dtypes.StringDType(na_object=np.nan))
NONE = np.array(["b", None, LONG, "a"], dtype=np.dtypes.StringDType(na_object=None))
OBJECTS = np.array([1, None, np.nan, "b", 0.0, True, pd.NA, 1.5], dtype=object)
RECORDS = np.array([(1.0, "a", (1, None)), (np.nan, LONG, (2, "b"))], dtype="f8, O, (2,)O")
PLAIN_RECORDS = np.array([(1.0, 2), (np.nan, 3)], dtype="f8, i4")
DATES = pd.date_range("2020-01-01", periods=4)
COLUMNS = {
    "floats": [0.0, 1.0, np.nan, -0.0],
    "objects": np.array([1, None, np.nan, "b"], dtype=object),
    "texts": WORDS,
    "masked": pd.array([0.0, 1.0, None, 2.0], dtype="Float64"),
    "integers": pd.array([0, 1, None, 2], dtype="Int64"),
    "categories": pd.Categorical(["b", "a", "b", None], categories=["a", "b", "c"]),
    "dates": DATES,
    "zoned": DATES.tz_localize("UTC"),
    "periods": DATES.to_period("D"),
    "sparse": pd.arrays.SparseArray([0.0, 0.0, 1.0, np.nan]),
    "intervals": pd.interval_range(0, 4),
    "booleans": [True, False, True, True],
}


def frame():
    return pd.DataFrame(COLUMNS)


KINDS = {
    "floats": lambda: np.array([[0.0, np.nan], [1.0, np.inf]]),
    "columns": lambda: np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "texts": TEXTS.copy,
    "texts of two columns": lambda: np.stack([TEXTS, TEXTS], axis=1),
    "texts with NaN": MISSING.copy,
    "texts with None": NONE.copy,
    "objects": OBJECTS.copy,
    "records": RECORDS.copy,
    "plain records": PLAIN_RECORDS.copy,
    "sparse": lambda: scipy.sparse.csr_array(np.eye(3)),
    "list": lambda: ["a", LONG, [1]],
    "frame": frame,
    "labels": lambda: frame().set_index(pd.Index(["a", 1, None, np.nan], dtype=object)),
    "texts as labels": lambda: frame().set_index(pd.Index(WORDS)),
    "two labels": lambda: frame().set_index(["texts", "integers"]),
    "dates as labels": lambda: frame().set_index(DATES),
    "odd names": lambda: pd.DataFrame(np.eye(3), columns=pd.Index(["a", 1, (2, 3)], dtype=object)),
    "gaps": lambda: pd.DataFrame(np.arange(24.0).reshape(6, 4)[::2, ::2], columns=["a", "b"]),
    "records in a frame": lambda: pd.DataFrame({"a": OBJECTS, "b": OBJECTS[::-1]}),
    "series": lambda: frame()["objects"],
    "polars": lambda: pl.DataFrame({"a": [0.0, None, float("nan")], "b": ["x", None, LONG]}),
    **{f"column of {name}": lambda name=name: frame()[[name]] for name in COLUMNS},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_is_what_it_was_copied_from(kind):
    X = KINDS[kind]()
    own = own_copy(X)
    assert own is not X and unchanged(X, own) and unchanged(X, own_copy(own))


def put(where, value, by=None):
    def write(X):
        (X if by is None else getattr(X, by))[where] = value

    return write


def reorder(X):
    X["categories"] = X["categories"].cat.reorder_categories(["b", "a", "c"])


def note(X):
    X.attrs["seen"] = True


def rename(X):
    X.name = "another"


def relabel(X):
    X.index = pd.RangeIndex(1, 1 + len(X))


def add_a_column(X):
    X["more"] = 1.0


CHANGES = [
    ("floats", put((0, 0), -0.0)),
    ("floats", put((0, 1), 1.0)),
    ("texts", put(0, "c")),
    ("texts", put(1, LONG.replace("a text", "b text"))),
    ("texts", put(3, "b")),
    ("texts with NaN", put(1, "b")),
    ("texts with NaN", put(1, "nan")),
    ("texts with NaN", put(0, np.nan)),
    ("texts with None", put(1, "None")),
    ("texts with None", put(0, None)),
    ("objects", put(1, np.nan)),
    ("objects", put(0, True)),
    ("objects", put(0, 1.0)),
    ("objects", put(4, -0.0)),
    ("plain records", put(0, (1.0, 4))),
    ("list", put(0, "b")),
    ("frame", put((1, "objects"), np.nan, "loc")),
    ("frame", put((0, "objects"), 1.0, "loc")),
    ("frame", put((0, "objects"), True, "loc")),
    ("frame", put((0, "floats"), -0.0, "loc")),
    ("frame", put((0, "masked"), -0.0, "loc")),
    ("frame", put((0, "integers"), None, "loc")),
    ("frame", put((0, "texts"), "c", "loc")),
    ("frame", put((0, "categories"), "c", "loc")),
    ("frame", put((0, "zoned"), DATES.tz_localize("UTC")[1], "loc")),
    ("frame", reorder),
    ("frame", note),
    ("frame", relabel),
    ("frame", add_a_column),
    ("labels", relabel),
    ("gaps", note),
    ("gaps", put((0, 0), -0.0, "iloc")),
    ("series", rename),
    ("series", put(0, 1.0, "iloc")),
    ("polars", put((0, "a"), -0.0)),
    ("polars", put((0, "b"), None)),
]


@pytest.mark.parametrize(("kind", "change"), CHANGES)
def test_a_change_is_seen(kind, change):
    X = KINDS[kind]()
    own = own_copy(X)
    change(own)
    assert not unchanged(X, own) and unchanged(X, own_copy(X))


@pytest.mark.parametrize(("field", "value"), [("f0", 2.0), ("f1", "b"), ("f2", None)])
def test_a_change_in_a_record_is_seen(field, value):
    own = own_copy(RECORDS)
    own[field][0] = value
    assert not unchanged(RECORDS, own)


def test_notes_of_a_frame_are_the_copys_own():
    X = KINDS["gaps"]()
    X.attrs["seen"] = []
    own = own_copy(X)
    assert unchanged(X, own)
    own.attrs["seen"].append(1)
    assert not unchanged(X, own)


def test_what_cannot_be_compared_counts_as_written():
    X = pd.DataFrame({"a": [1.0]})
    X.attrs["rest"] = (item for item in ())  # without content
    assert not unchanged(X, X)
    assert not unchanged(np.zeros(2), scipy.sparse.csr_array(np.zeros((1, 2))))


def test_items_of_records_may_be_changed():
    assert not has_mutable_items(RECORDS) and not has_mutable_items(TEXTS)
    lists = np.array([(1.0, [1])], dtype="f8, O")
    assert has_mutable_items(lists)


# The same in a search


class Writes(TransformerMixin, BaseEstimator):
    def __init__(self, change):
        self.change = change

    def fit(self, X, y=None):
        self.change(X)
        return self

    def transform(self, X):
        return np.zeros((len(X), 1))


def codes(X):
    """A number for each item, of which a tree can tell them."""
    rows = X.to_numpy() if isinstance(X, pd.DataFrame) else X
    rows = rows.tolist() if rows.dtype.names is None else [tuple(row) for row in rows.tolist()]
    return np.array([[sum(map(ord, f"{type(v)}{v}")) for v in row] for row in rows], dtype=float)


def rows_of(values):
    return np.array([(values[i % 4], float(i)) for i in range(60)], dtype=[("a", "O"), ("b", "f8")])


def blank(X):
    X[:, 0] = "c"


def blank_records(X):
    X["a"] = "c"


def fill(X):
    X.loc[X["a"].isna(), "a"] = np.nan


def number(X):
    X.loc[X["a"] == 1, "a"] = 1.0


SEARCHED = {
    "texts": (blank, np.array([[WORDS[i % 4], "b"] for i in range(60)], dtype=np.dtypes.StringDType())),
    "records": (blank_records, rows_of(WORDS)),
    "None": (fill, pd.DataFrame({"a": np.array([("b", None, "a", 1)[i % 4] for i in range(60)], object)})),
    "1": (number, pd.DataFrame({"a": np.array([("b", None, "a", 1)[i % 4] for i in range(60)], object)})),
}


@pytest.mark.parametrize("kind", SEARCHED)
def test_what_a_step_writes_is_read_as_in_scikit_learn(kind):
    change, X = SEARCHED[kind]
    y = np.random.default_rng(0).permutation(4)[np.arange(60) % 4].astype(float)
    model = make_pipeline(
        make_union(Writes(change), FunctionTransformer(codes)), DecisionTreeRegressor(random_state=0)
    )
    grid = {"decisiontreeregressor__max_depth": [2, 4]}
    searches = [module.GridSearchCV(model, grid, cv=3, refit=False).fit(X.copy(), y) for module in (ours, sk)]
    assert_same_results(*searches)


def lists(X):
    rows = np.empty((len(X), 1), dtype=object)
    rows[:, 0] = X.tolist()
    return rows


def frame_of_lists(X):
    return pd.DataFrame({"a": lists(X)[:, 0]})


class ChangesItems(TransformerMixin, BaseEstimator):
    def __init__(self, by=1.0):
        self.by = by

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        rows = X.to_numpy() if isinstance(X, pd.DataFrame) else X
        for (row,) in rows:
            row[0] *= -self.by
            row.append(row.pop(0))
        return np.array(rows[:, 0].tolist())


@pytest.mark.parametrize("make", [lists, frame_of_lists])
def test_items_that_a_step_made_are_each_settings_own(make):
    X = np.random.default_rng(0).normal(size=(60, 3))
    tree = DecisionTreeRegressor(max_depth=3, random_state=0)
    model = make_pipeline(FunctionTransformer(make), ChangesItems(), tree)
    both(model, {"changesitems__by": [1.0, 2.0, 3.0]}, X, X @ [3.0, 1.0, 0.2], cv=3)
