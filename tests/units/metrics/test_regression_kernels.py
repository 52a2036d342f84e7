"""Regression metrics of many settings at once are scikit-learn's, on the host and on a device."""

from __future__ import annotations

import warnings
from contextlib import contextmanager

import numpy as np
import pytest
import sklearn
from sklearn import metrics

from manyfit.arrays import to_device, to_host, transfers
from manyfit.folds import Unsupported
from manyfit.metrics.kernels._regression import REGRESSION_METRICS
from manyfit.metrics.kernels._regression_targets import BLOCK

rng = np.random.default_rng(0)
M, N = 2, 75  # odd: the median is one of the values; EVEN has two of them
EVEN = 60
Y = rng.gamma(2.0, 1.0, (N, 3)) + 0.1
P = Y * np.exp(rng.normal(size=(M, N, 3)) / 2)
WEIGHT = rng.integers(0, 3, N) * 1.0  # some zeros, and sums that meet half of the total
EXACT = 1e-12
FLOAT32 = 1e-5
OLD = tuple(int(part) for part in sklearn.__version__.split(".")[:2]) < (1, 8)

POWERS = [-1.5, -1, 0, 1, 1.5, 2, 2.5, 3]
ONE_OUTPUT = {
    "max_error": [{}],
    "mean_tweedie_deviance": [{"power": power} for power in POWERS],
    "mean_poisson_deviance": [{}],
    "mean_gamma_deviance": [{}],
    "d2_tweedie_score": [{"power": power} for power in POWERS],
}
SEVERAL_OUTPUTS = {
    "mean_squared_error": [{}],
    "root_mean_squared_error": [{}],
    "mean_absolute_error": [{}],
    "median_absolute_error": [{}],
    "mean_absolute_percentage_error": [{}],
    "mean_squared_log_error": [{}],
    "root_mean_squared_log_error": [{}],
    "explained_variance_score": [{}, {"force_finite": False}],
    "r2_score": [{}, {"force_finite": False}],
    "mean_pinball_loss": [{}, {"alpha": 0.9}, {"alpha": 0}, {"alpha": 1}],
    "d2_pinball_score": [{}, {"alpha": 0.9}, {"alpha": 0}, {"alpha": 1}],
    "d2_absolute_error_score": [{}],
}
ALL = ONE_OUTPUT | SEVERAL_OUTPUTS
CASES = [(name, options) for name, of_all in ALL.items() for options in of_all]
CASES_OF_SEVERAL = [(name, options) for name, options in CASES if name in SEVERAL_OUTPUTS]
MULTIOUTPUT = ["uniform_average", "raw_values", [0.2, 0.5, 0.3]]
QUANTILES = {"median_absolute_error", "d2_pinball_score", "d2_absolute_error_score"}


def named(case):
    name, options = case
    return "-".join([name, *(f"{key}={value}" for key, value in options.items())])


def each(cases):
    return pytest.mark.parametrize("case", cases, ids=named)


def theirs(name, y, predictions, weight=None, **options):
    """scikit-learn's scores, NaN where it raises."""
    if weight is not None:
        options["sample_weight"] = weight
    scores = []
    for of_one in predictions:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                scores.append(getattr(metrics, name)(y, of_one, **options))
            except (ValueError, ZeroDivisionError):
                scores.append(np.nan)
    return np.array(scores)


def many(name, y, predictions, weight=None, **options):
    return REGRESSION_METRICS[getattr(metrics, name)](y, predictions, sample_weight=weight, **options)


def assert_same(ours, expected, rel=EXACT):
    # Of 1 - a quotient, the rounding is that of the quotient or of 1.
    assert ours.shape == expected.shape
    np.testing.assert_allclose(ours, expected, rtol=rel, atol=rel, equal_nan=True)


def skip_old(name, weight):
    if OLD and (name in QUANTILES - {"median_absolute_error"} or (name in QUANTILES and weight is not None)):
        pytest.skip("scikit-learn 1.7 takes quantiles of weighted values by another definition")


def weights_of(name):
    weights = [None, WEIGHT, WEIGHT + rng.random(N), WEIGHT.astype(int)]
    return weights[:1] if name == "max_error" else weights


def test_all_metrics_are_here():
    assert {function.__name__ for function in REGRESSION_METRICS} == set(ALL)


