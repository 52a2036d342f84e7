"""Every scorer of scikit-learn in a search: the number that it gives, or it is asked itself."""

from __future__ import annotations

import warnings
from inspect import signature

import numpy as np
import pytest
import sklearn.metrics
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import Ridge
from sklearn.metrics import check_scoring, get_scorer_names

from manyfit import metrics
from manyfit.metrics import ScoredTargets, SharedScoring
from tests._covering import covering
from tests.device import test_metrics
from tests.device.test_metrics import OF_NUMBERS, OF_SETS, labels
from tests.units.metrics._shared_scores import shared_and_own

rng = np.random.default_rng(0)
M, N = 3, 60
OF_CLASSES = sorted(set(get_scorer_names()) - OF_NUMBERS - OF_SETS)
RATIOS = {"positive_likelihood_ratio", "neg_negative_likelihood_ratio"}
# Of three classes these are refused, or ask which of them is the positive one.
OF_TWO = {"f1", "jaccard", "precision", "recall", "roc_auc", *RATIOS}
WAYS = {
    "two": {"K": 2},
    "three": {"K": 3},
    "ties": {"K": 3, "ties": True},
    "missing": {"K": 3, "missing": True},
    "weights": {"K": 2, "weighted": True},
    "float32": {"K": 2, "dtype": np.float32},
    "float32 of three": {"K": 3, "dtype": np.float32},
}


@pytest.fixture(autouse=True)
def _labels_of_the_test_alone(monkeypatch):
    """`labels` draws from its own module's generator, which is not started anew for tests of this one."""
    monkeypatch.setattr(test_metrics, "rng", np.random.default_rng(1))


def shared(name, estimator, y, responses, classes=None, weight=None, scorer=None):
    """Our scores and scikit-learn's, NaN where it warns or raises."""
    scorer = scorer or check_scoring(estimator, scoring=name)
    return shared_and_own(scorer, estimator, y, responses, classes, weight)


def classified(K, weighted=False, **how):
    y, first = labels(K, **how)
    answers = [first]
    while len(answers) < M:
        other_y, other = labels(K, **how)
        order = np.argsort(other_y, kind="stable")[np.argsort(np.argsort(y, kind="stable"))]
        answers.append({method: values[order] for method, values in other.items()})
    responses = {method: np.stack([one[method] for one in answers]) for method in first}
    return y, responses, np.arange(K), rng.integers(1, 4, N) * rng.random(N) if weighted else None


def agree(ours, theirs, rel=1e-12):
    known = np.isfinite(ours)
    np.testing.assert_allclose(ours[known], theirs[known], rtol=rel, atol=rel)  # NaN there: it said something
    return known.all()


@pytest.mark.cases(96)
@pytest.mark.invariant("A metric kernel gives scikit-learn's number or leaves the score to scikit-learn")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", OF_CLASSES)
def test_of_classes(name, way):
    y, responses, classes, weight = classified(**WAYS[way])
    scorer = check_scoring(DummyClassifier(), scoring=name)
    if weight is not None and not scorer._accept_sample_weight():
        weight = None
    ours, theirs = shared(name, DummyClassifier(), y, responses, classes, weight)
    known = agree(ours, theirs, 1e-5 if way.startswith("float32") else 1e-12)
    plain = way != "missing" and (len(classes) == 2 or name not in OF_TWO)
    if plain and not (name == "top_k_accuracy" and len(classes) == 2):
        assert known  # nobody had to be asked


@pytest.mark.parametrize("name", sorted(RATIOS))
def test_ratios_of_which_one_is_not_defined(name):
    y, responses, classes, _ = classified(2)
    responses["predict"][0] = 1  # no true negative
    responses["predict"][1] = y  # no false positive
    ours, theirs = shared(name, DummyClassifier(), y, responses, classes)
    np.testing.assert_array_equal(np.isfinite(ours), [False, False, True])
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)  # it warns of both


@pytest.mark.parametrize("name", OF_CLASSES)
def test_texts(name):
    y, responses, _, _ = classified(3)
    texts = np.array(["a", "b", "c"])
    responses = {**responses, "predict": texts[responses["predict"]]}
    assert agree(*shared(name, DummyClassifier(), texts[y], responses, texts)) or name in {
        *OF_TWO,
        "average_precision",
    }


@pytest.mark.invariant("A metric kernel gives scikit-learn's number or leaves the score to scikit-learn")
@pytest.mark.parametrize(
    ("name", "rows", "label"),
    covering(OF_CLASSES, {"not predicted": (slice(None), 0), "no class": (slice(5), 7)}.items(), strength=1),
)
def test_predictions_without_a_class_or_with_another_label(name, rows, label):
    y, responses, classes, _ = classified(3)
    predicted = responses["predict"][1][rows]
    predicted[(predicted == 2) | (label == 7)] = label
    agree(*shared(name, DummyClassifier(), y, responses, classes))


@pytest.mark.invariant("A metric kernel gives scikit-learn's number or leaves the score to scikit-learn")
@pytest.mark.parametrize(
    ("name", "way"),
    covering(sorted(OF_NUMBERS), ["plain", "weights", "float32", "negative", "constant"], strength=1),
)
def test_of_numbers(name, way):
    dtype = np.float32 if way == "float32" else np.float64
    y = (rng.gamma(2.0, size=N) + 0.1).astype(dtype)
    P = (y * rng.uniform(0.5, 1.5, (M, N))).astype(dtype)
    if way == "negative":
        y[3], P[1, 4] = -0.5, -0.5
    elif way == "constant":
        y[:] = 2.0
    weight = rng.integers(0, 4, N) * rng.random(N) if way == "weights" else None
    if weight is not None and not check_scoring(Ridge(), scoring=name)._accept_sample_weight():
        weight = None
    known = agree(
        *shared(name, Ridge(), y, {"predict": P}, weight=weight), 1e-5 if way == "float32" else 1e-12
    )
    if way in ("plain", "weights", "float32"):
        assert known


