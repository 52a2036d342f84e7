"""Everyday searches with all threads: rows and requirements, by libraries that only name seconds."""

from contextlib import nullcontext

import numpy as np
import pytest

from benchmarks import threads
from benchmarks._benchmark import all_benchmarks
from benchmarks._in_turn import Measured

SECONDS = {
    ("sklearn", "poisson", None): [9.0, 8.0, 8.5],
    ("manyfit", "poisson", None): [5.0, 2.0, 3.0],
    ("sklearn", "logistic-digits", None): [6.0] * 3,
    ("manyfit", "logistic-digits", None): [2.0, 4.0, 2.0],
    ("sklearn", "tree", None): [1.0, 1.0, 1.0],
    ("manyfit", "tree", None): [1.5, 1.2, 1.0],
    ("sklearn", "network", None): [0.9] * 3,
    ("manyfit", "network", None): [1.0] * 3,
    ("sklearn", "poisson", -1): [3.0] * 3,
    ("manyfit", "poisson", -1): [2.5] * 3,
}


class _Side:
    def __init__(self, library):
        self.library, self.left = library, {key: list(seconds) for key, seconds in SECONDS.items()}

    def run(self, request):
        if request.case == "first":
            return Measured(1.0)
        if request.case == "broken":
            return Measured(failure="ValueError: no")
        last = 0.5 if (self.library, request.n_jobs) == ("manyfit", None) else 0.25
        wall = self.left[self.library, request.case, request.n_jobs].pop(0)
        return Measured(wall, scores=np.array([0.0, last]))


@pytest.fixture
def cases(monkeypatch):
    def use(*names):
        monkeypatch.setattr(threads, "CASES", dict.fromkeys(names))
        monkeypatch.setattr(threads, "IN_PROCESSES", ("poisson",))
        monkeypatch.setattr(threads, "_UNTIL_IDLE", 0.0)
        monkeypatch.setattr(threads, "side", lambda library, one_thread: nullcontext(_Side(library)))
        # The first case of all imports the libraries.
        monkeypatch.setattr(threads, "next", lambda it: "first", raising=False)

    return use


def test_the_least_of_some_rounds_counts(cases):
    cases("poisson", "logistic-digits", "tree", "network")
    found = all_benchmarks()["threads"].run()
    rows = {row["search"]: row for row in found.rows}
    assert (rows["poisson"]["theirs"], rows["poisson"]["ours"], rows["poisson"]["times"]) == (8.0, 2.0, 4.0)
    assert (rows["poisson"]["theirs_in_processes"], rows["poisson"]["ours_in_processes"]) == (3.0, 2.5)
    assert (rows["poisson"]["of_threads"], rows["poisson"]["difference"]) == (0.25, 0.25)
    assert rows["tree"]["times"] == 1.0
    assert rows["tree"]["theirs_in_processes"] is rows["tree"]["difference"] is None
    assert found.found["slow"] == {"network": 0.9}
    assert found.notes[-1] == "geometric mean 1.81 times; under 0.95: network 0.90"
    assert [one.met for one in found.verdicts] == [True, False]


def test_a_search_that_fails_is_named(cases):
    cases("broken")
    with pytest.raises(RuntimeError, match="broken: ValueError: no"):
        all_benchmarks()["threads"].run()
