"""scikit-learn's classes and functions are the same objects while manyfit is installed, and afterwards."""

from __future__ import annotations

import inspect
import pickle
import threading

import pytest
from sklearn import model_selection
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, _search, _validation

import manyfit

FUNCTIONS = ("cross_validate", "cross_val_score", "cross_val_predict", "validation_curve", "learning_curve")
SEARCHES = (GridSearchCV, RandomizedSearchCV)


def state() -> list[object]:
    """All that scikit-learn's modules hold of searches and functions."""
    modules = [dict(vars(module)) for module in (model_selection, _search, _validation)]
    return [*modules, *(dict(vars(cls)) for cls in (*SEARCHES, _search.BaseSearchCV)), GridSearchCV.fit]


@pytest.mark.invariant("uninstall() leaves scikit-learn as it was")
def test_uninstall_leaves_scikit_learn_as_it_was():
    before = state()
    manyfit.install()
    assert state() != before
    manyfit.install(sharing="exact")  # again
    manyfit.uninstall()
    assert state() == before
    manyfit.uninstall()  # nothing to do
    assert state() == before


def test_functions_and_classes_stay_the_same_objects():
    before = [getattr(module, name) for name in FUNCTIONS for module in (model_selection, _validation)]
    classes = [model_selection.GridSearchCV, model_selection.RandomizedSearchCV]
    with manyfit.installed():
        after = [getattr(module, name) for name in FUNCTIONS for module in (model_selection, _validation)]
        assert all(one is other for one, other in zip(before, after, strict=True))
        assert classes == list(SEARCHES)


def test_fit_looks_like_scikit_learns():
    theirs = GridSearchCV.fit
    facts = [inspect.signature(theirs), theirs.__doc__, theirs.__module__, inspect.getsource(theirs)]
    requests = [name for name in dir(GridSearchCV) if name.startswith("set_")]
    with manyfit.installed():
        ours = GridSearchCV.fit
        assert ours is not theirs and inspect.unwrap(ours) is inspect.unwrap(theirs)
        assert [inspect.signature(ours), ours.__doc__, ours.__module__, inspect.getsource(ours)] == facts
        assert pickle.loads(pickle.dumps(ours)) is ours

        class Later(GridSearchCV):
            pass

        assert [name for name in dir(Later) if name.startswith("set_")] == requests


@pytest.mark.parametrize("cls", SEARCHES)
def test_objects_made_before_are_served_and_clones_are_equal(cls, regression):
    search = cls(Ridge(), {"alpha": [1.0, 2.0]}, **({"n_iter": 2} if cls is RandomizedSearchCV else {}))
    held = search.fit  # a bound method is bound to the function of its time
    with manyfit.installed():
        assert search.fit(*regression) is search
        assert manyfit.report_of(search).fits_shared == 10
        assert type(clone(search)) is cls and repr(clone(search)) == repr(search)
        assert pickle.loads(pickle.dumps(search.fit)).__self__.best_params_ == search.best_params_
    assert held(*regression) is search


def test_blocks_may_overlap_and_the_last_one_counts(regression):
    before, search = state(), GridSearchCV(Ridge(), {"alpha": [1.0]})
    first, second = manyfit.installed(), manyfit.installed(sharing="none")
    first.__enter__()
    second.__enter__()
    assert manyfit.report_of(search.fit(*regression)).fits_shared == 0
    first.__exit__(None, None, None)
    assert manyfit.report_of(search.fit(*regression)).fits_shared == 0
    second.__exit__(None, None, None)
    assert state() == before
    manyfit.install()
    with manyfit.installed(sharing="none"):
        pass
    assert manyfit.report_of(search.fit(*regression)).fits_shared == 5


def test_uninstall_ends_blocks():
    before = state()
    with manyfit.installed():
        manyfit.uninstall()
        assert state() == before
    assert state() == before


def test_what_others_replace_meanwhile_stays(regression, monkeypatch):
    def fit(self, X, y=None):
        return "theirs"

    manyfit.install()
    held = GridSearchCV.fit
    monkeypatch.setattr(GridSearchCV, "fit", fit)
    manyfit.uninstall()
    assert GridSearchCV.fit is fit
    monkeypatch.setattr(GridSearchCV, "fit", held)  # whoever kept ours gets scikit-learn's
    before = manyfit.last_report()
    GridSearchCV(Ridge(), {}).fit(*regression)
    assert manyfit.last_report() is before
    del GridSearchCV.fit


def test_a_fit_that_was_replaced_before_is_wrapped_and_put_back(regression, monkeypatch):
    calls = []

    def fit(self, X, y=None, **params):
        calls.append(type(self))
        return super(GridSearchCV, self).fit(X, y, **params)

    class Own(GridSearchCV):
        def _run_search(self, evaluate_candidates, **_):
            evaluate_candidates([{"alpha": 1.0}])

    monkeypatch.setattr(GridSearchCV, "fit", fit, raising=False)
    with manyfit.installed():
        Own(Ridge(), {}).fit(*regression)
    assert calls == [Own]
    assert GridSearchCV.fit is fit
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"sharing": "all"}, "The 'sharing' parameter of install(ed)? must be a str among"),
        ({"verify": -1}, "The 'verify' parameter of install(ed)? must be an int in the range"),
        ({"memory_limit": "much"}, "memory_limit should be bytes or a text like '512MB'; got 'much'"),
        ({"memory_limit": -1}, "memory_limit should be more than 0 bytes; got -1"),
    ],
)
def test_wrong_options_are_refused_at_once(options, text):
    before = state()
    for function in (manyfit.install, manyfit.installed):
        with pytest.raises(ValueError, match=text), function(**options) or pytest.fail("installed"):
            pass
    assert state() == before


def test_threads_that_install_and_fit_get_scikit_learns_numbers(regression):
    before, wrong = state(), []
    expected = model_selection.cross_val_score(Ridge(), *regression)

    def work():
        for _ in range(6):
            with manyfit.installed():
                found = model_selection.cross_val_score(Ridge(), *regression)
                search = GridSearchCV(Ridge(), {"alpha": [1.0]}).fit(*regression)
            if abs(found - expected).max() > 1e-10 or abs(search.best_score_ - expected.mean()) > 1e-10:
                wrong.append(found)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert state() == before
