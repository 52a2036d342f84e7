"""What a plan says of gains is what the page on gains says."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import HuberRegressor, Ridge
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from manyfit.model_selection import GridSearchCV
from manyfit.model_selection.results import _gains
from manyfit.model_selection.results._gains import Gain
from tests._same_results import LABELS, X_CLASS
from tests.docs._pages import PAGES, table

PAGE = {
    row["You search"]: row["Times less CPU"] for row in table(PAGES["docs/faster.md"].read_text(), "gains")
}
GAINS = [_gains.LINEAR, _gains.FRAMES, _gains.TEXTS, *_gains._OF_CLASSES.values()]
TEXTS = ["good film", "bad plot", "dull the", "fine a film"] * 10


@pytest.mark.parametrize("gain", GAINS, ids=lambda gain: gain.searched)
def test_the_numbers_of_plans_are_those_of_the_page(gain: Gain) -> None:
    """In round numbers: another measurement on a shared machine may differ."""
    numbers = [float(number) for number in PAGE[gain.searched].split(" to ")]
    np.testing.assert_allclose([gain.least, gain.greatest], [numbers[0], numbers[-1]], rtol=0.3)


def line(search, X=X_CLASS, y=LABELS):
    (*_, last) = str(search.plan(X, y)).splitlines()
    return last.removeprefix("└─ ").partition(":")[0]


FIVE, TENTHS = [1, 2, 3, 4, 5], [0, 0.1, 0.2, 0.3, 0.4]
CASES = {
    "a linear model": (make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": FIVE}),
    "`n_neighbors` and": (KNeighborsClassifier(), {"n_neighbors": FIVE}),
    "`ccp_alpha` of": (DecisionTreeClassifier(random_state=0), {"ccp_alpha": TENTHS}),
    "the number of trees": (RandomForestClassifier(random_state=0), {"n_estimators": FIVE}),
    "naive Bayes and": (LinearDiscriminantAnalysis(solver="lsqr"), {"shrinkage": TENTHS}),
}
HUBER = {"ridge": [HuberRegressor()], "ridge__alpha": FIVE}
NONE = {
    "few settings": (Ridge(), {"alpha": [1, 2]}),
    "nothing shared": (HuberRegressor(), {"alpha": FIVE}),
    "another parameter": (HistGradientBoostingClassifier(), {"learning_rate": FIVE}),
    "half": (make_pipeline(Ridge()), [{"ridge__alpha": FIVE}, HUBER]),
}


@pytest.mark.parametrize("searched", CASES)
def test_a_plan_names_what_was_measured(searched):
    estimator, grid = CASES[searched]
    assert line(GridSearchCV(estimator, grid)).startswith(f"Measured on everyday searches of {searched}")


def test_a_plan_of_texts_names_what_was_measured():
    search = GridSearchCV(make_pipeline(TfidfVectorizer(), MultinomialNB()), {"multinomialnb__alpha": FIVE})
    assert "searches of texts" in line(search, TEXTS, [0, 1] * 20)


@pytest.mark.parametrize("case", NONE)
def test_a_plan_promises_nothing_that_was_not_measured(case):
    estimator, grid = NONE[case]
    assert "Measured" not in str(GridSearchCV(estimator, grid).plan(X_CLASS, LABELS))
