"""Tables and reports of labels on a device, against scikit-learn's: numbers, warnings, errors, crossings."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import sklearn.metrics as sm

from manyfit import metrics
from manyfit.metrics.kernels.labels import _counts as _many_counts
from tests._covering import covering, spread
from tests.behaviour.metrics._crossings import crossings, here, there
from tests.units.metrics._alike import OWN_DTYPES, Raised, at_home, check, outcome

OF_LABELS = [
    ("confusion_matrix", {}),
    *(("confusion_matrix", {"normalize": how}) for how in ("true", "pred", "all")),
    ("multilabel_confusion_matrix", {}),
    *(
        ("precision_recall_fscore_support", {"average": average, "zero_division": value, "beta": beta})
        for average, value, beta in (
            (None, "warn", 1.0),
            ("micro", "warn", 0.5),
            ("macro", 1, 2.0),
            ("weighted", np.nan, 1.0),
            ("binary", 0, np.inf),
            ("binary", "warn", 0.0),
            ("samples", "warn", 1.0),  # refused
        )
    ),
    ("classification_report", {}),
    ("classification_report", {"output_dict": True, "zero_division": np.nan}),
    ("class_likelihood_ratios", {}),
    ("class_likelihood_ratios", {"replace_undefined_by": 1.0}),
]
OF_INDICATORS = [
    ("multilabel_confusion_matrix", {}),
    ("multilabel_confusion_matrix", {"samplewise": True}),
    *(
        ("precision_recall_fscore_support", {"average": average, "zero_division": value, "beta": beta})
        for average, value, beta in (
            (None, "warn", 1.0),
            ("micro", 1, 0.5),
            ("samples", "warn", 2.0),
            ("samples", np.nan, 1.0),
            ("samples", 1, 0.0),
            ("binary", 0, 1.0),  # refused
        )
    ),
    ("classification_report", {}),
    ("classification_report", {"output_dict": True, "zero_division": 1}),
    ("confusion_matrix", {}),  # refused
]


def names(cases: list[tuple[str, dict[str, Any]]]) -> list[str]:
    return [f"{name}-{'-'.join(map(str, options.values()))}" for name, options in cases]


def weights_of(rng: Any, n: int) -> list[Any]:
    """None, some of them zero, integers, all zero."""
    return [None, rng.random(n) * rng.integers(0, 2, n), rng.integers(1, 4, n), np.zeros(n)]


def same_dtype(name: str, y: Any, p: Any) -> bool:
    """Where no label is right, scikit-learn's table has floating numbers; on a device it has integers."""
    return OWN_DTYPES and (name != "multilabel_confusion_matrix" or y.ndim == 2 or bool((y == p).any()))


@pytest.mark.cases(3)
@pytest.mark.invariant("Tables, reports and curves on a device are scikit-learn's, errors included")
@pytest.mark.parametrize(("name", "options"), spread(OF_LABELS, 8))
def test_labels(name: str, options: dict[str, Any]) -> None:
    rng, numbers = np.random.default_rng(0), 0
    for n, K, low in ((40, 3, 0), (40, 2, -1), (30, 1, 4), (1, 2, 0), (2, 2, 0), (25, 20, 0)):
        y = rng.integers(0, K, n) + low
        P = [np.where(rng.random(n) < 0.6, y, rng.integers(0, K + 1, n) + low), y, y.max() + 0 * y, y + 1]
        for p, chosen in product(P, product(weights_of(rng, n), asked_of(rng, K, low))):
            if rng.random() < 0.06:
                w, labels = chosen
                given = options if labels is None else {"labels": labels, **options}
                expected, _ = check(name, y, p, sample_weight=w, dtypes=same_dtype(name, y, p), **given)
                numbers += not isinstance(expected, Raised)
    assert numbers > 3 or options.get("average") == "samples"


def asked_of(rng: Any, K: int, low: int) -> list[Any]:
    """Labels to ask for: all, in an order of their own, one twice, one."""
    return [None, rng.permutation(K + 2) + low, [low, low], [low + 1]]


