"""What a search on a cluster is cut into, and how a worker does it."""

from __future__ import annotations

import contextvars
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn import get_config, model_selection, neighbors
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.cluster import KMeans
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils._param_validation import InvalidParameterError

from manyfit.cluster.pool.task_pool import TaskPool
from manyfit.cluster.worker.task_context import TaskContext, still_wanted, task_context, use_task_context
from manyfit.estimators import Cost, KNeighborsClassifier, family_of
from manyfit.folds import check_blas_threads
from manyfit.folds._blas_threads import before_pass
from manyfit.model_selection import GridSearchCV, cross_validate
from manyfit.model_selection.planning import _planner
from manyfit.model_selection.planning._plan import Group
from manyfit.model_selection.results._result_sink import ResultSink
from manyfit.model_selection.running.cluster import _dask_executor as _on_cluster
from manyfit.model_selection.running.cluster._worker_items import Common, run_item
from manyfit.model_selection.sharing import _fold_store
from manyfit.model_selection.strategies import _iterations
from manyfit.model_selection.strategies._individual_fits import INDIVIDUAL_FITS
from manyfit.model_selection.strategies._iterations import ITERATIONS, cut_group
from manyfit.model_selection.strategies._strategy import WorkItem
from tests._covering import spread
from tests.behaviour.iterations._optimum import Optimum
from tests.behaviour.metrics._crossings import there
from tests.cluster._clusters import within
from tests.differential._subject import sharing_whatever_it_costs

X, Y = make_classification(400, 8, random_state=0)
C = np.logspace(-3, 2, 6)


@pytest.fixture(scope="module")
def client():
    with within(2) as client:
        yield client


@pytest.fixture
def seen(watch):
    """Items and what they have in common, of all searches."""
    sent = []
    watch(
        _on_cluster,
        "run_on_cluster",
        lambda client, function, items, common, **more: sent.append((list(items), common)),
    )
    return sent


def run_items(items, common, left=None):
    """What a task of these items finds; `left` is what its worker keeps for the next one."""
    with use_task_context(TaskContext(lambda: True, True, {} if left is None else left)):
        outcomes = [run_item(item, common) for item in items]
    return {pair: result for outcome in outcomes for pair, result in outcome.results.items()}


