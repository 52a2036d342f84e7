"""Arrays known by what they hold: what a digest does not describe has none."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from manyfit.arrays import array_digest, describes_itself
from manyfit.cluster.worker.content_pickle import large_array_content

WIDE = np.dtype("f8", metadata={"unit": "m"})
A = np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize(
    ("dtype", "known"),
    [
        ("f8", True),
        (">f8", True),
        ("U3", True),
        ("M8[s]", True),
        ([("a", "f8"), ("b", "i4", (2,))], True),
        (WIDE, False),
        ([("a", WIDE)], False),
        ([("a", [("b", WIDE, (2,))])], False),
    ],
    ids=str,
)
def test_dtypes_with_metadata_do_not_describe_themselves(dtype, known):
    assert describes_itself(np.dtype(dtype)) is known


def test_digests_of_arrays_that_differ():
    arrays = [
        A, np.asfortranarray(A), A.T, A[::2], A[:, ::2], A[::-1], A.astype("f4"), A.astype(">f8"), A.ravel(),
        np.arange(3), np.arange(3, dtype=np.longlong), np.array(0.0), np.array(-0.0), np.empty((0, 3)),
        np.empty((3, 0)), np.empty(3, "V0"), np.zeros(3, "U1"), np.zeros(3, [("a", "f8")]),
    ]  # fmt: skip
    found = [array_digest(X) for X in arrays]
    assert [(i, j) for (i, a), (j, b) in itertools.combinations(enumerate(found), 2) if a == b] == []
    assert [array_digest(X.copy("K")) for X in arrays[:2]] == found[:2]


def test_arrays_with_metadata_travel_with_what_holds_them():
    assert large_array_content(np.zeros(10_000)) is not None
    assert large_array_content(np.zeros(10_000, WIDE)) is None