@pytest.mark.cases(2)
@pytest.mark.invariant("Tables, reports and curves on a device are scikit-learn's, errors included")
@pytest.mark.parametrize(("name", "options"), spread(OF_INDICATORS, 6))
def test_indicators(name: str, options: dict[str, Any]) -> None:
    rng, numbers = np.random.default_rng(1), 0
    for n, L, on in ((40, 3, 1), (30, 4, 2), (1, 2, 1), (3, 2, 1)):
        Y = rng.integers(0, 2, (n, L)) * on
        P = [np.where(rng.random((n, L)) < 0.7, Y, on - Y), 0 * Y, Y]
        for p, w, labels in product(P, weights_of(rng, n), (None, [1, 0], [L - 1], [L], [-1, 0])):
            if rng.random() < 0.09:
                expected, _ = check(name, Y, p, sample_weight=w, labels=labels, **options)
                numbers += not isinstance(expected, Raised)
    assert numbers > 3 or options.get("average") == "binary" or name == "confusion_matrix"


STRANGE = {
    "fractions": (np.array([0.5, 1.0, 2.0]), np.array([1.0, 1.0, 2.0])),
    "fractions predicted": (np.array([0, 1, 1]), np.array([0.5, 1.0, 2.5])),
    "NaN": (np.array([0.0, 1.0, np.nan]), np.array([0.0, 1.0, 1.0])),
    "infinity": (np.array([0.0, 1.0, 1.0]), np.array([0.0, np.inf, 1.0])),
    "indicators and labels": (np.array([[0, 1], [1, 0]]), np.array([0, 1])),
    "labels and indicators": (np.array([0, 1]), np.array([[0, 1], [1, 0]])),
    "three values": (np.array([[0, 1], [2, 0]]), np.array([[0, 1], [1, 0]])),
    "fractions of several": (np.array([[0, 1], [1, 0]]), np.array([[0.5, 1], [1, 0.7]])),
    "NaN of several": (np.array([[0, 1], [1, 0]]), np.array([[np.nan, 1], [1, 0]])),
    "other number of labels": (np.array([[0, 1], [1, 0]]), np.array([[0, 1, 1], [1, 0, 1]])),
    "three axes": (np.zeros((2, 2, 2)), np.zeros((2, 2, 2))),
    "lengths": (np.array([0, 1]), np.array([0, 1, 1])),
    "no rows": (np.array(1), np.array(1)),
    "empty": (np.zeros(0), np.zeros(0)),
}
FUNCTIONS = sorted({name for name, _ in OF_LABELS})


@pytest.mark.parametrize(("name", "what"), covering(FUNCTIONS, STRANGE, strength=1))
def test_what_scikit_learn_refuses(name: str, what: str) -> None:
    expected, _ = check(name, *STRANGE[what])
    # Of nothing, 1.7 had tables.
    assert isinstance(expected, Raised) or what == "empty"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_strange_weights(name: str) -> None:
    y = np.array([0, 1, 1, 0])
    for w in (np.ones(3), np.ones((4, 2)), np.array([1.0, np.nan, 1.0, 1.0]), np.array([1.0, 1, 1, np.inf])):
        expected, _ = outcome(getattr(sm, name), y, y, sample_weight=w)
        found, _ = outcome(getattr(metrics, name), there(y), there(y), sample_weight=there(w))
        if OWN_DTYPES:  # older ones look at weights in some of these functions only
            assert isinstance(expected, Raised) and found == expected


def test_options_that_scikit_learn_refuses() -> None:
    y = np.array([0, 1, 1, 0])
    for name, options in (
        ("confusion_matrix", {"normalize": "rows"}),
        ("confusion_matrix", {"labels": []}),
        ("confusion_matrix", {"labels": [7, 8]}),
        ("precision_recall_fscore_support", {"average": "binary", "pos_label": 7}),
        ("precision_recall_fscore_support", {"beta": -1.0}),
        ("classification_report", {"target_names": ["one"]}),
        ("classification_report", {"zero_division": 0.5}),
        ("class_likelihood_ratios", {"replace_undefined_by": {"LR+": 0.0, "LR-": 1.0}}),
        ("multilabel_confusion_matrix", {"samplewise": True}),
    ):
        expected, _ = check(name, y, y, **options)
        assert isinstance(expected, Raised)
    with pytest.raises(TypeError, match="strange"):
        metrics.confusion_matrix(there(y), there(y), strange=1)


