"""Which cases `make test` runs."""

from __future__ import annotations

import itertools

from tests._covering import few

PAIRS = list(itertools.product("abcd", "xyz"))


def test_few_cases_are_spread_evenly():
    assert few("abcdefg", 3, lambda case: [case]) == ["a", "d", "g"]
    assert few("abc", 5, lambda case: [case]) == ["a", "b", "c"]


def test_few_cases_have_as_many_values_as_they_can():
    chosen = few(PAIRS, 4, lambda case: case)
    assert len(chosen) == 4
    assert {one for pair in chosen for one in pair} == {*"abcdxyz"}
