"""Fitted drop-in estimators that answer data of another place, or go on learning from them."""

from __future__ import annotations

import array_api_compat as compat
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from sklearn.base import is_classifier

from manyfit import estimators
from manyfit.arrays import (
    container_kind,
)
from manyfit.estimators._method_call import RECORD
from manyfit.exceptions import HostFallbackWarning
from tests.behaviour.metrics._crossings import DEVICE, there
from tests.device.estimators._places import STAYS, alike, in_place, quiet
from tests.units.families._samples import LABELS, WORDS, X, made

pytestmark = pytest.mark.usefixtures("scikit_learn_only")


@quiet
def test_a_fitted_estimator_answers_data_of_another_place():
    there_fitted, home_fitted = made("PCA").fit(there(X)), made("PCA").fit(X)
    wanted = home_fitted.transform(X)
    for data in (X, pd.DataFrame(X), X.tolist()):
        assert type(there_fitted.transform(data)) is np.ndarray
        alike(there_fitted.transform(data), wanted)
    with pytest.warns(HostFallbackWarning, match="PCA works on the host.*it was fitted on the host"):
        assert in_place(home_fitted.transform(there(X)), compat.array_namespace(there(X)), DEVICE)
    alike(there_fitted.get_covariance(), home_fitted.get_covariance())
    assert in_place(there_fitted.get_covariance(), compat.array_namespace(there(X)), DEVICE)
    sparse = scipy.sparse.csr_array(X)
    alike(made("MaxAbsScaler").fit(there(X)).transform(sparse), made("MaxAbsScaler").fit(X).transform(sparse))


@quiet
def test_a_new_fit_forgets_the_old_one():
    ours = made("LinearDiscriminantAnalysis").fit(there(X), WORDS)
    ours.fit(X, LABELS)
    assert RECORD not in vars(ours) and ours.predict(X).dtype == LABELS.dtype
    assert type(ours.coef_) is np.ndarray
    ours.fit(there(X), there(LABELS)).fit(X, WORDS)
    wanted = made("LinearDiscriminantAnalysis").fit(X, WORDS).predict(X)
    np.testing.assert_array_equal(ours.predict(X), wanted)


@quiet
@pytest.mark.parametrize(
    "name", ["MinMaxScaler", "StandardScaler", "GaussianNB", "IncrementalPCA", "MiniBatchKMeans"]
)
def test_learning_in_parts_goes_on_where_it_began(name):
    halves, y = (X[:30], X[30:]), LABELS.reshape(2, 30)
    classes = [0, 1, 2]

    def learnt(estimator, move, last):
        for half, (rows, labels) in enumerate(zip(halves, y, strict=True)):
            rows = move(rows) if half == 0 else last(rows)
            more = (labels,) if is_classifier(estimator) else ()
            options = {"classes": classes} if more and half == 0 else {}
            estimator.partial_fit(rows, *map(move if half == 0 else last, more), **options)
        return estimator

    wanted = learnt(made(name, twin=True), np.asarray, np.asarray)
    for last in (there, np.asarray):
        ours = learnt(made(name), there, last)
        assert vars(ours)[RECORD].route == ("scikit-learn" if name in STAYS else "host")
        method = "predict" if hasattr(wanted, "predict") else "transform"
        alike(getattr(ours, method)(there(X)), getattr(wanted, method)(X))


@quiet
def test_what_was_learnt_on_the_host_goes_on_there():
    wanted = made("MinMaxScaler", twin=True).partial_fit(X[:30]).partial_fit(X[30:])
    ours = made("MinMaxScaler").partial_fit(X[:30])
    with pytest.warns(HostFallbackWarning, match="it was fitted on the host"):
        ours.partial_fit(there(X[30:]))
    alike(ours.transform(there(X)), wanted.transform(X))
    assert type(ours.data_max_) is np.ndarray


@quiet
@pytest.mark.skipif("LogisticRegression" not in STAYS, reason="not of this version of scikit-learn")
def test_a_warm_start_from_another_place():
    ours = made("LogisticRegression").set_params(warm_start=True)
    wanted = made("LogisticRegression", twin=True).fit(X, LABELS)
    for data, y in ((X, LABELS), (there(X), there(LABELS)), (X, LABELS), (there(X), LABELS)):
        ours.fit(data, y)
        alike(ours.coef_, wanted.coef_, True)
        assert container_kind(ours.coef_) == container_kind(data)


@quiet
def test_classes_may_be_told_again():
    ours, theirs = estimators.GaussianNB(), sklearn.naive_bayes.GaussianNB()
    for _ in range(2):
        ours.partial_fit(there(X), there(LABELS), classes=[0, 1, 2])
        theirs.partial_fit(X, LABELS, classes=[0, 1, 2])
    alike(ours.predict_proba(there(X)), theirs.predict_proba(X))
    with pytest.raises(ValueError, match="classes="):
        ours.partial_fit(there(X), there(LABELS), classes=[0, 1])
