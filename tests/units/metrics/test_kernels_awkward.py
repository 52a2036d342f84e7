"""What random problems found: options, single rows, and values that scikit-learn refuses."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import sklearn.metrics

from manyfit import metrics
from tests.behaviour.metrics._crossings import here, there

WITH_OUTPUTS = [
    name
    for name in metrics.__all__
    if getattr(getattr(metrics, name), "many", None) is not None
    and "multioutput" in inspect.signature(getattr(metrics, name)).parameters
]
PLACES = pytest.mark.parametrize("there", [np.asarray, there], ids=["host", "device"])


def many(name, y, P, there, **options):
    """Scores of some settings, on the host."""
    found = getattr(metrics, name).many(there(y), there(P), **options)
    return found if isinstance(found, np.ndarray) else here(found)


@PLACES
def test_an_argument_without_a_default_is_asked_for(there):
    y = np.array([0, 1, 1, 0])
    with pytest.raises(TypeError, match=r"missing a required (keyword-only )?argument: 'beta'"):
        sklearn.metrics.fbeta_score(y, y)
    with pytest.raises(
        TypeError, match=r"fbeta_score.many is missing a required (keyword-only )?argument: 'beta'"
    ):
        many("fbeta_score", y, y[None], there)
    with pytest.raises(TypeError, match=r"missing a required (keyword-only )?argument: 'beta'"):
        metrics.fbeta_score(there(y), there(y))
    assert many("fbeta_score", y, y[None], there, beta=2)[0] == 1.0
    with pytest.raises(TypeError, match=r"fbeta_score.many got multiple values for argument 'y_pred'"):
        many("fbeta_score", y, y[None], there, beta=2, y_pred=y)


@PLACES
def test_the_weight_of_a_single_output(there):
    """Of one output, the root of a mean squared error takes a weight, and no other metric does."""
    rng = np.random.default_rng(0)
    y, P = rng.random(9), rng.random((2, 9))
    for shape in ((9,), (9, 1)):
        wanted = [sklearn.metrics.root_mean_squared_error(y, p, multioutput=[0.3]) for p in P]
        Y, Q = y.reshape(shape), P.reshape(2, *shape)
        found = many("root_mean_squared_error", Y, Q, there, multioutput=[0.3])
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    for name in ("mean_squared_error", "root_mean_squared_log_error", "r2_score"):
        with pytest.raises(ValueError, match="only in multi-output cases"):
            getattr(sklearn.metrics, name)(y, P[0], multioutput=[0.3])
        with pytest.raises(ValueError, match="only in multi-output cases"):
            many(name, y, P, there, multioutput=[0.3])


@PLACES
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", WITH_OUTPUTS)
def test_one_output_that_is_refused_refuses_all(name, bad, there):
    """One setting with a bad value in one of its outputs: the others keep their scores, it has none."""
    rng = np.random.default_rng(0)
    y, P = rng.random((9, 2)) + 0.1, rng.random((3, 9, 2)) + 0.1
    P[1, 4, 0] = bad
    theirs = getattr(sklearn.metrics, name)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        theirs(y, P[1], multioutput="raw_values")
    found = many(name, y, P, there, multioutput="raw_values")
    assert np.isnan(found[1]).all()
    for j in (0, 2):
        np.testing.assert_allclose(found[j], theirs(y, P[j], multioutput="raw_values"), rtol=1e-12)


@PLACES
@pytest.mark.parametrize("weight", [None, 0.7])
@pytest.mark.parametrize("outputs", [(), (2,)])
def test_variance_explained_of_a_single_row(outputs, weight, there):
    """Nothing is left of its residual but what rounding leaves: scikit-learn says 1."""
    rng = np.random.default_rng(0)
    y, P = rng.random((1, *outputs)), rng.random((50, 1, *outputs))
    weight = {} if weight is None else {"sample_weight": np.array([weight])}
    wanted = [sklearn.metrics.explained_variance_score(y, p, **weight) for p in P]
    np.testing.assert_array_equal(many("explained_variance_score", y, P, there, **weight), wanted)
    assert 1.0 in wanted


@PLACES
@pytest.mark.parametrize("name", ["mean_poisson_deviance", "mean_gamma_deviance", "mean_tweedie_deviance"])
def test_a_deviance_of_negative_targets_and_predictions(name, there):
    y, P = np.array([1.0, 2.0, -0.5]), np.array([[1.0, 2.0, -0.7], [1.0, 2.0, 0.7]])
    options = {"power": 1} if name == "mean_tweedie_deviance" else {}
    for p in P:
        with pytest.raises(ValueError, match="can only be used on"):
            getattr(sklearn.metrics, name)(y, p, **options)
    assert np.isnan(many(name, y, P, there, **options)).all()


@PLACES
def test_average_precision_without_any_weight(there):
    y, P, weight = np.array([0, 1, 1]), np.array([[0.1, 0.2, 0.3]]), np.zeros(3)
    with pytest.raises((ValueError, IndexError)):  # the latter of 1.7
        sklearn.metrics.average_precision_score(y, P[0], sample_weight=weight)
    assert np.isnan(many("average_precision_score", y, P, there, sample_weight=weight)).all()


@PLACES
def test_two_classes_without_a_positive_one(there):
    y = np.array([-1, -1, -1])
    with pytest.raises((TypeError, ValueError)):
        sklearn.metrics.f1_score(y, y, pos_label=None)
    with pytest.raises(NotImplementedError, match="average='binary' without pos_label"):
        many("f1_score", y, y[None], there, pos_label=None)
