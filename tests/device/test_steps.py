"""Steps shared on a device: the host's scores, its number of fits, and memory that is freed."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import manyfit
from manyfit import estimators as E
from manyfit.arrays import (
    TransferCache,
    array_namespace,
    container_to_host,
    remember_host_copy,
    share_host_copies,
    to_device,
    to_host_once,
    transfers,
)
from manyfit.model_selection import cross_validate, learning_curve, validation_curve
from manyfit.model_selection.sharing._fold_cache import FoldCache
from tests._covering import covering
from tests.behaviour.iterations._optimum import Optimum as GridSearchCV
from tests.behaviour.metrics._crossings import HOST, memory_there, there
from tests.device import _both
from tests.device._both import alike
from tests.device.test_transfers import X, Y, needs_newer

DEGREES = {"polynomialfeatures__degree": [1, 2, 3]}
LABELS = np.array(["no", "perhaps", "yes"])[np.digitize(Y, [-2.0, 2.0])]
COLUMNS = E.ColumnTransformer(
    [("q", E.QuantileTransformer(n_quantiles=20), [0, 1]), ("m", E.MinMaxScaler(), [2])]
)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
QUIET = {"host_fallback": "ignore"}


def both(model, grid, y, rtol=1e-9, **options):
    with manyfit.config_context(**QUIET), np.errstate(invalid="ignore"):
        return _both.on_both(model, grid, X, y, rtol=rtol, **options)


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("model", "grid", "y", "options"),
    [
        (
            make_pipeline(
                E.QuantileTransformer(n_quantiles=20), E.LogisticRegression(tol=1e-9, max_iter=1000)
            ),
            {"logisticregression__C": [0.1, 1.0]},
            LABELS,
            {"scoring": ["accuracy", "neg_log_loss"]},
        ),
        (
            make_pipeline(
                "passthrough",
                make_pipeline(E.MinMaxScaler(), E.SimpleImputer()),
                E.SVR(kernel="sigmoid", max_iter=50),
            ),
            {"svr__C": [0.1, 1.0], "pipeline__simpleimputer__strategy": ["mean", "median"]},
            Y,
            {},
        ),
        (
            make_pipeline(
                E.FeatureUnion([("s", E.StandardScaler()), ("c", COLUMNS)]),
                E.SVR(kernel="sigmoid", max_iter=50),
            ),
            {"svr__C": [0.1, 1.0], "featureunion__s__with_mean": [True, False]},
            Y,
            {"return_train_score": True},
        ),
    ],
    ids=["three classes", "nested", "held"],
)
def test_as_on_the_host(model, grid, y, options):
    rtol = 1e-9 if not hasattr(model[-1], "tol") or model[-1].tol > 1e-8 else 1e-6
    found, wanted = both(model, grid, y, rtol, cv=KFold(3, shuffle=True, random_state=0), **options)
    for count in ("fits_done", "fits_shared", "transformer_fits", "steps_repeated"):
        assert getattr(found.report_, count) == getattr(wanted.report_, count), count


@pytest.mark.parametrize(
    ("model", "grid", "y", "on_device", "on_host"),
    [
        (
            make_pipeline(E.PolynomialFeatures(), E.PoissonRegressor(tol=1e-9, max_iter=1000)),
            {"poissonregressor__alpha": [0.1, 1.0], "polynomialfeatures__degree": [1, 2]},
            np.exp(Y / 10.0),
            (0, 12, 6),
            (0, 12, 0),
        ),
        (
            make_pipeline(E.StandardScaler(), E.PolynomialFeatures(), E.LinearRegression()),
            DEGREES | {"linearregression__fit_intercept": [True, False]},
            Y,
            (18, 0, 12),
            (9, 9, 0),  # beside an intercept the column of ones leaves the rank open
        ),
    ],
    ids=["poisson", "least squares"],
)
def test_products_are_encoded_on_the_host_only(model, grid, y, on_device, on_host):
    """Fits made, fits shared, and fits of transformers: each fold of a device makes products of its own."""
    rtol = 1e-6 if hasattr(model[-1], "max_iter") else 1e-9
    found, wanted = both(
        model, grid, y, rtol, cv=KFold(3, shuffle=True, random_state=0), return_train_score=True
    )
    for report, counts in ((found.report_, on_device), (wanted.report_, on_host)):
        assert (report.fits_done, report.fits_shared, report.transformer_fits) == counts


@needs_newer
def test_a_step_on_the_host_is_handed_each_array_once():
    model = make_pipeline(E.MinMaxScaler(), E.SVR(kernel="sigmoid", max_iter=20))
    with manyfit.config_context(**QUIET), transfers() as crossed:
        GridSearchCV(model, {"svr__C": [0.1, 0.2, 0.3, 0.4]}, cv=3, refit=False).fit(there(X), Y)
    assert crossed.synchronisations == 6  # training and test rows of three folds
    assert crossed.bytes_to_host == 3 * X.nbytes


class Stranger(E.PolynomialFeatures):
    """Nobody knows what it does with its input."""


class Writer(TransformerMixin, BaseEstimator):
    """Writes into its input: what is lent to it on the host is read-only, and it is then given its own."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        X *= 2.0
        return X


