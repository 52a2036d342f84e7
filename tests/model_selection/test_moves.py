"""The plan names what crosses between host and device, step by step, and that is what crosses."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.linear_model
import sklearn.preprocessing
import sklearn.svm
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline

import manyfit
from manyfit import estimators as E
from manyfit._compat import INDICES_OF_THE_HOST
from manyfit.arrays import place_of
from manyfit.model_selection import _where
from manyfit.model_selection._widths import n_columns
from tests.metrics._crossings import there
from tests.model_selection._moved import N, alike, named_is_counted
from tests.model_selection._optimum import Optimum as GridSearchCV

rng = np.random.default_rng(0)
X = rng.normal(size=(N, 4))
Y = X @ np.arange(4.0) + rng.normal(size=N)
LABELS = (Y > 0).astype(int)
TEXTS = [" ".join(rng.choice(["red", "green", "blue", "one", "two"], size=6)) for _ in range(200)]
ALPHAS, CS = {"ridge__alpha": [0.1, 1.0, 10.0]}, {"svr__C": [0.1, 1.0], "svr__max_iter": [20]}
DEGREES = {"polynomialfeatures__degree": [1, 2]}
ALONE = {"sharing": "none"}
LOGISTIC = {"logisticregression__C": [0.1, 1.0]}
QUIET = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
# Before 1.9 scikit-learn cannot cut rows for drop-in estimators there: all of these come home.
needs_newer = pytest.mark.skipif(not INDICES_OF_THE_HOST, reason="fitted on the host before scikit-learn 1.9")


@pytest.fixture
def gpu(monkeypatch):
    """array-api-strict's second device in place of a GPU, to which data of the host are sent."""
    monkeypatch.setattr(_where, "cuda_place", lambda: place_of(there(X)))
    with manyfit.config_context(device="cuda"):
        yield


CASES = {
    "all there": (make_pipeline(E.StandardScaler(), E.PolynomialFeatures(), E.Ridge()), ALPHAS, Y, {}),
    "a host step in the middle": (
        make_pipeline(E.MinMaxScaler(), E.SimpleImputer(), E.PolynomialFeatures(), E.Ridge()),
        ALPHAS,
        Y,
        {"return_train_score": True},
    ),
    "two host steps in a row": (
        make_pipeline(E.SimpleImputer(), E.QuantileTransformer(n_quantiles=50), E.LogisticRegression()),
        LOGISTIC,
        LABELS,
        {},
    ),
    "a host step at the end": (make_pipeline(E.PolynomialFeatures(), E.SVR()), DEGREES | CS, Y, {}),
    "scored by what a host step says": (
        make_pipeline(E.MinMaxScaler(), E.KNeighborsClassifier()),
        {"kneighborsclassifier__n_neighbors": [3, 5]},
        LABELS,
        {"scoring": ["roc_auc", "accuracy", "neg_log_loss"], "return_train_score": True},
    ),
    "predictions": (
        make_pipeline(E.StandardScaler(), E.PolynomialFeatures(), E.Ridge()),
        ALPHAS | DEGREES,
        np.stack([Y, Y**2], axis=1),
        {"scoring": "neg_mean_absolute_error", "return_train_score": True},
    ),
    "moments": (make_pipeline(E.StandardScaler(), E.Ridge()), ALPHAS, Y, {}),
    "predictions of moments": (E.Ridge(), {"alpha": [1.0, 2.0]}, Y, {"scoring": "neg_median_absolute_error"}),
    "two targets of moments": (
        make_pipeline(E.StandardScaler(), E.Ridge()),
        ALPHAS | {"standardscaler__with_std": [True, False]},
        np.stack([Y, Y**2], axis=1),
        {"scoring": "neg_mean_absolute_error", "return_train_score": True},
    ),
    "passes": (
        make_pipeline(E.StandardScaler(), E.LogisticRegression()), LOGISTIC, LABELS, {"scoring": "roc_auc"}
    ),
    "passes of numbers": (E.PoissonRegressor(), {"alpha": [0.1, 1.0]}, LABELS + 1.0, {}),
    "ridge one by one": (E.Ridge(), {"alpha": [0.1, 1.0]}, Y, ALONE | {"return_train_score": True}),
    "logistic one by one": (E.LogisticRegression(), {"C": [0.1, 1.0]}, LABELS, ALONE),
    "svr one by one": (E.SVR(max_iter=20), {"C": [0.1, 1.0]}, Y, {"scoring": ["r2", "neg_max_error"]}),
    "steps one by one": (
        make_pipeline(E.SimpleImputer(), E.GaussianNB()),
        {"gaussiannb__var_smoothing": [1e-9, 1e-3]},
        LABELS,
        ALONE | {"scoring": ["accuracy", "roc_auc"], "return_train_score": True},
    ),
    "scikit-learn's own": (
        make_pipeline(sklearn.preprocessing.PolynomialFeatures(), sklearn.svm.SVR()), CS | DEGREES, Y, {},
    ),
}  # fmt: skip


