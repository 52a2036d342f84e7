"""Whatever a fit does to what it is given or around it, the next fit finds what it finds in scikit-learn."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.linalg
from sklearn import model_selection as sk
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics import make_scorer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import check_random_state

from manyfit import model_selection as ours
from manyfit.model_selection.sharing import _fit_and_score as _evaluate
from tests._covering import covering
from tests._same_results import WEIGHTS, X, Y, assert_same_results, both
from tests._search_fixtures import RANDOM_LASSO


class Constant(RegressorMixin, BaseEstimator):
    """Predicts what its `fit` put in `value_`."""

    def __init__(self, a=1.0):
        self.a = a

    def predict(self, X):
        return np.full(len(X), self.value_)


class ChangesWeights(Constant):
    def fit(self, X, y, sample_weight):
        sample_weight += 0.1
        sample_weight *= np.abs(y) ** self.a
        self.value_ = np.average(y, weights=sample_weight)
        return self


class ChangesInput(Constant):
    def fit(self, X, y):
        X[0] = [value + self.a for value in X[0]]
        y[0] += 100 * self.a
        self.value_ = np.mean(y) + np.mean(X)
        return self


@pytest.mark.invariant("No estimator or scorer can change the data of another fit")
@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("sharing", ["auto", "none"])
def test_weights_that_a_fit_changes(sharing, n_jobs):
    grid = {"a": [0.0, 1.0, 2.0]}
    given = {"sample_weight": WEIGHTS.copy()}
    both(ChangesWeights(), grid, fit_params=given, ours={"sharing": sharing}, n_jobs=n_jobs, refit=False)
    np.testing.assert_array_equal(given["sample_weight"], WEIGHTS)


@pytest.mark.invariant("No estimator or scorer can change the data of another fit")
@pytest.mark.parametrize("sharing", ["auto", "none"])
@pytest.mark.parametrize(
    "make", [np.ma.array, np.asarray, np.ndarray.tolist], ids=["masked", "array", "list"]
)
def test_rows_that_a_fit_changes(make, sharing):
    data, y = make(X.copy()), make(Y.copy())
    both(ChangesInput(), {"a": [0.0, 1.0, 2.0, 0.0]}, data, y, ours={"sharing": sharing}, cv=3, refit=False)
    np.testing.assert_array_equal(np.asarray(data), X)


def test_what_cannot_be_lent_is_named_in_the_plan():
    plan = ours.GridSearchCV(RANDOM_LASSO, {"alpha": [0.1, 1.0]}).plan(np.ma.array(X), Y)
    assert "X is a MaskedArray, which a fit could change for the next one" in str(plan)


@pytest.mark.invariant("No estimator or scorer can change the data of another fit")
def test_a_scorer_that_changes_what_it_is_given():
    """The fitted transformers that settings have in common are each setting's own to a callable scorer."""

    def score(estimator, X, y):
        right = estimator.score(X, y)
        estimator[0].mean_ += 1.0
        return right

    both(
        make_pipeline(StandardScaler(), RANDOM_LASSO),
        {"lasso__alpha": [0.1, 0.1, 1.0]},
        scoring=score,
        refit=False,
    )


class FailsAfterDrawing(Constant):
    """Draws, warns and then refuses the larger values of `a`."""

    def __init__(self, a=1.0, random_state=None):
        super().__init__(a)
        self.random_state = random_state

    def fit(self, X, y):
        self.value_ = check_random_state(self.random_state).normal()
        warnings.warn("about to fit", UserWarning, stacklevel=1)
        if self.a > 1:
            raise ValueError("too large")
        return self


@pytest.mark.invariant("A setting that fails costs only itself, and its first attempt leaves no trace")
@pytest.mark.parametrize("action", ["always", "default"])
def test_a_fit_that_fails_leaves_one_trace(action):
    grid, tables, messages = {"a": [0.0, 2.0, 1.0, 2.0, 0.5]}, [], []
    for search in (sk.GridSearchCV, ours.GridSearchCV):
        np.random.seed(0)
        globals().pop("__warningregistry__", None)  # nothing was shown yet
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter(action)
            tables.append(search(FailsAfterDrawing(), grid, cv=2, refit=False).fit(X, Y).cv_results_)
        messages.append([str(w.message) for w in caught if "about to fit" in str(w.message)])
    for i in range(2):
        np.testing.assert_array_equal(tables[1][f"split{i}_test_score"], tables[0][f"split{i}_test_score"])
    if action == "always":
        assert len(messages[1]) == len(messages[0]) == 10
    else:
        assert messages[1] and messages[0]


