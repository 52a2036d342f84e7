"""Searches that others derive from the base class: scikit-learn's checks, hooks and results."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from sklearn.model_selection._search import BaseSearchCV as SklearnBaseSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import resample

from manyfit.model_selection import BaseSearchCV
from tests._covering import spread
from tests._same_results import X, Y, assert_same_results

BASES = (SklearnBaseSearchCV, BaseSearchCV)
HAS_HOOK = hasattr(SklearnBaseSearchCV, "_check_input_parameters")
TREE = DecisionTreeRegressor(random_state=0)
ALPHAS = [{"alpha": alpha} for alpha in (0.01, 0.1, 1.0, 10.0, 100.0)]


def derived(base):
    """A search of fixed settings."""

    class Fixed(base):
        def __init__(self, estimator, cv=None, verbose=0, error_score=np.nan, refit=True, train=False):
            super().__init__(estimator, cv=cv, verbose=verbose, error_score=error_score, refit=refit)
            self.train = self.return_train_score = train

        def _run_search(self, evaluate_candidates):
            evaluate_candidates([{"max_depth": 1}, {"max_depth": 2}])

    return Fixed


BAD = {"verbose": -1, "error_score": "oops", "refit": 3.5, "cv": "five"}


@pytest.mark.parametrize("name", BAD)
def test_parameters_are_checked_as_scikit_learn_checks_them(name):
    said = []
    for base in BASES:
        with pytest.raises(ValueError, match=f"The '{name}' parameter of Fixed must be") as caught:
            derived(base)(TREE, **{name: BAD[name]}).fit(X, Y)
        said.append((type(caught.value), str(caught.value)))
    assert said[0] == said[1]


def test_every_constraint_of_scikit_learn_holds():
    theirs = SklearnBaseSearchCV._parameter_constraints
    assert theirs.items() <= BaseSearchCV._parameter_constraints.items()


def test_the_hook_for_input_reads_the_splitter_and_may_replace_it():
    found = []
    for base in BASES:

        class Hooked(derived(base)):
            def _check_input_parameters(self, X, y, split_params):
                self.folds_ = self._checked_cv_orig.get_n_splits(X, y, **split_params)
                self._checked_cv_orig = KFold(self.folds_ + 1)

        search = Hooked(TREE, cv=3).fit(X, Y)
        # scikit-learn calls it from 1.8 on.
        assert (getattr(search, "folds_", None), search.n_splits_) == ((3, 4) if HAS_HOOK else (None, 3))
        found.append(search)
    assert_same_results(*found[::-1])


def test_a_plan_leaves_no_trace_of_the_hooks():
    class Noting(derived(BaseSearchCV)):
        def _check_input_parameters(self, X, y, split_params):
            self.checked_ = True

        def _run_search(self, evaluate_candidates):
            self.ran_ = True
            super()._run_search(evaluate_candidates)

    search = Noting(TREE, cv=3)
    before = set(vars(search))
    assert search.plan(X, Y).n_candidates == 2
    assert set(vars(search)) - before == {"_frozen"}
    assert search.fit(X, Y).ran_


class _Some:
    """A splitter that hands on a part of the training rows of another one."""

    def __init__(self, cv, share):
        self.cv, self.share = cv, share

    def split(self, X, y=None, groups=None):
        for train, test in self.cv.split(X, y, groups):
            yield resample(train, replace=False, n_samples=int(self.share * len(train)), random_state=0), test

    def get_n_splits(self, X=None, y=None, groups=None):
        return self.cv.get_n_splits(X, y, groups)


def in_rounds(base):
    """A search that halves its settings each round, with every method of its own that the base calls."""

    class Rounds(base):
        def __init__(self, estimator, settings, scoring=None, refit=True, cv=3, return_train_score=True):
            super().__init__(
                estimator, scoring=scoring, refit=refit, cv=cv, return_train_score=return_train_score
            )
            self.settings = settings

        def fit(self, X, y=None, **params):
            self.rows_ = len(X)
            return super().fit(X, y, **params)

        def _run_search(self, evaluate_candidates):
            self.means_ = []
            left = list(self.settings)
            for j, share in enumerate((0.3, 0.6, 1.0)):
                cv = None if share == 1.0 else _Some(KFold(self.cv), share)
                more = {"round": [j] * len(left), "share": [share] * len(left)}
                results = evaluate_candidates(iter(left), cv, more_results=more)
                means = results["mean_test_score"][-len(left) :]
                self.means_.append(means)
                best = np.argsort(-means, kind="stable")[: max(1, len(left) // 2)]
                left = [results["params"][-len(left) :][b] for b in sorted(best)]

        def _format_results(self, candidate_params, n_splits, out, more_results=None):
            results = super()._format_results(candidate_params, n_splits, out, more_results)
            results["rows"] = (
                np.array([one["n_test_samples"] for one in out]).reshape(-1, n_splits).sum(axis=1)
            )
            results["params"] = tuple(candidate_params)
            return results

        @staticmethod
        def _select_best_index(refit, refit_metric, results):
            last = np.flatnonzero(results["round"] == max(results["round"]))
            return last[np.argmax(results["mean_test_score"][last])]

    return Rounds


ROUNDS = {
    "moments": (Ridge(), ALPHAS),
    "steps": (
        make_pipeline(FunctionTransformer(np.tanh), StandardScaler(), TREE),
        [{"decisiontreeregressor__max_depth": depth} for depth in range(1, 8)],
    ),
    "family": (
        make_pipeline(FunctionTransformer(np.tanh), Ridge()),
        [{f"ridge__{name}": value for name, value in one.items()} for one in ALPHAS],
    ),
    "one by one": (TREE, [{"max_depth": depth} for depth in range(1, 8)]),
}


@pytest.mark.invariant("A search class of a user gets scikit-learn's checks and results")
@pytest.mark.parametrize("case", spread(ROUNDS, 2))
def test_rounds_by_methods_of_a_subclass(case):
    estimator, settings = ROUNDS[case]
    theirs, ours = (in_rounds(base)(clone(estimator), settings).fit(X, Y) for base in BASES)
    assert_same_results(ours, theirs)
    np.testing.assert_allclose(np.concatenate(ours.means_), np.concatenate(theirs.means_), rtol=1e-9)
    assert ours._checked_cv_orig.get_n_splits() == 3
    assert ours.rows_ == len(X) == ours.cv_results_["rows"][0]
    assert type(ours.cv_results_["params"]) is tuple
    assert ours.best_params_ == theirs.best_params_
    if case != "one by one":
        assert ours.report_.fits_shared + ours.report_.transformer_fits > 0


def test_a_search_that_needs_its_own_fit_cannot_be_planned():
    with pytest.raises(NotImplementedError, match="chooses settings by the scores of others"):
        in_rounds(BaseSearchCV)(Ridge(), ALPHAS).plan(X, Y)

    class Prepared(derived(BaseSearchCV)):
        def fit(self, X, y=None):
            self.depths_ = [1, 2]
            return super().fit(X, y)

        def _run_search(self, evaluate_candidates):
            evaluate_candidates([{"max_depth": depth} for depth in self.depths_])

    search = Prepared(TREE)
    with pytest.raises(NotImplementedError, match=r"without Prepared\.fit.*depths_"):
        search.plan(X, Y)
    assert len(search.fit(X, Y).cv_results_["params"]) == 2
