"""
Nested cross-validation
=======================

How well does a search predict, if it also chooses ``alpha``? Its ``best_score_`` is too good: the same
splits chose the best setting. Nested cross-validation answers honestly. It runs the whole search on the
training part of each outer split and scores the result on the rest.

That is a search in every outer split, each with its own inner splits. For a ridge regression all of them
read the same sums over the rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from manyfit.model_selection import GridSearchCV, KFold, cross_val_score

X, y = load_diabetes(return_X_y=True)
X = PolynomialFeatures(2, include_bias=False).fit_transform(X)
model = make_pipeline(StandardScaler(), Ridge())
search = GridSearchCV(model, {"ridge__alpha": np.logspace(-2, 5, 30)}, cv=KFold(5))

# %%
# 30 settings, 5 inner and 10 outer splits: 1,500 fits, 10 more for the best settings, and none of them is
# made.

outer = cross_val_score(search, X, y, cv=KFold(10))
search.fit(X, y)
print(f"best score of one search  {search.best_score_:.3f}")
print(f"nested cross-validation   {outer.mean():.3f}")

# %%
# The scores of the outer splits vary far more than the two numbers differ. Ten splits of another order say
# how much.

nested, best = [], []
for seed in range(10):
    splits = KFold(5, shuffle=True, random_state=seed)
    search.set_params(cv=splits)
    best.append(search.fit(X, y).best_score_)
    nested.append(cross_val_score(search, X, y, cv=splits).mean())

_, ax = plt.subplots(layout="constrained")
ax.plot(best, nested, "o")
ax.axline((np.mean(best), np.mean(best)), slope=1, color="0.6", label="equal")
ax.set(xlabel="best score of one search", ylabel="nested cross-validation", title="Ten orders of the rows")
ax.legend()
