"""Errors for parameters that the estimator does not have name those that may have been meant."""

import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from manyfit.model_selection import GridSearchCV

PIPELINE = make_pipeline(StandardScaler(), LogisticRegression())


@pytest.mark.parametrize(
    ("estimator", "name", "hint"),
    [
        (PIPELINE, "C", "Did you mean 'logisticregression__C'?"),
        (PIPELINE, "logisticregresion__C", "Did you mean 'logisticregression__C'?"),
        (PIPELINE, "logisticregresion__D", "Did you mean 'logisticregression'?"),
        (PIPELINE, "logisticregression__c", "Did you mean 'logisticregression__C'?"),
        (PIPELINE, "standardscaler__withmean", "Did you mean 'standardscaler__with_mean'?"),
        (PIPELINE, "logisticregression_C", "Did you mean 'logisticregression__C'?"),
        (PIPELINE, "standardscaler_with__mean", "Did you mean 'standardscaler__with_mean'?"),
        (PIPELINE, "verbose_", "Did you mean 'logisticregression__verbose' or 'verbose'?"),
        (Ridge(), "alphas", "Did you mean 'alpha'?"),
        (GridSearchCV(SVC(), {}), "C", "Did you mean 'estimator__C'?"),
        (Ridge(), "gamma_of_nothing", None),
    ],
)
def test_the_error_has_the_names_that_may_be_meant(estimator, name, hint):
    search = GridSearchCV(estimator, {name: [1, 2]})
    with pytest.raises(ValueError, match="Invalid parameter") as caught:
        search.fit(*load_iris(return_X_y=True))
    assert getattr(caught.value, "__notes__", []) == ([] if hint is None else [hint])


def test_other_errors_have_no_hint():
    with pytest.raises(ValueError, match="All the 5 fits failed") as caught:
        GridSearchCV(Ridge(), {"alpha": [-1]}).fit(*load_iris(return_X_y=True))
    assert not hasattr(caught.value, "__notes__")


def test_a_plan_has_the_hint_as_well():
    plan = GridSearchCV(PIPELINE, {"C": [1, 2]}).plan(*load_iris(return_X_y=True))
    assert plan.groups[0].reason.endswith("Did you mean 'logisticregression__C'?")


@pytest.mark.parametrize(
    ("scoring", "meant"),
    [
        ("acuracy", "'accuracy'"),
        ("mean_squared_error", "'neg_mean_squared_error'"),
        ("RMSE", "'neg_root_mean_squared_error'"),
        ("balanced accuracy", "'balanced_accuracy'"),
        ("quality", None),
    ],
)
def test_the_error_has_the_metric_that_may_be_meant(scoring, meant):
    with pytest.raises(ValueError, match="'scoring' parameter of GridSearchCV must be a str among") as caught:
        GridSearchCV(PIPELINE, {}, scoring=scoring).fit(*load_iris(return_X_y=True))
    hint = f"scoring={scoring!r}: did you mean {meant}?"
    assert getattr(caught.value, "__notes__", []) == ([] if meant is None else [hint])
