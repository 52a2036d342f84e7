"""SharingDisplay: its bars are the counts of report and plan."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import model_selection
from sklearn.datasets import load_diabetes
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from examples import displays
from manyfit.model_selection import GridSearchCV, SharingDisplay
from tests.units.model_selection.displays._searches import GRID, PIPELINE, X, Y, fitted, legend_of

MIXED = [{"ridge__alpha": [0.1, 1.0]}, {"ridge": [SVR()], "ridge__C": [1.0, 2.0, 3.0]}]


def test_bars_are_the_counts_of_the_report():
    search = fitted(MIXED)
    display = SharingDisplay.from_search(search)
    report = search.report_
    assert sum(group["fits_shared"] for group in display.groups) == report.fits_shared == 8
    assert sum(group["fits_single"] for group in display.groups) == report.fits_done == 12
    assert display.fits_requested == 20
    for name, bars in display.fit_bars_.items():
        assert [bar.get_width() for bar in bars] == [group[name] for group in display.groups]
    assert set(display.fit_bars_) == {"fits_shared", "fits_single"}
    assert legend_of(display.ax_) == ["answered by shared work", "fitted one by one"]
    assert display.ax_.get_title(loc="left") == "20 fits asked for, 12 made"
    seconds = {
        label.get_text(): bar.get_width()
        for label, bar in zip(display.axes_[1].get_yticklabels(), display.second_bars_, strict=True)
    }
    other = seconds.pop("other")
    assert seconds == {kind: s for kind, s in report.seconds.items() if kind != "total"}
    assert other + sum(seconds.values()) == pytest.approx(report.seconds["total"])


def test_fits_of_families_and_restored_ones_are_in_the_title(tmp_path):
    grid = {"svr__C": [1.0, 10.0, 100.0], "svr__epsilon": [0.1, 1.0, 10.0]}
    pipeline = make_pipeline(StandardScaler(), PCA(), SVR())
    for title in ("45 fits asked for, 45 made (45 by families)", "45 fits asked for, 0 made, 45 restored"):
        search = GridSearchCV(pipeline, grid, checkpoint=tmp_path / "file").fit(
            *load_diabetes(return_X_y=True)
        )
        display = SharingDisplay.from_search(search)
        assert display.family_fits == search.report_.family_fits
        assert display.ax_.get_title(loc="left") == title


def test_fits_left_to_scikit_learn_count_as_made_one_by_one():
    search = fitted()
    group = search.report_.groups[0]
    group["left_to_sklearn"] = {"a reason": 3, "another": 2}
    (shown,) = SharingDisplay.from_search(search).groups
    assert (shown["fits_single"], shown["fits_shared"]) == (5, 43)


def test_bars_of_a_plan():
    plan = GridSearchCV(PIPELINE, MIXED, cv=4).plan(X, Y)
    display = SharingDisplay.from_plan(plan)
    # The output of PCA decides whether the fits of SVR are shared.
    counts = [(g["fits_shared"], g["fits_undecided"], g["fits_single"]) for g in display.groups]
    assert counts == [(8, 0, 0), (0, 12, 0)]
    assert display.fits_done is None and len(display.axes_) == 1 and display.second_bars_ is None
    assert display.ax_.get_title(loc="left") == "8 of 20 fits will be shared, 12 more may be"
    plan = GridSearchCV(PIPELINE, MIXED, cv=4, sharing="none").plan(X, Y)
    assert sum(g["fits_single"] for g in SharingDisplay.from_plan(plan).groups) == plan.fits_planned == 20


def test_many_groups_are_joined():
    plan = GridSearchCV(PIPELINE, MIXED, cv=4).plan(X, Y)
    display = SharingDisplay.from_plan(plan)
    one = display.groups[0]
    display.groups = [
        {**one, "estimator": f"E{i}", "fits_requested": 100 - i, "fits_shared": 100 - i} for i in range(30)
    ]
    display.plot()
    titles = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert len(titles) == 11 and titles[-1] == "20 more groups"
    widths = [bar.get_width() for bar in display.fit_bars_["fits_shared"]]
    assert sum(widths) == sum(group["fits_shared"] for group in display.groups)


def test_the_pictures_of_the_page_are_small(tmp_path):
    displays.main(tmp_path)
    drawn, committed = (
        {path.name for path in folder.glob("*.png")} for folder in (tmp_path, displays.FOLDER)
    )
    assert drawn == committed and len(drawn) == 4
    assert all(path.stat().st_size < 40_000 for path in displays.FOLDER.iterdir())


def test_it_draws_on_one_or_two_axes():
    import matplotlib.pyplot as plt

    search = fitted()
    _, axes = plt.subplots(1, 2)
    assert SharingDisplay.from_search(search, ax=axes).axes_ == tuple(axes)
    assert SharingDisplay.from_search(search, ax=axes[0]).second_bars_ is None
    with pytest.raises(ValueError, match="one or two axes, got 4"):
        SharingDisplay.from_search(search, ax=np.array([axes, axes]))


def test_what_it_cannot_read():
    theirs = model_selection.GridSearchCV(PIPELINE, GRID, cv=4).fit(X, Y)
    with pytest.raises(
        TypeError, match="reads report_, which searches of manyfit have, got sklearn's GridSearchCV"
    ):
        SharingDisplay.from_search(theirs)
    with pytest.raises(NotFittedError, match="manyfit's GridSearchCV is not: call fit first"):
        SharingDisplay.from_search(GridSearchCV(PIPELINE, GRID))
