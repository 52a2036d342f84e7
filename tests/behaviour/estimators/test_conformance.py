"""scikit-learn's checks of estimators, for every drop-in estimator that can run here.

The instances are those that scikit-learn checks of its own classes. A check that is expected to fail and
passes fails the test (`xfail_strict`). Each ninth check is run by `make test`, the others, and all of
those that hold others, by `make thorough`.
The array API checks, which need SciPy's switch, are in `tests/upstream/test_array_api_checks.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.utils._test_common.instance_generator import (
    _construct_instances,
    _get_expected_failed_checks,
    _yield_instances_for_check,
)
from sklearn.utils.estimator_checks import check_regressors_train, parametrize_with_checks

from manyfit import estimators
from manyfit.estimators._catalog import CATALOG, META_ESTIMATORS
from manyfit.introspection.class_names import sklearn_class_of

# What scikit-learn expects to fail, with its reason, is expected here too, but for these, which pass.
NEW = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)
PASS = {
    ("LogisticRegression", "check_sample_weight_equivalence_on_dense_data"),
    ("LogisticRegression", "check_sample_weight_equivalence_on_sparse_data"),
    ("LinearSVC", "check_non_transformer_estimators_n_iter"),
    *([("RandomForestClassifier", "check_classifiers_one_label_sample_weights")] if NEW else ()),
}
# Of labels, texts and several outputs scikit-learn checks nothing; UMAP needs umap-learn.
NOT_HERE = {
    "LabelEncoder",
    "MultiOutputClassifier",
    "MultiOutputRegressor",
    "HashingVectorizer",
    "CountVectorizer",
    "TfidfVectorizer",
    "UMAP",
}
EVERY = 9
QUICKER = {"TSNE": {"max_iter": 250}}


def ours_of(twin: Any) -> Any:
    name = type(twin).__name__
    return getattr(estimators, name)(**twin.get_params(deep=False) | QUICKER.get(name, {}))


def theirs_of(estimator: Any) -> Any:
    return sklearn_class_of(type(estimator))(**estimator.get_params(deep=False))


def instances() -> Iterator[Any]:
    """Of each drop-in estimator those that scikit-learn checks of its twin."""
    for name in CATALOG:
        if name not in NOT_HERE:
            yield from map(ours_of, _construct_instances(sklearn_class_of(getattr(estimators, name))))


def expected_failures(estimator: Any) -> dict[str, str]:
    name, failing = type(estimator).__name__, _get_expected_failed_checks(theirs_of(estimator))
    return {check: reason for check, reason in failing.items() if (name, check) not in PASS}


def checks() -> Any:
    """What `parametrize_with_checks` makes of them, most of it marked as thorough."""
    made = parametrize_with_checks(list(instances()), expected_failed_checks=expected_failures).mark
    names, params = made.args
    kept = []
    for param in params:
        param = param if hasattr(param, "values") else pytest.param(*param)
        check = param.values[1]
        if "array_api" in getattr(check, "func", check).__name__:
            continue
        rare = len(kept) % EVERY or type(param.values[0]).__name__ in META_ESTIMATORS
        marks = [pytest.mark.thorough] if rare else []
        kept.append(pytest.param(*param.values, marks=[*param.marks, *marks]))
    # An instance has one text for all of its checks: making it takes long.
    return pytest.mark.parametrize(names, kept, ids=cache(made.kwargs["ids"]))


@pytest.mark.invariant("Drop-in estimators pass scikit-learn's own checks")
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # as scikit-learn runs them: fits end early, parameters are deprecated
@checks()
def test_scikit_learns_checks(estimator, check):
    for twin in _yield_instances_for_check(check, theirs_of(estimator)):
        check(ours_of(twin))


def test_a_defect_is_found(monkeypatch):
    monkeypatch.setattr(estimators.Ridge, "predict", lambda self, X: np.zeros(len(X)))
    with pytest.raises(AssertionError):
        check_regressors_train("Ridge", estimators.Ridge())
