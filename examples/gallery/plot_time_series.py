"""
A time series, with splits in order of time
===========================================

How many shares of a company will be traded tomorrow? The example data of matplotlib hold four years of one
share. Yesterday's and earlier volumes predict the next one.

``TimeSeriesSplit`` trains on the past and tests on what follows. Each training set holds the one before, so
one pass over the rows gives the sums of all of them.
"""

import numpy as np
from matplotlib import cbook
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manyfit.model_selection import GridSearchCV, SearchCurveDisplay, TimeSeriesSplit

volume = np.log(cbook.get_sample_data("goog.npz")["price_data"]["volume"].astype(float))
LAGS = 60
X = np.lib.stride_tricks.sliding_window_view(volume, LAGS)[:-1, ::-1]
y = volume[LAGS:]
print(X.shape)

# %%
# The report counts the passes over X: one for all settings and all splits.

model = make_pipeline(StandardScaler(), Ridge())
grid, cv = {"ridge__alpha": np.logspace(-1, 5, 25)}, TimeSeriesSplit(10)
search = GridSearchCV(model, grid, cv=cv, return_train_score=True)
search.fit(X, y)
print(search.report_)

# %%
# Training and test scores along ``alpha``: with little penalty, 60 volumes are too many for the first
# splits.

SearchCurveDisplay.from_search(search, "ridge__alpha", score_type="both")

# %%
# The same search, every fit of it by scikit-learn: equal scores, but for rounding.

alone = GridSearchCV(model, grid, cv=cv, sharing="none").fit(X, y)
difference = search.cv_results_["mean_test_score"] - alone.cv_results_["mean_test_score"]
print(f"largest difference {np.abs(difference).max():.1e}")
