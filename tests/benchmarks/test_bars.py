"""What is asked of a benchmark, on results whose times the tests set."""

from __future__ import annotations

import pytest

from benchmarks import _bars as bars
from benchmarks._result import Result, Row


@pytest.fixture
def judged():
    """Ours takes 5 s, scikit-learn 9 s with fits of 8 s in all, on two cores, and another one 4 s."""
    rows = [Row("ours", "ours"), Row("alone", "scikit-learn"), Row("other", "other")]
    for row, seconds in zip(rows, (5.0, 9.0, 4.0), strict=True):
        row.seconds = [seconds]
    rows[0].fits, rows[1].fit_sums = {"Ridge": 6}, [8.0]
    common = {"shape": (1,), "dtype": "float64", "bytes": 8, "settings": 2, "splits": 3, "blas_threads": 1}
    return Result("n", "s", False, 1, rows=rows, reference="alone", cores=2, fit_seconds=[5.0], **common)


@pytest.mark.parametrize(
    ("bar", "got", "met"),
    [
        (bars.near_ideal(0.8), "0.8 of it", True),
        (bars.near_ideal(0.81), "0.8 of it", False),
        (bars.over_ideal(1.0), "1 s over it", True),
        (bars.over_ideal(0.9), "1 s over it", False),
        (bars.over(1.0, "ours", "other"), "1 s over it", True),
        (bars.over(0.9, "ours", "other"), "1 s over it", False),
        (bars.over(0.9, "ours", "nobody"), "not measured", None),
        (bars.share_over(0.25, "ours", "other"), "0.25 of it", True),
        (bars.share_over(0.2, "ours", "other"), "0.25 of it", False),
        (bars.times_faster(1.8), "1.8 times", True),
        (bars.times_faster(1.9), "1.8 times", False),
        (bars.not_slower_than_best("scikit-learn"), "1.8 times as fast", True),
        (bars.not_slower_than_best("scikit-learn", "other"), "0.8 times as fast", False),
        (bars.not_slower_than_best("specialised"), None, None),
        (bars.not_slower_than("other"), "0.8 times as fast", False),
        (bars.cost_in_fits(1), None, True),
        (bars.cost_in_fits(0.9), None, False),
        (bars.peak_memory(0.3), None, None),
        (bars.fitted_once_per_split("Ridge", distinct=2), "6 fits", True),
        (bars.fitted_once_per_split("Ridge", distinct=1), "6 fits", False),
    ],
)
def test_bars(bar, got, met, judged):
    verdict = bar(judged)
    assert got in (verdict.got, None)
    assert verdict.met is met


def test_rounds_are_compared_one_by_one(judged):
    """The second round was slow for both."""
    judged.rows[0].seconds, judged.rows[2].seconds = [9.0, 1.5, 4.5, 2.0], [1.0, 3.0, 1.5]
    assert bars.over(1.0, "ours", "other")(judged).got == "0.5 s over it"
    assert bars.share_over(1.0, "ours", "other")(judged).got == "0.5 of it"


def test_without_a_reference_there_is_no_ideal(judged):
    judged.rows[1].fit_sums = []
    assert judged.ideal is None
    assert bars.near_ideal(0.9)(judged).met is None


def test_who_was_given_up_is_slower(judged):
    judged.rows[2].failure, judged.rows[2].given_up = "TooLong: not done in 300 s", 300.0
    verdict = bars.not_slower_than("other")(judged)
    assert (verdict.got, verdict.met) == ("60 times as fast or more", True)


def test_the_larger_of_count_and_report_is_believed(judged):
    judged.rows[0].report = {"transformer_fits": 7}
    verdict = bars.fitted_once_per_split("Ridge", distinct=2)(judged)
    assert (verdict.got, verdict.met) == ("7 fits", False)
