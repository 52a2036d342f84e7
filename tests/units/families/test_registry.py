"""Families and affine steps are found by exact type."""

from __future__ import annotations

import pytest
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from manyfit.estimators import (
    Family,
    MomentSums,
    affine_step_of,
    family_of,
    register_family,
    unregister_family,
)


class MyRidge(Ridge):
    pass


class MyScaler(StandardScaler):
    pass


class Other(Family):
    serves = (Ridge, MyRidge)
    free = frozenset({"alpha"})
    reads = MomentSums()


@pytest.fixture
def other():
    before = family_of(Ridge)
    family = register_family(Other())
    yield family
    unregister_family(family)
    register_family(before)


@pytest.mark.invariant("Families and affine steps serve exact types, never subclasses")
def test_exact_types_only():
    assert family_of(Ridge) is not None and family_of(LinearRegression) is not None
    assert family_of(MyRidge) is None
    assert affine_step_of(StandardScaler) is not None
    assert affine_step_of(MyScaler) is None and affine_step_of(MinMaxScaler) is None


def test_a_later_registration_replaces(other):
    assert family_of(Ridge) is other and family_of(MyRidge) is other
    unregister_family(other)
    assert family_of(MyRidge) is None


def test_unregistering_a_replaced_family_leaves_the_new_one(other):
    newest = register_family(Other())
    unregister_family(other)
    assert family_of(Ridge) is newest
    unregister_family(newest)