ONE = P[:, :, 0]
COUNTS = rng.poisson(3, N) + 1
# Of these, means are exact: of others, rounding decides whether there is any variance.
EVEN_NUMBERS = np.vstack([np.full(64, 2.0), ONE[:1, :64]])
ARRANGED = {
    "an odd number of rows": (Y[:, 0], ONE),
    "an even number of rows": (Y[:EVEN, 0], ONE[:, :EVEN]),
    "counts": (COUNTS, ONE),
    "counts that are predicted": (COUNTS, np.ceil(ONE).astype(int)),
    "zeros among the targets": (np.where(np.arange(N) % 3 == 0, 0.0, Y[:, 0]), ONE),
    "one row": (Y[:1, 0], ONE[:, :1]),
    "one row as predicted": (Y[:1, 0], np.tile(Y[:1, 0], (M, 1))),
    "equal targets": (np.full(64, 2.0), EVEN_NUMBERS),
    "targets of zero": (np.zeros(64), EVEN_NUMBERS),
}


@pytest.mark.cases(120)
@pytest.mark.parametrize("arranged", ARRANGED)
@each(CASES)
def test_one_output(case, arranged):
    name, options = case
    y, predictions = ARRANGED[arranged]
    for weight in weights_of(name) if "number" in arranged or arranged == "counts" else [None]:
        skip_old(name, weight)
        w = None if weight is None else weight[: len(y)]
        expected = theirs(name, y, predictions, w, **options)
        assert np.isfinite(expected).all() or "number" not in arranged
        assert_same(many(name, y, predictions, w, **options), expected)


@pytest.mark.cases(24)
@pytest.mark.parametrize("multioutput", MULTIOUTPUT, ids=str)
@each(CASES_OF_SEVERAL)
def test_several_outputs(case, multioutput):
    name, options = case
    for weight in weights_of(name):
        skip_old(name, weight)
        chosen = {**options, "multioutput": multioutput}
        assert_same(many(name, Y, P, weight, **chosen), theirs(name, Y, P, weight, **chosen))


@pytest.mark.parametrize("name", ["r2_score", "explained_variance_score"])
def test_weighted_by_variance(name):
    constant = Y.copy()
    constant[:, 1] = 2
    for y in (Y, constant, np.full_like(Y, 2)):
        for weight in (None, WEIGHT):
            for force_finite in (True, False):
                options = {"multioutput": "variance_weighted", "force_finite": force_finite}
                assert_same(many(name, y, P, weight, **options), theirs(name, y, P, weight, **options))
    # One output is not divided by its variance, which is 0.
    chosen = {"multioutput": "variance_weighted"}
    one = np.full(N, 2.0)
    assert_same(many(name, one, P[:, :, 0], **chosen), theirs(name, one, P[:, :, 0], **chosen))


@pytest.mark.cases(52)
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@each(CASES)
def test_on_a_device(case, weighted, xp, device):
    """No shape depends on data, and the host waits for nothing."""
    name, options = case
    if "numpy" in xp.__name__ or (weighted and name == "max_error"):
        return
    weight = WEIGHT if weighted else None
    shapes = [(Y[:, 0], P[:, :, 0], options)]
    if name in SEVERAL_OUTPUTS:
        shapes += [(Y, P, {**options, "multioutput": multioutput}) for multioutput in MULTIOUTPUT]
    for y, predictions, chosen in shapes:
        expected = many(name, y, predictions, weight, **chosen)
        y, predictions, w = (
            None if a is None else to_device(a, device, xp) for a in (y, predictions, weight)
        )
        with no_waiting(xp), transfers() as seen:
            ours = many(name, y, predictions, w, **chosen)
        assert ours.device == device
        assert not seen.bytes_to_host and not seen.synchronisations
        assert_same(to_host(ours), expected)


@contextmanager
def no_waiting(xp):
    """Raise, with array-api-strict, for shapes that depend on data and arrays that become numbers."""
    if "array_api_strict" not in xp.__name__:
        yield
        return
    array = type(xp.ones(1))

    def refuse(self):
        raise RuntimeError("the host would wait")

    with pytest.MonkeyPatch.context() as patch, xp.ArrayAPIStrictFlags(data_dependent_shapes=False):
        for name in ("__bool__", "__int__", "__float__", "__index__"):
            patch.setattr(array, name, refuse)
        yield


def test_what_waits_is_seen():
    strict = pytest.importorskip("array_api_strict")
    ones = strict.ones(3)
    with no_waiting(strict), pytest.raises(RuntimeError, match="data-dependent"):
        strict.nonzero(ones)
    for number in (bool, int, float, range):
        with no_waiting(strict), pytest.raises(RuntimeError, match="would wait"):
            number(ones[0])


@each(CASES)
def test_float32(case):
    name, options = case
    for weight in weights_of(name):
        skip_old(name, weight)
        y, predictions = Y[:, 0].astype(np.float32), ONE.astype(np.float32)
        w = None if weight is None else weight.astype(np.float32)
        ours = many(name, y, predictions, w, **options)
        assert ours.dtype == np.float32
        assert_same(ours, theirs(name, y, predictions, w, **options), FLOAT32)
    ours = many(name, COUNTS, predictions, **options)
    assert_same(ours, theirs(name, COUNTS, predictions, **options), FLOAT32)


