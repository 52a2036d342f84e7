"""Searches that are hard to draw: failed fits, odd parameters, several metrics, many settings."""

from __future__ import annotations

import subprocess
import sys
import time
from fractions import Fraction

import numpy as np
import pytest
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.linear_model import Ridge
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from manyfit.model_selection import (
    FoldScoresDisplay,
    GridSearchCV,
    ScoreTimeDisplay,
    SearchCurveDisplay,
    SearchHeatmapDisplay,
    SearchParallelDisplay,
)
from manyfit.model_selection.results.displays._parameters import (
    NOT_SET,
    column_of,
    read_parameters,
    short_names,
)
from tests.units.model_selection.displays._searches import (
    GRID,
    PIPELINE,
    fitted,
    legend_of,
    with_results,
)

ONE_PARAMETER = (SearchCurveDisplay, SearchParallelDisplay, ScoreTimeDisplay, FoldScoresDisplay)
ALL = (*ONE_PARAMETER, SearchHeatmapDisplay)


def draw(display):
    display.figure_.canvas.draw()
    return display


@pytest.mark.parametrize("display", ALL)
def test_settings_whose_fits_failed(display):
    with pytest.warns(FitFailedWarning), pytest.warns(UserWarning, match="non-finite"):
        search = fitted({"ridge__alpha": [1.0, -1.0, 10.0], "pca__n_components": [2, 3]})
    options = {"param_name": "ridge__alpha"} if display is SearchCurveDisplay else {}
    drawn = draw(display.from_search(search, **options))
    assert drawn.best_candidate == search.best_index_
    if display is SearchHeatmapDisplay:
        assert legend_of(drawn.ax_)[0] == "fits failed" and np.isnan(drawn.mean_test_scores).sum() == 2
    if display is SearchCurveDisplay:
        assert drawn.param_values == [-1.0, 1.0, 10.0] and np.isnan(drawn.mean_test_scores[0, 0])
    if display is ScoreTimeDisplay:
        assert not drawn.on_front[np.isnan(drawn.mean_test_scores)].any()


@pytest.mark.parametrize("display", ALL)
def test_no_score_at_all(display):
    search = with_results([{"a": 1, "b": 1}, {"a": 2, "b": 2}], np.full((2, 2), np.nan))
    with pytest.raises(ValueError, match=f"{display.__name__} has nothing to show: mean_test_score is NaN"):
        display.from_search(search)


@pytest.mark.parametrize("display", ONE_PARAMETER)
@pytest.mark.parametrize("n_splits", [1, 2])
def test_one_setting(display, n_splits):
    search = with_results([{"a": 1}], np.full((1, n_splits), 0.5))
    assert draw(display.from_search(search)).best_candidate == 0


VALUES = [
    None, "l1", True, False, 1, 0, 2.5, Ridge(alpha=2), Ridge(), StandardScaler(), MinMaxScaler(), (1, 2),
    [3], np.arange(4), np.arange(5), np.float32(7), len, Ridge, float("inf"), float("nan"), "x" * 90, 2**2000,
    Fraction(1, 3), "x" * 91,
]  # fmt: skip


@pytest.mark.parametrize("display", ONE_PARAMETER)
def test_values_of_any_type(display):
    rng = np.random.default_rng(0)
    search = with_results([{"a": value} for value in VALUES], rng.normal(size=(len(VALUES), 3)))
    draw(display.from_search(search))


def test_values_are_distinct_places_with_distinct_texts():
    parameter = column_of("a", VALUES)
    assert parameter.scale == "categories" and len(parameter.values) == len(VALUES) == len({*parameter.texts})
    for value, code in zip(VALUES, parameter.codes, strict=True):
        assert parameter.values[code] is value
    assert max(map(len, parameter.texts)) <= 24 + len(" (2)")


