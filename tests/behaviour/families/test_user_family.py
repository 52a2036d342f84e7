"""A user's own family joins a search; one that fails leaves its settings to scikit-learn."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
import scipy.sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import get_scorer, make_scorer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from manyfit.estimators import (
    Cost,
    Family,
    FoldRows,
    LinearAnswers,
    MomentSums,
    Predictions,
    register_affine_step,
    register_family,
)
from manyfit.families.protocol import _registry as registry
from manyfit.folds import Unsupported
from manyfit.metrics import LinearPredictors
from manyfit.model_selection import GridSearchCV
from tests._same_results import X, Y, both


class Shrunk(RegressorMixin, BaseEstimator):
    """Predicts a multiple of the mean of y."""

    def __init__(self, factor=1.0, flag=False):
        self.factor = factor
        self.flag = flag

    def fit(self, X, y):
        if self.factor < 0:
            raise ValueError(f"factor={self.factor!r} is negative")
        self.value_ = self.factor * np.mean(y) + 50 * self.flag
        return self

    def predict(self, X):
        return np.full(len(X), self.value_)


class ShrunkFamily(Family):
    serves = (Shrunk,)
    free = frozenset({"factor"})
    result = "exact"
    reads = MomentSums()
    calls = 0

    def check(self, estimator, settings):
        if estimator.flag or any(s["factor"] < 0 for s in settings):
            raise Unsupported("flags and negative factors are not served")

    def cost(self, estimator, settings, shape):
        return Cost(1.0, 2.0)

    def fit_many(self, estimator, settings, folded):
        for i in range(folded.n_splits):
            self.calls += 1
            view = folded.view(i)
            factors = np.array([s["factor"] for s in settings])
            at_origin = factors[:, None] * view.weighted.y_mean
            coef = np.zeros((view.origin.size, len(settings), at_origin.shape[1]))
            yield LinearAnswers(LinearPredictors(coef, at_origin, view.origin))


class RowsFamily(ShrunkFamily):
    reads = FoldRows()

    def fit_many(self, estimator, settings, folded):
        for i in range(folded.n_splits):
            fold = folded.fold(i)
            answers = {}
            for role, rows in (("test", fold.X_test), ("train", fold.X_train_score)):
                values = [np.full(len(rows), s["factor"] * fold.y_train.mean()) for s in settings]
                answers[role] = {"predict": np.stack(values)}
            yield Predictions(**answers)


GRID = {"factor": [0.5, 1.0, 2.0]}


@pytest.mark.parametrize("family", [ShrunkFamily, RowsFamily])
@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error", ["r2", "neg_max_error"]])
def test_a_registered_family_answers(family, scoring, registered):
    registered(family())
    search = both(Shrunk(), GRID, scoring=scoring, refit=False, return_train_score=True)
    assert search.report_.fits_done == 0
    assert type(search.plan(X, Y).groups[0].family) is family


@pytest.mark.parametrize("family", [ShrunkFamily, RowsFamily])
@pytest.mark.parametrize("first", [StandardScaler(), PolynomialFeatures()])
def test_behind_steps(family, first, registered):
    registered(family())
    search = both(make_pipeline(first, Shrunk()), {"shrunk__factor": [0.5, 1.0]}, return_train_score=True)
    assert search.report_.fits_done == 0


@pytest.mark.filterwarnings("ignore:One or more of the test scores:UserWarning")
def test_what_it_refuses_is_fitted_by_sklearn(registered):
    registered(ShrunkFamily())
    with pytest.warns(Warning, match="fits failed"):
        search = both(Shrunk(), {"factor": [1.0, 2.0, -1.0], "flag": [True, False]}, refit=False)
    assert search.report_.fits_done == 4 * 5
    assert "flags and negative factors are not served" in str(search.plan(X, Y))


@pytest.mark.invariant("Work is shared only if that costs fewer operations")
def test_dearer_than_one_by_one_is_not_shared(registered):
    class Dear(ShrunkFamily):
        def cost(self, estimator, settings, shape):
            return Cost(2.0, 1.0)

    registered(Dear())
    search = both(Shrunk(), GRID)
    assert search.report_.fits_done == 15
    assert "one by one: sharing would take more operations here" in str(search.plan(X, Y))


@pytest.mark.invariant("scikit-learn takes over from a family that fails")
@pytest.mark.parametrize("base", [ShrunkFamily, RowsFamily])
@pytest.mark.parametrize(
    "error", [Unsupported("not today"), RuntimeError("a bug"), np.linalg.LinAlgError("no")]
)
def test_a_family_that_fails_is_replaced_by_sklearn(base, error, registered):
    class Failing(base):
        def fit_many(self, estimator, settings, folded):
            raise error

    registered(Failing())
    report = both(Shrunk(), GRID, may_fail=True).report_
    assert report.fits_done == 15 and sum(report.left_to_sklearn.values()) == 15
    if type(error) is RuntimeError:
        assert set(report.left_to_sklearn) == {"shared work failed (Failing.fit_many: RuntimeError: a bug)"}
        with pytest.raises(AssertionError, match="shared work failed"):
            both(Shrunk(), GRID)


def test_a_setting_left_alone_costs_only_itself(registered):
    class Alone(ShrunkFamily):
        def fit_many(self, estimator, settings, folded):
            for answers in super().fit_many(estimator, settings, folded):
                yield LinearAnswers(answers.linear, {1: "for a reason"})

    registered(Alone())
    report = both(Shrunk(), GRID).report_
    assert report.fits_done == 5 and report.left_to_sklearn == {"for a reason": 5}


def test_an_affine_step_of_the_user():
    class Twice(StandardScaler):
        def transform(self, X, copy=None):
            return 2 * np.asarray(X)

    class TwiceStep:
        serves = (Twice,)

        def check(self, step):
            pass

        def apply(self, step, view):
            return view.scaled(np.zeros(view.n_features), np.full(view.n_features, 0.5))

    register_affine_step(TwiceStep())
    try:
        search = both(make_pipeline(Twice(), Ridge()), {"ridge__alpha": [0.1, 1.0]})
        assert search.report_.fits_done == 0 and search.report_.transformer_fits == 0
    finally:
        del registry._affine_steps[Twice]
    assert GridSearchCV(make_pipeline(Twice(), Ridge()), {"ridge__alpha": [1, 2]}).plan(X, Y).passes == 0


class PredictsFromMoments(ShrunkFamily):
    def fit_many(self, estimator, settings, folded):
        for answers in super().fit_many(estimator, settings, folded):
            yield Predictions({"predict": answers.linear.at_origin})


def test_a_family_of_moments_that_predicts_is_told_what_to_give(registered):
    registered(PredictsFromMoments())
    report = both(Shrunk(), {"factor": [0.5, 2.0]}, cv=3).report_
    why = "PredictsFromMoments reads moments, and has to give LinearAnswers, not Predictions"
    assert report.left_to_sklearn == {why: 6}


class DoubledAnswers(LinearAnswers):
    """Answers of a kind of its own, which predict the double."""

    reads_moments = False

    def respond(self, role, fold):
        return {"predict": 2.0 * super().respond(role, fold)["predict"]}


class Doubled(Shrunk):
    def predict(self, X):
        return 2.0 * super().predict(X)


class DoubledFamily(ShrunkFamily):
    serves = (Doubled,)

    def fit_many(self, estimator, settings, folded):
        for answers in super().fit_many(estimator, settings, folded):
            yield DoubledAnswers(answers.linear)


def test_answers_of_other_classes_are_scored_apart(registered):
    registered(ShrunkFamily())
    registered(DoubledFamily())
    grid = {"last": [Shrunk(), Doubled()], "last__factor": [0.5, 0.8]}
    model = Pipeline([("scale", StandardScaler()), ("last", Shrunk())])
    search = both(model, grid, scoring="neg_mean_squared_error", refit=False)
    assert search.report_.fits_done == 0


def _without_targets(found):
    linear = found.linear
    return LinearAnswers(LinearPredictors(linear.coef[:, :, 0], linear.at_origin, linear.origin))


def _flat_at_origin(found):
    linear = found.linear
    return LinearAnswers(LinearPredictors(linear.coef, linear.at_origin[:, 0], linear.origin))


@pytest.mark.parametrize(
    ("base", "change", "fact"),
    [
        (ShrunkFamily, _without_targets, r"coef of shape \(\d+, 3\), not \(\d+, 3, 1\)"),
        (ShrunkFamily, _flat_at_origin, r"at_origin of shape \(3,\), not \(3, 1\)"),
        (ShrunkFamily, lambda found: LinearAnswers(found.linear, {3: "late"}), "refused="),
        (RowsFamily, lambda found: Predictions({"predict": found.test["predict"].T}), "predict of shape"),
        (RowsFamily, lambda found: Predictions(found.test, found.test), "for the train rows"),
        (RowsFamily, lambda found: Predictions(found.test, classes=np.array([0, 1])), "classes="),
    ],
)
def test_answers_that_do_not_fit_the_fold_are_not_scored(base, change, fact, registered):
    class Wrong(base):
        def fit_many(self, estimator, settings, folded):
            for answers in super().fit_many(estimator, settings, folded):
                yield change(answers)

    registered(Wrong())
    report = both(Shrunk(), GRID, may_fail=True).report_
    assert report.fits_done == 15
    for why in report.left_to_sklearn:
        assert re.search(rf"^shared work failed \(ValueError: Wrong\.fit_many gave .*{fact}", why)


class NoAnswers(RowsFamily):
    def fit_many(self, estimator, settings, folded):
        yield {"predict": np.zeros((len(settings), 2))}


def test_what_is_no_answer_is_named(registered):
    registered(NoAnswers())
    report = both(Shrunk(), GRID, cv=3).report_
    assert report.left_to_sklearn == {"NoAnswers has to give Answers, not dict": 9}


def test_a_family_that_says_not_what_it_reads_is_refused():
    class Old:
        serves, free, result, needs = (Shrunk,), frozenset({"factor"}), "exact", "rows"

    class Silent(Family):
        serves, free, result, reads = (Shrunk,), frozenset({"factor"}), "exact", "rows"

    with pytest.raises(TypeError, match=r"^Old should inherit from manyfit\.estimators\.Family"):
        register_family(Old())
    with pytest.raises(TypeError, match=r"^Silent\.reads should be MomentSums\(\)"):
        register_family(Silent())


@pytest.mark.parametrize("base", [ShrunkFamily, RowsFamily])
def test_the_cost_is_that_of_the_settings(base, registered):
    seen = []

    class Priced(base):
        def cost(self, estimator, settings, shape):
            seen.append([setting["factor"] for setting in settings])
            return super().cost(estimator, settings, shape)

    registered(Priced())
    GridSearchCV(Shrunk(), GRID).plan(X, Y)
    assert seen == [GRID["factor"]]


class ByAverage(RegressorMixin, BaseEstimator):
    """Predicts a multiple of the weighted mean of y."""

    def __init__(self, factor=1.0):
        self.factor = factor

    def fit(self, X, y, sample_weight=None):
        self.value_ = self.factor * np.average(y, weights=sample_weight)
        return self

    def predict(self, X):
        return np.full(X.shape[0], self.value_)


class AverageFamily(Family):
    """One real fit for all factors."""

    serves, free, result = (ByAverage,), frozenset({"factor"}), "exact"
    reads = FoldRows(sparse=True, weights=True)

    def cost(self, estimator, settings, shape):
        return Cost(1.0, 2.0, fits=shape.n_splits)

    def fit_many(self, estimator, settings, folded):
        for fold in map(folded.fold, range(folded.n_splits)):
            self.read(fold)
            model = clone(estimator).set_params(factor=1.0)
            model.fit(fold.X_train, fold.y_train, sample_weight=fold.fit_weight)
            factors = np.array([setting["factor"] for setting in settings])[:, None]
            test, train = (factors * model.predict(rows) for rows in (fold.X_test, fold.X_train_score))
            yield Predictions({"predict": test}, {"predict": train}, fits_made=1)

    def read(self, fold):
        pass


WEIGHTS = np.random.default_rng(0).uniform(0.5, 2.0, size=len(Y))


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_plan_and_report_count_the_fits_of_a_family(n_jobs, registered):
    registered(AverageFamily())
    search = both(ByAverage(), GRID, ours={"n_jobs": n_jobs}, return_train_score=True)
    plan, report = search.plan(X, Y), search.report_
    assert (plan.fits_planned, plan.fits_undecided) == (5, 15)
    assert "15 fits asked for, 5 to 20 to be made; decided when the rows of a split are seen" in str(plan)
    assert "─ fits of the last step shared where that pays\n" in str(plan)
    assert (report.fits_done, report.family_fits, report.fits_shared) == (5, 5, 15)
    assert re.search(r"made one by one +0\n.*made by families +5\n", str(report))


def test_fits_of_a_family_whose_scorer_fails_are_counted_apart(registered):
    """The family's own fits answer nothing, so scikit-learn makes every fit that was asked for."""

    def fails(y_true, y_pred):
        raise ValueError("this metric always fails")

    registered(AverageFamily())
    search = GridSearchCV(ByAverage(), GRID, scoring=make_scorer(fails), refit=False)
    with pytest.warns(UserWarning, match="Scoring failed|non-finite"):
        report = search.fit(X, Y).report_
    assert (report.family_fits, report.fits_shared, report.fits_done) == (5, 0, 20)
    plan = search.plan(X, Y)
    assert report.fits_done == plan.fits_planned + plan.fits_undecided
    assert re.search(r"shared work +0\n.*one by one +15\n.*by families +5\n", str(report))
    assert pickle.loads(pickle.dumps(report)) == report
    assert report.merged(report).family_fits == 10


