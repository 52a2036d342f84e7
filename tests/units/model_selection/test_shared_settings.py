"""What a setting's parameters say is read once a setting, not once a fit."""

from __future__ import annotations

import pytest
from sklearn.model_selection import GridSearchCV as SklearnGridSearchCV
from sklearn.tree import DecisionTreeRegressor

from manyfit.model_selection import GridSearchCV
from manyfit.model_selection.sharing import _fit_and_score
from tests._same_results import X, Y


@pytest.mark.parametrize("random_state", [0, None])
def test_settings_are_looked_at_once(monkeypatch, random_state):
    looked_at = []
    decide = _fit_and_score.is_deterministic
    monkeypatch.setattr(
        _fit_and_score, "is_deterministic", lambda model: looked_at.append(model) or decide(model)
    )
    model, grid = DecisionTreeRegressor(max_depth=3, random_state=random_state), {"min_samples_leaf": [1, 2]}
    mine = GridSearchCV(model, grid, cv=4, refit=False).fit(X, Y)
    assert len(looked_at) == 2
    if random_state is not None:
        theirs = SklearnGridSearchCV(model, grid, cv=4, refit=False).fit(X, Y)
        assert mine.cv_results_["mean_test_score"] == pytest.approx(theirs.cv_results_["mean_test_score"])