HELD = [("stranger", Writer()), ("scaled", E.MinMaxScaler())]


@pytest.mark.cases(2)
@pytest.mark.invariant("No estimator or scorer can change the data of another fit")
@needs_newer
@pytest.mark.parametrize(
    ("first", "grid"),
    [
        (Stranger(), {}),
        (E.FeatureUnion(HELD), {}),
        (E.ColumnTransformer([(*HELD[0], slice(0, 2))], remainder="passthrough"), {}),
        (E.ColumnTransformer([("f", FunctionTransformer(Writer().transform), [0])]), {}),
        (E.FeatureUnion(HELD[1:]), {"first__transformer_list": [HELD, HELD[::-1]]}),
    ],
    ids=["step", "union", "columns", "function", "setting"],
)
def test_rows_are_not_lent_to_strangers(first, grid):
    model, grid = Pipeline([("first", first), ("ridge", E.Ridge())]), {"ridge__alpha": [0.1, 1.0]} | grid
    search = GridSearchCV(model, grid, cv=3, refit=False)
    why = "one by one: rows of a device are not shared with estimators that may write into them"
    assert why in str(search.plan(there(X), there(Y)))
    search.fit(there(X), there(Y))
    assert (search.report_.fits_done, search.report_.transformer_fits) == (search.report_.fits_requested, 0)
    alike(search, GridSearchCV(model, grid, cv=3, refit=False).fit(X, Y))


@needs_newer
def test_steps_of_scikit_learns_own_are_known_inside_of_columns_too():
    """Wrapped to be shared they are fitted on the host, as when they are not."""
    model = make_pipeline(E.ColumnTransformer([("s", StandardScaler(), [0, 1])]), E.KNeighborsRegressor())
    found, wanted = both(model, {"kneighborsregressor__n_neighbors": [1, 2, 3]}, Y, cv=3)
    assert found.report_.transformer_fits == wanted.report_.transformer_fits


def test_a_step_that_is_told_to_write_has_rows_of_its_own():
    model = make_pipeline(E.MinMaxScaler(copy=False), E.SVR(kernel="sigmoid", max_iter=20))
    Xd, before = there(X), X.copy()
    search = GridSearchCV(model, {"svr__C": [0.1, 1.0]}, cv=3, refit=False)
    with manyfit.config_context(**QUIET):
        search.fit(Xd, there(Y))
    np.testing.assert_array_equal(np.asarray(Xd.to_device(HOST)), before)
    alike(search, GridSearchCV(model, {"svr__C": [0.1, 1.0]}, cv=3, refit=False).fit(X, Y))


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
def test_a_setting_that_fails_leaves_the_others():
    model = make_pipeline(E.MinMaxScaler(), E.SVR(kernel="sigmoid", max_iter=20))
    search = GridSearchCV(model, {"svr__C": [-1.0, 1.0]}, cv=3, refit=False)
    with manyfit.config_context(**QUIET), pytest.warns(sklearn.exceptions.FitFailedWarning):
        search.fit(there(X), there(Y))
    assert np.isnan(search.cv_results_["mean_test_score"][0]) and search.report_.transformer_fits == 3


@needs_newer
def test_the_host_can_be_refused_for_a_step():
    model = make_pipeline(E.SimpleImputer(), E.Ridge())
    search = GridSearchCV(model, {"ridge__alpha": [0.1, 1.0]}, cv=3, refit=False, error_score="raise")
    with (
        manyfit.config_context(host_fallback="error"),
        pytest.raises(manyfit.exceptions.HostFallbackError, match="SimpleImputer works on the host"),
    ):
        search.fit(there(X), there(Y))