def test_a_family_reads_sparse_rows(registered):
    class Dense(AverageFamily):
        reads = FoldRows()

    class Sparse(AverageFamily):
        def read(self, fold):
            assert scipy.sparse.issparse(fold.X_train) and scipy.sparse.issparse(fold.X_test)

    rows = scipy.sparse.csr_matrix(X)
    for family, made in ((Sparse(), 5), (Dense(), 15)):
        registered(family)
        report = GridSearchCV(ByAverage(), GRID).fit(rows, Y).report_
        assert report.fits_done == made


@pytest.mark.parametrize("model", [ByAverage(), make_pipeline(PolynomialFeatures(), ByAverage())])
def test_a_family_reads_weights(model, registered):
    registered(AverageFamily())
    prefix = "byaverage__" if hasattr(model, "steps") else ""
    grid, weights = {f"{prefix}factor": [0.5, 1.0, 2.0]}, {f"{prefix}sample_weight": WEIGHTS}
    search = GridSearchCV(model, grid, return_train_score=True).fit(X, Y, **weights)
    alone = GridSearchCV(model, grid, return_train_score=True, sharing="none").fit(X, Y, **weights)
    for key in ("mean_test_score", "mean_train_score"):
        np.testing.assert_allclose(search.cv_results_[key], alone.cv_results_[key], rtol=1e-12)
    assert (search.report_.fits_done, alone.report_.fits_done) == (5, 15)