@pytest.mark.parametrize(
    ("metric", "options"),
    [
        ("fbeta_score", {"beta": 2.0}),
        ("f1_score", {"average": "macro", "zero_division": 1.0}),
        ("f1_score", {"pos_label": 0}),
        ("accuracy_score", {"normalize": False}),
        ("roc_auc_score", {"max_fpr": 0.3}),
        ("cohen_kappa_score", {"weights": "linear"}),
        ("mean_pinball_loss", {"alpha": 0.2}),
    ],
)
def test_options_of_scorers_whosever_they_are(metric, options):
    y, responses, classes, _ = classified(2)
    method = "decision_function" if metric == "roc_auc_score" else "predict"
    of_numbers = metric == "mean_pinball_loss"
    scorer = metrics.make_scorer(getattr(metrics, metric), response_method=method, **options)
    given = (DummyClassifier(), y, responses, classes)
    if of_numbers:
        given = (Ridge(), y.astype(float), {"predict": responses["decision_function"]})
    assert agree(*shared(None, *given, scorer=scorer))


@pytest.mark.parametrize("make", [metrics.make_scorer, sklearn.metrics.make_scorer])
@pytest.mark.parametrize(("metric", "options"), [
    ("f1_score", {"average": "macro"}),  # of labels without a 1 its scorer asks for a positive one
    ("f1_score", {"average": "macro", "labels": [0, 9]}),
    ("precision_score", {"average": "macro", "labels": [9]}),
    ("f1_score", {"zero_division": 0.5}),
    ("jaccard_score", {"zero_division": np.nan}),
    ("fbeta_score", {"beta": -1.0}),
    ("cohen_kappa_score", {"replace_undefined_by": 0.0, "labels": [0, 9]}),
    ("accuracy_score", {"normalize": "x"}),
    ("balanced_accuracy_score", {"adjusted": "x"}),
    ("top_k_accuracy_score", {"k": 0}),
    ("roc_auc_score", {"average": "foo"}),
    ("roc_auc_score", {"multi_class": "bar"}),
    ("average_precision_score", {"average": "foo"}),
    ("brier_score_loss", {"scale_by_half": "x"}),
])  # fmt: skip
@pytest.mark.parametrize("names", [[0, 1], [2, 3], ["a", "b"], [False, True]], ids=str)
def test_what_scikit_learn_refuses_or_warns_of(metric, options, make, names):
    y, responses, _, _ = classified(2)
    classes = np.array(names)
    responses = {**responses, "predict": classes[responses["predict"]]}
    of_decisions = ("top_k_accuracy_score", "roc_auc_score", "average_precision_score")
    method = "predict_proba" if metric == "brier_score_loss" else "predict"
    method = "decision_function" if metric in of_decisions else method
    if "scale_by_half" in options and not hasattr(sklearn.metrics, "d2_brier_score"):
        options = {"pos_label": 7}  # older scikit-learn has no such option
    if (
        "replace_undefined_by" in options
        and "replace_undefined_by" not in signature(sklearn.metrics.cohen_kappa_score).parameters
    ):
        options = {"weights": "x"}
    scorer = make(getattr(metrics, metric), response_method=method, **options)
    agree(*shared(None, DummyClassifier(), classes[y], responses, classes, scorer=scorer))
    if "average" not in options or names == [0, 1]:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours, _ = shared(None, DummyClassifier(), classes[y], responses, classes, scorer=scorer)
    assert np.isnan(ours).all() or names == [False, True] or metric == "roc_auc_score"


@pytest.mark.parametrize(("name", "nobody"), covering(OF_CLASSES, [0, 1], strength=1))
def test_a_class_without_weight(name, nobody):
    y, responses, classes, _ = classified(2)
    weight = np.where(y == nobody, 0.0, 1.0)
    if check_scoring(DummyClassifier(), scoring=name)._accept_sample_weight():
        agree(*shared(name, DummyClassifier(), y, responses, classes, weight))
        weight = np.where(responses["predict"][1] == nobody, 0.0, 1.0)
        agree(*shared(name, DummyClassifier(), y, responses, classes, weight))


@pytest.mark.parametrize("force", ["x", None])
def test_refused_options_of_numbers(force):
    y = rng.normal(size=N)
    scorer = metrics.make_scorer(metrics.r2_score, force_finite=force)
    ours, theirs = shared(None, Ridge(), y, {"predict": y + rng.normal(size=(M, N))}, scorer=scorer)
    assert np.isnan(ours).all() and np.isnan(theirs).all()


@pytest.mark.parametrize(("metric", "options"), [
    ("f1_score", {"average": None}),
    ("roc_auc_score", {"average": None, "multi_class": "ovr", "response_method": "predict_proba"}),
    ("average_precision_score", {"average": None, "response_method": "predict_proba"}),
])  # fmt: skip
@pytest.mark.parametrize("K", [3, 4])
def test_a_score_of_each_class_is_no_score(metric, options, K):
    y, responses, classes, _ = classified(K)
    scorer = metrics.make_scorer(getattr(metrics, metric), **options)
    scoring = SharedScoring(scorer, {}, DummyClassifier())
    found = scoring.from_responses(responses, ScoredTargets(y, None, classes, y.dtype))
    assert np.isnan(found.get("score", np.full(M, np.nan))).all() and np.shape(
        found.get("score", [0] * M)
    ) == (M,)
