"""Warnings and errors of drop-in estimators whose data lie elsewhere."""

from __future__ import annotations

import array_api_compat as compat
import pytest
from sklearn.exceptions import NotFittedError

import manyfit
from manyfit import estimators
from manyfit.arrays import (
    is_on_device,
    transfers,
)
from manyfit.exceptions import HostFallbackError
from tests.behaviour.metrics._crossings import DEVICE, there
from tests.device.estimators._places import alike, in_place, told
from tests.units.families._samples import LABELS, NUMBERS, X, made

pytestmark = pytest.mark.usefixtures("scikit_learn_only")


def test_one_warning_for_an_estimator_and_a_reason():
    def run():
        fitted = made("SVC").fit(there(X), there(LABELS))
        fitted.predict(there(X))
        made("SVC").fit(there(X), there(LABELS))
        estimators.Ridge(solver="lsqr").fit(there(X), there(NUMBERS))

    first, second = told(run)
    assert str(first.message) == (
        "SVC works on the host, so its data are copied there: scikit-learn supports it on the host only."
    )
    assert "Ridge works on the host" in str(second.message) and "solver='lsqr'" in str(second.message)
    assert first.filename == second.filename == __file__
    assert told(run) == []


def test_nothing_is_told_where_nothing_crosses():
    import array_api_strict

    data = array_api_strict.asarray(X)
    assert not is_on_device(data)
    fitted = []
    assert told(lambda: fitted.append(made("KMeans").set_params(n_clusters=2).fit(data))) == []
    assert told(lambda: fitted[0].predict(data)) == []
    assert told(lambda: made("SVC").fit(X, there(LABELS))) == []  # X is where the fit is
    with manyfit.config_context(host_fallback="ignore"):
        assert told(lambda: made("SVC").fit(there(X), there(LABELS))) == []


def test_an_error_instead_and_nothing_is_moved():
    with manyfit.config_context(host_fallback="error"), transfers() as counted:
        with pytest.raises(
            HostFallbackError, match=r"SVC works on the host.*config_context\(host_fallback='warn'\)"
        ):
            made("SVC").fit(there(X), there(LABELS))
        made("MinMaxScaler").fit(there(X))
        made("SVC").fit(X, LABELS)
    assert counted.bytes_to_host == 0


def test_an_unfitted_estimator_says_so_wherever_the_data_lie():
    for name in ("SVC", "Ridge", "PCA"):
        with pytest.raises(NotFittedError):
            (made(name).transform if name == "PCA" else made(name).predict)(there(X))
    in_xp = made("Normalizer").transform(there(X))  # needs no fit
    alike(in_xp, made("Normalizer").transform(X))
    assert in_place(in_xp, compat.array_namespace(there(X)), DEVICE)


def test_wrong_arguments_are_scikit_learns_errors():
    Xd, yd = there(X), there(NUMBERS)
    for model, given, options, error, said in (
        (made("Ridge"), (Xd,), {}, TypeError, r"fit\(\) missing 1 required positional argument: 'y'"),
        (made("Ridge"), (Xd, yd), {"weights": None}, TypeError, "unexpected keyword argument 'weights'"),
        (made("Ridge"), (Xd, yd[:5]), {}, ValueError, "inconsistent numbers of samples"),
        (estimators.Ridge(alpha="much"), (Xd, yd), {}, ValueError, "The 'alpha' parameter of Ridge must be"),
    ):
        with pytest.raises(error, match=said):
            model.fit(*given, **options)
