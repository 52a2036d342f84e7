"""Which estimators and parameters ask for data on a device."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler

from manyfit._compat import DEVICE_TAKES_HOST_INDICES
from manyfit.joblib_backend._device_arrays import estimators_in_call, wants_device_data
from tests.joblib_backend._on_device import Told, X, Y

pytestmark = pytest.mark.slow


def test_other_frameworks_estimators():
    class OfCuml:
        __module__ = "cuml.linear_model"

    class OfXgboost(Told):
        __module__ = "xgboost.sklearn"

        def __init__(self, device: Any = None) -> None:
            super().__init__(support=False)
            self.device = device

    assert wants_device_data(OfCuml())
    assert wants_device_data(OfXgboost("cuda:0"))
    assert not wants_device_data(OfXgboost())
    assert wants_device_data(make_pipeline(MinMaxScaler(), OfXgboost("cuda")))
    assert not wants_device_data(object())


def test_functions_of_scikit_learn_that_keep_to_the_host():
    """Their own tasks read NumPy's arrays, whatever the estimator in them takes."""
    from sklearn import calibration, multiclass
    from sklearn.model_selection import _validation

    for module, name in ((multiclass, "_fit_binary"), (calibration, "_fit_calibrator")):
        assert estimators_in_call(getattr(module, name), (Ridge(), X), {}) == []
    found = estimators_in_call(vars(_validation)["_fit_and_predict"], (Ridge(), X), {})
    assert len(found) == DEVICE_TAKES_HOST_INDICES
    assert len(estimators_in_call(Ridge().fit, (X, Y), {})) == 1


def test_the_parameters_of_a_setting_count():
    from sklearn.model_selection import _validation

    fit_and_score = vars(_validation)["_fit_and_score"]
    base = Pipeline([("model", KNeighborsRegressor())])
    for parameters, expected in (
        ({"model": Ridge()}, True),
        ({"model": KNeighborsRegressor(3)}, False),
        ({"no_such": 1}, False),
        (None, False),
    ):
        found = estimators_in_call(fit_and_score, (base, X, Y), {"parameters": parameters})
        assert [wants_device_data(one) for one in found] == [expected]
