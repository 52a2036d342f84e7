"""Metrics and scorers of arrays on a device: scikit-learn's numbers, computed there, the host not waiting."""

from __future__ import annotations

import contextlib
import inspect
import pickle
import warnings

import array_api_strict
import numpy as np
import pytest
import sklearn.metrics
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from manyfit import metrics
from manyfit._compat import DEVICE_TAKES_HOST_INDICES, scorer_parts
from manyfit.arrays import to_host
from tests._covering import covering
from tests.behaviour.metrics._crossings import DEVICE, WATCHED, crossings, here, there

rng = np.random.default_rng(0)
N = 60
NAMES = sklearn.metrics.get_scorer_names()
OF_NUMBERS = {"r2", "explained_variance", "d2_absolute_error_score"} | {
    name for name in NAMES if any(word in name for word in ("error", "deviance"))
}
OF_SETS = {name for name in NAMES if name.endswith("_samples")}
# A look for labels: how many there are, and which.
LOOKS = 2


class Predicted(BaseEstimator):
    """Answers that were made before."""

    def __init__(self, answers=None, classes=None):
        self.answers, self.classes = answers, classes

    def __sklearn_is_fitted__(self):
        return True

    def predict(self, X):
        return self.answers["predict"]


class PredictedLabels(ClassifierMixin, Predicted):
    @property
    def classes_(self):
        return self.classes

    def predict_proba(self, X):
        return self.answers["predict_proba"]

    def decision_function(self, X):
        return self.answers["decision_function"]


class PredictedNumbers(RegressorMixin, Predicted):
    pass


def labels(K, *, missing=False, ties=False, dtype=np.float64):
    """Targets of K classes and what a classifier answers."""
    y = np.r_[np.arange(K), rng.integers(0, K - missing, N - K)]
    Z = rng.normal(size=(N, K)) + 1.5 * np.eye(K)[y]
    if missing:
        y[y == K - 1] = 0
    if ties:
        Z = np.round(Z)
    P = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    decision = Z[:, 1] - Z[:, 0] if K == 2 else Z
    answers = {
        "predict": Z.argmax(axis=1),
        "predict_proba": P.astype(dtype),
        "decision_function": decision.astype(dtype),
    }
    return y, answers


def data(name, K=2, **how):
    """Targets, answers, classes."""
    if name in OF_NUMBERS:
        dtype = how.get("dtype", np.float64)
        y = rng.gamma(2.0, size=N).astype(dtype) + dtype(0.1)
        return y, {"predict": (y * rng.uniform(0.5, 1.5, N)).astype(dtype)}, None
    if name in OF_SETS:
        y = rng.integers(0, 2, (N, 4))
        return y, {"predict": np.where(rng.random((N, 4)) < 0.2, 1 - y, y)}, None
    y, answers = labels(K, **how)
    return y, answers, np.arange(K)


def estimator(answers, classes):
    return PredictedNumbers(answers) if classes is None else PredictedLabels(answers, classes)


def expected(name, y, answers, classes, weight=None):
    """scikit-learn's score on the host; None where it gives none."""
    params = {} if weight is None else {"sample_weight": weight}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return sklearn.metrics.get_scorer(name)(estimator(answers, classes), None, y, **params)
        except ValueError:
            return None


def weighable(name):
    return "sample_weight" in inspect.signature(scorer_parts(sklearn.metrics.get_scorer(name))[0]).parameters


@pytest.mark.cases(100)
@pytest.mark.invariant("Named scorers give scikit-learn's number on a device and copy no bulky array")
@pytest.mark.parametrize(
    ("name", "how", "weighted"),
    covering(
        NAMES,
        [{}, {"K": 3}, {"K": 3, "ties": True}, {"K": 3, "missing": True}, {"dtype": np.float32}],
        [False, True],
    ),
)
def test_every_scorer_gives_scikit_learns_number(name, how, weighted):
    y, answers, classes = data(name, **how)
    weight = rng.integers(0, 3, N) * rng.random(N) if weighted and weighable(name) else None
    wanted = expected(name, y, answers, classes, weight)
    params = {} if weight is None else {"sample_weight": there(weight)}
    on_device = {method: there(answer) for method, answer in answers.items()}
    X, y_there = there(np.zeros((N, 1))), there(y)
    with crossings() as crossed:
        try:
            score = metrics.get_scorer(name)(estimator(on_device, classes), X, y_there, **params)
        except (ValueError, RuntimeError):
            assert wanted is None
            return
    if wanted is None:  # refused because of values, which are not looked at there
        assert np.isnan(float(here(score)))
        return
    assert score.device == DEVICE and score.shape == ()
    rel = 1e-5 if how.get("dtype") is np.float32 else 1e-12
    np.testing.assert_allclose(float(here(score)), wanted, rtol=rel, atol=rel)
    bulky = y.nbytes // 2
    assert crossed["bytes"] < bulky, crossed


