"""
A frame with gaps and categories
================================

The penguins of the Palmer Archipelago: four measurements, the island, the sex, and gaps in most columns.
How heavy is a penguin?

The pipeline fills gaps, scales numbers, encodes categories and fits a ridge regression. Only ``alpha`` and
the strategy of the imputer vary, so all fits read the same rows. manyfit reads them once.
"""

import numpy as np
from palmerpenguins import load_penguins
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from manyfit.model_selection import FoldScoresDisplay, GridSearchCV, SearchCurveDisplay

penguins = load_penguins().dropna(subset="body_mass_g")
X, y = penguins.drop(columns=["body_mass_g", "year"]), penguins["body_mass_g"]
X.head()

# %%
# The pipeline is scikit-learn's, and so is the search but for its import.

numbers = make_pipeline(SimpleImputer(), StandardScaler())
columns = make_column_transformer(
    (numbers, make_column_selector(dtype_include="number")),
    (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
)
model = make_pipeline(columns, Ridge())
grid = {
    "columntransformer__pipeline__simpleimputer__strategy": ["mean", "median"],
    "ridge__alpha": np.logspace(-3, 3, 13),
}
search = GridSearchCV(model, grid, cv=10, scoring="neg_root_mean_squared_error")

# %%
# The plan says what will be shared, before anything is fitted.

print(search.plan(X, y))

# %%
# A fitted search has a report: what was shared, and where the time went.

search.fit(X, y)
print(search.report_)

# %%
# The error in grams along ``alpha``. The area is one standard error to both sides. The circle marks the
# simplest model that is at most one standard error worse than the best.

SearchCurveDisplay.from_search(search, "ridge__alpha")

# %%
# Is the best setting really better than the next ones? Each row has the differences to the best setting on
# the same splits.

FoldScoresDisplay.from_search(search, n_settings=10)
