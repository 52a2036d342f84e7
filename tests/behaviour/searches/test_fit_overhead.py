"""What scikit-learn repeats in each fit: signatures, checks of parameters, threads that wait for others."""

import inspect
from contextlib import nullcontext
from types import FunctionType

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.feature_selection import VarianceThreshold
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.metrics import fbeta_score, make_scorer
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import KFold
from sklearn.neighbors import NearestCentroid
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier
from threadpoolctl import ThreadpoolController

from manyfit.introspection.composites import fails_with_its_parts
from manyfit.model_selection import GridSearchCV
from manyfit.model_selection.running._sklearn_fits import FitInputs, make_fits
from manyfit.model_selection.sharing import _fit_overhead
from manyfit.model_selection.sharing._fit_overhead import keep_signatures

X, Y = make_classification(90, random_state=0)
NO_BETA = make_scorer(fbeta_score, beta=-1.0)
SCORES = [f"split{i}_test_score" for i in range(3)]


class OwnTree(DecisionTreeClassifier):
    """A class of a user, whose constructor is scikit-learn's."""

    _parameter_constraints = DecisionTreeClassifier._parameter_constraints


@pytest.fixture
def checked(monkeypatch):
    """The classes whose parameters were checked, in order."""
    found, check = [], BaseEstimator._validate_params
    monkeypatch.setattr(
        BaseEstimator, "_validate_params", lambda self: (found.append(type(self).__name__), check(self))[1]
    )
    return found


# ----------------------------------------------------------------------------------------- signatures


@pytest.mark.parametrize("cls", [RandomForestClassifier, DecisionTreeClassifier, ExtraTreeClassifier])
def test_kept_signatures_are_those_of_the_constructors(cls):
    keep_signatures([BaggingClassifier(), make_pipeline(StandardScaler(), RandomForestClassifier())])
    kept = vars(cls.__init__)["__signature__"]
    own = cls.__init__
    plain = FunctionType(own.__code__, {}, argdefs=own.__defaults__, closure=own.__closure__)
    plain.__kwdefaults__ = own.__kwdefaults__
    assert str(inspect.signature(plain)) == str(kept) == str(inspect.signature(own))
    assert sorted(cls().get_params()) == sorted(name for name in kept.parameters if name != "self")


def test_constructors_of_others_are_left_as_they_are():
    class Own(RandomForestClassifier):
        def __init__(self, depth=2):
            super().__init__(max_depth=depth)

    keep_signatures([[("own", Own())], 3, "text", None, np.ones(3)])
    assert not vars(Own.__init__)


class _Node(BaseEstimator):
    """Estimators that hold each other, and a value that fails when it is asked for an attribute."""

    __module__ = None

    def __init__(self):
        self.others = []
        self._broken = _Broken()


class _Broken:
    def __getattr__(self, name):
        raise KeyError(name)


def test_estimators_that_hold_each_other_are_seen_once():
    nodes = [_Node() for _ in range(12)]
    for node in nodes:
        node.others = [*nodes, RandomForestClassifier()]
    keep_signatures(nodes)  # along each path it would not end
    assert len(list(_fit_overhead._classes(nodes))) == 36  # with the tree that each forest holds


# ------------------------------------------------------------------------------ checks of parameters


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_parameters_of_a_setting_are_checked_once(checked, n_jobs):
    grid = {"max_depth": [2, 3], "min_samples_leaf": [1, 4]}
    search = GridSearchCV(
        DecisionTreeClassifier(random_state=0), grid, cv=3, scoring="accuracy", n_jobs=n_jobs, refit=False
    )
    with parallel_config("threading"):
        search.fit(X, Y)
    once = checked.count("DecisionTreeClassifier")
    # On two workers a fit may be sent before another one of its setting has ended.
    assert once == 4 if n_jobs is None else 4 <= once <= 12
    checked.clear()
    wanted = SklearnSearch(DecisionTreeClassifier(random_state=0), grid, cv=3, refit=False).fit(X, Y)
    assert checked.count("DecisionTreeClassifier") == 12
    for name in SCORES:
        np.testing.assert_array_equal(search.cv_results_[name], wanted.cv_results_[name])


def test_a_worker_skips_checks_that_another_fit_has_made(checked):
    def fit(estimator, X, y, parameters):
        return {"estimator": estimator.set_params(**parameters).fit(X, y)}

    inputs = FitInputs(fit, DecisionTreeClassifier(), X, Y, {}, None, "warn", nullcontext)
    number, results, _ = make_fits(7, inputs, [{"parameters": {"max_depth": 2}}] * 3, [False, True, True])
    assert (number, [one["estimator"].get_depth() for one in results]) == (7, [2, 2, 2])
    assert checked == ["DecisionTreeClassifier"]


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_parameter_that_is_refused_is_refused_in_each_fit(n_jobs):
    grid = {"max_depth": [2, -1], "criterion": ["gini", "none"]}
    found, wanted = (
        cls(DecisionTreeClassifier(random_state=0), grid, cv=3, n_jobs=n_jobs, refit=False)
        for cls in (GridSearchCV, SklearnSearch)
    )
    with pytest.warns(FitFailedWarning, match="9 fits failed out of a total of 12"):
        found.fit(X, Y)
    with pytest.warns(FitFailedWarning, match="9 fits failed out of a total of 12"):
        wanted.fit(X, Y)
    for name in SCORES:
        np.testing.assert_array_equal(found.cv_results_[name], wanted.cv_results_[name])


