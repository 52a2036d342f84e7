"""Errors and warnings of scikit-learn's searches under `install` are scikit-learn's."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV

import manyfit
from tests.installation._searches import ALPHAS, MoreParameters, OwnScore, same, untraced


def outcome(make, X, y, **params):
    """What a search that cannot work leaves: its error, its warnings, and the names of its attributes."""
    search = make()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(Exception) as error:
            search.fit(X, y, **params)
    texts = [(one.category, untraced(one.message)) for one in caught]
    return type(error.value), untraced(error.value), texts, list(vars(search))


WRONG = {
    "parameter": lambda: GridSearchCV(Ridge(), {"beta": [1.0]}),
    "cv": lambda: GridSearchCV(Ridge(), ALPHAS, cv="a"),
    "subclass": lambda: MoreParameters(Ridge(), ALPHAS, level="high"),
    "subclass, cv": lambda: OwnScore(Ridge(), ALPHAS, cv="a"),
    "no estimator": lambda: GridSearchCV(3, ALPHAS),
    "metrics without refit": lambda: GridSearchCV(Ridge(), ALPHAS, scoring=["r2", "neg_mean_squared_error"]),
    "too many splits": lambda: GridSearchCV(Ridge(), ALPHAS, cv=1000),
    "all fits fail": lambda: GridSearchCV(Ridge(), {"alpha": [-1.0, -2.0]}),
    "raise": lambda: GridSearchCV(Ridge(), {"alpha": [1.0, -2.0]}, error_score="raise"),
    "no settings": lambda: GridSearchCV(Ridge(), {"alpha": []}),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_are_scikit_learns(name, regression):
    expected = outcome(WRONG[name], *regression)
    with manyfit.installed():
        assert outcome(WRONG[name], *regression) == expected


def test_errors_name_no_attribute_that_scikit_learns_searches_lack(regression):
    with manyfit.installed(), pytest.raises(ValueError, match="'alpha' parameter") as error:
        WRONG["raise"]().fit(*regression)
    assert not hasattr(error.value, "__notes__")


def test_unknown_metadata_is_refused_with_the_name_of_the_class(regression):
    make = lambda: OwnScore(Ridge(), ALPHAS)  # noqa: E731
    with sklearn.config_context(enable_metadata_routing=True):
        expected = outcome(make, *regression, sample_weight=np.ones(len(regression[1])))
        with manyfit.installed():
            found = outcome(make, *regression, sample_weight=np.ones(len(regression[1])))
    assert found[:2] == expected[:2]


def test_warnings_are_scikit_learns(classes):
    def caught():
        search = GridSearchCV(LogisticRegression(max_iter=2), {"C": [1.0, -1.0]}, cv=3)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            search.fit(*classes)
        return [(one.category, untraced(one.message)) for one in found], search

    expected, theirs = caught()
    with manyfit.installed():
        found, ours = caught()
    key = lambda one: (one[0].__name__, one[1])  # noqa: E731
    assert expected and sorted(found, key=key) == sorted(expected, key=key)
    same(theirs, ours)
