"""Labels of all kinds, many of them, in chunks, and what is not supported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.metrics as sm

from manyfit._compat import positive_likelihood_ratio
from manyfit.arrays import transfers
from manyfit.folds import Unsupported
from manyfit.metrics.kernels import _label_codes
from manyfit.metrics.kernels._label_codes import codes_or_none, distinct_labels, encode_labels
from manyfit.metrics.kernels.labels import _counts as _many_counts
from manyfit.metrics.kernels.labels._metrics import LABEL_METRICS
from tests.units.metrics._label_kernels import (
    BINARY,
    CLUSTERS,
    PLACES,
    RATIOS,
    WEIGHTED,
    check,
    data,
    many,
    placed,
)


@pytest.mark.parametrize("place", PLACES)
def test_what_is_not_supported(place: str) -> None:
    y, P, weight = data(8)
    two = np.stack([y % 2, y % 2], axis=1)
    for metric in (sm.balanced_accuracy_score, sm.matthews_corrcoef, sm.cohen_kappa_score, sm.rand_score):
        with pytest.raises(Unsupported, match="several labels for a row"):
            many(metric, two, two[None], place)
    for metric in (positive_likelihood_ratio, sm.adjusted_rand_score):
        with pytest.raises(Unsupported, match="take no weights"):
            many(metric, y % 2, P % 2, place, weight)
    for metric, options, message in [
        (sm.f1_score, {"average": "best"}, "average='best'"),
        (sm.f1_score, {"average": "samples"}, "average='samples' of one label"),
        (sm.f1_score, {"average": "macro", "zero_division": "no"}, "zero_division='no'"),
        (sm.jaccard_score, {"beta": 2}, "beta is not supported"),
        (sm.cohen_kappa_score, {"weights": "cubic"}, "weights='cubic'"),
        (sm.normalized_mutual_info_score, {"average_method": "mode"}, "average_method='mode'"),
    ]:
        with pytest.raises(Unsupported, match=message):
            many(metric, y, P, place, **options)
    with pytest.raises(Unsupported, match=r"labels=\[2\] of 2 indicators"):
        many(sm.f1_score, two, two[None], place, average="macro", labels=[2])


KINDS = {
    "uint8": lambda codes: codes.astype(np.uint8),
    "negative": lambda codes: codes * 2 - 3,
    "far": lambda codes: codes * 2**40 - 2**41,
    "unsigned": lambda codes: codes.astype(np.uint64) + np.uint64(2**63 - 2),
    "float": lambda codes: codes.astype(np.float64),
    "text": lambda codes: np.array(list("cabdef"))[codes],
    "object": lambda codes: np.array(list("cabdef"), dtype=object)[codes],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("metric", "options"),
    [
        (sm.accuracy_score, {}),
        (sm.f1_score, {"average": "macro"}),
        (sm.cohen_kappa_score, {"weights": "linear"}),
    ]
    + [(sm.adjusted_rand_score, {}), (sm.balanced_accuracy_score, {})],
)
def test_kinds_of_labels(metric: Any, options: dict[str, Any], kind: str) -> None:
    y, P, _ = data(9)
    check(metric, KINDS[kind](y), KINDS[kind](P[:4]), "numpy", **options)
    if kind not in ("text", "object"):
        check(metric, KINDS[kind](y), KINDS[kind](P[:4]), "device", **options)


@pytest.mark.parametrize("place", PLACES)
def test_boolean_labels(place: str) -> None:
    y, P, _ = data(10, k=2)
    y, P = y > 0, P > 0
    for metric in (sm.accuracy_score, sm.f1_score, sm.matthews_corrcoef, positive_likelihood_ratio):
        check(metric, y, P, place)
    check(sm.f1_score, y, P, place, pos_label=False)


def test_texts_need_a_positive_label() -> None:
    y, P, _ = data(11, k=2)
    texts = np.array(["no", "yes", "none", "new"])
    check(sm.f1_score, texts[y], texts[P], "numpy", pos_label="yes")
    assert np.isnan(check(sm.f1_score, texts[y], texts[P], "numpy")).all()
    with pytest.raises(Unsupported, match="labels of dtype int64 for targets of dtype <U4"):
        many(sm.f1_score, texts[y], P, "numpy")


@pytest.mark.parametrize("place", PLACES)
def test_fractions_are_no_labels_but_of_clusters(place: str) -> None:
    y, P, _ = data(12)
    y, P = y.astype(np.float64), P.astype(np.float64)
    P[1, 0], P[2, 0] = 0.5, np.nan
    for metric in (sm.accuracy_score, sm.matthews_corrcoef, sm.cohen_kappa_score):
        assert np.isnan(check(metric, y, P, place)).tolist() == [False, True, True, False, False]
    assert np.isnan(check(sm.adjusted_rand_score, y, P, place)).tolist() == [False, False, True, False, False]


@pytest.mark.parametrize("place", PLACES)
def test_chunks_and_single_settings(place: str) -> None:
    y, P, _ = data(13)
    for metric, options in [*WEIGHTED[::6], *CLUSTERS[::4], (sm.f1_score, {"average": None})]:
        whole = many(metric, y, P, place, **options)
        np.testing.assert_array_equal(many(metric, y, P, place, max_bytes=1, **options), whole)
        np.testing.assert_array_equal(
            many(metric, y, P[:1], place, classes=distinct_labels(np.append(y, P)), **options), whole[:1]
        )


@pytest.mark.parametrize("place", PLACES)
def test_long_tables_are_made_of_few_settings(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    y, P, weight = data(14)
    tables = many(sm.adjusted_rand_score, y, P, place)
    counted = many(sm.f1_score, y, P, place, weight, average="macro")
    monkeypatch.setattr(_many_counts, "SMALL_TABLE", 1)
    monkeypatch.setattr(_many_counts, "DEVICE_BYTES", 400)
    monkeypatch.setattr(_many_counts, "BLOCK", 50)
    np.testing.assert_array_equal(many(sm.adjusted_rand_score, y, P, place), tables)
    np.testing.assert_allclose(many(sm.f1_score, y, P, place, weight, average="macro"), counted, rtol=1e-13)
    check(sm.f1_score, y, P, place, average="macro")
    monkeypatch.setattr(_many_counts, "MAX_CELLS", 30)
    with pytest.raises(Unsupported, match="a table of 7 by 7 labels"):
        many(sm.adjusted_rand_score, y * 2 % 7, P, place)


def test_many_labels_and_clusters() -> None:
    rng = np.random.default_rng(15)
    y, P = rng.integers(0, 80, 400), rng.integers(100, 130, (2, 400))
    for metric, options in CLUSTERS:
        check(metric, y, P, "numpy", **options)
    check(sm.f1_score, y, P - 60, "numpy", average="macro")
    check(sm.matthews_corrcoef, y, P - 60, "numpy", rng.random(400))


def test_only_the_expected_information_leaves_the_device() -> None:
    y, P, _ = data(16)
    classes = np.arange(6)
    on_device = placed(y, "device"), placed(P, "device")
    for metric, options in [*WEIGHTED[::5], *CLUSTERS[::2], (sm.adjusted_mutual_info_score, {})]:
        with transfers() as crossed:
            LABEL_METRICS[metric](*on_device, classes=classes, **options)
        assert crossed.synchronisations == (metric is sm.adjusted_mutual_info_score)


def reference(y: Any, P: Any) -> tuple[Any, Any, Any]:
    classes, codes = np.unique(np.concatenate([y, P.reshape(-1)]), return_inverse=True)
    return classes, codes[: len(y)], codes[len(y) :].reshape(P.shape)


@pytest.mark.parametrize("kind", [*KINDS, "bool", "many", "wide", "strided"])
@pytest.mark.parametrize("block", [7, 1 << 16])
def test_codes_on_the_host(kind: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_label_codes, "BLOCK", block)
    y, P, _ = data(17)
    if kind == "bool":
        y, P = y > 1, P > 1
    elif kind in ("many", "wide"):
        rng = np.random.default_rng(0)
        y, P = rng.integers(-300, 300, 500) * 1, rng.integers(-400, 200, (2, 500))
        P[0, 3] = 10**9 if kind == "wide" else 500
    elif kind == "strided":
        y, P = np.repeat(y, 2)[::2], np.asfortranarray(P)
    else:
        y, P = KINDS[kind](y), KINDS[kind](P)
    classes, codes, predicted = reference(y, P)
    for given in (None, classes, classes[:1]):
        found = encode_labels(y, P, given)
        np.testing.assert_array_equal(found[0], classes)
        np.testing.assert_array_equal(found[1], codes)
        np.testing.assert_array_equal(found[2], predicted)
        assert found[0].dtype == classes.dtype and found[1].dtype == np.int64
        assert found[2].dtype == (np.int8 if len(classes) < 128 else np.int16)
    np.testing.assert_array_equal(distinct_labels(P.reshape(-1)), np.unique(P))


def test_every_metric_is_tested() -> None:
    tested = {metric for metric, _ in WEIGHTED + CLUSTERS + BINARY + RATIOS}
    assert tested == set(LABEL_METRICS)
    assert {many.kind for many in LABEL_METRICS.values()} == {"labels"}


def test_equal_labels_have_equal_weighted_scores() -> None:
    """Settings that tie in scikit-learn tie to the bit, wherever they stand among the others."""
    rng = np.random.default_rng(0)
    for n in (7, 45, 200):
        y, w = rng.integers(0, 2, n), rng.random(n)
        P = np.stack([rng.integers(0, 2, n)] * 7)
        scores = many(sm.accuracy_score, y, P, "numpy", w)
        assert set(scores) == {sm.accuracy_score(y, P[0], sample_weight=w)}


def test_texts_of_two_dtypes() -> None:
    """NumPy does not search texts of fixed width among those of StringDType, nor numbers among objects."""
    y, P = np.array(list("abca")), np.array([list("abcc"), list("aaad")])
    for kind in (object, getattr(getattr(np, "dtypes", None), "StringDType", object)):
        dtype = kind() if kind is not object else kind
        for truth, predicted in ((y.astype(dtype), P), (y, P.astype(dtype))):
            found = many(sm.accuracy_score, truth, predicted, "numpy")
            np.testing.assert_array_equal(found, [0.75, 0.25])
    assert codes_or_none(np.array(["a", "b"], dtype=object), np.array([1.0, 2.0])) is None
