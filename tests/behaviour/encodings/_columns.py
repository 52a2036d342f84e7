"""A frame with numbers, gaps and categories, and searches over it."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    OneHotEncoder,
    StandardScaler,
)

from tests._same_results import both

N = 240
NUMBERS, WORDS = ["age", "income", "debt"], ["city", "job"]


def make_frame(n=N):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(5.0, 2.0, n),
            "income": rng.lognormal(0.0, 1.0, n),
            "debt": rng.normal(4.0, 2.0, n),
            "rooms": rng.integers(1, 6, n),
            "owner": rng.random(n) < 0.5,
            "city": rng.choice(["Rome", "Oslo", "Bern", "Köln"], n, p=[0.5, 0.3, 0.15, 0.05]),
            "job": rng.choice(["a", "b"], n),
        }
    )
    for name in ("age", "debt"):
        frame.loc[rng.random(n) < 0.1, name] = np.nan
    return frame


FRAME = make_frame()


def make_targets(frame):
    cities = frame["city"].map({"Rome": 3.0, "Oslo": 0.0, "Bern": -2.0, "Köln": 5.0})
    noise = np.random.default_rng(1).normal(size=len(frame))
    return (frame["age"].fillna(3.0) + cities + noise).to_numpy()


Y = make_targets(FRAME)
RIDGE = {"ridge__alpha": [0.1, 100.0]}


def one_hot(**params):
    return OneHotEncoder(**{"handle_unknown": "ignore", "sparse_output": False, **params})


def imputed(*steps, **params):
    return make_pipeline(SimpleImputer(**params), *steps)


def columns(number=None, word=None, **params):
    number = imputed(StandardScaler()) if number is None else number
    word = one_hot() if word is None else word
    return ColumnTransformer([("numbers", number, NUMBERS), ("words", word, WORDS)], **params)


def assert_served(model, X=FRAME, y=Y, grid=RIDGE, **params):
    """The search made no single fit, and has scikit-learn's scores."""
    search = both(model, grid, X, y, **{"refit": False, "cv": 3, **params})
    assert search.report_.fits_done == 0, search.plan(X, y)
    return search
