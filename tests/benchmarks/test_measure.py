"""The rounds, what is kept of a failure, and the columns that must fire when something is wrong."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import _bars as bars
from benchmarks import _measure
from benchmarks._benchmark import Answer, Benchmark, Contender, register
from benchmarks._compare import score_differences
from benchmarks._contenders import read_search, sklearn
from benchmarks._count import count_fits
from benchmarks._floor import distinct_steps_seconds, moments_work, product_rate, read_rate
from benchmarks._measure import run
from benchmarks._report import as_dict, table
from benchmarks._task import Task

TASK = Task(Ridge(), {"alpha": [0.1, 1.0]}, cv=3)


def _data(quick=True):
    rng = np.random.default_rng(0)
    return rng.normal(size=(30, 3)), rng.normal(size=30)


def _benchmark(*contenders, asked=()):
    return Benchmark("tiny", "tiny", lambda quick: TASK, _data, contenders, asked, moments_work, repeat=3)


def _run(*contenders, asked=()):
    return run(_benchmark(*contenders, asked=asked), memory=False)


def _ours(read=read_search):
    return Contender("ours", "ours", sklearn().fit, read)


@pytest.fixture(autouse=True)
def _once_a_round(monkeypatch):
    monkeypatch.setattr(_measure, "_SHORT_SECONDS", 0.0)


def test_what_is_short_is_timed_several_times_a_round(monkeypatch):
    monkeypatch.setattr(_measure, "_SHORT_SECONDS", 60.0)
    monkeypatch.setattr(_measure, "_SHORT_RUNS", 2)
    result = _run(sklearn())
    assert len(result.rows[0].seconds) == 3 * 2
    assert len(result.fit_seconds) == 3 * 2


def test_contender_that_raises_is_kept_as_data():
    def fit(task, X, y):
        raise TypeError("no such\nparameter")

    result = _run(Contender("broken", "other", fit, read_search), sklearn())
    broken, works = result.rows
    assert broken.failure == "TypeError: no such"
    assert broken.seconds == []
    assert broken.median is None
    assert works.failure is None
    assert len(works.seconds) == 3
    assert "broken" in table(result)
    assert "TypeError: no such" in table(result)
    assert as_dict([result])["results"][0]["rows"][0]["failure"] == "TypeError: no such"


def test_contender_that_fails_later_keeps_its_times_and_has_no_median():
    calls = []

    def fit(task, X, y):
        calls.append(1)
        if len(calls) == 3:
            raise MemoryError("too large")
        return sklearn().fit(task, X, y)

    row = _run(Contender("fails later", "other", fit, read_search), sklearn()).rows[0]
    assert len(row.seconds) == 1  # the first call was the warm-up
    assert row.failure == "MemoryError: too large"
    assert row.median is None
    assert len(calls) == 3


def test_scores_are_compared_with_those_of_the_peer():
    def shifted(name, shift, **kwargs):
        def read(search):
            answer = read_search(search)
            return replace(answer, means=answer.means + shift, splits=answer.splits + shift)

        return Contender(name, "other", sklearn().fit, read, **kwargs)

    others = shifted("peer", 1.0), shifted("ours", 1.0, peer="peer"), shifted("alone", 1.0, peer="missing")
    _, peer, ours, alone = _run(sklearn(), *others).rows
    assert ours.mean_difference == ours.split_difference == 0.0
    assert peer.mean_difference == alone.mean_difference == pytest.approx(1.0)


def test_interrupt_is_not_kept():
    def fit(task, X, y):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _run(Contender("stopped", "other", fit, read_search))


def test_interleaved_on_fresh_copies():
    seen = []

    def spoiling(name):
        def fit(task, X, y):
            seen.append((name, float(X.sum())))
            fitted = sklearn().fit(task, X, y)
            X[:] = 0.0
            return fitted

        return Contender(name, "other", fit, read_search)

    _run(spoiling("a"), spoiling("b"), sklearn())
    total = float(_data()[0].sum())
    assert seen == [("a", total), ("b", total)] * 4  # the warm-up and three rounds


def test_score_difference_fires():
    def read(search):
        answer = read_search(search)
        means, splits = answer.means.copy(), answer.splits.copy()
        means[1] += 1e-3
        splits[2, 0] -= 1e-2
        return replace(answer, means=means, splits=splits)

    result = _run(_ours(read=read), sklearn(), asked=(bars.same_scores(1e-9),))
    assert result.rows[0].mean_difference == pytest.approx(1e-3)
    assert result.rows[0].split_difference == pytest.approx(1e-2)
    assert result.rows[1].split_difference == 0
    assert result.verdicts[0].met is False
    assert "NOT MET" in table(result)


def _answer(means, splits, keys=("a", "b")):
    return Answer(best=max(means), keys=keys, means=np.array(means), splits=np.array(splits))


KNOWN = _answer([1.0, 2.0], [[1.0, 2.0]])
NOT_FINITE = _answer([np.nan, -np.inf], [[np.nan, -np.inf]])


@pytest.mark.parametrize(
    ("reference", "answer", "expected"),
    [
        # Settings are matched by their parameters.
        (KNOWN, _answer([2.0, 1.0], [[2.0, 1.0]], keys=("b", "a")), (0, 0)),
        (KNOWN, _answer([1.0, 2.0], [[1.0, 2.0]], keys=("a", "c")), (np.inf, np.inf)),
        (NOT_FINITE, NOT_FINITE, (0, 0)),
        (NOT_FINITE, _answer([np.nan, 2.0], [[1.0, -np.inf]]), (np.inf, np.inf)),
        # A class that tells the best only.
        (KNOWN, Answer(best=2.5), (0.5, None)),
        (KNOWN, Answer(best=None), (None, None)),
    ],
)
def test_score_differences(reference, answer, expected):
    assert score_differences(answer, reference) == expected


def test_dearest_fit_is_the_one_that_took_longest():
    def read(search):
        return replace(read_search(search), seconds_per_fit=np.array([1.0, 2.0]))

    result = _run(replace(sklearn(), read=read))
    assert result.dearest == "alpha=1.0"
    assert len(result.fit_seconds) == 3


def test_fits_are_counted_by_class_and_once_each():
    X, y = _data()
    method = StandardScaler.fit
    with count_fits((StandardScaler, PCA, Ridge)) as counts:
        make_pipeline(StandardScaler(), PCA(), Ridge()).fit(X, y)
        PCA().fit_transform(X)
    assert counts == {"StandardScaler": 1, "PCA": 2, "Ridge": 1}
    PCA().fit(X)
    assert counts["PCA"] == 2
    assert StandardScaler.fit is method
    assert "fit_transform" not in vars(StandardScaler)


def test_rates_and_work():
    X, y = _data()
    work = moments_work(TASK, X, y)
    assert work.bytes == X.nbytes + y.nbytes
    # for each row, the products of each pair of the 4 columns, one with itself too, and as many additions
    assert work.flops == 30 * 2 * 10
    assert 0 < read_rate(10_000) < np.inf
    assert 0 < read_rate(4 * 2**20) < np.inf
    assert 0 < product_rate() < np.inf


def test_distinct_steps_are_fitted_once_per_split():
    grid = {"pca__n_components": [1, 2], "ridge__alpha": [0.1, 1.0, 10.0]}
    task = Task(make_pipeline(StandardScaler(), PCA(), Ridge()), grid, cv=3)
    with count_fits(task.step_classes()) as counts:
        assert distinct_steps_seconds(task, *_data()) > 0
    assert counts == {"StandardScaler": 3, "PCA": 6, "Ridge": 18}


def test_a_name_is_registered_once():
    taken = dataclasses.replace(_benchmark(), name="overhead")
    import benchmarks.overhead  # noqa: F401  (registers the name)

    with pytest.raises(ValueError, match="named 'overhead' is registered already"):
        register(taken)
