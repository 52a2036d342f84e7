"""Each test starts and ends without manyfit installed."""

from collections.abc import Iterator

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, make_classification

import manyfit


@pytest.fixture(autouse=True)
def _not_installed() -> Iterator[None]:
    manyfit.uninstall()
    yield
    manyfit.uninstall()


@pytest.fixture(scope="session")
def regression() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_diabetes(return_X_y=True)
    return X[:120], y[:120]


@pytest.fixture(scope="session")
def classes() -> tuple[np.ndarray, np.ndarray]:
    return make_classification(90, 6, n_informative=4, random_state=0)