def test_scores_are_weighted_by_routing(registered):
    registered(AverageFamily())
    with config_context(enable_metadata_routing=True):
        model = ByAverage().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(model, GRID).fit(X, Y, sample_weight=WEIGHTS)
        alone = GridSearchCV(model, GRID, sharing="none").fit(X, Y, sample_weight=WEIGHTS)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"], rtol=1e-12
    )
    assert (search.report_.fits_done, alone.report_.fits_done) == (5, 15)


def test_weights_that_a_family_does_not_read_are_named(registered):
    class Unweighted(AverageFamily):
        reads = FoldRows()

    registered(Unweighted())
    search = GridSearchCV(ByAverage(), GRID).fit(X, Y, sample_weight=WEIGHTS)
    assert search.report_.fits_done == 15
    assert [group["reason"] for group in search.report_.groups] == ["Unweighted does not read weights"]


class Weightless(Shrunk):
    """Its fit takes no weights, as that of `Shrunk`."""


class AverageForWeightless(AverageFamily):
    """A family that reads weights, of an estimator that takes none."""

    serves = (Weightless,)

    def fit_many(self, estimator, settings, folded):
        for fold in map(folded.fold, range(folded.n_splits)):
            yield Predictions({"predict": np.zeros((len(settings), len(fold.y_test)))})


