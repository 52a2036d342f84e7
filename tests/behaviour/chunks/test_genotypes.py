"""Packed genotypes are read as the matrix that they stand for, in whatever blocks."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.decomposition
from sklearn.linear_model import Ridge

from manyfit.estimators import PCA, TruncatedSVD
from manyfit.folds import Genotypes, as_chunk_rows
from manyfit.folds.rows.chunks._genotypes import MAGIC
from manyfit.model_selection import GridSearchCV

rng = np.random.default_rng(0)
N, P = 211, 37  # the last byte of a variant has one sample
CODES = rng.choice(4, size=(N, P), p=[0.3, 0.1, 0.3, 0.3])
CODES[3], CODES[4], CODES[5] = 1, 0, np.where(np.arange(P) < 5, 1, 3)  # missing, and all the same
CODES[6] = 2
COPIES = np.array([2.0, np.nan, 1.0, 0.0])


def packed(codes, padding=0):
    """The bytes of some codes, filled up with another."""
    full = np.full((len(codes), -(-codes.shape[1] // 4) * 4), padding, dtype=np.uint8)
    full[:, : codes.shape[1]] = codes
    return np.bitwise_or.reduce(full.reshape(len(codes), -1, 4) << np.array([0, 2, 4, 6]), axis=2).astype(
        np.uint8
    )


def unpacked(codes, missing="mean", standardize=False):
    """The matrix that codes stand for, a genotype at a time."""
    out = np.empty(codes.shape)
    for own, row in zip(out, COPIES[codes], strict=True):
        known = row[~np.isnan(row)]
        mean = known.mean() if known.size else 0.0
        own[:] = np.where(np.isnan(row), mean if missing == "mean" else missing, row)
        if standardize:
            f = mean / 2.0
            own[:] = (own - mean) / np.sqrt(2 * f * (1 - f)) if len(set(known)) > 1 else 0.0
    return out


@pytest.mark.cases(12)
@pytest.mark.parametrize("samples", [P, 36, 1])
@pytest.mark.parametrize("padding", [0, 1, 3])
@pytest.mark.parametrize(
    "params", [{}, {"missing": -1.0}, {"standardize": True}, {"missing": 1.0, "standardize": True}]
)
def test_values(samples, padding, params):
    codes = CODES[:, :samples]
    if "missing" in params and "standardize" in params:  # a number counts as any other
        wanted = np.where(codes == 1, 1.0, COPIES[codes])
        mean = wanted.mean(axis=1, keepdims=True)
        varies = np.ptp(wanted, axis=1, keepdims=True) > 0
        # Codes 01 and 10 then have the same value, so that they do not vary.
        scale = np.sqrt(np.where(varies, mean * (1 - mean / 2), 1.0))
        wanted = np.where(varies, (wanted - mean) / scale, 0.0)
    else:
        wanted = unpacked(codes, **params)
    found = Genotypes(packed(codes, padding), samples, **params)
    assert found.shape == codes.shape and found.dtype == np.float32 and len(found) == N
    np.testing.assert_allclose(found[:], wanted, rtol=1e-6, atol=1e-6)
    for rows in (slice(3, 9), slice(9, 3), slice(0, N, 7), [5, 3, 200], np.arange(N) % 2 == 0, -1):
        np.testing.assert_array_equal(found[rows], found[:][rows])


def test_a_bed_file(tmp_path):
    path = tmp_path / "some.bed"
    path.write_bytes(MAGIC + packed(CODES).tobytes())
    found = Genotypes(path, P, values=(0, 9, 1, 2))
    np.testing.assert_array_equal(found[10:20], np.array([0, 9, 1, 2])[CODES[10:20]])
    rows = as_chunk_rows(found, 16 * 20 * P * 4)
    assert rows.n_reads == 11
    np.testing.assert_array_equal(rows.take(slice(0, N)), found[:])
    path.write_bytes(b"\x6c\x1b\x00" + packed(CODES).tobytes())
    with pytest.raises(ValueError, match=r"begins with .* not .* in the order of variants"):
        Genotypes(path, P)
    path.write_bytes(MAGIC + packed(CODES).tobytes()[:-1])
    with pytest.raises(ValueError, match="2109 bytes of genotypes, which are no variants of 10 bytes"):
        Genotypes(path, P)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Genotypes(packed(CODES), P + 9),
            r"12 columns here, .* got one of shape \(211, 10\) and dtype uint8",
        ),
        (lambda: Genotypes(packed(CODES).astype(int), P), "dtype int64"),
        (lambda: Genotypes(packed(CODES), P, values=(1, 2, 3)), "takes four values, .* got 3"),
        (lambda: Genotypes(packed(CODES), P, missing="median"), "'mean' or a number, and got 'median'"),
        (
            lambda: PCA(2).fit(Genotypes(packed(CODES), P, missing=np.nan)),
            "Input X contains NaN or infinity, first in row 0",
        ),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_components_are_those_of_the_matrix():
    genotypes = Genotypes(packed(CODES), P, standardize=True)
    params = {"n_components": 3, "random_state": 0, "n_oversamples": 5}
    model = TruncatedSVD(**params).fit(genotypes)
    expected = sklearn.decomposition.TruncatedSVD(**params).fit(unpacked(CODES, standardize=True))
    np.testing.assert_allclose(model.components_, expected.components_, atol=1e-4)
    np.testing.assert_allclose(model.singular_values_, expected.singular_values_, rtol=1e-5)
    assert model.components_.dtype == np.float32


def test_a_search():
    codes = np.tile(CODES, (10, 1))
    y, grid = rng.normal(size=len(codes)), {"alpha": [1.0, 100.0]}
    options = {"refit": False, "memory_limit": codes.size * 3}
    search = GridSearchCV(Ridge(), grid, **options).fit(Genotypes(packed(codes), P), y)
    expected = GridSearchCV(Ridge(), grid, refit=False).fit(unpacked(codes), y)
    assert search.report_.passes == 1 and search.report_.fits_done == 0
    scores = (one.cv_results_["mean_test_score"] for one in (search, expected))
    np.testing.assert_allclose(*scores, rtol=1e-5)
    small = GridSearchCV(Ridge(), grid).fit(Genotypes(packed(codes), P), y)  # loaded
    np.testing.assert_allclose(small.best_score_, expected.cv_results_["mean_test_score"].max(), rtol=1e-4)
