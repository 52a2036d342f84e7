"""FoldScoresDisplay: differences to the best, and tests of scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn import model_selection
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import Ridge
from sklearn.model_selection import HalvingGridSearchCV, RepeatedKFold, ShuffleSplit

from manyfit.model_selection import FoldScoresDisplay, GridSearchCV
from tests.units.model_selection.displays._searches import X, Y, fitted, folds_of, with_results


@pytest.mark.parametrize("kind", [GridSearchCV, model_selection.GridSearchCV])
def test_differences_come_in_the_order_of_means(kind):
    search = fitted(search=kind)
    display = FoldScoresDisplay.from_search(search)
    best = folds_of(search, search.best_index_)
    means = search.cv_results_["mean_test_score"]
    assert display.candidates[0] == search.best_index_
    assert (np.diff(means[display.candidates]) <= 0).all()
    for row, differences in zip(display.candidates, display.differences, strict=True):
        np.testing.assert_array_equal(differences, np.subtract(folds_of(search, row), best))
    np.testing.assert_array_equal(display.means_.get_xdata(), display.differences.mean(axis=1)[1:])
    assert len(display.points_.get_xdata()) == 12 * 4 and len(display.texts_) == 11


def test_p_values_are_scipys():
    search = fitted()
    best = folds_of(search, search.best_index_)
    shown = {
        test: FoldScoresDisplay.from_search(search, test=test) for test in ("t", "corrected t", "wilcoxon")
    }
    for i, row in enumerate(shown["t"].candidates[1:], 1):
        own = folds_of(search, row)
        plain = stats.ttest_rel(own, best)
        assert shown["t"].p_values[i] == pytest.approx(plain.pvalue)
        interval = plain.confidence_interval(0.95)
        assert shown["t"].intervals[i] == pytest.approx(interval)
        # Nadeau and Bengio: the mean varies by (1 / k + n_test / n_train) times the variance of a difference.
        corrected = plain.statistic / np.sqrt(1 + 4 / 3)
        assert shown["corrected t"].p_values[i] == pytest.approx(2 * stats.t.sf(abs(corrected), 3))
        wider = np.mean(interval) + (np.array(interval) - np.mean(interval)) * np.sqrt(1 + 4 / 3)
        assert shown["corrected t"].intervals[i] == pytest.approx(wider)
        assert shown["wilcoxon"].p_values[i] == pytest.approx(stats.wilcoxon(own, best).pvalue)
    assert np.isnan(shown["t"].p_values[0]) and np.isnan(shown["wilcoxon"].intervals).all()


def test_equal_scores_do_not_differ():
    folds = [[0.5, 0.6, 0.7], [0.5, 0.6, 0.7], [0.5, 0.6, 0.7 - 1e-15], [0.4, 0.5, 0.6], [0.5, 0.5, 0.7]]
    search = with_results([{"a": i} for i in range(5)], folds)
    for test in ("t", "corrected t", "wilcoxon"):
        p = FoldScoresDisplay.from_search(search, test=test).p_values
        assert p[1] == p[2] == 1.0
    assert FoldScoresDisplay.from_search(search, test="t").p_values[4] < 1e-10  # always by 0.1
    assert np.isnan(FoldScoresDisplay.from_search(search, test=None).p_values).all()


@pytest.mark.parametrize(
    ("cv", "ratio"),
    [
        (RepeatedKFold(n_splits=5, n_repeats=2, random_state=0), 1 / 4),
        (ShuffleSplit(4, test_size=0.2), 1 / 4),
        (3, 1 / 2),
    ],
)
def test_the_ratio_is_that_of_the_splitter(cv, ratio):
    search = GridSearchCV(Ridge(), {"alpha": [1.0, 10.0]}, cv=cv).fit(X, Y)
    assert FoldScoresDisplay.from_search(search).ratio == pytest.approx(ratio)
    assert FoldScoresDisplay.from_search(search, test_train_ratio=0.7).ratio == 0.7


def test_only_the_best_rows_are_drawn_and_only_whole_ones_tested():
    means = np.arange(30.0)
    folds = np.column_stack([means, means + np.sin(means), means])
    folds[20, 1] = np.nan
    display = FoldScoresDisplay.from_search(with_results([{"a": i} for i in range(30)], folds), n_settings=5)
    assert len(display.candidates) == 29 and 20 not in display.candidates
    texts = [tick.get_text() for tick in display.ax_.get_yticklabels()]
    assert texts == ["a", *(str(row) for row in display.candidates[:5])]


def test_a_halving_search_shows_its_last_round():
    search = HalvingGridSearchCV(
        Ridge(), {"alpha": [0.1, 1.0, 10.0, 100.0]}, cv=2, random_state=0, min_resources=20
    )
    search.fit(X, Y)
    display = FoldScoresDisplay.from_search(search)
    last = np.flatnonzero(search.cv_results_["iter"] == search.cv_results_["iter"].max())
    assert sorted(display.candidates) == last.tolist() and display.candidates[0] == search.best_index_
