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
    result = "exact"
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


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        ("serves", Ridge, r"^Wrong\.serves should be a tuple of estimator classes; it is <class"),
        ("serves", ("Ridge",), r"^Wrong\.serves should be a tuple"),
        ("free", "alpha", r"^Wrong\.free should be a frozenset of parameter names; it is 'alpha'"),
        ("free", frozenset({"alhpa"}), r"^Wrong\.free should be parameters of Ridge, which has no alhpa"),
        ("result", "Exact", r"^Wrong\.result should be 'exact' or 'converged'; it is 'Exact'"),
        ("reads", MomentSums, r"^Wrong\.reads should be MomentSums\(\), Iterations\(\) or FoldRows\(\)"),
    ],
)
def test_a_family_with_a_wrong_attribute_is_refused(attribute, value, message):
    before = family_of(Ridge)
    wrong = type("Wrong", (Other,), {attribute: value})
    with pytest.raises(TypeError, match=message):
        register_family(wrong())
    assert family_of(Ridge) is before


def test_a_family_without_an_attribute_is_refused():
    class Silent(Family):
        serves, free, reads = (MyRidge,), frozenset({"alpha"}), MomentSums()

    with pytest.raises(TypeError, match=r"^Silent\.result should be 'exact' or 'converged'; it is missing"):
        register_family(Silent())


def test_a_class_in_place_of_an_instance_is_refused():
    with pytest.raises(TypeError, match=r"^Other is a class: register an instance, Other\(\)"):
        register_family(Other)