@pytest.mark.invariant("Named scorers give scikit-learn's number on a device and copy no bulky array")
@pytest.mark.parametrize("name", sorted(OF_NUMBERS))
def test_scores_of_numbers_make_the_host_wait_for_nothing(name):
    y, answers, _ = data(name)
    y_there, on_device = there(y), {"predict": there(answers["predict"])}
    with crossings() as crossed:
        metrics.get_scorer(name)(estimator(on_device, None), None, y_there)
    assert not crossed


@pytest.mark.invariant("Named scorers give scikit-learn's number on a device and copy no bulky array")
def test_every_call_that_makes_the_host_wait_is_counted():
    one = there(1)
    calls = {
        "__array__": lambda: np.asarray(there([1.0]).to_device(array_api_strict.Device("CPU_DEVICE"))),
        "__bool__": lambda: bool(one == 1),
        "__float__": lambda: float(there(1.0)),
        "__int__": lambda: int(one),
        "__index__": lambda: range(one),
        "__complex__": lambda: complex(there(1j)),
        "to_device": lambda: to_host(one),
        "__dlpack__": lambda: one.__dlpack__(),
    }
    for name, call in calls.items():
        with crossings() as crossed, contextlib.suppress(TypeError, RuntimeError, ValueError, BufferError):
            call()
        assert crossed["to_device" if name == "__array__" else name] == 1, name
    assert set(calls) | {"__buffer__"} == set(WATCHED)
    with crossings(), pytest.raises(RuntimeError, match="data-dependent"):
        array_api_strict.unique_values(there([1, 2]))


def test_text_labels_on_the_host():
    y, answers, _ = data("neg_log_loss", K=3)
    names = np.array(["a", "b", "c"])
    on_device = {method: there(answers[method]) for method in ("predict_proba", "decision_function")}
    read = {"neg_log_loss", "roc_auc_ovr", "roc_auc_ovo", "top_k_accuracy", "d2_log_loss_score"}
    for name in sorted(read & set(NAMES)):  # older scikit-learn has no scorer of the last
        wanted = expected(name, y, answers, np.arange(3))
        score = metrics.get_scorer(name)(PredictedLabels(on_device, names), None, names[y])
        assert score.device == DEVICE
        np.testing.assert_allclose(float(here(score)), wanted, rtol=1e-12)


def test_only_one_side_on_the_device():
    y, answers, _ = data("r2")
    wanted = sklearn.metrics.r2_score(y, answers["predict"])
    for sides in ((there(y), answers["predict"].tolist()), (y.tolist(), there(answers["predict"]))):
        score = metrics.r2_score(*sides)
        assert score.device == DEVICE
        assert abs(float(here(score)) - wanted) < 1e-12


def test_labels_of_two_kinds():
    y, p = rng.integers(0, 2, N), rng.integers(0, 2, N)
    score = metrics.accuracy_score(there(y > 0), there(2 * p))  # 2 is not True
    assert abs(float(here(score)) - sklearn.metrics.accuracy_score(y, 2 * p)) < 1e-12


def test_columns_are_rows_of_one_output():
    y, answers, _ = data("r2")
    score = metrics.r2_score(there(y), there(answers["predict"][:, None]))
    assert abs(float(here(score)) - sklearn.metrics.r2_score(y, answers["predict"])) < 1e-12


@pytest.mark.parametrize(("arguments", "error", "says"), [
    (([1, 0], [1, 0, 1]), ValueError, "inconsistent numbers of samples"),
    (([], []), ValueError, "0 sample"),
    (([1, 0], [1, 0], {"strange": 1}), TypeError, "strange"),
])  # fmt: skip
def test_bad_input(arguments, error, says):
    *arrays, options = arguments if isinstance(arguments[-1], dict) else (*arguments, {})
    with pytest.raises(error, match=says):
        metrics.accuracy_score(*(there(a, np.int64) for a in arrays), **options)


def test_many_settings_at_once_on_host_and_device():
    y, P = rng.integers(0, 2, N), rng.integers(0, 2, (5, N))
    wanted = [sklearn.metrics.f1_score(y, p) for p in P]
    np.testing.assert_allclose(metrics.f1_score.many(y, P), wanted, rtol=1e-12)
    np.testing.assert_allclose(
        here(metrics.f1_score.many(there(y), there(P), max_bytes=1)), wanted, rtol=1e-12
    )
    with pytest.raises(ValueError, match=r"f1_score.many needs predictions of shape .* got \(60,\)"):
        metrics.f1_score.many(y, P[0])
    with pytest.raises(ValueError, match="max_bytes above 0, got 0"):
        metrics.f1_score.many(y, P, max_bytes=0)
    with pytest.raises(NotImplementedError, match=r"roc_auc_score.many .* one setting at a time"):
        metrics.roc_auc_score.many(y, np.ones((5, N, 3)) / 3, multi_class="ovo", average=None)


