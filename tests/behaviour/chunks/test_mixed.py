"""Searches on frames of numbers, gaps and categories in chunks have the scores of the frame in memory."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Lasso, LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)

from manyfit.estimators import LogisticRegression as OwnLogistic
from manyfit.estimators import Ridge as OwnRidge
from manyfit.estimators import StandardScaler as OwnScaler
from manyfit.folds import Blocks
from manyfit.model_selection import GridSearchCV
from tests._covering import covering
from tests.behaviour.chunks._files import Dataset, limit_for
from tests.behaviour.chunks._frames import blocks, given_as, parquet, partitions

rng = np.random.default_rng(0)
N = 601
NUMBERS, TEXTS = ["age", "fare", "distance"], ["city", "day", "class"]


def _with_gaps(values, share):
    return np.where(rng.uniform(size=len(values)) < share, np.nan, values)


FRAME = pd.DataFrame(
    {
        "age": _with_gaps(rng.normal(size=N) * 10.0 + 40.0, 0.1),
        "city": rng.choice(["Bonn", "Ulm", "Kiel", "Trier"], size=N, p=[0.7, 0.2, 0.09, 0.01]),
        "fare": rng.exponential(size=N) + 0.5,
        "day": pd.Series(rng.choice(["mo", "tu", None], size=N)),
        "distance": _with_gaps(rng.integers(0, 9, size=N).astype(float), 0.3),
        "class": rng.integers(1, 4, size=N),
        "id": [f"passenger {k}" for k in range(N)],  # which no step reads
    }
)
Y = FRAME["fare"] * 3.0 + FRAME["city"].map({"Bonn": 0.0, "Ulm": 1.0, "Kiel": 2.0, "Trier": 9.0})
Y = (Y + FRAME["age"].fillna(50.0) / 10.0 + rng.normal(size=N)).to_numpy()
LABELS = np.where(np.median(Y) < Y, "high", "low")
WEIGHTS = rng.uniform(0.5, 1.5, size=N)
KINDS = ["dask", "parquet", "blocks of frames"]
LIMIT = 40_000  # the frame takes more


def _model(last, numbers=None, texts=None):
    numbers = make_pipeline(SimpleImputer(), StandardScaler()) if numbers is None else numbers
    texts = OneHotEncoder(handle_unknown="ignore") if texts is None else texts
    return make_pipeline(ColumnTransformer([("numbers", numbers, NUMBERS), ("texts", texts, TEXTS)]), last)


def _compare(given, model, grid, y=Y, tol=1e-12, limit=LIMIT, params=None, **options):
    options = {"refit": False, "cv": 3, **options}
    search = GridSearchCV(model, grid, memory_limit=limit, **options).fit(given, y, **(params or {}))
    expected = SklearnSearch(model, grid, **options).fit(FRAME, y, **(params or {}))
    assert search.report_.fits_done == 0
    for name, values in expected.cv_results_.items():
        if name.endswith("_score") and not name.startswith(("rank", "std")):
            np.testing.assert_allclose(search.cv_results_[name], values, rtol=tol, err_msg=name)
    return search


RIDGE = {"ridge__alpha": [0.1, 100.0]}


@pytest.mark.cases(2)
@pytest.mark.invariant("a search on a mixed frame in chunks has the scores of the same frame in memory")
@pytest.mark.parametrize(("kind", "rows"), covering(KINDS, [101, N // 2, 5], strength=1))
def test_scores_are_those_of_a_frame(kind, rows, tmp_path):
    rows, limit = (rows, LIMIT) if rows < N // 2 else (290, 75_000)
    _compare(given_as(kind, FRAME, rows, tmp_path), _model(Ridge()), RIDGE, limit=limit)


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    ("numbers", "texts"),
    [
        (make_pipeline(SimpleImputer(strategy="constant", fill_value=-1.0), StandardScaler()), None),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), MinMaxScaler()), None),
        (SimpleImputer(add_indicator=True), None),
        (make_pipeline(StandardScaler(), SimpleImputer()), None),
        (make_pipeline(SimpleImputer(strategy="median"), RobustScaler()), None),
        (make_pipeline(SimpleImputer(), FunctionTransformer(np.sqrt), MaxAbsScaler()), None),
        (None, OneHotEncoder(min_frequency=20, handle_unknown="infrequent_if_exist")),
        (None, OrdinalEncoder(encoded_missing_value=-1)),
        ("drop", OneHotEncoder(handle_unknown="ignore")),
    ],
    ids=["constant", "frequent", "marks", "scaled gaps", "median", "function", "rare", "ordinal", "codes"],
)
def test_steps(numbers, texts, tmp_path):
    # Medians keep the columns of numbers, in a quarter of the limit.
    given = parquet(FRAME, 97, tmp_path / "X")
    _compare(given, _model(Ridge(), numbers, texts), RIDGE, tol=1e-11, limit=60_000)


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("last", "grid", "y", "options", "tol"),
    [
        (Lasso(tol=1e-12), {"lasso__alpha": [0.01, 0.1]}, Y, {"scoring": "neg_mean_squared_error"}, 1e-8),
        (RidgeClassifier(), {"ridgeclassifier__alpha": [1.0, 99.0]}, LABELS, {}, 1e-12),
        (Ridge(), RIDGE, Y, {"scoring": "neg_mean_absolute_error", "return_train_score": True}, 1e-11),
        (Ridge(), RIDGE, Y, {"params": {"ridge__sample_weight": WEIGHTS}}, 1e-11),
        (
            LogisticRegression(tol=1e-6), {"logisticregression__C": [1e-3, 1e-2]}, LABELS,
            {"scoring": "neg_log_loss"}, 1e-5,  # as near as tol asks
        ),
    ],
    ids=["Lasso", "classifier", "predictions", "weights", "iterations"],
)  # fmt: skip
def test_estimators_behind_shuffled_folds(last, grid, y, options, tol, tmp_path):
    cv = KFold(3, shuffle=True, random_state=1)
    _compare(parquet(FRAME, 149, tmp_path / "X"), _model(last), grid, y, tol, cv=cv, **options)


def test_gaps_of_an_array_in_a_file():
    values = FRAME[NUMBERS].to_numpy()
    model = make_pipeline(SimpleImputer(), StandardScaler(), Ridge())
    search = GridSearchCV(model, RIDGE, refit=False, memory_limit=limit_for(values, 30))
    search.fit(Dataset(values), Y)
    expected = SklearnSearch(model, RIDGE, refit=False).fit(values, Y)
    scores = (one.cv_results_["mean_test_score"] for one in (search, expected))
    np.testing.assert_allclose(*scores, rtol=1e-12)


def test_columns_are_read_by_the_pass_that_needs_them(tmp_path):
    search = _compare(parquet(FRAME, 97, tmp_path / "X"), _model(Ridge()), RIDGE)
    # One row; numbers for their means and for sums; the texts once, as 64 bytes, and the class.
    assert search.report_.bytes_read == 6 * 8 * N + N * (2 * 32 + 8) + 3 * 32 + 4 * 8
    assert search.report_.passes == 1


def test_a_target_is_a_column_and_a_plan_reads_what_it_needs(tmp_path):
    data = parquet(FRAME.assign(target=Y), 97, tmp_path / "X")
    search = GridSearchCV(_model(Ridge()), RIDGE, refit=False, memory_limit=LIMIT)
    assert "shared through moments" in str(search.plan(data, "target"))
    search.fit(data, "target")
    expected = SklearnSearch(_model(Ridge()), RIDGE, refit=False).fit(FRAME, Y)
    scores = (one.cv_results_["mean_test_score"] for one in (search, expected))
    np.testing.assert_allclose(*scores, rtol=1e-12)


def test_a_checkpoint_knows_a_frame_by_its_rows(tmp_path):
    options = {"refit": False, "memory_limit": LIMIT, "checkpoint": tmp_path / "search.db"}
    search = GridSearchCV(_model(Ridge()), RIDGE, **options).fit(blocks(FRAME, 97), Y)
    again = GridSearchCV(_model(Ridge()), RIDGE, **options).fit(blocks(FRAME, 60), Y)
    assert again.report_.passes == 0 and search.report_.passes == 1
    scores = (one.cv_results_["mean_test_score"] for one in (search, again))
    np.testing.assert_array_equal(*scores)
    other = FRAME.assign(day=FRAME["day"].where(FRAME.index != 500, "we"))
    with pytest.raises(ValueError, match="- X: "):
        GridSearchCV(_model(Ridge()), RIDGE, **options).fit(blocks(other, 97), Y)


def test_predictions_of_a_search_for_a_dask_frame_are_lazy():
    parts = [FRAME[:0], *(FRAME[k : k + 101] for k in range(0, N, 101))]
    with dask.config.set({"dataframe.convert-string": False}):
        given = dask.dataframe.from_map(lambda part: part, parts, meta=FRAME[:0])
    search = GridSearchCV(_model(OwnRidge()), RIDGE, memory_limit=LIMIT).fit(given, Y)
    predicted = search.predict(given)
    assert isinstance(predicted, da.Array)
    np.testing.assert_array_equal(predicted, search.best_estimator_.predict(FRAME))
    np.testing.assert_array_equal(search.predict(FRAME), search.best_estimator_.predict(FRAME))
    assert search.score(given, Y) == pytest.approx(search.score(FRAME, Y))


FLAGGED = FRAME.assign(flag=np.arange(N) % 3 == 0)


def test_a_frame_whose_first_partitions_are_empty():
    empty, parts = FLAGGED[:0], [FLAGGED[k : k + 101] for k in range(0, N, 101)]
    untyped = pd.DataFrame({name: [] for name in FLAGGED})
    own = [untyped, empty, *parts[:2], empty, *parts[2:]]
    with dask.config.set({"dataframe.convert-string": False}):
        given = dask.dataframe.from_map(lambda part: part, own, meta=empty)
    assert _compare(given, _model(Ridge()), RIDGE).report_.bytes_read


@pytest.mark.parametrize(("place", "typed"), [("first", False), ("last", True)])
def test_an_empty_parquet_file_beside_bools_and_texts(typed, place, tmp_path):
    flags = make_pipeline(ColumnTransformer([("flags", "passthrough", ["fare", "flag"])]), Ridge())
    parquet(FLAGGED, 100, tmp_path / "X")
    empty = FLAGGED[:0] if typed else pd.DataFrame({name: pd.Series([], dtype=object) for name in FLAGGED})
    table = pa.Table.from_pandas(empty, preserve_index=False)
    pa.parquet.write_table(table, tmp_path / "X" / f"{'a' if place == 'first' else 'z'}.parquet")
    for model in (flags, _model(Ridge())):
        options = {"refit": False, "cv": 3}
        expected = SklearnSearch(model, RIDGE, **options).fit(FLAGGED, Y).cv_results_["mean_test_score"]
        for limit in (LIMIT, 2**30) if place == "first" else (LIMIT,):  # the larger one loads X
            found = GridSearchCV(model, RIDGE, memory_limit=limit, **options).fit(tmp_path / "X", Y)
            np.testing.assert_allclose(found.cv_results_["mean_test_score"], expected, rtol=1e-12)


# Bad input


def test_categories_of_several_types_and_columns_that_do_not_fit_are_refused():
    options = {"refit": False, "memory_limit": LIMIT}
    mixed = FRAME.assign(city=pd.Series([*FRAME["city"][:400], *range(N - 400)], dtype=object))
    with pytest.raises(TypeError, match="holds values of several types"):
        GridSearchCV(_model(Ridge()), RIDGE, **options).fit(blocks(mixed, 100), Y)
    with pytest.raises(TypeError, match="cannot be made from chunks: X has columns that are no numbers"):
        GridSearchCV(Ridge(), {"alpha": [1.0]}, **options).fit(partitions(FRAME, 100), Y)
    infinite = FRAME.assign(fare=FRAME["fare"].mask(FRAME.index == 500, np.inf))
    with pytest.raises(TypeError, match="X holds infinity"):
        GridSearchCV(_model(Ridge()), RIDGE, **options).fit(blocks(infinite, 100), Y)


LOGS = FunctionTransformer(np.log1p, feature_names_out="one-to-one")


@pytest.mark.parametrize("logs", [False, True])
def test_kept_columns_are_counted_together_and_once(logs):
    """Medians of three columns take 8 bytes a row and column, behind a function, too."""
    model = _model(Ridge(), make_pipeline(LOGS, RobustScaler()) if logs else SimpleImputer(strategy="median"))
    wide = FRAME.assign(age=FRAME["age"].abs(), id="x" * 200)  # X takes more than the limit
    wide = wide.fillna({"age": 1.0, "distance": 1.0}) if logs else wide
    needed = 4 * 3 * 8 * N
    options = {"refit": False, "cv": 3}
    why = (
        f"column 'distance' at once.* 3 columns of 4,808 bytes, 14,424 bytes .* memory_limit={needed} or more"
    )
    with pytest.raises(TypeError, match=why):
        GridSearchCV(model, RIDGE, memory_limit=needed - 4, **options).fit(blocks(wide, 50), Y)
    search = GridSearchCV(model, RIDGE, memory_limit=needed, **options).fit(blocks(wide, 50), Y)
    assert search.report_.bytes_read
    expected = SklearnSearch(model, RIDGE, **options).fit(wide, Y).cv_results_["mean_test_score"]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, rtol=1e-12)


def test_a_column_of_texts_that_becomes_numbers_is_named():
    parts = [FRAME[k : k + 101].assign(**({"city": 1.0} if k == 303 else {})) for k in range(0, N, 101)]
    given = dask.dataframe.from_map(lambda part: part, parts, meta=FRAME.iloc[:0])
    search = GridSearchCV(_model(Ridge()), RIDGE, refit=False, memory_limit=LIMIT)
    with pytest.raises(ValueError, match="column 'city' of dtype float64, and the others have objects"):
        search.fit(given, Y)


# The refit


OWN = {"ridge__alpha": [0.1, 100.0]}
LONG, LONG_Y = pd.concat([FRAME, FRAME], ignore_index=True), np.tile(Y, 2)


ORDINAL = OrdinalEncoder(encoded_missing_value=-1)


@pytest.mark.cases(1)
@pytest.mark.invariant("a refit behind the columns of a frame in chunks takes no pass, and is scikit-learn's")
@pytest.mark.parametrize(
    ("kind", "numbers", "texts", "params"),
    covering(
        KINDS,
        {
            "one-hot": (None, None, {}),
            "range": (
                make_pipeline(SimpleImputer(strategy="constant", fill_value=-1.0), MinMaxScaler()),
                None,
                {},
            ),
            "ordinal": (make_pipeline(StandardScaler(), SimpleImputer(), MaxAbsScaler()), ORDINAL, {}),
            "weights": (None, OneHotEncoder(drop="first"), {"ridge__sample_weight": np.tile(WEIGHTS, 2)}),
        }.items(),
        strength=1,
    ),
)
def test_a_refit_by_summaries(kind, numbers, texts, params, tmp_path):
    model = _model(OwnRidge(), numbers, texts)
    given = given_as(kind, LONG, 101, tmp_path)
    search = GridSearchCV(model, OWN, memory_limit=75_000).fit(given, LONG_Y, **params)
    assert search.report_.bytes_read > 0, "in chunks"
    expected = SklearnSearch(_model(Ridge(), numbers, texts), OWN).fit(LONG, LONG_Y, **params).best_estimator_
    best = search.best_estimator_
    np.testing.assert_allclose(best[-1].coef_, expected[-1].coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(best[-1].intercept_, expected[-1].intercept_, rtol=1e-9)
    np.testing.assert_allclose(_dense(best[0], LONG), _dense(expected[0], LONG), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(search.predict(given), expected.predict(LONG), rtol=1e-9)
    np.testing.assert_allclose(search.predict(LONG), expected.predict(LONG), rtol=1e-9)
    np.testing.assert_allclose(search.score(given, LONG_Y), expected.score(LONG, LONG_Y), rtol=1e-9)
    assert list(best.feature_names_in_) == list(LONG.columns)
    for own, theirs in zip(_parts(best[0]), _parts(expected[0]), strict=True):
        assert type(own) is type(theirs)
        for name, value in vars(theirs).items():
            if name.endswith("_") and isinstance(value, np.ndarray) and value.dtype.kind == "f":
                np.testing.assert_allclose(vars(own)[name], value, rtol=1e-11, atol=1e-12, err_msg=name)


def _dense(step, frame):
    found = step.transform(frame)
    return found.toarray() if hasattr(found, "toarray") else found


def _parts(step):
    """The transformers in a fitted one that hold no others."""
    inside = [part for _, part, _ in getattr(step, "transformers_", ()) if not isinstance(part, str)]
    inside += [part for _, part in getattr(step, "steps", ())]
    return [one for part in inside for one in _parts(part)] if inside else [step]


def test_no_pass_for_a_refit_but_where_folds_leave_rows_out(tmp_path):
    reads = []

    def read():
        reads.append(0)
        for start in range(0, N, 101):
            yield FRAME.iloc[start : start + 101]

    for cv, most in ((3, 2), (ShuffleSplit(2, test_size=0.1, train_size=0.5, random_state=0), 5)):
        made = {}
        for refit in (False, True):
            reads.clear()
            GridSearchCV(_model(OwnRidge()), {}, cv=cv, memory_limit=LIMIT, refit=refit).fit(Blocks(read), Y)
            made[refit] = len(reads)
        assert made[True] - made[False] <= most, cv  # two read a row that shows the columns


def test_a_refit_that_iterates_and_one_behind_other_steps():
    given = given_as("dask", FRAME, 101, None)
    own = make_pipeline(_model(OwnLogistic())[0], OwnScaler(), OwnLogistic(tol=1e-6, C=0.01))
    theirs = make_pipeline(_model(None)[0], StandardScaler(), LogisticRegression(tol=1e-6, C=0.01))
    own[0].set_params(texts__sparse_output=False)
    theirs[0].set_params(texts__sparse_output=False)
    search = GridSearchCV(own, {}, cv=2, memory_limit=LIMIT).fit(given, LABELS)
    assert search.report_.bytes_read > 0
    expected = theirs.fit(FRAME, LABELS)
    np.testing.assert_allclose(search.predict_proba(given), expected.predict_proba(FRAME), atol=1e-4)


@pytest.mark.parametrize(
    ("numbers", "texts", "reason"),
    [
        (SimpleImputer(add_indicator=True), None, r"SimpleImputer\(strategy='mean', add_indicator=True\)"),
        (SimpleImputer(strategy="most_frequent"), None, r"SimpleImputer\(strategy='most_frequent', add"),
        (RobustScaler(), None, "RobustScaler reads X whole"),
        (None, OneHotEncoder(min_frequency=2), "OneHotEncoder with rare categories reads X whole"),
        (None, make_pipeline(ORDINAL, StandardScaler()), "StandardScaler behind an encoder reads X whole"),
    ],
)
def test_a_refit_that_summaries_do_not_serve_is_refused(numbers, texts, reason):
    given = given_as("dask", FRAME, 101, None)
    with pytest.raises(TypeError, match=f"the refit cannot read: {reason}"):
        GridSearchCV(_model(OwnRidge(), numbers, texts), OWN, memory_limit=LIMIT).fit(given, Y)


def test_a_refit_with_steps_that_do_nothing():
    first = ColumnTransformer(
        [("a", StandardScaler(), []), *_model(None)[0].transformers], sparse_threshold=0
    )
    model = make_pipeline(first, OwnScaler(), OwnRidge())
    search = GridSearchCV(model, {"standardscaler": ["passthrough"]}, memory_limit=LIMIT)
    search.fit(given_as("dask", FRAME, 101, None), Y)
    expected = make_pipeline(first, Ridge()).fit(FRAME, Y).predict(FRAME)
    np.testing.assert_allclose(search.predict(FRAME), expected, rtol=1e-9)


def test_a_refit_behind_columns_by_their_places():
    values = FRAME[NUMBERS].to_numpy()
    inner = ColumnTransformer([("scaled", StandardScaler(), [0, 2])], remainder="passthrough")
    first = ColumnTransformer([("two", make_pipeline(SimpleImputer(), inner), [0, 1, 2])])
    search = GridSearchCV(make_pipeline(first, OwnRidge()), {}, memory_limit=limit_for(values, 30))
    search.fit(Dataset(values), Y)
    expected = make_pipeline(first, Ridge()).fit(values, Y).predict(values)
    np.testing.assert_allclose(search.best_estimator_.predict(values), expected, rtol=1e-9)


def test_a_refit_to_parts_that_have_categories_of_their_own():
    frame = LONG.sort_values("city", ignore_index=True).astype({"city": "category"})

    def read():
        for start in range(0, len(frame), 101):
            part = frame.iloc[start : start + 101]
            yield part.assign(city=part["city"].cat.remove_unused_categories())

    search = GridSearchCV(_model(OwnRidge()), {}, memory_limit=LIMIT).fit(Blocks(read), LONG_Y)
    assert search.report_.bytes_read > 0
    expected = _model(Ridge()).fit(frame, LONG_Y).predict(frame)
    np.testing.assert_allclose(search.predict(frame), expected, rtol=1e-9)