@pytest.mark.parametrize("operations", [0.0, 1e9, 1e10, 4e10, 1e15])
@pytest.mark.parametrize("n_slots", [1, 2, 5, 100])
@pytest.mark.parametrize("n_groups", [1, 3])
def test_a_group_is_cut_for_the_slots_where_it_is_long(operations, n_slots, n_groups):
    settings = (3, 5, 8, 9, 11, 20, 21)
    group = Group(ITERATIONS, settings, "", 35, 0, operations=operations)
    parts = cut_group(group, n_slots, n_groups)
    assert [c for part in parts for c in part] == list(settings)
    assert all(parts)
    assert len(parts) <= max(1, -(-n_slots // n_groups))
    assert len(parts) == 1 or operations / len(parts) >= _iterations.PART_OPERATIONS
    if operations == 1e15:
        assert len(parts) == min(7, -(-n_slots // n_groups))


@pytest.mark.invariant("A group that is divided among workers stays within tol")
@pytest.mark.parametrize("steps", [(), (StandardScaler(),)])
def test_the_parts_of_a_long_group(steps, client, seen, monkeypatch):
    monkeypatch.setattr(_iterations, "PART_OPERATIONS", 1.0)
    monkeypatch.setattr(family_of(LogisticRegression), "cost", lambda *_: Cost(10.0, 100.0))
    model = make_pipeline(*steps, LogisticRegression())
    grid = {"logisticregression__C": C}
    local = GridSearchCV(model, grid, scoring="neg_log_loss", return_train_score=True, client=False).fit(X, Y)
    there = GridSearchCV(model, grid, scoring="neg_log_loss", return_train_score=True).fit(X, Y)
    ((items, _),) = seen
    assert [item.candidates for item in items] == [(0, 1, 2), (3, 4, 5)]
    for key in ("split0_test_score", "mean_test_score", "std_test_score", "mean_train_score"):
        # The gradient at each is a hundredth of 1e-4, the loss nearer than its square.
        np.testing.assert_allclose(there.cv_results_[key], local.cv_results_[key], rtol=0, atol=1e-9)
    assert there.best_params_ == local.best_params_
    assert (there.report_.fits_shared, there.report_.fits_done) == (30, 0)
    assert local.report_.passes < there.report_.passes < 3 * local.report_.passes


def test_iterations_that_nobody_wants_end_at_the_next_pass(client, seen):
    Optimum(LogisticRegression(), {"C": C}, refit=False).fit(X, Y)
    ((items, common),) = seen
    asked = []

    def wanted():
        asked.append(None)
        return len(asked) < 3

    with use_task_context(TaskContext(wanted, True, None)), sharing_whatever_it_costs():
        (left,) = (run_item(item, common) for item in items)
    enough = len(asked)
    assert 3 <= enough <= 4  # as often as it was asked, and once for what comes after the group
    assert set(left.results) | set(left.refused) == {(c, i) for c in range(6) for i in range(5)}
    assert left.refused


def test_a_task_that_starts_when_another_secedes_has_a_context_of_its_own():
    """Dask runs it in another thread, in a copy of the context of the one that seceded."""
    found, asked = [], []

    def other_task():
        before_pass()
        found.append((still_wanted(), task_context().scratch))

    with use_task_context(TaskContext(lambda: False, True, {})), check_blas_threads(lambda: asked.append(1)):
        other = threading.Thread(target=contextvars.copy_context().run, args=(other_task,))
        other.start()
        other.join()
        assert not still_wanted()
    assert found == [(True, None)] and not asked


def test_an_error_of_a_fit_is_its_own_although_the_scheduler_is_lost_meanwhile(client, monkeypatch):
    monkeypatch.setattr(TaskPool, "explain", lambda pool, error: RuntimeError("the scheduler is lost"))
    search = GridSearchCV(TREE, {"max_depth": [2, -1]}, refit=False, error_score="raise")
    with pytest.raises(InvalidParameterError, match="max_depth"):
        search.fit(X, Y)


def test_short_fits_of_a_task_cut_their_rows_once(client, seen, watch):
    grid = {"max_depth": [1, 2, 3], "min_samples_leaf": [1, 5]}
    local = GridSearchCV(TREE, grid, client=False, refit=False).fit(X, Y)
    GridSearchCV(TREE, grid, refit=False).fit(X, Y)
    ((items, common),) = seen
    cuts = []
    watch(_fold_store, "safe_split", lambda *args: cuts.append(args))
    for (c, i), result in run_items(items, common).items():
        assert result["test_scores"] == local.cv_results_[f"split{i}_test_score"][c]
        assert result["fit_time"] > 0
    assert len(cuts) == 2 * 5  # rows to train on and to score of five splits, for thirty fits


class Counted(list):
    """Settings that count how often all of them are read."""

    reads = 0

    def __iter__(self):
        type(self).reads += 1
        return super().__iter__()


@pytest.mark.parametrize("place", [np.asarray, there])
def test_no_fit_of_a_task_reads_all_settings(place, client, seen, monkeypatch):
    """With many settings each fit would take longer for it than itself."""
    GridSearchCV(TREE, {"max_depth": [1, 2, 3]}, refit=False).fit(X, Y)
    ((items, common),) = seen
    settings = Counted({"n_neighbors": k} for k in (1, 2, 3))
    data = place(X), place(Y)
    job = replace(common.job, estimator=KNeighborsClassifier(), candidates=settings, X=data[0], y=data[1])
    job = replace(job, options=replace(job.options, host_fallback="ignore"))
    monkeypatch.setattr(Counted, "reads", 0)
    results = run_items(items, replace(common, job=job))
    assert len(results) == 15
    assert Counted.reads <= 3  # once a task, not once a fit
    for (c, i), result in results.items():
        train, test = job.splits.indices(i)
        model = neighbors.KNeighborsClassifier(**settings[c]).fit(X[train], Y[train])
        assert result["test_scores"] == model.score(X[test], Y[test])


class WritesOnItsRows(RegressorMixin, BaseEstimator):
    def __init__(self, shift=0.0):
        self.shift = shift

    def fit(self, X, y=None, sample_weight=None):
        X += self.shift
        X.sort(axis=0)
        if y is not None:
            y[:] = -y
        self.mean_ = float(np.average(X[:, 0], weights=sample_weight))
        return self

    def predict(self, X):
        X *= 2.0
        return X[:, 0] + self.mean_


def of_no_number(estimator, X, y):
    if estimator.get_depth() > 1:
        raise ValueError("no score")
    return 1.0


HINGE = LinearSVC(loss="hinge", random_state=0, max_iter=10_000)  # its fits are not shared
TREE = DecisionTreeClassifier(random_state=0)
SHORT = {
    "weights, two metrics, training scores": (
        (TREE, {"max_depth": [1, 2]}, X, Y),
        {"scoring": ["accuracy", "roc_auc"], "refit": False, "return_train_score": True},
        {"sample_weight": np.random.default_rng(0).uniform(size=len(Y))},
    ),
    "rows in Fortran's order": ((TREE, {"max_depth": [2, 3]}, np.asfortranarray(X), Y), {}, {}),
    "fits and scores that write": ((WritesOnItsRows(), {"shift": [0.0, 1.0]}, X, Y * 1.0), {}, {}),
    "a kernel": ((SVC(kernel="precomputed"), {"C": [0.1, 1.0]}, X @ X.T, Y), {}, {}),
    "no y": ((KMeans(n_clusters=2, n_init=1, random_state=0), {"max_iter": [1, 2]}, X, None), {}, {}),
    "texts": ((TREE, {"max_depth": [1, 2]}, X, np.array(["no", "yes"])[Y]), {}, {}),
    "several targets": ((DecisionTreeRegressor(random_state=0), {"max_depth": [1, 2]}, X, X[:, :2]), {}, {}),
    "scores that fail": (
        (TREE, {"max_depth": [1, 2]}, X, Y),
        {"scoring": of_no_number, "error_score": -3.0},
        {},
    ),
}


@pytest.mark.cases(2)
@pytest.mark.filterwarnings("ignore:Scoring failed")
@pytest.mark.parametrize("case", spread(SHORT, 4))
def test_short_fits_are_those_of_scikit_learn(case, client, seen):
    (model, grid, data, target), options, params = SHORT[case]
    options = {"refit": False, "cv": 3, **options}
    theirs = model_selection.GridSearchCV(model, grid, **options).fit(data, target, **params)
    GridSearchCV(model, grid, sharing="none", **options).fit(data, target, **params)
    ((items, common),) = seen
    results = run_items(items, replace(common, shares_rows=True))
    assert len(results) == 6
    for (c, i), result in results.items():
        for role in ("test", "train") if "return_train_score" in options else ("test",):
            found = result[f"{role}_scores"]
            for name, score in found.items() if isinstance(found, dict) else [("score", found)]:
                assert score == theirs.cv_results_[f"split{i}_{role}_{name}"][c]


def test_short_fits_give_their_estimators(client, seen):
    found = cross_validate(TREE, X, Y, cv=5, return_estimator=True)
    ((items, common),) = seen
    common = replace(common, job=replace(common.job, candidates=[{}, {}]))
    fitted = [result["estimator"] for result in run_items(items, common).values()]
    for mine, other in zip(fitted, found["estimator"], strict=True):
        np.testing.assert_array_equal(mine.predict(X), other.predict(X))


@pytest.mark.parametrize(("shares_rows", "made"), [(False, [1, -1, 2]), (True, [1, -1, -1, 2])])
def test_a_short_fit_that_fails_is_scikit_learns_failure(shares_rows, made, client, seen, watch):
    GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}, refit=False).fit(X, Y)
    ((_, common),) = seen
    candidates, tries = [{"max_depth": 1}, {"max_depth": -1}, {"max_depth": 2}], []
    watch(DecisionTreeClassifier, "fit", lambda self, *args, **kwargs: tries.append(self.max_depth))
    options = replace(common.job.options, error_score=-7.0)
    job = replace(common.job, candidates=candidates, options=options)
    items = [WorkItem(INDIVIDUAL_FITS, ((c, 0),)) for c in range(3)]
    common = Common(job, get_config(), [*warnings.filters], shares_rows=shares_rows)
    results = list(run_items(items, common).values())
    assert [result["fit_error"] is None for result in results] == [True, False, True]
    assert results[1]["test_scores"] == -7.0
    assert "InvalidParameterError" in results[1]["fit_error"]
    assert tries == made  # a fit that fails on shared rows is made again


class OfTwo(Exception):
    """One that cannot be copied, nor be pickled and had again."""

    def __init__(self, what, where):
        super().__init__(f"{what} at {where}")


class FailsAt(DecisionTreeClassifier):
    def fit(self, X, y, sample_weight=None, check_input=True):
        if self.max_depth > 1:
            self._fail()
        return super().fit(X, y, sample_weight, check_input)

    def _fail(self):
        raise OfTwo("no tree", self.max_depth)


def test_a_short_fit_that_fails_is_quoted_as_by_scikit_learn(client, seen):
    options = {"cv": 2, "error_score": np.nan, "return_estimator": True}
    cross_validate(FailsAt(max_depth=1), X, Y, **options)
    ((_, common),) = seen
    job = replace(common.job, estimator=FailsAt(max_depth=3), candidates=[{}, {}])
    common = replace(common, job=job, shares_rows=True)
    item = WorkItem(INDIVIDUAL_FITS, ((0, 0),))
    texts, fitted = [], []
    for left in (None, {}):  # on rows of its own, and where others share theirs
        with use_task_context(TaskContext(lambda: True, True, left)):
            result = run_item(item, common).results[0, 0]
        texts.append(result["fit_error"])
        fitted.append(result["estimator"])
    assert texts[0] == texts[1]
    assert "in _fail" in texts[0] and "OfTwo: no tree at 3" in texts[0]
    assert [(type(one), one.max_depth, hasattr(one, "tree_")) for one in fitted] == [(FailsAt, 3, False)] * 2


def test_rows_of_a_single_setting_are_not_kept(client, seen):
    cross_validate(TREE, X, Y, cv=5)
    ((items, common),) = seen
    left = {}
    run_items(items, replace(common, shares_rows=True), left)
    assert left["context"].rows_of_task is None


def test_finished_parts_of_a_long_group_are_not_answered_again(client, seen, tmp_path, monkeypatch):
    monkeypatch.setattr(_iterations, "PART_OPERATIONS", 1.0)
    monkeypatch.setattr(family_of(LogisticRegression), "cost", lambda *_: Cost(10.0, 100.0))
    options = {"sharing": "optimum", "refit": False, "checkpoint": tmp_path / "file"}
    search = GridSearchCV(LogisticRegression(), {"C": C}, **options)
    add = ResultSink.add

    def stops(self, results, **how):
        add(self, results, **how)
        if self._checkpoint is not None:  # not on a worker
            raise KeyboardInterrupt

    with monkeypatch.context() as once:
        once.setattr(ResultSink, "add", stops)
        with pytest.raises(KeyboardInterrupt):
            search.fit(X, Y)
    kept = {
        entry["params"]["C"]: entry["test_scores"] for entry in search.partial_results_ if not entry["split"]
    }
    assert len(kept) == 3
    search.fit(X, Y)
    (before, _), (after, _) = seen
    # Which of the two parts came first is the workers' business.
    left = [item.candidates for item in before if C[item.candidates[0]] not in kept]
    assert len(before) == 2 and [item.candidates for item in after] == left
    assert (search.report_.fits_restored, search.report_.fits_shared) == (15, 15)
    for c, score in enumerate(search.cv_results_["split0_test_score"]):
        assert score == kept.get(C[c], score)


def test_little_data_are_one_task(client, seen):
    GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}).fit(X, Y * 1.0)
    ((items, _),) = seen
    assert [(item.strategy.kind, len(item.pairs)) for item in items] == [("moments", 10)]


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    ("model", "grid", "kind"),
    [
        (GaussianNB(), {"var_smoothing": [1e-9, 1e-3, 0.1]}, "class moments"),
        (Ridge(), {"alpha": [0.1, 1.0]}, "moments"),
        (LogisticRegression(), {"C": C}, "shared iterations"),
        (make_pipeline(MinMaxScaler(clip=True), Ridge()), {"ridge__alpha": [0.1, 1.0]}, "shared in folds"),
        (make_pipeline(StandardScaler(), HINGE), {"linearsvc__C": [0.1, 1.0]}, "shared steps"),
        (TREE, {"max_depth": [1, 2]}, "one by one"),
    ],
)
def test_workers_plan_nothing(model, grid, kind, client, seen, watch):
    plans = []
    watch(_planner._Planner, "prepare", plans.append)
    search = Optimum(model, grid, refit=False).fit(X, Y)
    assert len(plans) == 1  # by the search; workers of this cluster are threads of its process
    assert {item.strategy.kind for items, _ in seen for item in items} == {kind}
    assert [group["kind"] for group in search.report_.groups] == [kind]
    local = Optimum(model, grid, refit=False, client=False).fit(X, Y)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], local.cv_results_["mean_test_score"])
