"""SearchCurveDisplay: its numbers are those of `cv_results_`, and the picture has what they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn import model_selection
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import Ridge
from sklearn.model_selection import HalvingGridSearchCV

from manyfit.model_selection import GridSearchCV, RandomizedSearchCV, SearchCurveDisplay
from tests.units.model_selection.displays._searches import (
    GRID,
    X,
    Y,
    fitted,
    folds_of,
    legend_of,
    row_of,
    with_results,
)


@pytest.mark.parametrize("kind", [GridSearchCV, model_selection.GridSearchCV])
def test_the_other_parameters_are_those_of_the_best(kind):
    search = fitted(search=kind, return_train_score=True)
    display = SearchCurveDisplay.from_search(search, "ridge__alpha")
    best = search.best_params_["pca__n_components"]
    rows = [row_of(search, ridge__alpha=a, pca__n_components=best) for a in GRID["ridge__alpha"]]
    assert display.param_values == GRID["ridge__alpha"]
    assert display.candidates.tolist() == [rows]
    np.testing.assert_array_equal(display.mean_test_scores[0], search.cv_results_["mean_test_score"][rows])
    folds = [folds_of(search, row) for row in rows]
    np.testing.assert_array_equal(display.test_scores[0], folds)
    np.testing.assert_allclose(display.standard_errors[0], stats.sem(folds, axis=1))
    np.testing.assert_array_equal(display.train_scores[0], [folds_of(search, row, "train") for row in rows])
    assert display.best_candidate == search.best_index_
    sem = stats.sem(folds_of(search, search.best_index_))
    assert display.threshold == pytest.approx(search.best_score_ - sem)


def test_a_line_for_each_value_of_another_parameter():
    search = fitted()
    display = SearchCurveDisplay.from_search(search, "ridge__alpha", lines="pca__n_components")
    for i, n in enumerate(GRID["pca__n_components"]):
        rows = [row_of(search, ridge__alpha=a, pca__n_components=n) for a in GRID["ridge__alpha"]]
        assert display.candidates[i].tolist() == rows
        line = display.lines_[i]
        np.testing.assert_array_equal(line.get_xdata(), GRID["ridge__alpha"])
        np.testing.assert_array_equal(line.get_ydata(), search.cv_results_["mean_test_score"][rows])
    assert legend_of(display.ax_)[:3] == [f"n_components = {n}" for n in GRID["pca__n_components"]]
    assert (len(display.lines_), len(display.bands_)) == (3, 3)
    assert (display.ax_.get_xscale(), display.ax_.get_xlabel()) == ("log", "alpha")


def test_training_scores_are_drawn_beside_the_others():
    search = fitted(return_train_score=True)
    display = SearchCurveDisplay.from_search(search, "ridge__alpha", score_type="both", band=None)
    test, train = display.lines_
    np.testing.assert_array_equal(test.get_ydata(), display.mean_test_scores[0])
    np.testing.assert_array_equal(
        train.get_ydata(), search.cv_results_["mean_train_score"][display.candidates[0]]
    )
    assert display.bands_ == [] and display.ax_.get_ylabel() == "mean score"


@pytest.mark.parametrize(
    ("band", "low", "high"),
    [("folds", [0, 1, 2], [2, 3, 5]), ("standard_error", [1 - 3**-0.5, 2 - 3**-0.5, 11 / 3], None)],
)
def test_the_band_reaches_as_far_as_it_says(band, low, high):
    search = with_results([{"alpha": a} for a in (1, 2, 3)], [[0, 1, 2], [1, 2, 3], [2, 4, 5]])
    display = SearchCurveDisplay.from_search(search, band=band)
    if high is None:
        errors = stats.sem(display.test_scores[0], axis=1)
        low, high = display.mean_test_scores[0] - errors, display.mean_test_scores[0] + errors
    (area,) = display.bands_
    extents = area.get_paths()[0].vertices
    for x, bottom, top in zip((1, 2, 3), low, high, strict=True):
        ys = extents[extents[:, 0] == x, 1]
        assert (ys.min(), ys.max()) == pytest.approx((bottom, top))


SCORES = [[0.1, 0.2, 0.3], [0.7, 0.8, 0.9], [0.75, 0.85, 0.95], [0.74, 0.84, 0.94], [0.5, 0.6, 0.4]]


@pytest.mark.parametrize(
    ("name", "simpler", "row"),
    [
        ("alpha", "auto", 3),  # larger is simpler
        ("svc__C", "auto", 1),  # smaller is
        ("gamma", "auto", None),
        ("gamma", "larger", 3),
        ("gamma", "smaller", 1),
        ("alpha", None, None),
    ],
)
def test_the_simplest_setting_within_one_standard_error(name, simpler, row):
    search = with_results([{name: value} for value in (1, 2, 3, 4, 5)], SCORES)
    display = SearchCurveDisplay.from_search(search, simpler=simpler)
    assert display.best_candidate == 2 and display.simplest_candidate == row
    named = [text for text in legend_of(display.ax_) if text.startswith("simplest")]
    assert named == ([] if row is None else [f"simplest as good: {row + 1}"])


@pytest.mark.parametrize(
    ("means", "edge"), [([3, 2, 1], "lower"), ([1, 2, 3], "upper"), ([1, 3, 2], None), ([1, 2], None)]
)
def test_a_best_value_at_the_edge_is_marked(means, edge):
    search = with_results([{"a": value} for value in range(len(means))], [[m, m] for m in means])
    display = SearchCurveDisplay.from_search(search)
    assert display.edge == edge
    title = display.ax_.get_title(loc="left")
    said = {"lower": "the best value is the smallest", "upper": "the best value is the largest", None: ""}
    assert title.startswith(said[edge]) and bool(title) == bool(edge)


def test_settings_of_a_randomized_search_are_points():
    distributions = {"alpha": stats.loguniform(1e-3, 1e3), "tol": stats.uniform(1e-4, 1e-3)}
    search = RandomizedSearchCV(Ridge(), distributions, n_iter=12, random_state=0, cv=4).fit(X, Y)
    display = SearchCurveDisplay.from_search(search, "alpha")
    order = np.argsort([one["alpha"] for one in search.cv_results_["params"]])
    assert not display.joined and display.candidates.tolist() == [order.tolist()]
    assert display.lines_[0].get_linestyle() == "None" and display.ax_.get_xscale() == "log"
    at_best = SearchCurveDisplay.from_search(search, "alpha", others="best")
    assert at_best.candidates.tolist() == [[search.best_index_]]


@pytest.mark.parametrize("resource", ["n_samples", "max_iter"])
def test_a_halving_search_has_a_line_for_each_round(resource):
    options = {"min_resources": 20, "cv": 2, "random_state": 0}
    if resource == "max_iter":
        options |= {"resource": resource, "max_resources": 160}
    search = HalvingGridSearchCV(Ridge(solver="lsqr"), {"alpha": [0.1, 1.0, 10.0, 100.0]}, **options).fit(
        X, Y
    )
    display = SearchCurveDisplay.from_search(search)
    results = search.cv_results_
    assert display.line_values == sorted(set(results["n_resources"].tolist()))
    assert display.line_name == ("n_resources" if resource == "n_samples" else resource)
    for i, alpha in enumerate(display.param_values):
        for j, n in enumerate(display.line_values):
            rows = [
                k
                for k, one in enumerate(results["params"])
                if one["alpha"] == alpha and results["n_resources"][k] == n
            ]
            assert display.candidates[j, i] == (rows[0] if rows else -1)
    assert display.best_candidate == search.best_index_
    assert [len(line.get_xdata()) for line in display.lines_] == (display.candidates >= 0).sum(
        axis=1
    ).tolist()


def test_it_draws_on_axes_of_the_user():
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2)
    display = SearchCurveDisplay.from_search(fitted(), "ridge__alpha", ax=axes[1])
    assert display.ax_ is axes[1] and display.figure_ is figure
    assert display.plot(axes[0]) is display and display.ax_ is axes[0]