def test_equal_values_of_different_types_share_a_place():
    values = [1, 1.0, np.float32(1), np.int64(1), True, "1", 2]
    parameter = column_of("a", values)
    assert parameter.codes.tolist() == [0, 0, 0, 0, 2, 3, 1]
    search = with_results(
        [{"a": value} for value in (2, 1, 1.0, np.int8(2))], [[1, 1], [2, 2], [3, 3], [0, 0]]
    )
    display = SearchCurveDisplay.from_search(search)
    assert display.param_values == [1, 2] and display.candidates.tolist() == [[2, 0]]


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([0.001, 0.01, 0.1], "log"),
        ([1, 10], "log"),
        ([1, 2, 3, 4, 100], "log"),
        (range(1, 40), "linear"),
        ([0.1, 0.2, 0.3], "linear"),
        ([-1, 0, 1], "linear"),
        ([0, 0.001, 0.01, 0.1, 1], "categories"),
        ([0, 1, 2, 3], "linear"),
        ([5], "linear"),
        ([None, 1, 10], "categories"),
        (["a", "b"], "categories"),
        ([1, True], "categories"),
        ([2**2000, 1], "categories"),
    ],
)
def test_the_scale_of_an_axis(values, scale):
    search = with_results([{"a": value} for value in values], np.arange(2.0 * len(values)).reshape(-1, 2))
    display = draw(SearchCurveDisplay.from_search(search))
    assert column_of("a", list(values)).scale == scale
    assert display.ax_.get_xscale() == (scale if scale == "log" else "linear")
    if scale == "categories":
        assert len(display.ax_.get_xticklabels()) == len(list(values))


def test_a_parameter_that_some_settings_lack():
    grid = [{"ridge__alpha": [0.1, 1.0, 10.0]}, {"pca__n_components": [1, 2]}]
    search = fitted(grid)
    parameters = read_parameters(search.cv_results_["params"])
    assert parameters["ridge__alpha"].values[-1] is NOT_SET
    assert search.best_params_.keys() == {"ridge__alpha"}
    display = draw(SearchCurveDisplay.from_search(search, "pca__n_components"))
    means = search.cv_results_["mean_test_score"]
    assert display.param_values == [1, 2] and display.candidates.tolist() == [[3, 4]]
    assert display.best_candidate == 3 + np.argmax(means[3:])
    with pytest.raises(ValueError, match="No setting has all of 'ridge__alpha', 'pca__n_components'"):
        SearchHeatmapDisplay.from_search(search)
    draw(SearchParallelDisplay.from_search(search))


def test_names_are_short_but_distinct():
    names = ["a__n", "b__n", "b__c__k", "k", "c__k2"]
    assert short_names(names) == {"a__n": "a__n", "b__n": "b__n", "b__c__k": "c__k", "k": "k", "c__k2": "k2"}


@pytest.mark.parametrize("display", ALL)
def test_several_metrics(display):
    options = {"param_name": "ridge__alpha"} if display is SearchCurveDisplay else {}
    search = fitted(scoring=["r2", "neg_mean_absolute_error"], refit="neg_mean_absolute_error")
    shown = display.from_search(search, **options)
    assert shown.score_name == "neg_mean_absolute_error" and shown.best_candidate == search.best_index_
    shown = display.from_search(search, metric="r2", **options)
    assert shown.best_candidate == np.argmax(search.cv_results_["mean_test_r2"])
    with pytest.raises(ValueError, match=f"{display.__name__}: no metric 'r_2'.*Did you mean 'r2'?"):
        display.from_search(search, metric="r_2", **options)
    search = fitted(scoring=["r2", "neg_mean_absolute_error"], refit=False)
    with pytest.raises(
        ValueError, match="choose one of the metrics 'r2', 'neg_mean_absolute_error' by metric="
    ):
        display.from_search(search, **options)


@pytest.mark.parametrize("display", ALL)
def test_without_a_refit_and_with_a_rule_of_ones_own(display):
    options = {"param_name": "ridge__alpha"} if display is SearchCurveDisplay else {}
    search = fitted(refit=False, scoring="r2")
    shown = display.from_search(search, metric="r2", **options)
    assert shown.best_candidate == search.best_index_ and shown.score_name == "r2"
    search = fitted(refit=lambda results: 3)
    assert display.from_search(search, **options).best_candidate == 3