class WeightlessByMoments(ShrunkFamily):
    serves = (Weightless,)


@pytest.mark.parametrize("steps", [(), (StandardScaler(),), (PolynomialFeatures(),)], ids=str)
@pytest.mark.parametrize("family", [AverageForWeightless(), WeightlessByMoments()])
def test_weights_that_a_fit_does_not_take_are_refused_as_by_sklearn(family, steps, registered):
    registered(family)
    model = make_pipeline(*steps, Weightless()) if steps else Weightless()
    prefix = "weightless__" if steps else ""
    weights = {f"{prefix}sample_weight": WEIGHTS}
    search = GridSearchCV(model, {f"{prefix}factor": [0.5, 1.0]}, error_score="raise", refit=False)
    assert {group.kind for group in search.plan(X, Y, **weights).groups} <= {"shared steps", "one by one"}
    with pytest.raises(TypeError, match="unexpected keyword argument 'sample_weight'"):
        search.fit(X, Y, **weights)


class RequestsWeights(Weightless):
    """Requests weights through routing although its fit takes none."""

    __metadata_request__fit = {"sample_weight": True}  # noqa: RUF012


def test_routed_weights_that_a_fit_does_not_take_are_refused_as_by_sklearn(registered):
    class Serves(AverageForWeightless):
        serves = (RequestsWeights,)

    registered(Serves())
    with config_context(enable_metadata_routing=True):
        scoring = get_scorer("r2").set_score_request(sample_weight=False)
        for model, name in ((RequestsWeights(), ""), (make_pipeline(RequestsWeights()), "requestsweights__")):
            search = GridSearchCV(
                model, {f"{name}factor": [0.5, 1.0]}, scoring=scoring, error_score="raise", refit=False
            )
            plan = search.plan(X, Y, sample_weight=WEIGHTS)
            assert "the fit of RequestsWeights takes no sample_weight" in str(plan)
            with pytest.raises(TypeError, match="unexpected keyword argument 'sample_weight'"):
                search.fit(X, Y, sample_weight=WEIGHTS)