@pytest.mark.invariant("A search frees the memory of its device")
@needs_newer
@pytest.mark.parametrize(
    ("shuffle", "error_score", "model", "grid"),
    covering(
        [False, True],
        [np.nan, "raise"],
        {
            "moments": (
                make_pipeline(E.SimpleImputer(), E.PolynomialFeatures(), E.Ridge()),
                {"ridge__alpha": [0.1, 1.0]},
            ),
            "passes": (
                make_pipeline(E.PolynomialFeatures(), E.LogisticRegression()),
                {"logisticregression__C": [0.1, 1.0]},
            ),
            "steps": (
                make_pipeline(E.PolynomialFeatures(), E.SVR(kernel="sigmoid", max_iter=5)),
                {"svr__C": [0.1, 1.0], **DEGREES},
            ),
        }.items(),
        strength=1,
    ),
)
def test_all_memory_is_the_devices_again(model, grid, error_score, shuffle):
    rows = np.random.default_rng(0).normal(size=(6000, 8))
    y = rows[:, 0] + np.random.default_rng(1).normal(size=6000)
    y = y > 0.0 if "logisticregression__C" in grid else y
    Xd, yd = there(rows), there(y + 0.0)
    cv = KFold(3, shuffle=shuffle, random_state=0 if shuffle else None)
    search = GridSearchCV(model, grid, cv=cv, refit=False, error_score=error_score)
    with manyfit.config_context(**QUIET), memory_there(Xd, yd) as used:
        search.fit(Xd, yd)
    assert used[0] == 0 < used[1]


def test_outputs_that_do_not_fit_are_made_again():
    model, grid = (
        make_pipeline(E.PolynomialFeatures(), E.SVR(kernel="sigmoid", max_iter=5)),
        {"svr__C": [0.1, 1.0], **DEGREES},
    )
    found, _ = both(model, grid, Y, cv=3, memory_limit="64kB")
    assert found.report_.transformer_fits > 9 and found.report_.steps_repeated > 0


def test_cross_validation_and_curves_share_there_too():
    model = make_pipeline(E.PolynomialFeatures(), E.Ridge())
    options = {"param_name": "ridge__alpha", "param_range": [0.1, 1.0], "cv": 3}
    found = []
    with manyfit.config_context(**QUIET):
        for data in ((there(X), there(Y)), (X, Y)):
            scores = cross_validate(model, *data, cv=3)["test_score"]
            found.append([scores, *validation_curve(model, *data, **options)])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@pytest.mark.parametrize("y", [LABELS, LABELS[0] == LABELS], ids=["texts", "bools"])
def test_groups_may_lie_there_where_labels_do_not(y):
    groups, model = np.arange(len(X)) % 5, E.GaussianNB()
    wanted = cross_validate(model, X, y, cv=GroupKFold(3), groups=groups)["test_score"]
    with manyfit.config_context(**QUIET):
        found = cross_validate(model, there(X), y, cv=GroupKFold(3), groups=there(groups))["test_score"]
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
        with sklearn.config_context(enable_metadata_routing=True):
            params = {"groups": there(groups)}
            # y of a device hid the splitter's requests.
            data = there(X), there((y == y[0]).astype(int))
            found = cross_validate(model, *data, cv=GroupKFold(3), params=params)["test_score"]
    wanted = cross_validate(model, X, y == y[0], cv=GroupKFold(3), groups=groups)["test_score"]
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


@needs_newer
def test_a_grid_of_numpys_numbers():
    """GaussianNB multiplies its own by an array of the device."""
    grid, model = {"gaussiannb__var_smoothing": np.logspace(-9, -1, 3)}, E.GaussianNB()
    both(make_pipeline(E.PolynomialFeatures(), model), grid, LABELS, cv=3, error_score="raise")
    smoothing = np.float64(1e-3)
    fitted = clone(model).set_params(var_smoothing=smoothing).fit(there(X), LABELS)
    assert fitted.var_smoothing is smoothing