@pytest.mark.parametrize("display", ALL)
def test_what_is_no_fitted_search(display):
    with pytest.raises(
        NotFittedError, match=f"{display.__name__} shows a fitted search, and this GridSearchCV is not"
    ):
        display.from_search(GridSearchCV(PIPELINE, GRID))
    with pytest.raises(
        TypeError, match=f"{display.__name__} shows a fitted search, such as GridSearchCV, got .* dict"
    ):
        display.from_search({})
    with pytest.raises(TypeError, match="such as GridSearchCV, got an object of Ridge"):
        display.from_search(Ridge())


def test_names_that_do_not_exist():
    search = fitted()
    with pytest.raises(ValueError, match="no parameter 'alpha'; .*Did you mean 'ridge__alpha'?"):
        SearchCurveDisplay.from_search(search, "alpha")
    with pytest.raises(
        ValueError, match="no parameter 'pca__n_component'; .*Did you mean 'pca__n_components'?"
    ):
        SearchHeatmapDisplay.from_search(search, "ridge__alpha", "pca__n_component")
    with pytest.raises(
        ValueError, match="no parameter 'zzz'; the search has 'pca__n_components', 'ridge__alpha'.$"
    ):
        SearchParallelDisplay.from_search(search, ["zzz"])
    with pytest.raises(ValueError, match="no parameter 'alpha'"):
        SearchCurveDisplay.from_search(search, "ridge__alpha", lines="alpha")
    with pytest.raises(
        ValueError, match="there are 2: 'pca__n_components', 'ridge__alpha'. Name what to show"
    ):
        SearchCurveDisplay.from_search(search)
    with pytest.raises(ValueError, match="needs different parameters, got 'ridge__alpha' twice"):
        SearchHeatmapDisplay.from_search(search, "ridge__alpha", "ridge__alpha")


@pytest.mark.parametrize(
    ("display", "options", "message"),
    [
        (SearchCurveDisplay, {"others": "worst"}, "others must be"),
        (
            SearchCurveDisplay,
            {"simpler": "less"},
            "simpler must be 'auto', .* got 'less'",
        ),
        (SearchCurveDisplay, {"score_type": "both"}, "needs a search with return_train_score=True"),
        (SearchCurveDisplay, {"band": "sd"}, "band 'standard_error', 'folds' or None, got 'test' and 'sd'"),
        (SearchHeatmapDisplay, {"kind": "bars"}, "kind must be"),
        (ScoreTimeDisplay, {"time": "wall"}, "time must be"),
        (FoldScoresDisplay, {"test": "sign"}, "test must be one of 'corrected t'"),
        (FoldScoresDisplay, {"n_settings": 0}, "n_settings must be at least 1"),
    ],
)
def test_options_that_do_not_exist(display, options, message):
    if display is SearchCurveDisplay:
        options = {"param_name": "ridge__alpha", **options}
    with pytest.raises(ValueError, match=message):
        display.from_search(fitted(), **options)


@pytest.mark.parametrize("display", ALL)
def test_a_thousand_settings_are_drawn_within_seconds(display):
    rng = np.random.default_rng(0)
    params = [
        {"a": a, "b": b, "c": c}
        for a, b, c in zip(*rng.normal(size=(2, 1000)), rng.choice(list("xyz"), 1000), strict=True)
    ]
    options = {
        SearchCurveDisplay: {"param_name": "a"},
        SearchHeatmapDisplay: {"param_x": "a", "param_y": "b"},
    }
    start = time.process_time()
    draw(display.from_search(with_results(params, rng.normal(size=(1000, 5))), **options.get(display, {})))
    assert time.process_time() - start < 10


WITHOUT = """
import sys
import numpy as np
from manyfit.model_selection import GridSearchCV, SearchCurveDisplay, SharingDisplay
from sklearn.linear_model import Ridge
assert not any(name.partition(".")[0] == "matplotlib" for name in sys.modules)
search = GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, cv=2).fit(np.eye(6), np.arange(6.0))
sys.modules["matplotlib"] = None
for display in (SearchCurveDisplay, SharingDisplay):
    try:
        display.from_search(search)
    except ImportError as error:
        assert f"{display.__name__}.from_search requires matplotlib. You can install" in str(error), error
    else:
        sys.exit("no error")
"""


@pytest.mark.thorough
def test_matplotlib_is_imported_when_something_is_drawn():
    subprocess.run([sys.executable, "-W", "error", "-c", WITHOUT], check=True)