def test_texts_and_numbers_do_not_mix() -> None:
    texts, p = np.array(["b", "a", "c", "a"]), np.array([5, 3, 4, 4])
    for name in FUNCTIONS:
        expected, _ = check(name, texts, p, texts=True)
        assert expected.kind in (ValueError, TypeError)


def test_kinds_of_numbers_mix() -> None:
    y, p = np.array([0, 1, 1, 0, 1]), np.array([0, 1, 0, 0, 1])
    for kind in (bool, np.uint8, np.int8, np.float32):
        for name in FUNCTIONS:
            check(name, y.astype(kind), p.astype(kind))
            check(name, y.astype(kind), p)
            check(name, y, p.astype(kind))


def test_only_one_side_on_the_device() -> None:
    y, p = np.array([0, 1, 1, 2]), np.array([0, 1, 2, 2])
    wanted = sm.confusion_matrix(y, p)
    for sides in ((there(y), p.tolist()), (y.tolist(), there(p))):
        np.testing.assert_array_equal(at_home(metrics.confusion_matrix(*sides)), wanted)
        assert metrics.classification_report(*sides) == sm.classification_report(y, p)
    labels = there(np.array([2, 0]))
    np.testing.assert_array_equal(
        at_home(metrics.confusion_matrix(y, there(p), labels=labels)),
        sm.confusion_matrix(y, p, labels=[2, 0]),
    )


def test_a_report_is_scikit_learns_to_the_letter() -> None:
    rng = np.random.default_rng(2)
    y, p = rng.integers(0, 4, 500), rng.integers(0, 5, 500)
    for options in (
        {},
        {"digits": 4},
        {"target_names": [f"class {k}" for k in range(5)]},
        {"labels": [3, 1], "target_names": ["c", "a"]},
    ):
        options = {**options, "zero_division": 0}
        assert metrics.classification_report(there(y), there(p), **options) == sm.classification_report(
            y, p, **options
        )


def test_weights_in_single_precision() -> None:
    rng = np.random.default_rng(3)
    y, p = rng.integers(0, 3, 300), rng.integers(0, 3, 300)
    w = rng.random(300).astype(np.float32)
    for name in ("confusion_matrix", "multilabel_confusion_matrix", "precision_recall_fscore_support"):
        check(name, y, p, sample_weight=w, tol=1e-5, dtypes=False)


@pytest.mark.invariant("Tables, reports and curves on a device are scikit-learn's, errors included")
@pytest.mark.parametrize(("name", "options"), [
    ("confusion_matrix", {}),
    ("multilabel_confusion_matrix", {}),
    ("precision_recall_fscore_support", {}),
    ("classification_report", {}),
    ("class_likelihood_ratios", {}),
])  # fmt: skip
@pytest.mark.parametrize("weighted", [False, True])
def test_labels_and_counts_are_all_that_comes_home(
    name: str, options: dict[str, Any], weighted: bool
) -> None:
    rng, n = np.random.default_rng(4), 20_000
    y, p = rng.integers(0, 2, n), rng.integers(0, 2, n)
    w = rng.random(n) if weighted else None
    _, crossed = check(name, y, p, sample_weight=w, tol=1e-10, **options)
    # Facts, how many labels, the labels, which of them are on which side; counts.
    assert crossed["to_device"] == sum(crossed.values()) - crossed["bytes"]
    assert crossed["to_device"] <= (4 if name.endswith("matrix") else 5)
    assert crossed["bytes"] <= 250


