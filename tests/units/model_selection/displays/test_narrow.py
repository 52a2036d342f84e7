"""Displays in narrow figures, as on a phone: nothing is cut off, and no legend lies over the data."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.model_selection import ParameterGrid

from manyfit.model_selection import (
    FoldScoresDisplay,
    ScoreTimeDisplay,
    SearchCurveDisplay,
    SearchHeatmapDisplay,
    SearchParallelDisplay,
    SharingDisplay,
)
from tests.units.model_selection.displays._searches import GRID, fitted, with_results

TREES = {"min_samples_leaf": [1, 5, 20], "max_features": [0.5, 1.0, "sqrt"], "max_depth": [2, 4]}
SETTINGS = list(ParameterGrid(TREES))
SCORES = np.random.RandomState(0).rand(len(SETTINGS), 5)
DISPLAYS = {
    "curve": (SearchCurveDisplay, {"param_name": "max_depth", "lines": "max_features"}, 4.4),
    "heatmap": (SearchHeatmapDisplay, {"param_x": "max_features", "param_y": "max_depth"}, 3.6),
    "parallel": (SearchParallelDisplay, {}, 3.6),
    "times": (ScoreTimeDisplay, {}, 5.2),
    "folds": (FoldScoresDisplay, {}, 6.0),
}


def cut_off(ax):
    """By how many pixels axes, with their texts and their legend, reach beyond the figure."""
    ax.figure.draw_without_rendering()
    page, box = ax.figure.bbox, ax.get_tightbbox()
    return max(page.x0 - box.x0, box.x1 - page.x1, page.y0 - box.y0, box.y1 - page.y1, 0)


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", DISPLAYS)
def test_a_display_fits_a_phone(name):
    display, options, height = DISPLAYS[name]
    ax = Figure(figsize=(3.9, height), layout="constrained").subplots()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib's, of axes that have no room
        display.from_search(with_results(SETTINGS, SCORES), ax=ax, **options)
        assert cut_off(ax) < 2
    legend, data = ax.get_legend().get_window_extent(), ax.get_window_extent()
    assert data.width > 0.4 * ax.figure.bbox.width
    assert legend.y1 <= data.y0 or legend.y0 >= data.y1


def test_what_was_shared_fits_a_phone():
    axes = Figure(figsize=(3.9, 6), layout="constrained").subplots(2, 1)
    SharingDisplay.from_search(fitted(GRID), ax=axes)
    assert max(map(cut_off, axes)) < 2


def test_what_is_cut_off_is_found():
    ax = Figure(figsize=(3.9, 3.6), layout="constrained").subplots()
    SearchCurveDisplay.from_search(fitted(GRID), "ridge__alpha", ax=ax)
    ax.set_xlabel("a text that is longer than the figure is wide, as a name of a parameter may be")
    assert cut_off(ax) > 50
