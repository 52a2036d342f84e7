"""scikit-learn's array API checks of all drop-in estimators whose tags say that they stay on a device.

They run with SciPy's switch only, without which scikit-learn skips them: on array-api-strict's second device,
and on torch where it is installed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import pytest
from sklearn.base import clone
from sklearn.utils import estimator_checks, get_tags
from sklearn.utils._array_api import yield_namespace_device_dtype_combinations

from manyfit import estimators
from manyfit.estimators._catalog import ESTIMATORS
from manyfit.introspection.class_names import sklearn_class_of

pytestmark = [
    pytest.mark.skipif(
        os.environ.get("SCIPY_ARRAY_API") != "1", reason="`make upstream` sets SCIPY_ARRAY_API=1"
    ),
    pytest.mark.filterwarnings("ignore"),
]
# By name of a check: what it asserts that we do otherwise, and the estimators it is asserted of.
ELSEWHERE = "did not raise when called with a different array namespace"  # data are brought to the attributes
LABELS = "output is in wrong namespace"  # labels follow y, scikit-learn's follow X
OPTIMUM = "Not equal to tolerance"  # fits of our own end nearer the optimum than scikit-learn's on the host
ITERATED = {"LogisticRegression", "PoissonRegressor"}
CLASSIFIERS = {"LogisticRegression", "GaussianNB", "LinearDiscriminantAnalysis"}


class Checks:
    """Runs checks, and notes the estimators that pass and what the others fail with."""

    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.failed: dict[str, str] = {}

    def run(self, name: str, check: Callable[..., Any], *args: Any, **kwargs: Any) -> bool:
        """Return whether a check passes."""
        try:
            check(*args, **kwargs)
        except estimator_checks.SkipTest:
            return False
        except Exception as error:
            self.failed[f"{name} {name_of(check)}"] = str(error)
            return False
        self.passed.add(name)
        return True


def name_of(check: Any) -> str:
    return str(getattr(check, "func", check).__name__)


def on_devices() -> Iterator[tuple[str, Any]]:
    """Our estimators that stay on a device, by name."""
    for name in ESTIMATORS:
        if name in ("UMAP", "LabelEncoder"):  # not installed; no X
            continue
        # The last components of what the checks draw have no direction of their own.
        estimator = getattr(estimators, name)(**({"n_components": 2} if name == "PCA" else {}))
        if get_tags(estimator).array_api_support:
            yield name, estimator


def places() -> Iterator[dict[str, Any]]:
    """The options of scikit-learn's check of values: namespaces, devices and dtypes."""
    device_name = "device_name" if hasattr(estimator_checks, "check_array_api_mixed_inputs") else "device"
    for namespace, device, dtype, *_ in yield_namespace_device_dtype_combinations():
        yield {"array_namespace": namespace, "dtype_name": dtype, device_name: device}


def test_array_api_checks() -> None:
    ours, theirs = Checks(), Checks()
    values = estimator_checks.check_array_api_input_and_values
    for name, estimator in on_devices():
        for _, check in estimator_checks.estimator_checks_generator(estimator):
            if "array_api" in name_of(check):
                ours.run(name, check, clone(estimator))
        for where in places():
            twin = sklearn_class_of(type(estimator))(**estimator.get_params())
            if theirs.run(f"{name} {where['array_namespace']}", values, name, twin, **where):
                ours.run(name, values, name, clone(estimator), **where)
    # Where the check finds another value of scikit-learn's own class: torch averages in float32.
    allowed = {f"{name} torch {values.__name__}" for name in ("GaussianNB", "LinearDiscriminantAnalysis")}
    assert set(theirs.failed) <= allowed
    new = any(name.endswith("same_namespace") for name in ours.failed)  # of scikit-learn 1.9
    expected = {f"{name} check_array_api_same_namespace": ELSEWHERE for name in ours.passed} if new else {}
    expected |= {f"{name} {values.__name__}": OPTIMUM for name in ITERATED & ours.passed}
    if new and find_spec("torch"):
        expected |= {f"{name} check_array_api_mixed_inputs": LABELS for name in CLASSIFIERS}
    assert set(ours.failed) == set(expected), ours.failed
    assert [name for name, text in ours.failed.items() if expected[name] not in text] == []
    assert ours.passed >= {"Ridge", "PCA", "MinMaxScaler", "LinearDiscriminantAnalysis", "Normalizer"}
