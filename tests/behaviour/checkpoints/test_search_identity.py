"""A checkpoint of another search is refused with what differs."""

from __future__ import annotations

import re
import threading

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from manyfit.cluster.inspection.versions import process_versions
from manyfit.model_selection import GridSearchCV, RandomizedSearchCV
from manyfit.model_selection.checkpoint import _search_identity as _identity
from tests._same_results import LABELS, X_CLASS, X, Y
from tests.behaviour.checkpoints._exact import GRID, exactly
from tests.behaviour.steps._counted import FITS, Counted


def score_a(estimator, X, y):
    return 1.0


def score_b(estimator, X, y):
    return 1.5


FROZEN = {"estimator": Counted(), "param_grid": GRID, "cv": 2, "scoring": score_a}
OTHERS = {
    "estimator": {"estimator": Counted(a=7.0)},
    "folds": {"cv": KFold(2, shuffle=True, random_state=0)},
    "scorers": {"scoring": score_b},
    "error_score": {"error_score": 0.0},
    "return_train_score": {"return_train_score": True},
    "sharing": {"sharing": "none"},
}


@pytest.mark.invariant("A checkpoint serves its own search and no other")
@pytest.mark.parametrize("part", OTHERS)
def test_another_search_is_refused_with_what_differs(part, path):
    GridSearchCV(**FROZEN, checkpoint=path, refit=False).fit(X, Y)
    before = path.read_bytes()
    FITS.clear()
    with pytest.raises(ValueError, match="belongs to another search. It was not changed") as raised:
        GridSearchCV(**FROZEN | OTHERS[part], checkpoint=path, refit=False).fit(X, Y)
    named = re.findall(r"^- ([^:]+):", str(raised.value), re.M)
    assert named == [part]
    assert FITS == [] and path.read_bytes() == before


@pytest.mark.parametrize(
    ("part", "data"),
    [("X", (X + 1e-15, Y)), ("X", (np.asfortranarray(X), Y)), ("X", (X.tolist(), Y)), ("y", (X, -Y))],
)
def test_other_data_is_refused(part, data, path):
    GridSearchCV(**FROZEN, checkpoint=path, refit=False).fit(X, Y)
    with pytest.raises(ValueError, match="belongs to another search") as raised:
        GridSearchCV(**FROZEN, checkpoint=path, refit=False).fit(*data)
    assert re.findall(r"^- ([^:]+):", str(raised.value), re.M) == [part]


def test_other_weights_are_refused(path):
    search = GridSearchCV(Counted(), GRID, cv=2, scoring="r2", checkpoint=path, refit=False)
    search.fit(X, Y, sample_weight=np.ones(len(Y)))
    with pytest.raises(ValueError, match=r"- fit parameters: sample_weight, with different content\n"):
        search.fit(X, Y, sample_weight=np.full(len(Y), 2.0))


@pytest.mark.invariant("A checkpoint serves its own search and no other")
def test_types_of_values_are_told_apart(path):
    for n, value in enumerate([1, 1.0, True, np.float64(1.0), np.float32(1.0), np.int64(1)]):
        search = GridSearchCV(Counted(), {"a": [value]}, cv=2, checkpoint=path, refit=False).fit(X, Y)
        assert search.report_.fits_restored == 0 and len(FITS) == 2 * (n + 1)


def test_scores_of_parameters_that_were_not_checked_are_refused(path):
    with config_context(skip_parameter_validation=True):
        GridSearchCV(**FROZEN, checkpoint=path, refit=False).fit(X, Y)
    with pytest.raises(ValueError, match=r"- configuration of scikit-learn"):
        GridSearchCV(**FROZEN, checkpoint=path, refit=False).fit(X, Y)
    with config_context(skip_parameter_validation=True, display="text"):
        assert GridSearchCV(**FROZEN, checkpoint=path, refit=False).fit(X, Y).report_.fits_restored == 8


@pytest.mark.parametrize(
    ("package", "said"),
    [("manyfit", "manyfit"), ("scikit-learn", "scikit-learn"), ("numpy", "NumPy"), ("scipy", "SciPy")],
)
def test_another_version_is_refused(package, said, path, monkeypatch):
    GridSearchCV(**FROZEN, checkpoint=path, refit=False).fit(X, Y)
    here = dict(process_versions())
    monkeypatch.setattr(_identity, "process_versions", lambda: here | {package: "1.8.99"})
    with pytest.raises(
        ValueError, match=f"- version of {said}: {re.escape(here[package])} in the file, 1.8.99"
    ):
        GridSearchCV(**FROZEN, checkpoint=path, refit=False).fit(X, Y)


