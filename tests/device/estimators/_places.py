"""Drop-in estimators with and without fits of our own, and what tests ask of results on a device."""

from __future__ import annotations

import warnings

import array_api_compat as compat
import numpy as np
import pytest
import scipy.sparse

from manyfit.arrays import (
    container_kind,
    container_to_host,
)
from manyfit.estimators._catalog import ESTIMATORS
from manyfit.estimators.backends import _native_registry as _own
from manyfit.exceptions import HostFallbackWarning
from tests.units.families._samples import NAMES, made

# What scikit-learn's own numbers may differ by: other solvers of the same equations, sums in another order.
CLOSE = {"rtol": 1e-6, "atol": 1e-8}
NEAR = {"rtol": 1e-5, "atol": 1e-6}  # two fits to the same optimum
STAYS = [
    name for name in NAMES if ESTIMATORS[name].dispatch and not ESTIMATORS[name].dispatch.refuses(made(name))
]
quiet = pytest.mark.filterwarnings("ignore")  # of fits, on either side; fallbacks have tests of their own
OWN = dict(_own._fitters)


def home(value):
    """A result, or several, as arrays of the host."""
    if isinstance(value, (tuple, list)):
        return [home(one) for one in value]
    value = container_to_host(value)
    return value.toarray() if scipy.sparse.issparse(value) else value


def alike(found, wanted, iterated=False):
    """Results are equal but for rounding, or for where iterations end."""
    found, wanted = home(found), home(wanted)
    if not isinstance(wanted, list):
        found, wanted = [found], [wanted]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(
            np.asarray(one, float), np.asarray(other, float), **(NEAR if iterated else CLOSE)
        )


def in_place(value, xp, device):
    """Whether all arrays of a result lie with X."""
    if isinstance(value, (tuple, list)):
        return all(in_place(one, xp, device) for one in value)
    if isinstance(value, float | np.floating) or scipy.sparse.issparse(value):
        return True
    if container_kind(value) == "sparse":
        return compat.is_cupy_namespace(xp)
    if xp is np:
        return isinstance(value, np.ndarray)
    return (
        container_kind(value) == "array"
        and compat.array_namespace(value) is xp
        and compat.device(value) == device
    )


def told(run):
    """Warnings of a call that a host works in a device's place."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return [one for one in caught if issubclass(one.category, HostFallbackWarning)]