@pytest.mark.parametrize(
    ("metric", "options"),
    [("f1_score", {"zero_division": 0.5}), ("fbeta_score", {"beta": "x"}), ("f1_score", {"average": "foo"})],
)
def test_options_that_scikit_learn_refuses(metric, options):
    y = rng.integers(0, 2, N)
    with pytest.raises(ValueError) as expected:
        getattr(sklearn.metrics, metric)(y, y, **options)
    for call in (
        lambda: getattr(metrics, metric).many(y, y[None], **options),
        lambda: getattr(metrics, metric)(there(y), there(y), **options),
    ):
        with pytest.raises(type(expected.value)) as found:
            call()
        assert str(found.value) == str(expected.value)


def test_arguments_of_many():
    y = rng.integers(0, 2, N)
    for strange in ("classes", "nonsense"):
        said = f"accuracy_score.many got an unexpected keyword argument '{strange}'"
        with pytest.raises(TypeError, match=said):
            metrics.accuracy_score.many(y, y[None], **{strange: [0, 1]})
    np.testing.assert_array_equal(metrics.accuracy_score.many(y[:, None], y[None]), [1.0])
    large = np.array([2**63 + 1, 2**63], dtype=np.uint64)
    predicted = np.stack([large[::-1], large, large[[1, 1]]])
    np.testing.assert_array_equal(metrics.accuracy_score.many(large, predicted), [0.0, 1.0, 0.5])


def test_what_is_left_to_scikit_learn_says_so():
    y, p = there(rng.integers(0, 3, N)), there(np.ones((N, 3)) / 3)
    with pytest.raises(Exception) as caught:  # whatever it does not do there
        metrics.roc_auc_score(y, p, multi_class="ovo", average=None)
    assert "to scikit-learn: multi_class='ovo' with average=None" in caught.value.__notes__[-1]


def test_the_host_has_scikit_learns_functions():
    y, p = [0, 1, 1], [1, 1, 0]
    assert type(metrics.f1_score(y, p)) is type(sklearn.metrics.f1_score(y, p))
    assert inspect.signature(metrics.f1_score) == inspect.signature(sklearn.metrics.f1_score)
    public = {n for n in sklearn.metrics.__all__ if inspect.isfunction(getattr(sklearn.metrics, n))}
    assert public <= set(metrics.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_scorers_are_scikit_learns_but_for_the_metric(name):
    ours, theirs = metrics.get_scorer(name), sklearn.metrics.get_scorer(name)
    assert repr(ours) == repr(theirs) and isinstance(ours, type(theirs))
    assert scorer_parts(ours)[1:] == scorer_parts(theirs)[1:]
    assert scorer_parts(pickle.loads(pickle.dumps(ours))) == scorer_parts(ours)
    assert scorer_parts(ours)[0] is not scorer_parts(theirs)[0]
    made = metrics.make_scorer(scorer_parts(theirs)[0])
    assert scorer_parts(made)[0] is scorer_parts(ours)[0]


def test_other_scorers_are_left_alone():
    def own(estimator, X, y):
        return 1.0

    assert metrics.get_scorer(own) is own and metrics.get_scorer(None) is None
    with pytest.raises(ValueError, match="'nonsense' is not a valid scoring value"):
        metrics.get_scorer("nonsense")
    assert metrics.get_scorer_names() == sklearn.metrics.get_scorer_names()


@pytest.mark.parametrize("name", ["accuracy_score", "f1_score", "confusion_matrix"])
def test_weights_of_a_device_come_to_texts_of_the_host(name):
    rng = np.random.default_rng(0)
    truth, predicted = (np.array(["a", "b", "c"])[rng.integers(0, 3, 50)] for _ in range(2))
    weight, more = rng.uniform(0.5, 2.0, 50), {"average": "macro"} if name == "f1_score" else {}
    found = getattr(metrics, name)(truth, predicted, sample_weight=there(weight), **more)
    wanted = getattr(sklearn.metrics, name)(truth, predicted, sample_weight=weight, **more)
    np.testing.assert_allclose(found, wanted)


@pytest.mark.skipif(
    not DEVICE_TAKES_HOST_INDICES, reason="older versions of scikit-learn take both for labels"
)
@pytest.mark.parametrize("name", ["accuracy_score", "f1_score", "matthews_corrcoef", "hamming_loss"])
def test_texts_beside_numbers_are_refused_as_scikit_learn_does(name):
    numbers = np.arange(10) % 2
    texts = np.where(numbers, "yes", "no")
    for y, predicted in ((there(numbers), texts), (texts, there(numbers))):
        with pytest.raises(ValueError, match="Mix of label input types"):
            getattr(metrics, name)(y, predicted)