@pytest.mark.filterwarnings("ignore:One or more of the test scores:UserWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (Ridge(), {"alpha": [1.0, -1.0]}),
        (RANDOM_LASSO, {"alpha": [1.0, -1.0]}),
        (make_pipeline(StandardScaler(copy=False), RANDOM_LASSO), {"lasso__alpha": [0.1, 1.0]}),
        (ChangesInput(), {"a": [0.0, 1.0]}),
    ],
    ids=["shared", "failing", "copy=False", "writes"],
)
def test_each_fit_is_announced_once(estimator, grid, capsys):
    printed = []
    for search in (sk.GridSearchCV, ours.GridSearchCV):
        search(estimator, grid, cv=2, verbose=10, refit=False).fit(X, Y)
        lines = [line.split("total time")[0] for line in capsys.readouterr().out.splitlines()]
        printed.append(sorted(line.replace(".", "") for line in lines))
    assert printed[1] == printed[0] and sum("START" in line for line in printed[0]) == 4


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (
            make_pipeline(
                make_union(PCA(2, copy=np.False_, svd_solver="full"), FunctionTransformer()),
                DecisionTreeRegressor(max_depth=3, random_state=0),
            ),
            {"decisiontreeregressor__min_samples_leaf": [1, 5]},
        ),
        (
            make_pipeline(StandardScaler(), DecisionTreeRegressor(random_state=0)),
            {"standardscaler__copy": np.array([True, False]), "decisiontreeregressor__max_depth": [2, 3]},
        ),
        (
            make_pipeline(make_union(Normalizer(copy=np.False_), FunctionTransformer()), RANDOM_LASSO),
            {"lasso__alpha": [0.1, 1.0]},
        ),
        (Ridge(), {"copy_X": np.array([False]), "alpha": [0.1, 1.0]}),
        (make_pipeline(StandardScaler(copy=np.False_), Ridge()), {"ridge__alpha": [0.1, 1.0]}),
    ],
)
def test_numpys_false_is_false(estimator, grid):
    # A refit would write into rows that the other search reads next.
    both(estimator, grid, 10 * X + 3, Y, cv=3, return_train_score=True, refit=False)


class KernelRegression(RegressorMixin, BaseEstimator):
    """Solves in the memory of y, whatever its flags say."""

    def __init__(self, alpha=1.0):
        self.alpha = alpha

    def fit(self, X, y):
        self.X_, K = X, rbf_kernel(X, gamma=0.1)
        K.flat[:: len(K) + 1] += self.alpha
        self.dual_ = scipy.linalg.solve(K, y, assume_a="pos", overwrite_b=True)
        return self

    def predict(self, X):
        return rbf_kernel(X, self.X_, gamma=0.1) @ self.dual_


class Unlocks(KNeighborsRegressor):
    """Makes its input writeable, as is done about "buffer source array is read-only"."""

    def fit(self, X, y):
        X.setflags(write=True)
        X -= X.mean(axis=0)
        return super().fit(X, y)