def test_a_search_by_the_score_of_several_outputs():
    y = np.stack([Y > 0.0, Y > 1.0], axis=1).astype(int)
    both(E.MultiOutputClassifier(E.GaussianNB()), {"estimator__var_smoothing": [1e-9, 0.1]}, y, cv=3)


@pytest.mark.parametrize("y_there", [True, False])
def test_learning_in_parts_is_on_the_host(y_there):
    y, options = (Y > 0.0).astype(int), {"cv": 3, "exploit_incremental_learning": True}
    wanted = learning_curve(E.GaussianNB(), X, y, **options)
    with pytest.warns(manyfit.exceptions.HostFallbackWarning, match="learning_curve .* incremental learning"):
        found = learning_curve(E.GaussianNB(), there(X), there(y) if y_there else y, **options)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)


# What it is made of


def test_arrays_of_other_libraries_are_lent_where_that_is_allowed():
    rows, cache = there(X), FoldCache(device_arrays=True)
    assert cache.share(rows) is rows and cache.share(rows) is rows and cache.token(rows) is not None
    other = there(X)
    assert cache.token(other) is None  # content that is equal is not looked at
    assert cache.protected(rows, 99) is rows and cache.token(rows) != 99  # a step that hands on its input
    assert cache.protected(other, 99) is other and cache.token(other) == 99
    alone = FoldCache()
    assert alone.share(rows) is rows and alone.token(rows) is None and not alone.can_share(rows)


def test_copies_at_home_are_made_once_and_go_with_their_array():
    rows, copies = there(X), TransferCache(weak=True)
    with transfers() as crossed, share_host_copies(copies):
        first = to_host_once(rows)
        assert to_host_once(rows) is first and not first.flags.writeable
        made, here = there(X), X.copy()
        remember_host_copy(made, here)
        noted = to_host_once(made)
        assert np.shares_memory(noted, here) and not noted.flags.writeable
        near = to_device(X.copy(), HOST, array_namespace(rows))  # on the host already, and read by several
        assert not to_host_once(near).flags.writeable
        assert to_host_once(X) is X and to_host_once("text") == "text"
    assert crossed.synchronisations == 1
    np.testing.assert_array_equal(first, X)
    del rows, made, near
    gc.collect()
    assert not copies._copies
    with transfers() as crossed:
        assert to_host_once(there(X)).flags.writeable == container_to_host(there(X)).flags.writeable
    assert crossed.synchronisations == 2


@pytest.mark.cases(2)
@needs_newer
@pytest.mark.parametrize("last", [E.Ridge(), E.LinearRegression(), E.KNeighborsRegressor()])
@pytest.mark.parametrize("named", [False, True])
def test_a_scorer_that_writes_into_its_rows_has_copies(last, named):
    def writes(estimator, X, y):
        found = float(np.mean((container_to_host(estimator.predict(X)) - container_to_host(y)) ** 2))
        X[:, 0] = 0.0
        y[:] = 1.0
        return found

    scoring = {"own": writes, "r2": "r2"} if named else writes
    model, grid = make_pipeline(E.MinMaxScaler(), last), {"minmaxscaler__clip": [True, False]}
    options = {"cv": KFold(3), "scoring": scoring, "refit": False}
    Xd, yd = there(X), there(Y)
    with manyfit.config_context(**QUIET):
        found = GridSearchCV(model, grid, **options).fit(Xd, yd)
    np.testing.assert_array_equal(container_to_host(Xd), X)
    np.testing.assert_array_equal(container_to_host(yd), Y)
    # scikit-learn hands each fit rows of its own.
    alike(found, sklearn.model_selection.GridSearchCV(model, grid, **options).fit(X.copy(), Y.copy()))


@needs_newer
def test_settings_that_are_arrays_of_a_device():
    labels, priors = (Y > 0).astype(int), np.asarray([0.2, 0.8])
    options = {"cv": 3, "refit": True}
    with manyfit.config_context(**QUIET):
        for data in ((there(X), there(labels)), (X, labels)):
            grid = {"priors": [None, there(priors)]}
            found = GridSearchCV(E.GaussianNB(), grid, **options).fit(*data)
            wanted = GridSearchCV(E.GaussianNB(), {"priors": [None, priors]}, **options).fit(X, labels)
            alike(found, wanted)
            assert found.cv_results_["params"][1]["priors"] is grid["priors"][1]  # the user's own