class ForestFamily(AverageFamily):
    serves, free = (RandomForestRegressor,), frozenset({"n_estimators"})

    def fit_many(self, estimator, settings, folded):
        for fold in map(folded.fold, range(folded.n_splits)):
            counts = [setting["n_estimators"] for setting in settings]
            forest = clone(estimator).set_params(n_estimators=max(counts)).fit(fold.X_train, fold.y_train)
            trees = np.stack([tree.predict(fold.X_test) for tree in forest.estimators_])
            yield Predictions({"predict": np.stack([trees[:n].mean(axis=0) for n in counts])}, fits_made=1)


@pytest.mark.parametrize(("seed", "made"), [(0, 3), (None, 6)])
def test_a_last_step_that_draws_is_not_shared(seed, made, registered):
    """Fits of one forest are no others' unless its seed is an integer."""
    registered(ForestFamily())
    search = GridSearchCV(
        RandomForestRegressor(random_state=seed), {"n_estimators": [3, 5]}, cv=3, refit=False
    )
    assert search.fit(X, Y).report_.fits_done == made
    reason = "RandomForestRegressor draws random numbers anew in each fit"
    assert (reason in str(search.plan(X, Y))) is (seed is None)


class ScoresItself(Shrunk):
    def score(self, X, y):
        return -float(np.abs(y - self.predict(X)).mean())


@pytest.mark.parametrize("scoring", [None, "r2"])
def test_an_estimators_own_score_is_its_own(scoring, registered):
    class Family(RowsFamily):
        serves = (ScoresItself,)

    registered(Family())
    search = both(ScoresItself(), GRID, scoring=scoring)
    own = "ScoresItself has a score method of its own" in search.report_.groups[0]["reason"]
    assert (own, search.report_.fits_done) == ((True, 15) if scoring is None else (False, 0))


def test_each_group_is_scored_by_its_own_estimator(registered):
    """Groups that moments serve are scored by R2 here, and by a score of their own there."""

    class Family(ShrunkFamily):
        serves = (Shrunk, ScoresItself)

    registered(Family())
    grid = [{"last": [Shrunk(), Ridge()]}, {"last": [Shrunk()], "last__factor": [0.5, 2.0]}]
    search = both(Pipeline([("first", StandardScaler()), ("last", Shrunk())]), grid, refit=False)
    assert search.report_.fits_done == 0
    grid[0]["last"].append(ScoresItself())
    search = both(Pipeline([("first", StandardScaler()), ("last", Shrunk())]), grid, refit=False)
    assert search.report_.fits_done == 5