class FallsBack(TransformerMixin, BaseEstimator):
    """Works in its input if that can be written into, and else on a copy."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        try:
            X *= 2.0
        except ValueError:
            return X * 2.0
        return X


def overwrites_targets(y_true, y_pred):
    y_true[:] = np.abs(y_true - y_pred)
    return y_true.mean()


def overwrites_rows(estimator, X, y):
    X[:, 0] = 0.0
    return -np.abs(estimator.predict(X) - y).mean()


WRITERS = [
    (KernelRegression(), {"alpha": [0.01, 0.1, 1.0]}, None),
    (make_pipeline(StandardScaler(), KernelRegression()), {"kernelregression__alpha": [0.01, 0.1]}, None),
    (make_pipeline(StandardScaler(), Unlocks()), {"unlocks__n_neighbors": [1, 3, 5]}, None),
    (make_pipeline(make_union(FallsBack(), "passthrough"), Ridge()), {"ridge__alpha": [1.0, 9.0]}, None),
    (
        make_pipeline(FunctionTransformer(), BaggingRegressor(Unlocks(), 2, random_state=0)),
        {"baggingregressor__estimator__n_neighbors": [1, 3]},
        None,
    ),
    (make_pipeline(StandardScaler(), RANDOM_LASSO), {"lasso__alpha": [0.1, 1.0]}, overwrites_rows),
    (
        Ridge(),
        {"alpha": [0.1, 1.0]},
        {"own": make_scorer(overwrites_targets), "max": "neg_max_error"},
    ),
    (
        make_pipeline(StandardScaler(), RANDOM_LASSO),
        {"lasso__alpha": [0.1, 1.0]},
        {"own": make_scorer(overwrites_targets), "max": "neg_max_error"},
    ),
]


@pytest.mark.parametrize(
    ("writer", "make", "return_train_score"),
    covering(range(len(WRITERS)), [np.asfortranarray, np.ascontiguousarray], [False, True], strength=1),
)
def test_who_writes_into_what_it_is_given(writer, make, return_train_score):
    estimator, grid, scoring = WRITERS[writer]
    data, y = make(X), Y.copy()
    options = {"scoring": scoring, "return_train_score": return_train_score, "refit": False, "cv": 3}
    both(estimator, grid, data, y, may_fail=True, **options)
    np.testing.assert_array_equal(data, X)
    np.testing.assert_array_equal(y, Y)


def test_items_of_lists_that_fits_have_in_common_are_left_to_scikit_learn():
    """In scikit-learn, too, all fits have the rows of a list of lists in common."""

    def halve(X):
        for row in X:
            row[0] /= 2.0
        return np.asarray(X)

    rows = X.tolist()
    model = make_pipeline(FunctionTransformer(halve), RANDOM_LASSO)
    grid = {"lasso__alpha": [0.1, 1.0]}
    plan = ours.GridSearchCV(model, grid).plan(rows, Y)
    assert "X holds objects that can be changed, and fits have them in common" in str(plan)
    theirs = sk.GridSearchCV(model, grid, refit=False).fit(X.tolist(), Y)
    search = ours.GridSearchCV(model, grid, refit=False).fit(rows, Y)
    assert_same_results(search, theirs)
    assert "X holds" not in str(ours.GridSearchCV(RANDOM_LASSO, {"alpha": [0.1, 1.0]}).plan(rows, Y))


def test_an_error_of_sharing_does_not_go_unseen(monkeypatch, caplog):
    """Fits are made again by scikit-learn, but it is logged, and the fixture of all tests here reads that."""

    def fails(*args, **kwargs):
        raise TypeError("our own error")

    monkeypatch.setattr(_evaluate, "share_prefixes", fails)
    both(make_pipeline(StandardScaler(), SVR(kernel="sigmoid")), {"svr__C": [1.0, 3.0]})
    assert "failed where steps are shared: TypeError('our own error')" in caplog.text
    caplog.clear()


@pytest.mark.filterwarnings("ignore:Scoring failed:UserWarning")
@pytest.mark.filterwarnings("ignore:One or more of the test scores:UserWarning")
def test_an_error_of_the_users_is_none_of_sharing(caplog):
    grid = {"kneighborsregressor__n_neighbors": [1, 1000]}
    search = both(make_pipeline(StandardScaler(), KNeighborsRegressor()), grid, may_fail=True)
    assert np.isnan(search.cv_results_["mean_test_score"]).any() and not caplog.records


@pytest.mark.filterwarnings("ignore:Singular matrix:UserWarning")
@pytest.mark.parametrize("error_score", ["raise", 0.5])
def test_a_fit_that_cannot_read_shared_rows_is_repeated(error_score, caplog):
    """additive_chi2 takes no read-only rows; with "raise" there is no score that stands for a failure."""
    both(KernelRidge(kernel="additive_chi2"), {"degree": [2, 3]}, np.abs(X), Y, error_score=error_score)
    assert "buffer source array is read-only" in caplog.text
    caplog.clear()