def test_how_a_search_is_run_may_change(path):
    GridSearchCV(**FROZEN, checkpoint=path).fit(X, Y)
    how = {"n_jobs": 2, "verbose": 0, "memory_limit": "5MB", "refit": False, "pre_dispatch": 1, "verify": 2}
    assert GridSearchCV(**FROZEN, **how, checkpoint=path).fit(X, Y).report_.fits_restored == 8


DRAWN = {
    "splits": ({"cv": KFold(2, shuffle=True)}, r"cv__random_state of the search is None"),
    "a generator": (
        {"cv": KFold(2, shuffle=True, random_state=np.random.RandomState(0))},
        "is a RandomState",
    ),
    "the estimator": (
        {"estimator": SVC(probability=True), "param_grid": {"C": [1.0]}},
        "random_state of the est",
    ),
    "a step": (
        {
            "estimator": make_pipeline(StandardScaler(), SVC(probability=True)),
            "param_grid": {"svc__C": [1.0]},
        },
        "svc__random_state of the estimator is None",
    ),
    "a value": (
        {"estimator": SVC(probability=True, random_state=0), "param_grid": {"random_state": [0, None]}},
        "random_state of the estimator is None",
    ),
    "a nested estimator as a value": (
        {"estimator": make_pipeline(Counted()), "param_grid": {"counted": [SVC(probability=True)]}},
        "counted__random_state of the estimator is None",
    ),
}


@pytest.mark.invariant("A checkpoint serves its own search and no other")
@pytest.mark.parametrize("what", DRAWN)
def test_what_is_drawn_anew_is_refused_by_name(what, path):
    params, said = DRAWN[what]
    with pytest.raises(ValueError, match=said + "(?s:.*)Set it to an integer"):
        GridSearchCV(**{"estimator": Counted(), "param_grid": GRID, **params}, checkpoint=path).fit(X, Y)
    assert FITS == [] and not path.exists()


@pytest.mark.parametrize("state", [None, np.random.RandomState(0)])
def test_a_randomised_search_needs_an_integer(state, path):
    search = RandomizedSearchCV(Counted(), GRID, n_iter=2, random_state=state, checkpoint=path)
    with pytest.raises(
        ValueError, match="random_state of the search is .*so that its settings or rows are drawn"
    ):
        search.fit(X, Y)
    search.set_params(random_state=3)
    first = search.fit(X, Y)
    again = RandomizedSearchCV(Counted(), GRID, n_iter=2, random_state=3, checkpoint=path).fit(X, Y)
    assert again.report_.fits_restored == 10
    exactly(again, first)


def test_an_idle_random_state_is_fine(path):
    for estimator, grid in (
        (LogisticRegression(), {"C": [1.0]}),
        (SVC(), {"C": [1.0]}),
        (SVR(), {"C": [1.0]}),
    ):
        search = GridSearchCV(estimator, grid, checkpoint=f"{path}{type(estimator).__name__}", cv=2)
        assert search.fit(X_CLASS, LABELS).report_.fits_restored == 0
        assert search.fit(X_CLASS, LABELS).report_.fits_restored == 2


def test_a_lambda_counts_with_its_code_and_what_it_reads(path):
    def scored(by):
        return lambda estimator, X, y: by * float(estimator.mean_)

    def fit(scoring):
        return GridSearchCV(Counted(), GRID, cv=2, scoring=scoring, checkpoint=path, refit=False).fit(X, Y)

    fit(scored(2.0))
    assert fit(scored(2.0)).report_.fits_restored == 8
    for other in (scored(3.0), lambda estimator, X, y: 2.0 * estimator.mean_):
        with pytest.raises(ValueError, match=r"Differences:\n- scorers:"):
            fit(other)


def test_what_has_no_content_is_refused(path):
    lock = threading.Lock()

    def score(estimator, X, y):
        with lock:
            return 1.0

    with pytest.raises(
        ValueError, match="That of the scorers is not known: it holds a lock, which cannot be pickled"
    ):
        GridSearchCV(Counted(), GRID, scoring=score, checkpoint=path).fit(X, Y)
    assert FITS == []