@QUIET
@pytest.mark.parametrize("y_there", [True, False], ids=["y there", "y here"])
@pytest.mark.parametrize("name", CASES)
def test_what_is_named_crosses_and_nothing_else(name, y_there, crossed):
    model, grid, y, options = CASES[name]
    search = GridSearchCV(model, grid, cv=KFold(3), refit=False, **options)
    plan = named_is_counted(crossed, search, (there(X), there(y) if y_there else y))
    assert plan.moves
    host = GridSearchCV(model, grid, cv=KFold(3), refit=False, **options).fit(X, y)
    alike(search, host)
    if options.get("sharing") != "none":
        assert (search.report_.fits_done, search.report_.transformer_fits) == (
            host.report_.fits_done,
            host.report_.transformer_fits,
        )


@pytest.mark.parametrize(
    "cv",
    [
        KFold(3, shuffle=True, random_state=0),
        TimeSeriesSplit(3),
        [(np.arange(N) % 3 > 0, np.arange(-500, 0)), (np.r_[0:900, 5, 5], np.arange(1000, 1400)[::-1])],
    ],
    ids=["shuffled", "growing", "odd"],
)  # fmt: skip
def test_any_splits(cv, crossed):
    model, grid, y, options = CASES["a host step in the middle"]
    search = GridSearchCV(model, grid, cv=cv, refit=False, **options)
    named_is_counted(crossed, search, (there(X), there(y)), smallest=2900)
    alike(search, GridSearchCV(model, grid, cv=cv, refit=False, **options).fit(X, y))


@QUIET
@pytest.mark.parametrize("name", ["a host step in the middle", "a host step at the end", "moments", "passes"])
def test_data_that_are_sent(name, gpu, crossed):
    """A device step after one of the host, where device='cuda' is set, and X and y are the host's."""
    model, grid, y, options = CASES[name]
    search = GridSearchCV(model, grid, cv=KFold(3), refit=False, **options)
    plan = named_is_counted(crossed, search, (X, y))
    first = plan.moves[0]
    assert (first.what, first.target, first.often, first.nbytes) == ("X", "device", "once a search", X.nbytes)
    with manyfit.config_context(device="auto"):
        alike(search, GridSearchCV(model, grid, cv=KFold(3), refit=False, **options).fit(X, y))


REFITS = {
    "predictions of moments": (Ridge(), {"alpha": [1.0, 2.0]}, Y, {}),
    "ridge one by one": CASES["ridge one by one"],
    "two host steps in a row": CASES["two host steps in a row"],
    "a host step at the end": CASES["a host step at the end"],
    "passes": CASES["passes"],
    "passes of numbers": CASES["passes of numbers"],
    "scikit-learn's own": CASES["scikit-learn's own"],
}


@QUIET
@pytest.mark.parametrize("y_there", [True, False], ids=["y there", "y here"])
@pytest.mark.parametrize("name", REFITS)
def test_the_refit_is_named(name, y_there, crossed):
    model, grid, y, options = REFITS[name]
    search = GridSearchCV(model, grid, cv=KFold(3), **options)
    if "passes" not in name:
        named_is_counted(crossed, search, (there(X), there(y) if y_there else y))
        return
    if not INDICES_OF_THE_HOST and name == "passes":
        return  # its scaler works on the host then
    # What iterates is sent some of the rows first; y of all comes home, and goes there as small numbers.
    plan = search.plan(there(X), there(y) if y_there else y)
    asked = [(move.target, move.nbytes) for move in plan.moves if move.often == "in the refit"]
    assert asked == [("host", 8 * N)] * y_there + [("device", N)]
    crossed.clear()
    with np.errstate(invalid="ignore"):
        search.fit(there(X), there(y) if y_there else y)
    assert crossed.count(("device", N)) == 2  # of the search, and of its refit


WEIGHTED = {name: case for name, case in CASES.items() if name not in (
    "scored by what a host step says",  # which takes no weights
    "svr one by one",  # one of its scorers takes none
)}  # fmt: skip


@QUIET
@pytest.mark.parametrize("w_there", [True, False], ids=["weights there", "weights here"])
@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_are_named(name, w_there, crossed):
    model, grid, y, options = WEIGHTED[name]
    last = f"{model.steps[-1][0]}__" if hasattr(model, "steps") else ""
    weights = np.random.default_rng(1).uniform(1.0, 2.0, N)
    search = GridSearchCV(model, grid, cv=KFold(3), refit=False, **options)
    given = {f"{last}sample_weight": there(weights) if w_there else weights}
    named_is_counted(crossed, search, (there(X), there(y)), **given)
    host = GridSearchCV(model, grid, cv=KFold(3), refit=False, **options)
    alike(search, host.fit(X, y, **{f"{last}sample_weight": weights}))


