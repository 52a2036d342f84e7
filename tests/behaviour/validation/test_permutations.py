"""permutation_test_score against scikit-learn's: the same permutations, scores and p-value."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn import model_selection
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import KFold, StratifiedKFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manyfit.model_selection import permutation_test_score
from manyfit.model_selection.validation.moment_scores import TargetScores


@pytest.fixture
def blocks(monkeypatch):
    """The number of targets that moments scored at a time."""
    found, scores = [], TargetScores.scores

    def noted(self, Y):
        found.append(Y.shape[1])
        return scores(self, Y)

    monkeypatch.setattr(TargetScores, "scores", noted)
    return found


def _both(estimator, X, y, **params):
    params = {"n_permutations": 12, "random_state": 0, **params}
    theirs = model_selection.permutation_test_score(estimator, X, y, **params)
    ours = permutation_test_score(estimator, X, y, **params)
    assert ours[0] == theirs[0]
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-11, atol=1e-12)
    assert ours[2] == theirs[2]


def _data():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 5)) * [1.0, 10.0, 0.1, 1.0, 1.0] + [0.0, 50.0, 0.0, 1.0, 0.0]
    return X, 0.3 * X[:, 0] + rng.normal(size=60) + 20.0


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("estimator", "params"),
    [
        (Ridge(), {}),
        (Ridge(fit_intercept=False), {"scoring": "neg_root_mean_squared_error"}),
        (make_pipeline(StandardScaler(), LinearRegression()), {"cv": KFold(4, shuffle=True, random_state=1)}),
        (make_pipeline(StandardScaler(), PCA(2), Ridge()), {"cv": TimeSeriesSplit(3)}),
    ],
)
def test_scores_are_scikit_learns(estimator, params, blocks):
    X, y = _data()
    _both(estimator, X, y, **params)
    assert blocks == [13]


def test_a_frame_is_read_as_its_array(blocks):
    X, y = _data()
    _both(Ridge(), pd.DataFrame(X, columns=list("abcde")), pd.Series(y))
    assert blocks == [13]


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
def test_permutations_within_groups(blocks):
    X, y = _data()
    _both(Ridge(), X, y, groups=np.arange(60) % 4)
    assert blocks == [13]


def test_permutations_that_score_as_y_does_are_counted_as_by_scikit_learn(blocks):
    X, _ = _data()
    y = np.zeros(60)
    y[7] = 1.0  # some permutations differ by rounding, or not at all
    _both(Ridge(), X[:, :1] * 0.0 + 1.0, y, n_permutations=30, cv=2, scoring="neg_mean_squared_error")
    assert blocks == [31]


def test_a_rank_that_rounding_decides_is_left_to_scikit_learn(blocks):
    X, y = _data()
    X[:, 1] = X[:, 0]
    _both(LinearRegression(), X, y, n_permutations=3)
    assert blocks == [4]


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("estimator", "params"),
    [
        (LogisticRegression(), {}),
        (Ridge(), {"cv": StratifiedKFold(3)}),
        (Ridge(), {"params": {"sample_weight": np.arange(1.0, 61.0)}}),
        (Ridge(), {"scoring": "neg_mean_absolute_error"}),
    ],
)
def test_other_fits_are_scikit_learns(estimator, params, blocks):
    X, y = _data()
    labels = isinstance(estimator, LogisticRegression) or isinstance(params.get("cv"), StratifiedKFold)
    _both(estimator, X, (y > np.median(y)).astype(int) if labels else y, n_permutations=3, **params)
    assert blocks == []


@pytest.mark.filterwarnings("error")
def test_an_array_of_dask_is_computed_once():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y, options = X[:, 0] + rng.normal(size=120), {"cv": KFold(3), "n_permutations": 4, "random_state": 0}
    chunks = da.from_array(X, chunks=(25, 4))
    for found, wanted in zip(
        permutation_test_score(Ridge(), chunks, da.from_array(y, chunks=50), **options),
        permutation_test_score(Ridge(), X, y, **options),
        strict=True,
    ):
        np.testing.assert_array_equal(found, wanted)
