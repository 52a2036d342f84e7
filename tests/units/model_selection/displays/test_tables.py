"""SearchHeatmapDisplay, SearchParallelDisplay and ScoreTimeDisplay."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn import model_selection
from sklearn.linear_model import Ridge
from sklearn.svm import SVR

from manyfit.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    ScoreTimeDisplay,
    SearchHeatmapDisplay,
    SearchParallelDisplay,
)
from tests.units.model_selection.displays._searches import (
    GRID,
    PIPELINE,
    X,
    Y,
    fitted,
    folds_of,
    legend_of,
    row_of,
    with_results,
)


@pytest.mark.parametrize("kind", [GridSearchCV, model_selection.GridSearchCV])
def test_a_cell_for_each_pair_of_values(kind):
    search = fitted(search=kind)
    display = SearchHeatmapDisplay.from_search(search, "ridge__alpha")
    assert (display.param_x, display.param_y) == ("ridge__alpha", "pca__n_components")
    means = search.cv_results_["mean_test_score"]
    threshold = search.best_score_ - stats.sem(folds_of(search, search.best_index_))
    for i, n in enumerate(GRID["pca__n_components"]):
        for j, alpha in enumerate(GRID["ridge__alpha"]):
            row = row_of(search, ridge__alpha=alpha, pca__n_components=n)
            assert display.candidates[i, j] == row and display.mean_test_scores[i, j] == means[row]
            assert display.standard_errors[i, j] == pytest.approx(stats.sem(folds_of(search, row)))
            assert display.within_one_standard_error[i, j] == (means[row] >= threshold)
    np.testing.assert_array_equal(display.image_.get_array(), display.mean_test_scores)
    assert len(display.texts_) == 12 and legend_of(display.ax_) == ["within one standard error", "best"]
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == ["2", "4", "6"]


def test_the_outline_goes_around_cells_within_one_standard_error():
    params = [{"x": x, "y": y} for y in "ab" for x in "cde"]
    search = with_results(params, [[0, 0.1], [0.8, 1.0], [0.85, 1.05], [0, 0], [0.1, 0.1], [0.9, 1.05]])
    display = SearchHeatmapDisplay.from_search(search, "x", "y")
    assert display.within_one_standard_error.tolist() == [[False, False, True], [False, False, True]]
    ax = display.ax_
    edges = {tuple(map(tuple, segment)) for segment in ax.collections[-1].get_segments()}
    assert edges == {
        ((1.5, -0.5), (2.5, -0.5)), ((1.5, 1.5), (2.5, 1.5)), ((1.5, -0.5), (1.5, 0.5)),
        ((1.5, 0.5), (1.5, 1.5)), ((2.5, -0.5), (2.5, 0.5)), ((2.5, 0.5), (2.5, 1.5)),
    }  # fmt: skip


def test_other_parameters_are_the_best_ones_or_any():
    params = [{"x": x, "y": y, "z": z} for x in (1, 2, 3) for y in (1, 2) for z in (1, 2)]
    means = np.array([5, 6, 1, 2, 3, 9, 8, 7, 4, 0, 2, 1.0])
    search = with_results(params, np.column_stack([means, means]))
    best = SearchHeatmapDisplay.from_search(search, "x", "y")
    assert best.mean_test_scores.tolist() == [[6, 9, 0], [2, 7, 1]]
    best = SearchHeatmapDisplay.from_search(search, "x", "y", others="all")
    assert best.mean_test_scores.tolist() == [[6, 9, 4], [2, 8, 2]]


def test_drawn_numbers_are_points():
    grid = {"C": stats.loguniform(0.1, 100), "gamma": stats.loguniform(1e-3, 1), "kernel": ["rbf", "sigmoid"]}
    search = RandomizedSearchCV(SVR(), grid, n_iter=20, random_state=0, cv=3).fit(X, Y)
    display = SearchHeatmapDisplay.from_search(search, "C", "gamma", others="all")
    places = {tuple(place): mean for place, mean in zip(*_points(display.image_), strict=True)}
    for one, mean in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        assert places[one["C"], one["gamma"]] == mean
    assert (display.ax_.get_xscale(), display.ax_.get_yscale()) == ("log", "log")
    display.plot(kind="cells")
    assert display.image_.get_array().shape == (20, 20)
    of_best = SearchHeatmapDisplay.from_search(search, "C", "gamma", others="best").candidates
    kernels = [one["kernel"] == search.best_params_["kernel"] for one in search.cv_results_["params"]]
    assert sorted(of_best[of_best >= 0]) == np.flatnonzero(kernels).tolist()


def test_one_drawn_number_gives_points_too():
    rng = np.random.default_rng(0)
    params = [{"x": x, "y": y} for x, y in zip(rng.lognormal(size=90), "abc" * 30, strict=True)]
    display = SearchHeatmapDisplay.from_search(with_results(params, rng.normal(size=(90, 3))))
    assert len(display.image_.get_offsets()) == 90
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == ["a", "b", "c"]


def _points(drawn):
    return drawn.get_offsets().tolist(), drawn.get_array().tolist()


def test_parallel_axes_show_every_setting():
    grid = [
        {"ridge": [Ridge(), SVR()], "pca__n_components": [2, 6]},
        {"pca__n_components": [4], "ridge__alpha": [0.1, 1.0, 10.0]},
    ]
    search = fitted(grid)
    display = SearchParallelDisplay.from_search(search)
    results = search.cv_results_
    assert set(display.param_names) == {"ridge", "pca__n_components", "ridge__alpha"}
    positions = dict(zip(display.param_names, display.positions.T, strict=True))
    heights = {0.1: 0, 1.0: 1 / 3, 10.0: 2 / 3, None: 1}  # "not set" is the last of four categories
    for i, one in enumerate(results["params"]):
        assert positions["pca__n_components"][i] == {2: 0, 4: 0.5, 6: 1}[one["pca__n_components"]]
        assert positions["ridge__alpha"][i] == pytest.approx(heights[one.get("ridge__alpha")])
        kind = type(one["ridge"]).__name__ if "ridge" in one else None
        assert positions["ridge"][i] == {"Ridge": 0, "SVR": 0.5, None: 1}[kind]
    np.testing.assert_array_equal(display.mean_test_scores, results["mean_test_score"])
    assert len(display.lines_.get_segments()) == len(results["params"]) - 1  # the best is drawn by itself
    scores = display.mean_test_scores
    line = display.best_line_.get_ydata()
    np.testing.assert_array_equal(line, [*display.positions[search.best_index_], 1])
    assert scores[display.best_candidate] == scores.max()
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()][-1] == "mean test\nscore"
    assert "not set" in {text.get_text() for text in display.ax_.texts}


def test_parallel_axes_of_some_parameters():
    search = fitted()
    display = SearchParallelDisplay.from_search(search, ["ridge__alpha"])
    logs = np.log(GRID["ridge__alpha"])
    heights = [(np.log(one["ridge__alpha"]) - logs[0]) / np.ptp(logs) for one in search.cv_results_["params"]]
    np.testing.assert_allclose(display.positions[:, 0], heights)


def _is_on_front(i, times, means):
    """By the definition: no setting that is as fast has a score as high, or it is a later equal one."""
    for j in range(len(times)):
        better = (
            times[j] <= times[i] and means[j] >= means[i] and (times[j], means[j]) != (times[i], means[i])
        )
        if better or ((times[j], means[j]) == (times[i], means[i]) and j < i):
            return False
    return True


@pytest.mark.parametrize("time", ["fit", "score", "total"])
def test_the_front_has_what_no_other_setting_beats(time):
    rng = np.random.default_rng(0)
    means, times = rng.integers(0, 8, 60) / 8, rng.integers(1, 8, (2, 60)) / 8
    search = with_results(
        [{"a": i} for i in range(60)],
        np.column_stack([means, means]),
        mean_fit_time=times[0],
        mean_score_time=times[1],
    )
    display = ScoreTimeDisplay.from_search(search, time=time)
    expected = {"fit": times[0], "score": times[1], "total": times.sum(axis=0)}[time]
    np.testing.assert_array_equal(display.times, expected)
    assert display.on_front.tolist() == [_is_on_front(i, expected, means) for i in range(60)]
    order = np.argsort(expected[display.on_front])
    np.testing.assert_array_equal(display.front_.get_xdata(), expected[display.on_front][order])
    np.testing.assert_array_equal(display.front_.get_ydata(), means[display.on_front][order])
    assert not display.is_shared.any()


def test_times_of_shared_fits_are_marked():
    grid = [{"ridge__alpha": [0.1, 1.0]}, {"ridge": [SVR()], "ridge__C": [1.0, 2.0, 3.0]}]
    search = fitted(grid)
    display = ScoreTimeDisplay.from_search(search)
    shared = ["ridge__alpha" in one for one in search.cv_results_["params"]]
    assert display.is_shared.tolist() == shared and set(shared) == {True, False}
    assert [len(points.get_xdata()) for points in display.points_] == [3, 2]
    assert "a setting, part of a shared time" in legend_of(display.ax_)
    theirs = model_selection.GridSearchCV(PIPELINE, grid, cv=4).fit(X, Y)
    assert not ScoreTimeDisplay.from_search(theirs).is_shared.any()
    assert not ScoreTimeDisplay.from_search(fitted(grid, sharing="none")).is_shared.any()


def test_groups_of_later_rounds_name_rows_of_cv_results():
    from manyfit.model_selection import BaseSearchCV

    class Twice(BaseSearchCV):
        def __init__(self, estimator, cv):
            super().__init__(estimator, cv=cv)

        def _run_search(self, evaluate_candidates):
            evaluate_candidates([{"ridge__alpha": 1.0}, {"ridge__alpha": 2.0}])
            evaluate_candidates([{"ridge": SVR()}, {"ridge__alpha": 3.0}])

    search = Twice(PIPELINE, cv=3).fit(X, Y)
    rows = {c for group in search.report_.groups for c in group["candidates"]}
    assert rows == {0, 1, 2, 3}
    assert ScoreTimeDisplay.from_search(search).is_shared.tolist() == [True, True, False, True]