@each(CASES)
def test_one_setting_and_blocks_of_settings(case):
    name, options = case
    weight = weights_of(name)[-1]
    whole = many(name, Y[:, 0], ONE, weight, **options)
    np.testing.assert_array_equal(many(name, Y[:, 0], ONE, weight, max_bytes=1, **options), whole)
    np.testing.assert_array_equal(many(name, Y[:, 0], ONE[:1], weight, **options), whole[:1])


@pytest.mark.parametrize(
    "name", ["mean_squared_error", "r2_score", "explained_variance_score", "mean_poisson_deviance"]
)
def test_blocks_of_rows(name):
    n = BLOCK + 3
    y, weight = rng.random(n) + 0.5, rng.random(n)
    predictions = y + 0.1 * rng.random((2, n))
    for w in (None, weight):
        assert_same(many(name, y, predictions, w), theirs(name, y, predictions, w))


@each(CASES)
def test_numbers_that_scikit_learn_refuses(case):
    name, options = case
    skip_old(name, None)
    refused = 0
    for value in (np.nan, np.inf, -np.inf, -2.0, -1.0, -0.5, 0.0):
        broken = P[:, :, 0].copy()
        broken[1, 5] = value
        ours, expected = many(name, Y[:, 0], broken, **options), theirs(name, Y[:, 0], broken[1:], **options)
        refused += np.isnan(expected).sum()
        assert_same(ours[1:], expected)
        assert np.isfinite(ours[0])
        y = Y[:, 0].copy()
        y[5] = value
        assert_same(many(name, y, P[:1, :, 0], **options), theirs(name, y, P[:1, :, 0], **options))
    assert refused >= 3
    if name != "max_error":
        # scikit-learn itself says 0 or NaN of some.
        assert np.isnan(many(name, Y[:, 0], P[:, :, 0], np.zeros(N), **options)).all()


def test_weights_that_meet_half_of_the_total():
    """scikit-learn 1.8 and later take the mean of two errors there, past those without weight."""
    skip_old("median_absolute_error", WEIGHT)
    y = np.zeros(6)
    predictions = np.array([[1.0, 2, 3, 4, 5, 6], [6.0, 1, 5, 2, 4, 3]])
    for weight in ([1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 1, 1], [0, 0, 1, 0, 0, 0], [2, 0, 0, 0, 0, 2]):
        w = np.array(weight, dtype=float)
        expected = theirs("median_absolute_error", y, predictions, w)
        np.testing.assert_array_equal(many("median_absolute_error", y, predictions, w), expected)
    np.testing.assert_array_equal(expected, [3.5, 4.5])


def test_shapes_of_one_output():
    """A column is a row, and "raw_values" keep the axis of the outputs."""
    column, wide = Y[:, :1], P[:, :, :1]
    expected = theirs("r2_score", Y[:, 0], P[:, :, 0])
    for y in (column, column[:, 0]):
        for predictions in (wide, wide[:, :, 0]):
            assert_same(many("r2_score", y, predictions), expected)
            raw = many("r2_score", y, predictions, multioutput="raw_values")
            assert_same(raw, expected[:, None])


NOT_ALLOWED = [
    ("r2_score", Y[:, 0], ONE, {"multioutput": [1.0]}, ValueError, "Custom weights are useful only"),
    ("r2_score", Y, P, {"multioutput": [0.5, 0.5]}, ValueError, "equally many custom weights"),
    ("mean_squared_error", Y, P, {"multioutput": "variance_weighted"}, ValueError,
     "multioutput='variance_weighted' is not allowed"),
    ("d2_tweedie_score", Y, P, {}, ValueError, "Multioutput not supported in d2_tweedie_score"),
    ("mean_tweedie_deviance", Y[:, 0], ONE, {"power": 0.5}, ValueError, "power must be"),
    ("d2_pinball_score", Y[:, 0], ONE, {"alpha": 2}, ValueError, "alpha must be"),
    ("r2_score", Y[1:, 0], ONE, {}, ValueError, "need the shape"),
    ("max_error", Y[:, 0], ONE, {"weight": WEIGHT}, Unsupported, "sample_weight is not supported"),
    ("r2_score", Y[:, 0], ONE, {"labels": [1]}, Unsupported, "labels is not supported"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "y", "predictions", "options", "error", "said"), NOT_ALLOWED)
def test_what_is_not_allowed(name, y, predictions, options, error, said):
    with pytest.raises(error, match=said):
        many(name, y, predictions, **options)