def test_parameters_of_other_classes_are_checked_in_each_fit(checked):
    GridSearchCV(OwnTree(random_state=0), {"max_depth": [2, 3]}, cv=3, refit=False).fit(X, Y)
    assert checked.count("OwnTree") == 6


@pytest.mark.filterwarnings("ignore:Scoring failed", "ignore:One or more of the test scores are non-finite")
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_metric_that_refuses_its_parameter_refuses_it_in_each_fit(n_jobs):
    grid = {"max_depth": [2, 3]}
    with parallel_config("threading"):
        search = GridSearchCV(
            DecisionTreeClassifier(), grid, cv=8, scoring=NO_BETA, n_jobs=n_jobs, refit=False
        )
        search.fit(X, Y)
    assert all(np.isnan(search.cv_results_[f"split{i}_test_score"]).all() for i in range(8))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_parameter_that_is_refused_inside_an_estimator_that_goes_on_is_refused_in_each_fit(n_jobs):
    # Without checks the better one of the two is what the inner search must not fit.
    inner = {"min_impurity_decrease": [-1.0, 0.6]}
    estimator = SklearnSearch(DecisionTreeClassifier(random_state=0), inner, cv=2)
    grid = {"estimator__max_depth": [2, 3]}
    found, wanted = (
        cls(estimator, grid, cv=8, n_jobs=n_jobs, refit=False) for cls in (GridSearchCV, SklearnSearch)
    )
    with parallel_config("threading"):
        found.fit(X, Y)
    wanted.fit(X, Y)
    for i in range(8):
        name = f"split{i}_test_score"
        np.testing.assert_array_equal(found.cv_results_[name], wanted.cv_results_[name])


@pytest.mark.parametrize(
    ("estimator", "fails"),
    [
        (DecisionTreeClassifier(), True),
        (make_pipeline(StandardScaler(), make_pipeline("passthrough", DecisionTreeClassifier())), True),
        (ColumnTransformer([("scaled", StandardScaler(), [0]), ("rest", "drop", [1])]), True),
        (ColumnTransformer([("scaled", StandardScaler(), [0])], remainder="passthrough"), True),
        (ColumnTransformer([("scaled", StandardScaler(), [0])], remainder=StandardScaler()), False),
        (ColumnTransformer([("scaled", StandardScaler(), make_column_selector("x"))]), False),
        (SklearnSearch(DecisionTreeClassifier(), {}), False),
        (make_pipeline(StandardScaler(), SklearnSearch(DecisionTreeClassifier(), {})), False),
        ([("search", SklearnSearch(DecisionTreeClassifier(), {}))], False),
        (CountVectorizer(dtype=np.float64), True),
        (CountVectorizer(analyzer=str.split), False),
        (str.split, False),
        ("gini", True),
    ],
)
def test_a_composite_fails_with_its_parts(estimator, fails):
    assert fails_with_its_parts(estimator) is fails


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
def test_a_parameter_of_a_part_that_the_first_fit_has_no_columns_for_is_refused():
    data = X[:, :3].copy()
    data[30:, 0] = 1.0  # no column is left for the last scaler where the first rows are tested
    scalers = ColumnTransformer([("two", StandardScaler(), [0, 1])], remainder=StandardScaler())
    estimator = make_pipeline(VarianceThreshold(), scalers, NearestCentroid())
    grid = {"columntransformer__remainder__with_mean": [True, "yes"]}
    found, wanted = (cls(estimator, grid, cv=KFold(3), refit=False) for cls in (GridSearchCV, SklearnSearch))
    found.fit(data, Y)
    wanted.fit(data, Y)
    assert [np.isnan(wanted.cv_results_[name]).tolist() for name in SCORES] == [
        [False, False],
        [False, True],
        [False, True],
    ]
    for name in SCORES:
        np.testing.assert_array_equal(found.cv_results_[name], wanted.cv_results_[name])


def _words(text):
    try:
        StandardScaler(with_mean="yes").fit([[1.0], [2.0]])
    except ValueError:
        return text.split()
    return []


