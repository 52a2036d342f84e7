"""The plan names what parts of a step move, and what scorers of one's own have pipelines move again."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_selection import f_regression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

import manyfit
from manyfit import estimators as E
from manyfit._compat import INDICES_OF_THE_HOST
from manyfit.model_selection import GridSearchCV
from manyfit.model_selection._widths import n_columns
from tests.metrics._crossings import here, there
from tests.model_selection._moved import N, alike, named_is_counted

rng = np.random.default_rng(0)
X = rng.normal(size=(N, 4))
Y = X @ np.arange(4.0) + rng.normal(size=N)
LABELS = (Y > 0).astype(int)
WIDE = rng.normal(size=(N, 30))  # so that moments are larger than y of a test fold
SVR, RIDGE = {"svr__C": [0.1, 1.0]}, {"ridge__alpha": [0.1, 10.0]}
ALONE, TRAIN, REFIT = {"sharing": "none"}, {"return_train_score": True}, {"refit": True}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
# Before 1.9 scikit-learn cannot cut rows for drop-in estimators there: all of these come home.
needs_newer = pytest.mark.skipif(not INDICES_OF_THE_HOST, reason="fitted on the host before scikit-learn 1.9")


def error(estimator, X, y):
    """A scorer of the user's; what it fetches itself is its own affair, and not counted."""
    found = estimator.predict(X)
    return -float(np.abs((found if isinstance(found, np.ndarray) else here(found)) - y).mean())


OWN, BOTH = {"scoring": error}, {"scoring": {"own": error, "r2": "r2"}, "refit": False}


def quantiles(n=50):
    return E.QuantileTransformer(n_quantiles=n)


def svr():
    return E.SVR(max_iter=20)


def union():
    parts = [("poly", E.PolynomialFeatures()), ("quant", quantiles()), ("imp", E.SimpleImputer())]
    return E.FeatureUnion([*parts, ("pass", "passthrough"), ("none", "drop")])


def columns():
    both = make_pipeline(E.MinMaxScaler(), quantiles())
    parts = [("imp", E.SimpleImputer(), [0, 1]), ("scale", E.StandardScaler(), slice(2, 3))]
    parts += [("both", both, [1, 2, 3]), ("none", "drop", [0]), ("empty", E.SimpleImputer(), [])]
    return E.ColumnTransformer(parts, remainder="passthrough")


def nested():
    """Parts that read y, that hold parts, that are chosen by a mask, and the rest."""
    inner = E.FeatureUnion([("a", E.SimpleImputer()), ("b", quantiles()), ("c", E.MinMaxScaler())])
    mask = np.array([True, False, True, False])
    parts = [("best", E.SelectKBest(f_regression, k=2), [0, 1, -2]), ("inner", inner, mask)]
    return E.ColumnTransformer(parts, remainder=E.RobustScaler())


def sparse():
    return E.FeatureUnion(
        [("imp", E.SimpleImputer()), ("tf", E.TfidfTransformer()), ("mm", E.MinMaxScaler())]
    )


def of_frames():
    part = E.MinMaxScaler().set_output(transform="pandas")
    return E.FeatureUnion([("frame", part), ("poly", E.PolynomialFeatures())])


HOLDERS = [union, columns, nested, sparse, of_frames]
FRAMES = make_pipeline(E.MinMaxScaler(), E.Ridge()).set_output(transform="pandas")
FRAME_FIRST = make_pipeline(
    E.MinMaxScaler().set_output(transform="pandas"), E.PolynomialFeatures(), E.Ridge()
)
ROW = make_pipeline(E.SimpleImputer(), quantiles(), svr())
MIXED = make_pipeline(E.MinMaxScaler(), E.SimpleImputer(), E.PolynomialFeatures(), E.Ridge())

