"""The distances of an imputer serve every number of neighbours, to the bit."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import sklearn
from sklearn.impute import KNNImputer
from sklearn.metrics import pairwise_distances_chunked

from manyfit._compat.nested import DistanceMemory
from tests._covering import covering
from tests.behaviour.steps._nested_values import FORMS, check_values, rows_of, values

# Columns without numbers are warned of.
pytestmark = pytest.mark.filterwarnings("ignore")

IMPUTATIONS = [
    {"n_neighbors": k, "weights": weights}
    for k in (1, 2, 7, 100)
    for weights in ("uniform", "distance", None)
]


@pytest.fixture
def measured(monkeypatch):
    """How often distances are computed."""
    calls = []

    def counted(*args, **options):
        calls.append(options)
        return pairwise_distances_chunked(*args, **options)

    monkeypatch.setattr("manyfit._compat.nested.pairwise_distances_chunked", counted)
    monkeypatch.setattr("sklearn.impute._knn.pairwise_distances_chunked", counted)
    return calls


def with_gaps(kind, n, p, seed):
    X, y = rows_of(kind, n, p, seed)
    X[np.random.default_rng(seed).random(X.shape) < 0.2] = np.nan
    X[:, 1] = np.nan  # a column without numbers, rows without any, and the same row twice
    X[2] = np.nan
    X[4] = X[3]
    return X, y


OPTIONS = [{}, {"add_indicator": True}, {"keep_empty_features": True}]


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("options", "form"),
    covering(OPTIONS, [form for form in FORMS if form not in ("integers", "sparse")], strength=1),
)
def test_neighbours_of_an_imputer_are_measured_once(measured, options, form):
    for kind in ("normal", "ties", "constant"):
        X, y = with_gaps(kind, 40, 5, 1)
        # scikit-learn has no names for columns without numbers.
        container = "pandas" if form == "frame" and not options.get("keep_empty_features") else None
        alone = FORMS[form](X)
        made = check_values(KNNImputer(**options), IMPUTATIONS, alone, y, container=container)
        assert made == (1, len(IMPUTATIONS) - 1)
        # Beside two of the reference for each setting: the training rows and the others, once.
        assert len(measured) == 2 * len(IMPUTATIONS) + 2
        measured.clear()


def test_an_imputer_of_whole_numbers_of_rows_without_gaps_and_of_many_chunks(measured):
    X, y = rows_of("ties", 60, 4, 0)
    assert check_values(KNNImputer(missing_values=0.0), IMPUTATIONS, X, y) == (1, len(IMPUTATIONS) - 1)
    check_values(KNNImputer(missing_values=0.0), IMPUTATIONS, X.astype(np.int64), y)
    with sklearn.config_context(working_memory=60 * 8 * 7 / 2**20):  # chunks of seven rows
        measured.clear()
        check_values(KNNImputer(missing_values=0.0), IMPUTATIONS, X, y)
        assert len(measured) == 2 * len(IMPUTATIONS) + 2
    assert check_values(KNNImputer(), IMPUTATIONS, X, y) == (1, len(IMPUTATIONS) - 1)


def test_imputers_that_may_differ_in_more_are_fitted_for_each_setting():
    X, y = with_gaps("normal", 30, 4, 0)
    params = [
        *values("n_neighbors", 2, 0, -1, 2.5, True, 3),
        *values("weights", "far", np.ones_like, "distance"),
    ]
    assert check_values(KNNImputer(), params, X, y)[1] == 2
    params = [{"n_neighbors": k, "metric": by_first} for k in (1, 2)]
    assert check_values(KNNImputer(), params, X, y) == (2, 0)


def by_first(one, other, *, missing_values):
    return abs(np.nan_to_num(one[0]) - np.nan_to_num(other[0]))


def test_distances_without_room_are_computed_anew_and_copies_keep_none(measured, monkeypatch):
    X, y = with_gaps("normal", 40, 5, 1)
    monkeypatch.setattr("manyfit._compat.nested.MOST_BYTES", 100)
    assert check_values(KNNImputer(), IMPUTATIONS, X, y) == (1, len(IMPUTATIONS) - 1)
    assert len(measured) == 4 * len(IMPUTATIONS)
    kept = DistanceMemory(1000)
    assert pickle.loads(pickle.dumps(kept))._buffer.size == copy.deepcopy(kept)._buffer.size == 0
