"""Options of the steps that read columns, which a search over a frame shares as it does their defaults."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Lasso, Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

from manyfit.model_selection import GridSearchCV
from tests._covering import spread
from tests._same_results import both

N = 200
rng = np.random.default_rng(0)
LAST = np.arange(N) >= N - N // 5
FRAME = pd.DataFrame(
    {
        "age": rng.normal(5.0, 2.0, N),
        "income": rng.lognormal(0.0, 1.0, N),
        "rooms": rng.integers(1, 6, N),
        "size": rng.choice([1.0, 2.5, 4.0], N, p=[0.6, 0.3, 0.1]),
        "city": rng.choice(np.array(["a", "b", "c", "d"], dtype=object), N, p=[0.5, 0.3, 0.15, 0.05]),
        "job": rng.choice(np.array(["x", "y"], dtype=object), N),
    }
)
FRAME.loc[rng.random(N) < 0.1, "age"] = np.nan
FRAME.loc[rng.random(N) < 0.1, "size"] = np.nan
FRAME.loc[rng.random(N) < 0.1, "city"] = np.nan
FRAME.loc[LAST & (rng.random(N) < 0.3), "job"] = "z"  # a category of the last fold only
Y = FRAME["income"].to_numpy() + (FRAME["city"] == "a") + rng.normal(size=N)
RIDGE = {"ridge__alpha": [1.0, 10.0]}
CV = KFold(2)
CITIES, JOBS = ["a", "b", "c", "d", np.nan], ["z", "y", "x", "nobody"]


def one_hot(**params):
    return OneHotEncoder(**{"handle_unknown": "ignore", "sparse_output": False, **params})


def ordinal(**params):
    return OrdinalEncoder(
        **{"handle_unknown": "use_encoded_value", "unknown_value": -1, "encoded_missing_value": -2, **params}
    )


def columns(word=None, number=None, words=("city", "job"), numbers=("age", "income"), **params):
    number = make_pipeline(SimpleImputer(), StandardScaler()) if number is None else number
    word = one_hot() if word is None else word
    return ColumnTransformer([("numbers", number, list(numbers)), ("words", word, list(words))], **params)


def imputed(*steps, **params):
    return make_pipeline(SimpleImputer(**params), *steps)


def bins(*before, **params):
    params = {"quantile_method": "averaged_inverted_cdf", "n_bins": 4, **params}
    return imputed(*before, KBinsDiscretizer(**params), strategy="median")


def side_by_side(*branches, **params):
    """Transformers, each with the columns that it reads."""
    parts = [(f"part {k}", one, list(names)) for k, (one, *names) in enumerate(branches)]
    return ColumnTransformer(parts, **params)


TWO = ("city", "job")
SERVED = {
    "given categories": side_by_side(
        (one_hot(categories=[CITIES, JOBS]), *TWO),  # out of order, and one of them nowhere
        (one_hot(categories=[["b", "a"], ["y"]]), *TWO),
        (one_hot(categories=[np.array(["c", "a"], dtype=object)]), "city"),
        (one_hot(categories=[[1, 2, 3, 4, 5, 6]]), "rooms"),
        (one_hot(categories=[[1, 2.5, 4, np.nan]]), "size"),
        (one_hot(categories=[CITIES], min_frequency=30, handle_unknown="infrequent_if_exist"), "city"),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), one_hot(categories=[CITIES[:4]])), "city"),
    ),
    "given categories, sparse": side_by_side(
        (one_hot(categories=[CITIES, JOBS], sparse_output=True, handle_unknown="error"), *TWO),
        sparse_threshold=1.0,
    ),
    "dropped categories": side_by_side(
        (one_hot(drop=["b"], handle_unknown="error"), "city"),
        (one_hot(drop=[np.nan], handle_unknown="error"), "city"),
        (one_hot(drop=["b"], min_frequency=12), "city"),
        (one_hot(drop="first", max_categories=3), "city"),
        (one_hot(drop="if_binary", max_categories=2), "city"),
    ),
    "as many categories as there may be": columns(
        one_hot(max_categories=2, handle_unknown="infrequent_if_exist"), words=["job"]
    ),
    "dtypes": side_by_side(
        (one_hot(dtype=np.int8), *TWO), (one_hot(dtype=np.float32), "city"), (one_hot(dtype=bool), "job"),
        (ordinal(dtype=np.int16), *TWO),
        (imputed(), "age"),
    ),
    "ranks": side_by_side(
        (ordinal(categories=[CITIES, ["x", "y"]]), *TWO),
        (ordinal(min_frequency=30, unknown_value=99), *TWO),
        (ordinal(max_categories=2, encoded_missing_value=50.5), *TWO),
        (ordinal(), "size", "rooms"),
    ),
    "weights": columns(transformer_weights={"words": 0.5, "numbers": 2}),
    "weights of a union": make_pipeline(
        columns(),
        FeatureUnion([("as is", StandardScaler()), ("b", "passthrough")], transformer_weights={"b": 0.1}),
    ),
    "functions": side_by_side(
        (imputed(FunctionTransformer(np.square), StandardScaler()), "age", "rooms"),
        (imputed(Binarizer(threshold=2.0)), "age", "income", "rooms"),
        (imputed(strategy="constant", fill_value=1.5), "age", "rooms"),
        (imputed(strategy="most_frequent"), "rooms"),
    ),
    "frames": columns(ordinal(), bins(encode="ordinal")).set_output(transform="pandas"),
    "frames without prefixes": columns(verbose_feature_names_out=False).set_output(transform="pandas"),
    "bins": side_by_side(
        (bins(encode="onehot-dense"), "age", "income"),
        (bins(encode="ordinal"), "age", "income"),
        (bins(strategy="uniform", n_bins=[3, 5], encode="ordinal"), "age", "rooms"),
        (bins(StandardScaler(), encode="ordinal"), "income"),
        (bins(FunctionTransformer(np.sqrt), encode="ordinal"), "income"),
    ),
    "sparse bins": columns(one_hot(sparse_output=True), bins(encode="onehot")),
}  # fmt: skip


@pytest.mark.cases(2)
@pytest.mark.parametrize("transformer", spread(SERVED.items(), 6))
@pytest.mark.filterwarnings("ignore:Found unknown categories")
def test_no_fit_is_made(transformer):
    model = make_pipeline(transformer, Ridge())
    search = both(model, RIDGE, FRAME, Y, cv=CV, refit=False, return_train_score=True)
    assert search.report_.fits_done == 0, search.report_


def test_settings_divide_columns_into_other_bins():
    grid = {
        "columntransformer__numbers__kbinsdiscretizer__n_bins": [2, 3],
        "ridge__alpha": np.logspace(0, 3, 3),
    }
    model = make_pipeline(columns(number=bins(encode="ordinal")), Ridge())
    search = both(model, grid, FRAME, Y, cv=KFold(2, shuffle=True, random_state=1), refit=False)
    assert (search.report_.fits_done, search.report_.passes) == (0, 1)


# Where scikit-learn raises or warns, or where rounding decides, it makes the fits itself.
LEFT = {
    "an unknown one": (columns(one_hot(categories=[["a"], JOBS], handle_unknown="error")), True),
    "an unknown one, dropped": (columns(one_hot(categories=[["a", "b"], JOBS], drop="first")), False),
    "numbers out of order": (columns(one_hot(categories=[[3, 1, 2]]), words=["rooms"]), True),
    "another gap": (columns(one_hot(categories=[["a", None], JOBS])), False),
    "one list for two columns": (columns(one_hot(categories=[CITIES])), True),
    "dropped, but infrequent": (columns(one_hot(drop=["c"], min_frequency=60), words=["city"]), True),
    "dropped, but not there": (columns(one_hot(drop=["w"]), words=["city"]), True),
    "an unknown one is a rank": (columns(ordinal(unknown_value=1)), True),
    "a gap is a rank": (columns(ordinal(encoded_missing_value=0)), True),
    "a rank that does not fit": (columns(ordinal(dtype=np.uint8), words=["city"]), True),
    "unknown ones are gaps": (columns(ordinal(unknown_value=np.nan, dtype=int)), True),
    "unknown_value without need": (columns(OrdinalEncoder(unknown_value=-1)), True),
    "half of an integer": (
        columns(number=imputed(strategy="constant", fill_value=0.5), numbers=["rooms"]),
        True,
    ),
    "sparse frames": (columns(one_hot(sparse_output=True)).set_output(transform="pandas"), True),
    "names of two columns": (
        ColumnTransformer(
            [("a", imputed(), ["age"]), ("b", imputed(), ["age"])], verbose_feature_names_out=False
        ).set_output(transform="pandas"),
        True,
    ),
    "weights of nothing": (columns(transformer_weights={"nothing": 2.0, "words": 3.0}), False),
    "bins by clusters": (columns(number=bins(strategy="kmeans")), False),
    "empty bins": (columns(number=bins(n_bins=50), numbers=["rooms"]), False),
    "edges that integers touch, but for rounding": (
        columns(number=bins(StandardScaler(), strategy="uniform"), numbers=["rooms"]),
        False,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("transformer", "fails"), spread(LEFT.items(), 8))
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_decides(transformer, fails):
    model = make_pipeline(transformer, Ridge())
    grid = {"columntransformer": [transformer, columns()]}
    search = both(model, grid, FRAME, Y, cv=CV, refit=False, may_fail=True)
    assert search.report_.fits_done > 0 or "shared in folds" in {
        g.strategy.kind for g in search.plan(FRAME, Y).groups
    }
    assert list(np.isnan(search.cv_results_["mean_test_score"])) == [fails, False]


SINGLE = {
    "beside doubles": ({"age": np.float32}, columns(number=imputed(MinMaxScaler())), Ridge(), 0, 1e-12),
    "alone, before categories": (
        {"age": np.float32, "income": np.float32}, columns(), Ridge(), 0, 2e-6,
    ),
    "in sparse rows": (
        {"age": np.float32, "income": np.float32},
        columns(one_hot(sparse_output=True), sparse_threshold=1.0), Ridge(), 4, 1e-12,
    ),
    "alone": (
        {"age": np.float32, "income": np.float32}, columns(word="drop"), Ridge(), 0, 2e-6,
    ),
    "before coordinate descent": (
        {"age": np.float32, "income": np.float32}, columns(), Lasso(), 4, 1e-12,
    ),
    "nullable": ({"age": "Float32", "income": "Float32"}, columns(), Ridge(), 0, 1e-12),
    "Arrow": ({"age": "float[pyarrow]"}, columns(), Ridge(), 0, 1e-12),
}  # fmt: skip


@pytest.mark.cases(3)
@pytest.mark.parametrize(("dtypes", "transformer", "last", "n_fits", "rtol"), SINGLE.values(), ids=SINGLE)
def test_columns_of_single_precision(dtypes, transformer, last, n_fits, rtol):
    X = FRAME.astype(dtypes)
    name = type(last).__name__.lower()
    grid = RIDGE if name == "ridge" else {"lasso__alpha": [0.01, 0.1]}
    search = both(
        make_pipeline(transformer, last),
        grid,
        X,
        Y,
        cv=CV,
        refit=False,
        compare={"rtol": rtol, "atol": rtol},
    )
    assert search.report_.fits_done == n_fits, search.report_


def test_a_constant_column_of_single_precision_is_not_scaled_by_its_rounding():
    X = FRAME.assign(age=np.where(FRAME["age"].isna(), np.nan, 0.1)).astype({"age": np.float32})
    both(make_pipeline(columns(numbers=["age"]), Ridge()), RIDGE, X, Y, refit=False, compare={"rtol": 2e-6})


def test_hundreds_of_levels_are_fitted_where_that_takes_fewer_operations():
    X = pd.DataFrame({f"level {j}": rng.integers(0, 300, 2000).astype(str) for j in range(4)})
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), Ridge())
    sparse = GridSearchCV(model, RIDGE).plan(X, np.arange(2000.0))
    assert "sharing would take longer" in str(sparse)
    dense = GridSearchCV(model.set_params(onehotencoder__sparse_output=False), RIDGE)
    assert dense.plan(X, np.arange(2000.0)).fits_planned == 0