def test_targets_of_iterations_are_named(crossed):
    """Numbers that are no small integers go there as they are; classes as one small integer for each."""
    for model, grid, y, sizes in (
        (E.PoissonRegressor(), {"alpha": [0.1, 1.0]}, np.exp(0.1 * Y), [8 * N]),
        (E.LogisticRegression(), {"C": [0.1, 1.0]}, np.digitize(Y, [-2.0, 0.0, 2.0]), [4 * N]),
        (E.LogisticRegression(class_weight="balanced"), {"C": [0.1, 1.0]}, LABELS, [N, 8 * N]),
    ):
        search = GridSearchCV(model, grid, cv=KFold(3), refit=False)
        plan = search.plan(there(X), there(y))
        named = [move for move in plan.moves if move.what in ("y as numbers", "classes of rows")]
        assert [(m.target, m.often, m.times, m.nbytes) for m in named] == [
            ("device", "once a search", 1, size) for size in sizes
        ]
        crossed.clear()
        search.fit(there(X), there(y))
        assert sorted(n for to, n in crossed if to == "device" and n in (N, 4 * N, 8 * N)) == sizes


def test_data_that_are_fetched(crossed):
    with manyfit.config_context(device="cpu"):
        search = GridSearchCV(E.Ridge(), {"alpha": [0.1, 1.0]}, cv=3, refit=False)
        plan = named_is_counted(crossed, search, (there(X), there(Y)))
    assert [(move.what, move.target, move.times) for move in plan.moves] == [
        ("X", "host", 1),
        ("y", "host", 1),
    ]


@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_texts_stay(device, crossed):
    """Texts are hashed on the host, and what is made of them is sparse: nothing crosses."""
    model = make_pipeline(E.HashingVectorizer(n_features=64), E.LogisticRegression())
    search = GridSearchCV(model, LOGISTIC, cv=3, refit=False)
    with manyfit.config_context(device=device):
        plan = named_is_counted(crossed, search, (TEXTS, LABELS[:200]), smallest=1)
    assert plan.moves == () and "moves" not in str(plan)


@needs_newer
def test_each_boundary_is_named():
    model, grid, y, _ = CASES["a host step in the middle"]
    plan = GridSearchCV(model, grid, cv=KFold(3)).plan(there(X), there(y))
    text = str(plan).split("moves between host and device\n")[1]
    size = 8 * 3 * N * 4  # training and test rows of three folds
    size = f"{size / 2**10:.2f} kiB: scikit-learn works on it on the host only"
    assert f"output of MinMaxScaler for SimpleImputer, to the host once a fold, 6 arrays, {size}" in text
    assert "output of SimpleImputer, to the device once a fold, 6 arrays" in text
    assert text.count("\n") + 1 == len(plan.moves)
    assert plan._repr_html_().count("<li>") == len(plan.moves)
    told = sum(move.nbytes for move in plan.moves if move.target == "device")
    assert plan.bytes_to_device == told and f"bytes to devices: {told}" in str(plan)


def test_who_cannot_be_fitted_there_is_named():
    model, grid, y, _ = CASES["scikit-learn's own"]
    plan = GridSearchCV(model, grid, cv=KFold(3), refit=True).plan(there(X), there(y))
    assert [(move.what, move.times) for move in plan.moves] == [("X", 1), ("y", 1)]
    assert "PolynomialFeatures and SVR cannot be fitted there" in str(plan)


@pytest.mark.parametrize(
    "step",
    [
        E.PolynomialFeatures(3), E.PolynomialFeatures((2, 3), include_bias=False),
        E.PolynomialFeatures((0, 2)), E.PolynomialFeatures(3, interaction_only=True),
        E.PolynomialFeatures((0, 0)), E.PCA(2), E.PCA(),
        E.SelectKBest(k=3), E.SelectKBest(k="all"), E.SimpleImputer(), E.TruncatedSVD(2),
        sklearn.preprocessing.KBinsDiscretizer(3, encode="ordinal", strategy="uniform"),
        E.QuantileTransformer(n_quantiles=10),
    ],
    ids=repr,
)  # fmt: skip
def test_columns_are_those_that_a_fit_makes(step):
    assert n_columns(step, 4) == step.fit_transform(X, LABELS).shape[1]


def test_of_unknown_columns_nothing_is_said():
    assert n_columns(sklearn.preprocessing.OneHotEncoder(), 4) is None
    assert n_columns(E.PolynomialFeatures("two"), 4) is None
    assert n_columns(E.PCA(0.5), 4) is None and n_columns(E.PCA(2), None) is None


@QUIET
@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
def test_settings_that_cannot_be_fitted_are_planned_all_the_same():
    model = make_pipeline(E.PolynomialFeatures(), E.SVR(max_iter=20))
    grid = {"polynomialfeatures__degree": ["two", 2], "svr__C": [-1.0, 1.0]}
    search = GridSearchCV(model, grid, cv=3, refit=False)
    with manyfit.config_context(host_fallback="ignore"):
        assert search.plan(there(X), there(Y)).moves
        with pytest.warns(FitFailedWarning, match="9 fits failed"):
            search.fit(there(X), there(Y))
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [True, True, True, False]


@needs_newer
def test_a_size_that_only_a_fit_tells():
    model = make_pipeline(E.PCA(0.9), E.SVR())
    plan = GridSearchCV(model, CS, cv=KFold(3)).plan(there(X), there(Y))
    assert "output of PCA for SVR, to the host once a fold, 6 arrays, of a size that the fit tells" in str(
        plan
    )
