"""The everyday searches, few of them and small, in two processes that take turns."""

from __future__ import annotations

import itertools
import math
from contextlib import nullcontext

import numpy as np
import pytest
import sklearn.model_selection

import manyfit.model_selection
from benchmarks import everyday
from benchmarks._benchmark import all_benchmarks
from benchmarks._in_turn import Measured, Request, measure
from benchmarks._report import table
from benchmarks.everyday_cases._all import CASES

ALWAYS = {"ridge"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in ALWAYS else pytest.mark.thorough) for name in CASES],
)
def test_each_case_has_scikit_learns_scores(name):
    request = Request(name, True, None)
    theirs, ours = (
        measure(library, request) for library in (sklearn.model_selection, manyfit.model_selection)
    )
    assert np.isfinite(theirs.scores).all()
    # Converged scores differ by what scikit-learn's tol leaves open.
    np.testing.assert_allclose(ours.scores, theirs.scores, rtol=0, atol=1e-2)
    assert theirs.kinds == ()
    assert (ours.kinds == ()) is (ours.fits is None)


@pytest.mark.thorough
def test_two_processes_take_turns_and_end(monkeypatch):
    monkeypatch.setattr(everyday, "CASES", {name: CASES[name] for name in ("ridge", "svc-ten-fits")})
    found = all_benchmarks()["everyday"].run(quick=True)
    assert [row["search"] for row in found.rows] == ["ridge", "svc-ten-fits"]
    assert [row["fits"] for row in found.rows] == ["0 of 50", "10 of 10"]
    assert all(0 < row["times_cpu"] < math.inf for row in found.rows)
    assert all(row["difference"] < 1e-9 for row in found.rows)
    text = table(found)
    assert "geometric mean" in text
    assert "moments" in text


def _runs(theirs: list[float], ours: list[float]) -> everyday.Runs:
    return {
        ("sklearn", None): [Measured(seconds, seconds) for seconds in theirs],
        ("manyfit", None): [Measured(seconds, seconds) for seconds in ours],
    }


def test_a_slow_search_is_named():
    rows = [everyday._row("a", _runs([2.0, 1.8], [2.0])), everyday._row("b", _runs([4.0], [1.0, 2.0]))]
    found = everyday._findings(rows)
    assert found.found["cpu"]["slow"] == {"a": 0.9}
    assert found.found["wall"]["geometric_mean"] == pytest.approx((0.9 * 4.0) ** 0.5)
    assert found.verdicts[0].met is False


def test_fits_one_by_one_are_judged_by_themselves():
    rows = [everyday._row("a", _runs([2.2], [2.0])), everyday._row("b", _runs([1.0], [2.0]))]
    rows[0]["served"] = everyday.ONE_BY_ONE
    found = everyday._findings(rows)
    assert found.found["one_by_one"]["wall"] == pytest.approx((1.1, 1.1))
    assert [one.met for one in found.verdicts] == [False, True, True]
    assert [one.met for one in everyday._findings(rows[1:]).verdicts] == [False, None, None]


def test_rounds_end_where_the_best_two_agree():
    assert everyday._is_settled(_runs([2.0, 1.0, 1.01], [1.0]), "sklearn")
    assert not everyday._is_settled(_runs([2.0, 1.0], [1.0]), "sklearn")


def test_searches_that_look_slow_run_again_after_all_others(monkeypatch):
    order: list[str] = []

    def alternate(sides, name, quick):
        order.append(name)
        return _runs([1.0], [2.0 if name == "b" and order.count("b") == 1 else 1.0])

    monkeypatch.setattr(everyday, "CASES", dict.fromkeys("abc"))
    monkeypatch.setattr(everyday, "side", lambda library: nullcontext())
    monkeypatch.setattr(everyday, "_alternate", alternate)
    found = everyday._measure(False, lambda text: None)
    assert order == ["a", "a", "b", "c", "b"]
    assert [row["times_cpu"] for row in found.rows] == [1.0, 1.0, 1.0]


def test_a_search_that_looks_slow_is_run_more_often():
    class Recorded:
        def __init__(self, seconds, *kinds):
            self.seconds, self.kinds = seconds, kinds

        def run(self, request):
            return Measured(next(self.seconds), 1.0, kinds=self.kinds)

    def rounds(ours, *kinds):
        sides = {"sklearn": Recorded(itertools.repeat(1.0)), "manyfit": Recorded(iter(ours), *kinds)}
        return len(everyday._alternate(sides, "ridge", False)["manyfit", None])

    assert rounds([1.0] * 40) == 2
    assert rounds([1.0] * 40, everyday.ONE_BY_ONE) == everyday._ROUNDS_ONE_BY_ONE
    assert rounds([1.2, 1.2, 1.2, 1.2, 1.2, 1.2, 1.2, 1.2, 1.0] + [1.2] * 40) == 5
    assert rounds([1.2] * 40) == everyday._ROUNDS_IN_DOUBT


def test_a_failure_is_raised_with_the_name_of_the_search():
    runs = _runs([1.0], [1.0])
    runs["manyfit", None] = [Measured(failure="ValueError: no")]
    with pytest.raises(RuntimeError, match="a: ValueError: no"):
        everyday._row("a", runs)