def test_functions_of_a_vectorizer_meet_checks_in_each_fit():
    texts = [f"{'red' if label else 'blue'} {i % 3}" for i, label in enumerate(Y)]
    estimator = make_pipeline(HashingVectorizer(analyzer=_words), DecisionTreeClassifier(random_state=0))
    grid = {"decisiontreeclassifier__criterion": ["gini", "entropy"]}
    found, wanted = (cls(estimator, grid, cv=3, refit=False) for cls in (GridSearchCV, SklearnSearch))
    found.fit(texts, Y)
    wanted.fit(texts, Y)
    for name in SCORES:
        np.testing.assert_array_equal(found.cv_results_[name], wanted.cv_results_[name])


# ------------------------------------------------------------------------------------------- threads


@pytest.fixture
def threads(monkeypatch):
    """Two threads of BLAS, on any machine; returns a function that notes those within fits of a class."""
    controller, found = ThreadpoolController().select(user_api="blas"), []

    def blas():
        return max(library["num_threads"] for library in controller.info())

    def watch(cls):
        fit = cls.fit

        def watched(self, X, y, **params):
            found.append(blas())
            return fit(self, X, y, **params)

        monkeypatch.setattr(cls, "fit", watched)
        return found

    with controller.limit(limits=2):
        if blas() < 2:
            pytest.skip("this BLAS has one thread")
        yield watch
        assert blas() == 2


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (LogisticRegression(max_iter=3), {"C": [0.1, 1.0]}),
        (make_pipeline(StandardScaler(), LogisticRegression(max_iter=3)), {"logisticregression__C": [1.0]}),
        (PoissonRegressor(max_iter=3), {"alpha": [0.1, 1.0]}),
    ],
)
@pytest.mark.filterwarnings("ignore:lbfgs failed")
def test_fits_on_openmp_and_blas_have_one_thread_of_blas(threads, estimator, grid):
    last = getattr(estimator, "steps", [("", estimator)])[-1][1]
    found = threads(type(last))
    GridSearchCV(estimator, grid, cv=3, sharing="none").fit(X, Y)
    n_settings = len(next(iter(grid.values())))
    assert found == [1] * (3 * n_settings + 1)


def test_other_fits_and_those_of_a_large_X_keep_their_threads(threads, monkeypatch):
    found = threads(NearestCentroid)
    GridSearchCV(NearestCentroid(), {"shrink_threshold": [None, 0.1]}, cv=3, refit=False).fit(X, Y)
    assert found == [2] * 6
    found = threads(MLPClassifier)
    found.clear()
    model = MLPClassifier((3,), max_iter=500, tol=1.0, random_state=0)
    GridSearchCV(model, {"alpha": [0.1]}, cv=3, refit=False).fit(X, Y)
    assert found == [2] * 3
    found = threads(LogisticRegression)
    found.clear()
    behind_products = make_pipeline(PCA(3), LogisticRegression())
    GridSearchCV(behind_products, {"logisticregression__C": [1.0]}, cv=3, refit=False, sharing="none").fit(
        X, Y
    )
    assert found == [2] * 3
    monkeypatch.setattr(_fit_overhead, "MOST_BYTES", X.nbytes - 1)
    found = threads(PoissonRegressor)
    found.clear()
    GridSearchCV(PoissonRegressor(), {"alpha": [0.1]}, cv=3, refit=False, sharing="none").fit(X, Y)
    assert found == [2] * 3


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fits_of_a_step_that_takes_the_place_of_another_have_its_threads(threads):
    logistic, network = LogisticRegression(), MLPClassifier((3,), max_iter=2, random_state=0)
    threads(MLPClassifier)
    found = threads(LogisticRegression)
    for first, last in ((logistic, network), (network, logistic)):
        pipeline = make_pipeline(StandardScaler(), first)
        GridSearchCV(pipeline, {pipeline.steps[-1][0]: [last]}, cv=3, refit=False, sharing="none").fit(X, Y)
    assert found == [2] * 3 + [1] * 3


class OwnPipeline(Pipeline):
    """A class of a user, with steps of a form of its own."""

    def fit(self, X, y):
        self.steps_ = [step for _, step, _ in self.steps]
        self.steps_[-1].fit(X, y)
        return self

    def get_params(self, deep=True):
        return {"steps": self.steps, "verbose": self.verbose}

    def set_params(self, **params):
        vars(self).update(params)
        return self

    def score(self, X, y):
        return self.steps_[-1].score(X, y)


def test_steps_of_a_form_of_their_own_are_not_read():
    estimator = OwnPipeline([("a", StandardScaler(), 1), ("b", LogisticRegression(), 2)])
    assert not _fit_overhead.uses_blas_and_openmp(estimator)
    found, wanted = (
        cls(estimator, {"verbose": [False, True]}, cv=3).fit(X, Y) for cls in (GridSearchCV, SklearnSearch)
    )
    for name in SCORES:
        np.testing.assert_array_equal(found.cv_results_[name], wanted.cv_results_[name])
