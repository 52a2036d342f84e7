"""What crosses between host and device in a search, beside what its plan has named."""

from __future__ import annotations

from collections import Counter

import numpy as np

import manyfit

# Rows of the data of these tests.
N = 1500
# Bytes of y of a test fold of three, the smallest array with a value for each row. What is smaller is the
# coefficients, classes, scores and curvatures of fits of a few columns, which plans do not name.
SMALLEST = 8 * N // 3


def alike(found, wanted, rtol=1e-9):
    for key, values in wanted.cv_results_.items():
        if "score" in key and "time" not in key:
            np.testing.assert_allclose(found.cv_results_[key], values, rtol=rtol, err_msg=key)


def large(moves, smallest):
    """Arrays and bytes by where they go, of moves that are named with their number and are not small."""
    arrays, nbytes = Counter(), Counter()
    for move in moves:
        if move.times is not None and move.nbytes / move.times >= smallest:
            arrays[move.target] += move.times
            nbytes[move.target] += move.nbytes
    return arrays, nbytes


def uncounted(plan):
    return any(move.what == "row numbers" and move.times is None for move in plan.moves)


def named_is_counted(crossed, search, data, smallest=SMALLEST, **params):
    """Named and counted are equal, in arrays and in bytes, but for what is smaller than `smallest` bytes."""
    with manyfit.config_context(host_fallback="ignore"):
        plan = search.plan(*data, **params)
        del search._frozen  # else the fit reads the data once more, to tell if they are those of the plan
        crossed.clear()
        with np.errstate(invalid="ignore"):  # of scikit-learn's StandardScaler on NumPy's own libraries
            search.fit(*data, **params)
    if not search.refit:  # which is no part of the report
        counted = [sum(size for target, size in crossed if target == to) for to in ("device", "host")]
        assert [search.report_.bytes_to_device, search.report_.bytes_to_host] == counted
    arrays, nbytes = Counter(), Counter()
    # Of row numbers that go there each time a block of settings is scored it is not known how often that is.
    numbers = {("device", 8 * len(train)) for train, _ in search.cv.split(data[0])} if uncounted(plan) else ()
    for target, size in crossed:
        if size >= smallest and (target, size) not in numbers:
            arrays[target] += 1
            nbytes[target] += size
    assert large(plan.moves, smallest) == (arrays, nbytes), f"{plan}\n{Counter(crossed)}"
    return plan
