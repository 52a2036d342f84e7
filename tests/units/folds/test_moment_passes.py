"""How often moments read the rows, and that threads change no bit."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from sklearn.model_selection import KFold, RepeatedKFold

from manyfit.folds import FoldedMatrix, HostRows, NumPyRows, Splits, Weights
from manyfit.folds import _blas_threads as _threads
from manyfit.folds.moments import _host
from manyfit.folds.moments._host import SAMPLED_ROWS
from manyfit.folds.moments._moments import AtomMoments
from tests.units.folds._exact_moments import assert_moments, exact, rng


@pytest.mark.invariant("One pass over X for each group of atoms and set of weights serves all folds")
def test_one_pass_serves_all_folds_and_roles():
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    data = FoldedMatrix(X, y, Splits.draw(KFold(5), X, y, 60, {}))
    for i in range(5):
        data.view(i)
        data.scoring_moments(i, "test")
        data.scoring_moments(i, "train")
    assert data.passes == 1.0


@pytest.mark.invariant("One pass over X for each group of atoms and set of weights serves all folds")
def test_each_set_of_weights_is_a_pass():
    X, y, w = rng.normal(size=(60, 3)), rng.normal(size=60), rng.random(60)
    splits = Splits.draw(KFold(5), X, y, 60, {})
    for weights, passes in [(Weights(w), 2), (Weights(w, w), 2), (Weights(w, rng.random(60)), 3)]:
        data = FoldedMatrix(X, y, splits, weights)
        for i in range(5):
            view = data.view(i)
            scored = data.scoring_moments(i, "test")
        assert data.passes == passes
        train, test = splits.indices(4)
        Z = np.c_[X, y]
        _, _, scatter = exact(Z[train], w[train])
        np.testing.assert_allclose(view.weighted.xx, scatter[:3, :3].astype(float), rtol=1e-12)
        np.testing.assert_allclose(view.plain.x_mean, X[train].mean(axis=0), rtol=1e-12)
        assert_moments(scored, Z[test], None if weights.score is None else weights.score[test])


def test_passes_of_repeated_splits_are_one_a_group():
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    cv = RepeatedKFold(n_splits=4, n_repeats=3, random_state=0)
    splits = Splits.draw(cv, X, y, 40, {})
    data = FoldedMatrix(X, y, splits)
    for i, (train, _) in enumerate(splits):
        np.testing.assert_allclose(data.view(i).plain.x_mean, X[train].mean(axis=0), rtol=1e-12)
    assert data.passes == len(splits.atom_groups)


def test_a_trend_is_read_once():
    n = 5000
    X, y = np.c_[np.arange(n) * 1e3, rng.normal(size=(n, 2))], rng.normal(size=n)
    data = FoldedMatrix(X, y, Splits.draw(KFold(5), X, y, n, {}))
    moments = data.scoring_moments(0, "train")
    assert data.passes == 1.0
    assert_moments(moments, np.c_[X, y][1000:], rtol=1e-12)


def test_rows_that_are_summed_again_are_counted():
    n = 300
    X, y = np.full((n, 1), 1e6) + rng.normal(size=(n, 1)), rng.normal(size=n)
    X[np.linspace(0, n - 1, SAMPLED_ROWS, dtype=int)] = 0.0  # where the middle is looked for
    group = Splits.given([(np.arange(n), np.arange(0))], n).atom_groups[0]
    [(moments, read)] = NumPyRows(X).moments(y[:, None], group.rows)
    assert read == 2 * n
    assert_moments(moments, np.c_[X, y])
    data = FoldedMatrix(X, y, Splits.given([(np.arange(n), np.arange(0))], n))
    data.view(0)
    assert data.passes == 2.0


@pytest.mark.parametrize("shuffle", [False, True])
def test_doubtful_columns_are_scanned_once(shuffle, watch):
    n, scanned = 60, []

    def note(self, atoms, columns):
        scanned.append((list(columns), sum(_host.n_rows(r) for r in atoms)))

    watch(HostRows, "ranges", note)
    X, y = rng.normal(size=(n, 4)), rng.normal(size=n)
    X[:, 1], X[:, 3] = 2.0, 0.0
    data = FoldedMatrix(X, y, Splits.draw(KFold(5, shuffle=shuffle), X, y, n, {}))
    for i in range(5):
        constant = data.view(i).is_constant(np.array([3, 1]))
        np.testing.assert_array_equal(constant, [True, True])
    assert scanned == [([1, 3], n)]


@pytest.fixture
def two_threads(monkeypatch):
    """Sums of any size by two threads, whatever the environment allows."""
    monkeypatch.setattr(_threads, "blas_threads", lambda: 2)
    monkeypatch.setattr(_host, "MIN_THREADED_VALUES", 0)


def test_threads_change_no_bit(watch, request):
    n = 20_000
    X = rng.normal(size=(n, 6)) + 10.0
    group = Splits.draw(KFold(3), X, None, n, {}).atom_groups[0]
    alone = AtomMoments([one for one, _ in NumPyRows(X).moments(X[:, :1], group.rows)]).merged(np.ones(3))
    request.getfixturevalue("two_threads")
    threads = set()
    watch(_host, "_sums_about", lambda *args: threads.add(threading.get_ident()))
    together = AtomMoments([one for one, _ in NumPyRows(X).moments(X[:, :1], group.rows)]).merged(np.ones(3))
    assert threads and threading.get_ident() not in threads  # this test can fail
    np.testing.assert_array_equal(together.scatter, alone.scatter)
    np.testing.assert_array_equal(together.mean, alone.mean)


def test_an_error_in_a_thread_comes_out_and_blas_has_its_threads_back(two_threads):
    limits = [library["num_threads"] for library in _threads._blas().info()]
    before = set(threading.enumerate())

    def task(item):
        if item == 3:
            raise ValueError("the third")
        return item

    with pytest.raises(ValueError, match="the third"):
        _threads.map_threads(task, range(50))
    assert _threads.map_threads(task, [1, 2]) == [1, 2]
    assert [library["num_threads"] for library in _threads._blas().info()] == limits
    assert not [thread for thread in set(threading.enumerate()) - before if thread.is_alive()]


def test_threads_are_kept_while_blas_is_held_at_one(two_threads):
    def blas():
        return [library["num_threads"] for library in _threads._blas().info()]

    def work(_):
        idents.add(threading.get_ident())
        return blas()

    limits, idents, before = blas(), set(), set(threading.enumerate())
    with _threads.single_blas_thread():
        assert blas() == [1] * len(limits)
        with _threads.single_blas_thread():
            for _ in range(5):
                assert _threads.map_threads(work, range(4)) == [[1] * len(limits)] * 4
        assert blas() == [1] * len(limits)  # still held by the first
        assert len(idents) <= 2 and threading.get_ident() not in idents
    assert blas() == limits
    assert set(threading.enumerate()) == before


def test_another_thread_than_the_first_gives_blas_its_threads_back():
    libraries = _threads._blas().lib_controllers
    before = [(library, library.get_num_threads()) for library in libraries]
    entered, leave, left, end = (threading.Event() for _ in range(4))

    def first():
        with _threads.single_blas_thread():
            entered.set()
            leave.wait()
        left.set()
        end.wait()  # it lives on, as the threads of a pool do

    thread = threading.Thread(target=first)
    try:
        _threads._set_threads([(library, 2) for library in libraries])
        limits = [library.get_num_threads() for library in libraries]
        thread.start()
        entered.wait()
        with _threads.single_blas_thread():
            leave.set()
            left.wait()
            assert [library.get_num_threads() for library in libraries] == [1] * len(limits)
        assert [library.get_num_threads() for library in libraries] == limits
    finally:
        leave.set()
        end.set()
        thread.join()
        _threads._set_threads(before)
