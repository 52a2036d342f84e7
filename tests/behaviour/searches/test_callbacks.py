"""Callbacks (scikit-learn 1.9 and later) follow every fit, as in scikit-learn."""

from __future__ import annotations

import inspect

import pytest
from sklearn import model_selection
from sklearn.linear_model import Ridge

from manyfit.model_selection import GridSearchCV
from tests._callback_recorder import Recorder
from tests._same_results import X, Y, assert_same_results

callback = pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")


def test_the_search_takes_callbacks():
    assert hasattr(GridSearchCV(Ridge(), {"alpha": [1.0]}), "set_callbacks")


def heard(cls):
    recorder = Recorder()
    search = cls(Ridge(), {"alpha": [0.1, 1.0]}, cv=3).set_callbacks(recorder)
    search.fit(X, Y)
    return search, recorder


@pytest.mark.invariant("Callbacks receive the calls that they receive in scikit-learn")
def test_a_callback_hears_what_it_hears_in_sklearn():
    assert {"setup", "teardown"} <= {name for name, _ in inspect.getmembers(callback.FitCallback)}
    (ours, mine), (theirs, other) = heard(GridSearchCV), heard(model_selection.GridSearchCV)
    assert sorted(mine.begun) == sorted(other.begun) and len(mine.begun) > 6
    assert sorted(mine.ended) == sorted(other.ended)
    assert_same_results(ours, theirs)
    assert ours.report_.fits_done == 6
    assert "callbacks follow every single fit" in str(ours.plan(X, Y))
