"""The plan's figure of a device's memory against what arrays there take, over families, shapes and splits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import (
    GammaRegressor,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    TweedieRegressor,
)
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

from manyfit.estimators._losses import (
    HalfBinomial,
    HalfMultinomial,
    HalfTweedie,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from manyfit.estimators._objective import Rowwise
from manyfit.folds import _device_passes
from tests.metrics._crossings import memory_there, there
from tests.model_selection._optimum import Optimum as GridSearchCV

# A grid of this many settings, and the name of the parameter.
MODELS = {
    "logistic": (LogisticRegression(tol=0.1), "C"),
    "balanced": (LogisticRegression(tol=0.1, class_weight="balanced"), "C"),
    "scaled logistic": (
        make_pipeline(StandardScaler(), LogisticRegression(tol=0.1)),
        "logisticregression__C",
    ),
    "svc": (LinearSVC(tol=0.1), "C"),
    "svr": (LinearSVR(loss="squared_epsilon_insensitive", tol=0.1, epsilon=0.1), "C"),
    "poisson": (PoissonRegressor(tol=0.1), "alpha"),
    "gamma": (GammaRegressor(tol=0.1), "alpha"),
    "tweedie": (TweedieRegressor(power=1.5, tol=0.1), "alpha"),
    "ridge": (Ridge(), "alpha"),
    "scaled ridge": (make_pipeline(StandardScaler(), Ridge()), "ridge__alpha"),
    "pca ridge": (make_pipeline(PCA(2), Ridge()), "ridge__alpha"),
}
CLASSIFIERS = ("logistic", "balanced", "scaled logistic", "svc")


def used_and_planned(name, n, p, m, *, classes=2, cv=5, dtype=np.float64, weighted=False, **options):
    """Bytes on the device at most while a search runs, and what its plan says."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    signal = X[:, :3].sum(axis=1) + rng.normal(size=n)
    X = np.round(5 * X).astype(dtype) if np.dtype(dtype).kind == "i" else X.astype(dtype)
    if name in CLASSIFIERS:
        y = np.digitize(signal, np.quantile(signal, np.arange(1, classes) / classes))
    else:
        y = signal if "ridge" in name or name == "svr" else rng.poisson(np.exp(0.3 * signal)) + 0.5
    model, parameter = MODELS[name]
    given = f"{parameter.rpartition('__')[0]}__sample_weight" if "__" in parameter else "sample_weight"
    params = {given: rng.uniform(1.0, 2.0, n)} if weighted else {}
    Xd, yd = there(X), there(y)
    search = GridSearchCV(model, {parameter: np.logspace(-2, 1, m)}, cv=cv, refit=False, **options)
    plan = search.plan(Xd, yd, **params)
    with memory_there(Xd, yd) as used:
        search.fit(Xd, yd, **params)
    assert search.report_.fits_done == 0
    assert used[0] == 0  # all of it is the device's again
    return used[1], plan.device_bytes


def holds(used, planned):
    """Whether a figure is within a fifth of what was used."""
    return planned / 1.2 <= used <= 1.2 * planned


SHUFFLED = KFold(5, shuffle=True, random_state=0)
LOSS = {"scoring": "neg_log_loss"}


@pytest.mark.parametrize(
    ("name", "n", "p", "m", "more"),
    [
        ("logistic", 20_000, 4, 10, {"classes": 3}),
        ("logistic", 20_000, 4, 60, {}),
        ("logistic", 2_000, 200, 3, {"classes": 3}),  # Hessians do
        ("logistic", 20_000, 4, 10, {"return_train_score": True}),  # scores do
        ("balanced", 20_000, 4, 3, {"classes": 3, "weighted": True, "cv": SHUFFLED}),
        ("scaled logistic", 20_000, 4, 3, {"dtype": np.float32, "cv": 3}),
        ("svc", 20_000, 4, 3, {"classes": 10}),
        ("svr", 100_000, 4, 3, {"cv": KFold(5)}),
        ("poisson", 20_000, 30, 10, {"dtype": np.int32}),
        ("pca ridge", 20_000, 4, 10, {"weighted": True}),
    ],
    ids=str,
)
def test_the_plan_says_what_memory_is_used_there(name, n, p, m, more):
    used, planned = used_and_planned(name, n, p, m, **more)
    assert holds(used, planned), (used, planned)


WIDE = [
    *((name, n, p, m, {}) for name in MODELS for n in (20_000, 100_000) for p, m in ((4, 60), (30, 3))),
    *(("logistic", 20_000, p, m, {"classes": K}) for K in (3, 10) for p in (2, 30) for m in (1, 10)),
    *(("logistic", n, 200, 3, {"classes": K}) for n in (2_000, 20_000) for K in (2, 3)),
    *(("logistic", 20_000, 4, 60, {"cv": cv, "scoring": one}) for cv in (3, 10) for one in ("roc_auc", None)),
    *(
        ("logistic", 20_000, 30, 10, {"cv": cv, "dtype": t})
        for cv in (KFold(5), SHUFFLED)
        for t in ("f4", "i4")
    ),
    *(
        ("poisson", 20_000, 30, 10, {"scoring": one, "weighted": True})
        for one in ("r2", "neg_mean_absolute_error")
    ),
    *(("logistic", 100_000, p, 3, {"classes": K, **LOSS}) for K in (2, 3) for p in (2, 30)),
    *(("svc", 20_000, 30, 10, {"classes": K, "weighted": True}) for K in (2, 3)),
    *(("ridge", n, 30, 10, {"scoring": "neg_median_absolute_error"}) for n in (20_000, 100_000)),
    *(("ridge", 20_000, p, 10, {"dtype": t, "cv": SHUFFLED}) for p in (4, 200) for t in ("f4", "i4")),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "n", "p", "m", "more"), WIDE, ids=str)
def test_the_plan_says_what_memory_is_used_there_whatever_is_searched(name, n, p, m, more):
    used, planned = used_and_planned(name, n, p, m, **more)
    assert holds(used, planned), (used, planned)


@pytest.mark.parametrize(
    "loss",
    [
        HalfBinomial(),
        HalfMultinomial(3),
        HalfTweedie(1.0),
        HalfTweedie(1.5),
        HalfTweedie(2.0),
        SquaredHinge(),
        SquaredEpsilonInsensitive(0.1),
    ],
    ids=str,
)
def test_losses_take_as_many_arrays_as_blocks_are_made_for(loss):
    rng, K, m, b = np.random.default_rng(0), loss.n_outputs, 40, 1000
    targets, weight = rng.integers(1, 3, size=(K, b)), rng.uniform(1.0, 2.0, b)
    rowwise = Rowwise(loss, 1.0 * targets, weight, np.array([[1.0, 2.0], [3.0, 4.0]]), targets[0] - 1)
    rowwise, splits, Z = rowwise.beside(there(targets)), np.repeat([0, 1], m // 2), rng.normal(size=(K, m, b))
    rowwise.gradient(there(Z), slice(0, b), splits)  # weights of classes go there
    for derive, arrays in (
        (rowwise.gradient, _device_passes.OF_GRADIENT + (1 / K if K > 1 else 0.125)),
        (rowwise.curvature, _device_passes.OF_CURVATURE + (0.125 if K > 1 else 0.0)),
    ):
        with memory_there() as used:
            own = there(Z)
            derive(own, slice(0, b), splits)
        # Beside them are the largest of the outputs or a mask, and a few rows of weights.
        assert used[1] <= (arrays + 0.3) * Z.nbytes, (used[1] / Z.nbytes, derive)
