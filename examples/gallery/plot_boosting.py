"""
Gradient boosting: the number of trees
======================================

A boosting model of 200 trees holds the models of 10, 20, ... trees. A search over ``n_estimators``
therefore needs one fit for each split, and not one for each value. The learning rate is another matter:
each of its values is another model.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier

from manyfit.model_selection import GridSearchCV, ScoreTimeDisplay, SearchCurveDisplay

X, y = load_breast_cancer(return_X_y=True)
grid = {"n_estimators": np.arange(10, 201, 10), "learning_rate": [0.03, 0.1, 0.3]}
model = GradientBoostingClassifier(max_depth=2, max_features="sqrt", random_state=0)
search = GridSearchCV(model, grid, cv=3, scoring="neg_log_loss")

# %%
# ``random_state`` is an integer. Without one, each fit would draw other trees, and none would hold
# another.

print(search.plan(X, y))

# %%
# A line for each learning rate. A high rate needs few trees, and too many of them do harm.

search.fit(X, y)
SearchCurveDisplay.from_search(search, "n_estimators", lines="learning_rate")

# %%
# Scores against the time of a fit. All of these times are shared: each is an equal part of one fit, which
# hollow squares say.

ScoreTimeDisplay.from_search(search)