def test_of_indicators_facts_and_counts_come_home() -> None:
    rng, n = np.random.default_rng(5), 20_000
    Y, P = rng.integers(0, 2, (n, 3)), rng.integers(0, 2, (n, 3))
    for name, options, waits in (
        ("multilabel_confusion_matrix", {"samplewise": True}, 1),
        ("precision_recall_fscore_support", {"average": "samples"}, 2),
        ("classification_report", {}, 3),
    ):
        _, crossed = check(name, Y, P, tol=1e-10, **options)
        assert crossed["to_device"] == sum(crossed.values()) - crossed["bytes"] == waits
        assert crossed["bytes"] <= 250


def test_fractions_are_refused_before_they_come_home() -> None:
    y = np.random.default_rng(6).random(20_000)
    expected, crossed = check("confusion_matrix", y, y)
    assert expected.says == "continuous is not supported"
    assert crossed["bytes"] < 250


def test_too_many_labels_for_a_table_are_left_to_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_many_counts, "MAX_CELLS", 8)
    y = there(np.array([0, 1, 2]))
    with pytest.raises(Exception) as caught:
        metrics.confusion_matrix(y, y)
    assert "to scikit-learn: a table of 3 by 3 labels" in caught.value.__notes__[-1]
    assert here(metrics.multilabel_confusion_matrix(y, y)).shape == (3, 2, 2)


def test_clusterings() -> None:
    rng = np.random.default_rng(7)
    for n in (1, 2, 40):
        labels, clusters = rng.integers(0, 4, n), rng.integers(0, 5, n)
        for name in ("pair_confusion_matrix", "homogeneity_completeness_v_measure"):
            _, crossed = check(name, labels, clusters)
            assert crossed["to_device"] == 3
            check(name, np.array(list("abcd"))[labels], clusters, texts=True)
            check(name, 0 * labels, clusters)
            check(name, labels + 0.5, clusters)  # warned of
            for strange in (clusters * np.nan, np.zeros((n, 2)), clusters[:-1]):
                expected, _ = check(name, labels, strange)
                assert isinstance(expected, Raised) or n == 1
    check("homogeneity_completeness_v_measure", labels, clusters, beta=0.3)


@pytest.mark.parametrize(
    "name", ["f1_score", "precision_score", "recall_score", "jaccard_score", "fbeta_score"]
)
def test_scores_of_each_label(name: str) -> None:
    rng = np.random.default_rng(8)
    options: dict[str, Any] = {"average": None, **({"beta": 0.5} if name == "fbeta_score" else {})}
    y = rng.integers(0, 4, 60)
    p = np.where(rng.random(60) < 0.6, y, rng.integers(0, 4, 60))
    Y, P = rng.integers(0, 2, (60, 3)), rng.integers(0, 2, (60, 3))
    for w in (None, rng.random(60) * rng.integers(0, 2, 60)):
        for labels in (None, [2, 0, 9]):
            for value in (0, 1):
                check(name, y, p, sample_weight=w, labels=labels, zero_division=value, **options)
        _, crossed = check(name, Y, P, sample_weight=w, zero_division=0, **options)
        assert not crossed


def test_areas_of_each_class() -> None:
    rng = np.random.default_rng(9)
    y, Z = rng.integers(0, 4, 80), np.round(rng.random((80, 4)), 1) + 0.05
    P = Z / Z.sum(axis=1, keepdims=True)
    Y = rng.integers(0, 2, (80, 4))
    with crossings() as crossed:
        many = metrics.roc_auc_score.many(there(Y), there(np.stack([Z, P])), average=None)
    assert not crossed
    np.testing.assert_allclose(
        here(many), [sm.roc_auc_score(Y, one, average=None) for one in (Z, P)], rtol=1e-12
    )
    for w in (None, rng.random(80) * rng.integers(0, 2, 80)):
        for name, options in (("roc_auc_score", {"multi_class": "ovr"}), ("average_precision_score", {})):
            check(name, y, P, sample_weight=w, average=None, **options)
            check(name, Y, Z, sample_weight=w, average=None)
            check(name, Y[:, 0], Z[:, 0], sample_weight=w, average=None)
            check(name, Y, Z.astype(np.float32), sample_weight=w, average=None, tol=1e-5, dtypes=False)
    check("roc_auc_score", Y, Z, average=None, max_fpr=0.3)
