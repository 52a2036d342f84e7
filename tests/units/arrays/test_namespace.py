"""Namespace and device of an array."""

from __future__ import annotations

import array_api_compat as compat
import array_api_strict
import dask.array
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from manyfit import arrays

NOT_ARRAYS = [
    [1.0, 2.0],
    "text",
    None,
    3.5,
    pd.DataFrame({"a": [1.0]}),
    scipy.sparse.csr_array(np.eye(2)),
    np.array([[1.0]]).view(np.matrix),
]


def test_namespace_and_device_are_those_of_the_array(xp, device):
    x = xp.ones((2, 3), device=device)
    assert arrays.array_namespace(x) is xp
    assert arrays.device(x) == device


def test_namespace_creates_on_the_device_it_was_given(xp, device):
    x = xp.ones(3, device=device)
    made = arrays.array_namespace(x).zeros(2, device=arrays.device(x))
    assert arrays.device(made) == device


def test_numpy_comes_wrapped_and_lies_on_the_cpu():
    assert arrays.array_namespace(np.ones(2)) is compat.array_namespace(np.ones(2))
    assert arrays.array_namespace(np.float64(1.0)) is compat.array_namespace(np.ones(2))
    assert arrays.device(np.ones(2)) == "cpu"


def test_scalars_and_none_are_passed_over(xp, device):
    x = xp.ones(3, device=device)
    assert arrays.array_namespace(None, 1, x, 2.5, True, x, 1j) is xp


def test_dask_arrays_have_a_namespace():
    assert arrays.array_namespace(dask.array.ones(3)).__name__.endswith("dask.array")


@pytest.mark.parametrize("other", NOT_ARRAYS[:2] + NOT_ARRAYS[4:], ids=lambda other: type(other).__name__)
def test_namespace_refuses_what_is_no_array(other):
    with pytest.raises(
        TypeError, match=f"array_namespace needs an array, got {type(other).__name__}. Pass an"
    ):
        arrays.array_namespace(np.ones(2), other)


@pytest.mark.parametrize(
    ("others", "got"),
    [((), "no argument"), ((None,), "NoneType"), ((1, 2.5), "int, float")],
)
def test_namespace_needs_one_array(others, got):
    with pytest.raises(TypeError, match=f"array_namespace needs at least one array, got {got}. Pass an"):
        arrays.array_namespace(*others)


def test_namespace_refuses_a_mixture_and_says_how_to_end_it():
    with pytest.raises(
        TypeError, match=r"one library, got array_api_strict and numpy. .*to_device\(array, xp="
    ):
        arrays.array_namespace(np.ones(2), array_api_strict.ones(2))


@pytest.mark.parametrize("other", NOT_ARRAYS, ids=lambda other: type(other).__name__)
@pytest.mark.parametrize("function", [arrays.device, arrays.to_host, arrays.to_device])
def test_the_others_refuse_what_is_no_array(function, other):
    with pytest.raises(
        TypeError, match=f"{function.__name__} needs an array, got {type(other).__name__}. Pass an"
    ):
        function(other)
