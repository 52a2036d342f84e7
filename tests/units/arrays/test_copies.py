"""Deep copies compute the same numbers: their arrays lie in memory as the originals do."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from manyfit.arrays import copy_with_strides, deep_copy

A = np.arange(120.0).reshape(10, 12)
FORMS = {
    "C": A,
    "Fortran": np.asfortranarray(A),
    "rows of a Fortran array": np.asfortranarray(A)[:2],
    "every second row": A[::2],
    "every second column": A[:, ::2],
    "backwards": A[::-1],
    "columns backwards": A[:, ::-1],
    "a diagonal": A.diagonal(),
    "repeated": np.broadcast_to(A[0], (3, 12)),
    "windows": np.lib.stride_tricks.sliding_window_view(np.arange(6.0), 3),
    "three axes": np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)[::2],
    "no axis": np.array(3.0),
    "empty": np.empty((0, 4))[:, ::-1],
    "records": np.zeros(6, [("a", "i1"), ("b", "f8")])["b"],
    "texts": np.array(["a", "bc", "d"])[::-1],
    "read-only": np.frombuffer(A.tobytes()).reshape(10, 12)[::2],
}


@pytest.mark.parametrize("form", FORMS)
def test_strides_are_kept(form):
    X = FORMS[form]
    made, again = deep_copy({"a": X, "again": [X]}).values()
    assert made is again[0]
    assert made.strides == X.strides and made.dtype == X.dtype and type(made) is np.ndarray
    np.testing.assert_array_equal(made, X)
    assert not np.may_share_memory(made, X) and made.flags.writeable


def test_the_plain_copy_moves_some_of_them():
    moved = [form for form, X in FORMS.items() if copy.deepcopy(X).strides != X.strides]
    assert "rows of a Fortran array" in moved and "C" not in moved


def test_objects_and_subclasses_are_copied_as_ever():
    inner = [1]
    X = np.array([inner, None, inner], dtype=object)[::2]
    made = deep_copy(X)
    assert made[0] == [1] and made[0] is not inner
    masked = np.ma.array([1.0, 2.0], mask=[0, 1])[::-1]
    made = deep_copy(masked)
    assert type(made) is np.ma.MaskedArray
    np.testing.assert_array_equal(made.mask, masked.mask)


def test_a_copy_is_of_its_own():
    X = np.asfortranarray(A)[:2]
    made = deep_copy([X])[0]
    made[:] = -1.0
    assert X.min() == 0.0


@pytest.mark.parametrize("form", FORMS)
def test_memory_of_bytes_cannot_be_changed(form):
    X = FORMS[form]
    made = copy_with_strides(X, bytes)
    assert made.strides == X.strides and not made.flags.writeable
    np.testing.assert_array_equal(made, X)
    with pytest.raises(ValueError, match="cannot set WRITEABLE flag"):
        made.setflags(write=True)
