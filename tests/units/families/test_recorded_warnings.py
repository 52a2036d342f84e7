"""Warnings that a fit gives in one thread leave the other threads alone."""

import threading
import warnings

import pytest

from manyfit.families.protocol import recorded_warnings, refused_warnings
from manyfit.folds import Unsupported


def test_warnings_of_the_block_are_recorded_and_not_shown():
    with recorded_warnings() as found:
        warnings.warn("a", RuntimeWarning, stacklevel=1)
    assert found == ["RuntimeWarning"]


def test_an_inner_block_records_its_own_warnings():
    with recorded_warnings() as outer:
        with recorded_warnings() as inner:
            warnings.warn("a", RuntimeWarning, stacklevel=1)
        warnings.warn("b", UserWarning, stacklevel=1)
    assert (outer, inner) == (["UserWarning"], ["RuntimeWarning"])


def test_another_thread_that_leaves_first_restores_no_filters():
    entered, leave = threading.Event(), threading.Event()

    def other():
        with recorded_warnings():
            entered.set()
            leave.wait(10)

    before, thread = list(warnings.filters), threading.Thread(target=other)
    with recorded_warnings() as found:
        thread.start()
        entered.wait(10)
    with pytest.warns(UserWarning, match="shown"):
        warnings.warn("shown", UserWarning, stacklevel=1)
    leave.set()
    thread.join()
    assert found == [] and warnings.filters == before


def test_a_block_that_warns_or_raises_is_refused():
    with pytest.raises(Unsupported, match="a fit gave RuntimeWarning"), refused_warnings("a fit"):
        warnings.warn("a", RuntimeWarning, stacklevel=1)
    with pytest.raises(Unsupported, match="a fit gave ZeroDivisionError"), refused_warnings("a fit"):
        1 / 0  # noqa: B018
    with refused_warnings("a fit"):
        pass
