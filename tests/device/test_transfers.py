"""The report of a search on a device: what crossed by reason, and that the totals are the sums of it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import sklearn.linear_model
import sklearn.preprocessing
import sklearn.svm
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

import manyfit
from manyfit import estimators as E
from manyfit._compat import DEVICE_TAKES_HOST_INDICES
from manyfit.arrays import Crossings
from tests._covering import covering
from tests.behaviour.iterations._optimum import Optimum as GridSearchCV
from tests.behaviour.metrics._crossings import there
from tests.device._both import alike

N = 600
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 4))
Y = X @ np.arange(4.0) + rng.normal(size=N)
LABELS = (Y > 0).astype(int)
ALPHAS, CS = {"ridge__alpha": [0.1, 1.0, 10.0]}, {"svr__C": [0.1, 1.0], "svr__max_iter": [20]}
DEGREES = {"polynomialfeatures__degree": [1, 2]}
ALONE = {"sharing": "none"}
LOGISTIC = {"logisticregression__C": [0.1, 1.0]}
QUIET = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
# Before 1.9 scikit-learn cannot cut rows for drop-in estimators on a device: all are fitted on the host.
needs_newer = pytest.mark.skipif(
    not DEVICE_TAKES_HOST_INDICES, reason="fitted on the host before scikit-learn 1.9"
)

# Not shared, and fitted on the host.
SIGMOID = E.SVR(kernel="sigmoid", max_iter=20)
CASES = {
    "all on the device": (
        make_pipeline(E.StandardScaler(), E.PolynomialFeatures(), E.Ridge()), ALPHAS, Y, {}
    ),
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
    "a host step at the end": (make_pipeline(E.PolynomialFeatures(), SIGMOID), DEGREES | CS, Y, {}),
    "scored by what a host step says": (
        make_pipeline(E.MinMaxScaler(), E.RandomForestClassifier(3, random_state=0)),
        {"randomforestclassifier__max_depth": [3, 5]},
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
    "svr one by one": (SIGMOID, {"C": [0.1, 1.0]}, Y, {"scoring": ["r2", "neg_max_error"]}),
    "steps one by one": (
        make_pipeline(E.SimpleImputer(), E.GaussianNB()),
        {"gaussiannb__var_smoothing": [1e-9, 1e-3]},
        LABELS,
        ALONE | {"scoring": ["accuracy", "roc_auc"], "return_train_score": True},
    ),
    "parts": (
        make_pipeline(
            E.FeatureUnion([("s", E.StandardScaler()), ("i", E.SimpleImputer())]), SIGMOID
        ),
        {"svr__C": [0.1, 1.0]},
        Y,
        {},
    ),
    "scikit-learn's own": (
        make_pipeline(sklearn.preprocessing.PolynomialFeatures(), sklearn.svm.SVR(kernel="sigmoid")),
        CS | DEGREES, Y, {},
    ),
}  # fmt: skip
# Fits of transformers on a device and on the host, which makes products of columns once for all folds.
ONCE_ON_HOST = {
    "all on the device": (6, 0),
    "a host step in the middle": (9, 0),
    "predictions": (9, 0),
    "scikit-learn's own": (6, 2),
}


def add_up(report, crossed=None):
    """Whether the totals of a report are the sums over its labels, and what is watched from outside."""
    sums = Crossings()
    for label, one in report.transfers.items():
        assert any(one), label
        sums = sums.plus(one)
    assert (report.bytes_to_device, report.bytes_to_host) == (sums.bytes_to_device, sums.bytes_to_host)
    assert report.synchronisations == sums.to_host
    if crossed is not None:
        arrays, nbytes = Counter(to for to, _ in crossed), Counter()
        for to, size in crossed:
            nbytes[to] += size
        assert sums == (arrays["device"], nbytes["device"], arrays["host"], nbytes["host"])


def fitted(name, data, **params):
    model, grid, _, options = CASES[name]
    search = GridSearchCV(model, grid, cv=KFold(3), refit=False, **options)
    with manyfit.config_context(host_fallback="ignore"), np.errstate(invalid="ignore"):
        return search.fit(*data, **params)


@pytest.mark.cases(6)
@pytest.mark.invariant("Every transfer between host and device is counted under its label")
@QUIET
@pytest.mark.parametrize(
    ("y_there", "name"),
    covering({"y on the device": True, "y on the host": False}.items(), CASES, strength=1),
)
def test_the_totals_are_the_sums_over_labels(name, y_there, crossed):
    model, grid, y, options = CASES[name]
    search = fitted(name, (there(X), there(y) if y_there else y))
    report = search.report_
    add_up(report, crossed)
    assert "other" not in report.transfers
    host = GridSearchCV(model, grid, cv=KFold(3), refit=False, **options).fit(X, y)
    assert host.report_.transfers == {} and "crossed" not in str(host.report_)
    alike(search, host)
    if options.get("sharing") != "none":
        assert report.fits_done == host.report_.fits_done
        fits = report.transformer_fits, host.report_.transformer_fits
        assert fits == ONCE_ON_HOST[name] if name in ONCE_ON_HOST else fits[0] == fits[1]


@pytest.mark.cases(2)
@QUIET
@pytest.mark.parametrize("w_there", [True, False], ids=["weights on the device", "weights on the host"])
@pytest.mark.parametrize(
    "name", ["predictions of moments", "passes", pytest.param("ridge one by one", marks=needs_newer)]
)
def test_weights_have_a_label(name, w_there, crossed):
    model = CASES[name][0]
    last = f"{model.steps[-1][0]}__" if hasattr(model, "steps") else ""
    weights = np.random.default_rng(1).uniform(1.0, 2.0, N)
    given = {f"{last}sample_weight": there(weights) if w_there else weights}
    report = fitted(name, (there(X), there(CASES[name][2])), **given).report_
    add_up(report, crossed)
    assert report.transfers["weights"].to_device > 0 and "other" not in report.transfers


@pytest.mark.parametrize("name", ["a host step in the middle", "moments", "passes"])
def test_data_that_are_sent(name, gpu, crossed):
    """X of the host goes to the device once a search where device='cuda' is set."""
    report = fitted(name, (X, CASES[name][2])).report_
    add_up(report, crossed)
    assert report.transfers["X"] == (1, X.nbytes, 0, 0)


def test_data_that_are_fetched(crossed):
    with manyfit.config_context(device="cpu"):
        search = GridSearchCV(E.Ridge(), {"alpha": [0.1, 1.0]}, cv=3, refit=False).fit(there(X), there(Y))
    add_up(search.report_, crossed)
    assert search.report_.transfers == {"X": (0, 0, 1, X.nbytes), "y": (0, 0, 1, Y.nbytes)}


def test_sums_cross_together_and_wait_once():
    report = fitted("moments", (there(X), there(Y))).report_
    (label,) = report.transfers
    assert label == "moments" and report.synchronisations == 1
    assert report.transfers[label] == (0, 0, 1, report.bytes_to_host)


@needs_newer
def test_each_host_step_has_its_labels():
    """Training and test rows of three folds, however many settings are fitted to them."""
    search = fitted("a host step in the middle", (there(X), there(Y)))
    transfers, rows = search.report_.transfers, X.nbytes
    both = {"fit_transform of SimpleImputer", "transform of SimpleImputer"}
    assert both <= transfers.keys()
    moved = transfers["fit_transform of SimpleImputer"].plus(transfers["transform of SimpleImputer"])
    assert (moved.to_device, moved.bytes_to_device) == (moved.to_host, moved.bytes_to_host) == (6, 3 * rows)
    assert "crossed: transform of SimpleImputer" in str(search.report_)
    assert f"3 arrays to the device, {rows} bytes; 3 arrays to the host, {rows} bytes" in str(search.report_)


@QUIET
def test_who_is_fitted_on_the_host_takes_X_once():
    report = fitted("scikit-learn's own", (there(X), there(Y))).report_
    assert report.transfers == {"X": (0, 0, 1, X.nbytes), "y": (0, 0, 1, Y.nbytes)}


@QUIET
def test_what_is_left_to_scikit_learn_counts_too():
    """Reports of several rounds are joined with their labels."""
    search = GridSearchCV(E.LogisticRegression(), {"C": [0.1, 1.0]}, cv=KFold(3), refit=False, verify=1)
    with manyfit.config_context(host_fallback="ignore"):  # before scikit-learn 1.9 it fits on the host
        report = search.fit(there(X), there(LABELS)).report_
    add_up(report)
    assert report.merged(report).transfers == {name: one.plus(one) for name, one in report.transfers.items()}
    add_up(report.merged(report))
