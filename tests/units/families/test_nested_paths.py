"""Components and paths of which each setting reads the first part: from moments, as scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.cross_decomposition import PLSRegression
from sklearn.linear_model import ARDRegression, Lars, LassoLars

from manyfit.estimators import family_of
from manyfit.folds import Unsupported
from tests.device.estimators._views import folded

rng = np.random.default_rng(0)
N, P = 90, 6
X = rng.normal(size=(N, P)) @ rng.normal(size=(P, P)) + 3.0
Y = X @ rng.normal(size=(P, 2)) + rng.normal(size=(N, 2)) + 10.0
ALPHAS = [1e3, 1.0, 0.1, 1e-3, 0.0]
SEARCHES = [
    (PLSRegression(), "n_components", [1, 2, 4, P]),
    (PLSRegression(scale=False), "n_components", [3]),
    (Lars(), "n_nonzero_coefs", [1, 3, 2, 500]),
    (Lars(fit_intercept=False, precompute=False), "n_nonzero_coefs", [1, 3]),
    (LassoLars(), "alpha", ALPHAS),
    (LassoLars(positive=True, fit_intercept=False), "alpha", ALPHAS),
    (LassoLars(max_iter=3), "alpha", ALPHAS),
]


def answers(estimator: Any, name: str, values: Any, X: Any = X, y: Any = Y) -> Any:
    family, settings = family_of(type(estimator)), [{name: value} for value in values]
    family.check(estimator, settings)
    (out,) = family.fit_many(estimator, settings, folded(X, y))
    return out


@pytest.mark.parametrize("y", [Y, Y[:, :1], Y[:, 0]], ids=["two", "a column", "one"])
@pytest.mark.parametrize(("estimator", "name", "values"), SEARCHES, ids=lambda value: str(value)[:30])
def test_predictions_are_scikit_learns(estimator: Any, name: str, values: Any, y: Any) -> None:
    out = answers(estimator, name, values, y=y)
    assert not out.refused
    predicted = out.respond("test", folded(X, y).fold(0))["predict"]
    for found, value in zip(predicted, values, strict=True):
        expected = type(estimator)(**{**estimator.get_params(), name: value}).fit(X, y).predict(X)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("intercept", [True, False])
def test_relevance_of_features(intercept: bool) -> None:
    noise = np.column_stack([X, rng.normal(size=(N, 3))])
    values = [1e4, 10.0, 1.0, 1e-3]
    settings = [{"threshold_lambda": v, "alpha_1": 1e-6, "alpha_2": 1e-6, "lambda_1": 1e-6, "lambda_2": 1e-6}
                for v in values]  # fmt: skip
    y, model = Y[:, 0], ARDRegression(fit_intercept=intercept)
    (out,) = family_of(ARDRegression).fit_many(model, settings, folded(noise, y))
    predicted = out.respond("test", folded(noise, y).fold(0))["predict"]
    left_out = set()
    for j, setting in enumerate(settings):
        fitted = ARDRegression(fit_intercept=intercept, **setting).fit(noise, y)
        np.testing.assert_allclose(predicted[j], fitted.predict(noise), rtol=1e-8)
        left_out.add(int((fitted.coef_ == 0).sum()))
    assert not out.refused and len(left_out) > 1


def test_components_that_rounding_would_decide_are_refused() -> None:
    alike = np.linalg.qr(X - X.mean(axis=0))[0]
    assert set(answers(PLSRegression(), "n_components", [1, P], alike, alike[:, 0]).refused) == {1}
    twice = np.column_stack([X, X[:, 0]])
    assert set(answers(PLSRegression(), "n_components", [1, P + 1, P + 2], twice).refused) == {1, 2}
    few = answers(PLSRegression(max_iter=2), "n_components", [1, 2])
    assert "max_iter" in few.refused[0]
    for path in (Lars(), LassoLars()):
        with pytest.raises(Unsupported, match="linearly dependent"):
            answers(path, "n_nonzero_coefs" if type(path) is Lars else "alpha", [1], twice)
    with pytest.raises(Unsupported, match="jitter"):
        answers(Lars(jitter=0.1), "n_nonzero_coefs", [1])
