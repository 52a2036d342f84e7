"""Kernels of metrics of labels, their comparison with scikit-learn, and data."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from typing import Any

import array_api_strict
import numpy as np
import sklearn.metrics as sm

from manyfit._compat import negative_likelihood_ratio, positive_likelihood_ratio
from manyfit.arrays import to_device, to_host
from manyfit.metrics.kernels.labels._metrics import LABEL_METRICS

DEVICE = array_api_strict.Device("device1")
PLACES = ["numpy", "device"]

SETS = [sm.f1_score, sm.precision_score, sm.recall_score, sm.jaccard_score]
WEIGHTED = [
    (sm.accuracy_score, {}),
    (sm.accuracy_score, {"normalize": False}),
    (sm.zero_one_loss, {}),
    (sm.zero_one_loss, {"normalize": False}),
    (sm.hamming_loss, {}),
    (sm.balanced_accuracy_score, {}),
    (sm.balanced_accuracy_score, {"adjusted": True}),
    (sm.matthews_corrcoef, {}),
    *((sm.cohen_kappa_score, {"weights": weights}) for weights in (None, "linear", "quadratic")),
    *((metric, {"average": average}) for metric in SETS for average in ("micro", "macro", "weighted")),
    *((sm.fbeta_score, {"average": "macro", "beta": beta}) for beta in (0.0, 0.5, 2, np.inf)),
    *((metric, {"average": "macro", "zero_division": 1}) for metric in (sm.f1_score, sm.jaccard_score)),
    (sm.precision_score, {"average": "macro", "zero_division": np.nan}),
    (sm.recall_score, {"average": "weighted", "zero_division": np.nan}),
]
CLUSTERS = [
    (sm.rand_score, {}),
    (sm.adjusted_rand_score, {}),
    (sm.mutual_info_score, {}),
    (sm.homogeneity_score, {}),
    (sm.completeness_score, {}),
    (sm.v_measure_score, {}),
    (sm.v_measure_score, {"beta": 0.3}),
    (sm.fowlkes_mallows_score, {}),
    *((sm.normalized_mutual_info_score, {"average_method": mean}) for mean in ("min", "geometric", "max")),
    (sm.normalized_mutual_info_score, {}),
    (sm.adjusted_mutual_info_score, {}),
    (sm.adjusted_mutual_info_score, {"average_method": "max"}),
]
BINARY = [
    *((metric, {}) for metric in SETS),
    *((metric, {"pos_label": 0, "zero_division": 1}) for metric in SETS),
    (sm.fbeta_score, {"beta": 0.7}),
]
RATIOS = [(positive_likelihood_ratio, {}), (negative_likelihood_ratio, {})]


def placed(array: Any, place: str) -> Any:
    return array if place == "numpy" or array is None else to_device(array, DEVICE, array_api_strict)


def many(metric: Any, y: Any, P: Any, place: str, weight: Any = None, **options: Any) -> Any:
    """Scores of the kernel, on the host; on the device no shape may depend on data."""
    static = array_api_strict.ArrayAPIStrictFlags(data_dependent_shapes=False)
    arrays = [placed(array, place) for array in (y, P, weight)]
    with nullcontext() if place == "numpy" else static:
        scores = LABEL_METRICS[metric](arrays[0], arrays[1], sample_weight=arrays[2], **options)
        if place == "device":
            assert scores.device == DEVICE
        return to_host(scores)


_KNOWN: dict[Any, Any] = {}


def one_by_one(metric: Any, y: Any, P: Any, weight: Any = None, **options: Any) -> Any:
    """Scores of scikit-learn, NaN where it raises; each is computed once, for it takes milliseconds."""
    if weight is not None:
        options["sample_weight"] = weight
    found = []
    for one in P:
        arrays = [np.asarray(array) for array in (y, one, weight)]
        key = metric, repr(options), *((array.dtype, repr(array.tolist())) for array in arrays)
        if key not in _KNOWN:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    _KNOWN[key] = metric(y, one, **options)
                except (ValueError, ZeroDivisionError):
                    _KNOWN[key] = np.nan
        found.append(_KNOWN[key])
    return np.asarray(found)


def check(
    metric: Any, y: Any, P: Any, place: str, weight: Any = None, tol: float = 1e-12, **options: Any
) -> Any:
    expected = one_by_one(metric, y, P, weight, **options)
    scores = many(metric, y, P, place, weight, **options)
    np.testing.assert_allclose(scores, expected, rtol=tol, atol=tol)
    return expected


def data(seed: int = 0, n: int = 50, k: int = 4) -> tuple[Any, Any, Any]:
    """Labels; predictions: some right, of two labels, of one label, of an unknown one, all right; weights."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    y[:k] = np.arange(k)
    P = np.where(rng.random((5, n)) < 0.6, y, rng.integers(0, k, (5, n)))
    P[1] = np.minimum(P[1], 1)
    P[2] = k - 1
    P[3, :3] = k + 1  # no label of y, and a gap before it
    P[4] = y
    return y, P, rng.integers(0, 4, n) * 0.37