CASES = {
    **{
        f"{make.__name__} {kind}": (make_pipeline(*before, make(), last), grid, X, options)
        for make in HOLDERS
        for kind, before, last, grid, options in (
            ("shared", [], svr(), SVR, TRAIN),
            ("behind the host's", [E.SimpleImputer()], svr(), SVR, REFIT),
            ("alone", [], svr(), SVR, ALONE | TRAIN),
            ("and a scorer of one's own", [E.MinMaxScaler()], svr(), SVR, OWN | TRAIN),
        )
    },
    "a family behind parts": (make_pipeline(columns(), E.Ridge()), RIDGE, X, TRAIN | REFIT),
    "a part that varies": (
        make_pipeline(columns(), svr()),
        SVR | {"columntransformer__both__quantiletransformer__n_quantiles": [20, 50]},
        X,
        TRAIN,
    ),
    "frames": (FRAMES, RIDGE, X, OWN | TRAIN),
    "frames alone": (FRAMES, RIDGE, X, ALONE | REFIT),
    "a frame at first": (FRAME_FIRST, RIDGE, X, {}),
    "what scorers ask": (MIXED, RIDGE, X, OWN | TRAIN),
    "what two scorers ask": (MIXED, RIDGE, X, BOTH),
    "what two scorers ask, alone": (MIXED, RIDGE, X, BOTH | ALONE | TRAIN),
    "what two scorers ask of X": (ROW, SVR, X, BOTH | TRAIN),
    "two host steps in a row, alone": (ROW, SVR, X, ALONE | REFIT),
    "training rows that a step makes anew": (make_pipeline(E.PCA(4), svr()), SVR, X, TRAIN),
    "sums of ridge alone": (E.Ridge(), {"alpha": [0.1, 1.0]}, WIDE, ALONE | REFIT),
    "stacking": (E.StackingRegressor([("a", E.Ridge())], cv=2), {"a__alpha": [0.1, 1.0]}, X, OWN),
    "voting": (E.VotingRegressor([("a", E.Ridge())]), {"a__alpha": [0.1, 1.0]}, X, BOTH),
    "bagging": (E.BaggingRegressor(E.Ridge(), 2), {"estimator__alpha": [0.1, 1.0]}, X, OWN | TRAIN),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_named_crosses_and_nothing_else(name, crossed):
    model, grid, data, options = CASES[name]
    options = {"refit": False, "cv": KFold(3)} | options
    plan = named_is_counted(crossed, GridSearchCV(model, grid, **options), (there(data), there(Y)))
    assert plan.moves


@pytest.mark.parametrize("make", HOLDERS)
def test_scores_are_those_of_the_host(make):
    search = GridSearchCV(make_pipeline(make(), svr()), SVR, cv=KFold(3), refit=False)
    # scikit-learn's StandardScaler divides 0 by 0 on NumPy's own libraries.
    with manyfit.config_context(host_fallback="ignore"), np.errstate(invalid="ignore"):
        search.fit(there(X), there(Y))
    alike(search, GridSearchCV(make_pipeline(make(), svr()), SVR, cv=KFold(3), refit=False).fit(X, Y))


@pytest.mark.parametrize("make", HOLDERS)
def test_columns_are_those_that_a_fit_makes(make):
    columns = None if make is sparse else make().fit_transform(X, Y).shape[1]  # unknown of one of its parts
    assert n_columns(make(), 4) == columns
    assert n_columns(make_pipeline(E.PCA(4), make()), 4) == columns


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
@pytest.mark.filterwarnings("ignore:The following error was raised:DeprecationWarning")  # of 3, before 1.8
@pytest.mark.parametrize(
    "parts",
    [None, "parts", 5, [("a",)], [("a", E.SimpleImputer())], [("a", 3, [0])],
     [("a", E.SimpleImputer(), [99])], [("a", E.SimpleImputer(), np.array([[0, 1]]))],
     [("a", make_pipeline(3, E.MinMaxScaler()), [0])]],
    ids=repr,
)  # fmt: skip
def test_parts_that_a_fit_refuses_are_planned_all_the_same(parts):
    grid = {"columntransformer__transformers": [parts, [("good", E.SimpleImputer(), [0])]]}
    search = GridSearchCV(make_pipeline(columns(), svr()), grid, cv=2, refit=False)
    with manyfit.config_context(host_fallback="ignore"):
        assert search.plan(there(X), there(Y)).moves
        with pytest.warns(FitFailedWarning, match="2 fits failed"):
            search.fit(there(X), there(Y))
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [True, False]


def test_calibration(crossed):
    """Labels that a scorer of one's own predicts are of the host, where y is brought."""
    model = E.CalibratedClassifierCV(E.GaussianNB(), cv=2)
    search = GridSearchCV(
        model, {"estimator__var_smoothing": [1e-9, 1e-3]}, cv=KFold(3), refit=False, scoring=error
    )
    named_is_counted(crossed, search, (there(X), there(LABELS)))


@needs_newer
def test_parts_are_named_by_their_paths():
    search = GridSearchCV(make_pipeline(nested(), E.Ridge()), RIDGE, cv=KFold(3))
    text = str(search.plan(there(X), there(Y)))
    of_two = f"{8 * 3 * N * 2 / 2**10:.2f} kiB"
    assert f"columns of X for inner__a: SimpleImputer, to the host once a fold, 6 arrays, {of_two}: " in text
    assert f"output of inner__b: QuantileTransformer, to the device once a fold, 6 arrays, {of_two}: " in text
    assert "columns of X for remainder: RobustScaler, to the host in the refit, 1 array" in text
    assert "inner__c" not in text


@needs_newer
def test_columns_that_a_fit_tells():
    step = E.ColumnTransformer([("no", E.RobustScaler(), ["a"])])
    text = str(GridSearchCV(make_pipeline(step, E.Ridge()), RIDGE, cv=KFold(3)).plan(there(X), there(Y)))
    assert "columns of X for no: RobustScaler, to the host once a fold, 6 arrays, of a size that" in text


@needs_newer
def test_what_is_taken_of_a_scorer_of_ones_own_is_said():
    text = str(GridSearchCV(MIXED, RIDGE, cv=KFold(3), scoring=error).plan(there(X), there(Y)))
    assert "to the host once a fit, 6 arrays, " in text
    assert text.count("a scorer of your own is taken to predict once") == 2
