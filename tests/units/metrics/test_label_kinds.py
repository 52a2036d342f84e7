"""Labels and scores of any dtype, and of two: scikit-learn's number, or a clear refusal."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import sklearn.metrics

from manyfit import metrics
from tests.behaviour.metrics._crossings import crossings, here, there

N, BIG = 60, 2**53
OF_LABELS = [
    "accuracy_score", "adjusted_rand_score", "balanced_accuracy_score", "cohen_kappa_score", "f1_score",
    "hamming_loss", "jaccard_score", "matthews_corrcoef", "v_measure_score", "zero_one_loss",
]  # fmt: skip
MIXED = [("int64", "float64"), ("float64", "int64"), ("uint64", "int64")]
OF_SCORES = ["average_precision_score", "roc_auc_score"]
# Dtypes of targets and of predictions.
TWO = [
    ("int64", "float64"), ("float32", "int64"), ("uint8", "float32"), ("int8", "int64"), ("uint64", "int64"),
    ("uint64", "float64"), ("float32", "float64"), ("int16", "uint8"), ("bool", "int64"), ("int32", "bool"),
    ("bool", "float64"), ("bool", "bool"),
]  # fmt: skip


def labels(dtypes, settings=3):
    """Targets of N rows and predictions of some settings, of two labels where a dtype has no more."""
    rng = np.random.default_rng(0)
    K = 2 if "bool" in dtypes else 4
    return rng.integers(0, K, N).astype(dtypes[0]), rng.integers(0, K, (settings, N)).astype(dtypes[1])


def options_of(function):
    return {"average": "macro"} if "average" in inspect.signature(function).parameters else {}


def alike(name, y, P, **options):
    """Scores of many settings here and there are scikit-learn's."""
    wanted = [getattr(sklearn.metrics, name)(y, p, **options) for p in P]
    for place in (np.asarray, there):
        found = getattr(metrics, name).many(place(y), place(P), **options)
        found = here(found) if place is there else found
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)
    return wanted


@pytest.mark.cases(40)
@pytest.mark.parametrize("name", OF_LABELS)
@pytest.mark.parametrize("dtypes", TWO, ids=" ".join)
def test_labels_of_two_dtypes(name, dtypes):
    y, P = labels(dtypes)
    ours = getattr(metrics, name)
    wanted = alike(name, y, P, **options_of(ours))
    one = ours(there(y), there(P[0]), **options_of(ours))
    np.testing.assert_allclose(float(here(one)), wanted[0], rtol=1e-12, atol=1e-14)


@pytest.mark.filterwarnings("ignore:y_pred contains classes")
@pytest.mark.parametrize("name", ["accuracy_score", "balanced_accuracy_score"])
@pytest.mark.parametrize("classes", [[0, 150, 300], range(301), [0, 255]], ids=str)
def test_negative_predictions_of_a_small_type_are_no_large_labels(name, classes):
    """-1 and 255 are the same byte."""
    y = np.tile(classes, 2)
    alike(name, y, np.where(y > 0, -1, 0)[None].astype(np.int8))


@pytest.mark.parametrize("name", OF_LABELS)
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_large_integers_of_one_dtype(name, dtype):
    y, P = (values.astype(dtype) + dtype(BIG) for values in labels(("int64", "int64")))
    alike(name, y, P, **options_of(getattr(metrics, name)))


@pytest.mark.parametrize("name", OF_LABELS)
@pytest.mark.parametrize("dtypes", MIXED, ids=" ".join)
def test_large_integers_of_two_dtypes_are_refused(name, dtypes):
    y, P = (values + values.dtype.type(BIG) for values in labels(dtypes))
    ours, options = getattr(metrics, name), options_of(getattr(metrics, name))
    for place in (np.asarray, there):
        with pytest.raises(NotImplementedError, match=f"{name}.many .* two dtypes.*{BIG}.* one setting"):
            ours.many(place(y), place(P), **options)
    # Just below, all are told apart.
    y, P = (values + values.dtype.type(BIG - 8) for values in labels(dtypes))
    alike(name, y, P, **options)


def test_what_is_refused_on_a_device_says_why():
    y, P = labels(("int64", "float64"))
    with pytest.raises(Exception) as caught:  # of scikit-learn, or of the array library
        metrics.f1_score(there(y + BIG), there(P[0] + BIG), average="macro")
    assert "to scikit-learn: labels of two dtypes" in caught.value.__notes__[-1]


@pytest.mark.parametrize("name", OF_SCORES)
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_integer_scores(name, dtype):
    y, P = labels(("bool", "int64"))
    P = P.astype(dtype) * dtype(3) + dtype(BIG - 8)
    ours, wanted = getattr(metrics, name), [getattr(sklearn.metrics, name)(y, p) for p in P]
    np.testing.assert_allclose(ours.many(y, P), wanted, rtol=1e-12)
    with crossings() as crossed:
        found = ours.many(there(y), there(P))
    np.testing.assert_allclose(here(found), wanted, rtol=1e-12)
    assert crossed["to_device"] == 3  # two looks for labels, and one for large scores
    for place in (np.asarray, there):
        with pytest.raises(NotImplementedError, match=f"integers beyond {BIG}"):
            ours.many(place(y), place(P + dtype(8)))
    if dtype is np.int64:
        with pytest.raises(NotImplementedError, match=f"integers beyond {BIG}"):
            ours.many(y, -P - 8)


@pytest.mark.parametrize(
    "values",
    [
        np.array([0, 1, 1, 0], dtype=object),
        np.array(["a", 1, 1, "a"], dtype=object),
        np.array(["a", None, None, "a"], dtype=object),
        np.array([b"a", b"b", b"b", b"a"]),
        np.array([0, 1j, 1j, 0]),
    ],
    ids=["objects", "mixed", "None", "bytes", "complex"],
)
def test_what_scikit_learn_takes_for_no_labels(values):
    with pytest.raises((ValueError, TypeError)):
        sklearn.metrics.accuracy_score(values, values)
    for name in (*OF_LABELS, "log_loss"):
        P = values[None] if name != "log_loss" else np.full((1, 4, 2), 0.5)
        with pytest.raises(NotImplementedError, match=f"{name}.many does not support this: labels of dtype"):
            getattr(metrics, name).many(values, P, **options_of(getattr(metrics, name)))


def test_texts_of_several_dtypes():
    y = np.array(list("abbab"))
    P = np.array([list("abaab"), list("bbbab")])
    wanted = [sklearn.metrics.f1_score(y, p, average="macro") for p in P]
    for one in (str, object):
        for other in (str, object):
            found = metrics.f1_score.many(y.astype(one), P.astype(other), average="macro")
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
