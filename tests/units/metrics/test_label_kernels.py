"""Metrics of labels of many settings, against scikit-learn's for each setting."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from typing import Any

import array_api_strict
import numpy as np
import pytest
import sklearn.metrics as sm

from manyfit._compat import negative_likelihood_ratio, positive_likelihood_ratio
from manyfit.arrays import to_device, to_host, transfers
from manyfit.folds import Unsupported
from manyfit.metrics.kernels import _label_codes_numpy as _host_codes
from manyfit.metrics.kernels._label_codes import distinct_labels, encode_labels
from manyfit.metrics.kernels.labels import _counts as _many_counts
from manyfit.metrics.kernels.labels._metrics import LABEL_METRICS
from tests._covering import covering

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


def names(cases: list[tuple[Any, dict[str, Any]]]) -> list[str]:
    return [f"{metric.__name__}-{options}" for metric, options in cases]


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


@pytest.mark.cases(40)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("metric", "options"), WEIGHTED + CLUSTERS, ids=names(WEIGHTED + CLUSTERS))
def test_several_classes(metric: Any, options: dict[str, Any], place: str) -> None:
    y, P, _ = data()
    expected = check(metric, y, P, place, **options)
    assert np.isfinite(expected).all() and len(set(expected)) > 2


@pytest.mark.parametrize(("place", "metric", "options"), covering(PLACES, WEIGHTED, strength=1))
def test_weights(metric: Any, options: dict[str, Any], place: str) -> None:
    y, P, weight = data(1)
    weight[y == 2] = 0.0  # a class of no weight is present nonetheless
    expected = check(metric, y, P[[0, 2, 3]], place, weight, **options)
    assert not np.allclose(expected[:1], one_by_one(metric, y, P[:1], **options), rtol=1e-6)


@pytest.mark.parametrize("place", PLACES)
def test_weights_in_single_precision(place: str) -> None:
    y, P, weight = data(1)
    for metric, options in WEIGHTED[::4]:
        check(metric, y, P[[0, 3]], place, weight.astype(np.float32), tol=1e-5, **options)


@pytest.mark.parametrize("place", PLACES)
def test_integers_as_weights(place: str) -> None:
    y, P, weight = data(1)
    weight = (weight * 10).astype(np.int64)
    for metric in (sm.accuracy_score, sm.matthews_corrcoef):
        check(metric, y, P, place, weight)
    check(sm.f1_score, y, P, place, weight, average="macro")


@pytest.mark.parametrize("place", PLACES)
def test_without_any_weight_nothing_is_scored(place: str) -> None:
    """As scikit-learn 1.9, which refuses it; older versions did not for all metrics."""
    y, P, weight = data(2, k=2)
    for metric, options in (WEIGHTED + BINARY)[::3]:
        assert np.isnan(many(metric, y, P, place, 0 * weight, **options)).all()


@pytest.mark.cases(8)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("metric", "options"), BINARY + RATIOS, ids=names(BINARY + RATIOS))
def test_two_classes(metric: Any, options: dict[str, Any], place: str) -> None:
    y, P, weight = data(3, k=2)
    expected = check(metric, y, P, place, **options)
    # The fourth predicts a third class.
    assert np.isnan(expected).tolist() == [False] * 3 + [True, False]
    for constant in (0 * y, 0 * y + 1):
        check(metric, constant, P[[0, 2]], place, **options)
    if metric not in (positive_likelihood_ratio, negative_likelihood_ratio):
        check(metric, y, P[:1], place, weight, **options)
        check(metric, 0 * y + 5, P[4:] + 5, place, **options)


@pytest.mark.parametrize(("place", "metric", "options"), covering(PLACES, WEIGHTED + CLUSTERS, strength=1))
def test_one_class(metric: Any, options: dict[str, Any], place: str) -> None:
    y, P, weight = data(4, k=3)
    y[:], P[1], P[2] = 2, 2, 7
    check(metric, y, P[:3], place, weight if (metric, options) in WEIGHTED else None, **options)


@pytest.mark.cases(20)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("metric", [*SETS, sm.cohen_kappa_score])
@pytest.mark.parametrize("labels", [[2, 0], [3, 9, 1], [5], np.array([0, 1, 2, 3])])
def test_labels(metric: Any, labels: Any, place: str) -> None:
    y, P, weight = data(5)
    many_options = [{"average": average} for average in ("micro", "macro", "weighted")]
    if metric is sm.cohen_kappa_score:
        many_options = [{}, {"weights": "linear"}, {"weights": "quadratic", "replace_undefined_by": 0.25}]
        if not hasattr(sm, "metric_at_thresholds"):  # new in the version that has replace_undefined_by
            many_options = many_options[:2]
    for options in many_options:
        check(metric, y, P[[0, 3]], place, weight, labels=labels, **options)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("metric", SETS)
def test_values_of_all_labels(metric: Any, place: str) -> None:
    y, P, weight = data(6)
    found = many(metric, y, P, place, weight, average=None)
    assert found.shape == (5, 5)  # with the class that only one setting predicts
    assert np.isnan(found[:, 4]).tolist() == [True] * 3 + [False, True]
    for one, values in zip(P, found, strict=True):
        expected = one_by_one(metric, y, [one], weight, average=None)[0]
        np.testing.assert_allclose(values[: len(expected)], expected, rtol=1e-12)
    check(metric, y, P, place, average=None, labels=[3, 0, 8])


MULTILABEL = [
    *((metric, {}) for metric in (sm.accuracy_score, sm.zero_one_loss, sm.hamming_loss)),
    (sm.accuracy_score, {"normalize": False}),
    *((m, {"average": a}) for m in SETS for a in (None, "micro", "macro", "weighted", "samples")),
    *((metric, {"average": "samples", "labels": [2, 0], "zero_division": 1}) for metric in SETS),
    *((metric, {"average": "macro", "labels": [1]}) for metric in SETS),
    (sm.f1_score, {"average": "samples", "zero_division": np.nan}),
    (sm.fbeta_score, {"average": "samples", "beta": 2}),
]


@pytest.mark.parametrize(("place", "metric", "options"), covering(PLACES, MULTILABEL, strength=1))
def test_indicators(metric: Any, options: dict[str, Any], place: str) -> None:
    rng = np.random.default_rng(7)
    y, P = rng.integers(0, 2, (40, 3)), rng.integers(0, 2, (2, 40, 3))
    y[:4], P[1, :8] = 0, 0
    check(metric, y, P, place, **options)
    check(metric, y, P[1:], place, rng.integers(0, 3, 40) * 0.3, **options)


@pytest.mark.parametrize("place", PLACES)
def test_boolean_indicators_and_no_weight(place: str) -> None:
    rng = np.random.default_rng(7)
    y, P = rng.integers(0, 2, (40, 3)), rng.integers(0, 2, (2, 40, 3))
    for metric, options in MULTILABEL[::3]:
        found = many(metric, y > 0, P > 0, place, **options)
        np.testing.assert_array_equal(found, many(metric, y, P, place, **options))
        assert np.isnan(many(metric, y, P, place, np.zeros(40), **options)).all()


@pytest.mark.parametrize("place", PLACES)
def test_what_is_no_indicator_is_refused(place: str) -> None:
    y = np.array([[0, 1], [1, 1], [1, 0]])
    P = np.stack([y, y])
    P[1, 0, 0] = 3
    for metric, options in [
        (sm.accuracy_score, {}),
        (sm.hamming_loss, {}),
        (sm.f1_score, {"average": "samples"}),
    ]:
        assert np.isnan(many(metric, y, P, place, **options)).tolist() == [False, True]


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
    monkeypatch.setattr(_host_codes, "BLOCK", block)
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
