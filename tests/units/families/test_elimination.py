"""RFE as the last estimator: one path a split answers all numbers of features, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import RFE
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.tree import DecisionTreeClassifier

from manyfit.estimators import family_of
from manyfit.folds import FoldArrays, SingleFold, Unsupported
from manyfit.model_selection import GridSearchCV
from tests._covering import covering
from tests._same_results import both

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 8))
NUMBERS = np.abs(X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=len(X)))
LABELS = np.array(["no", "so", "yes"])[np.digitize(NUMBERS, [0.6, 1.2])]
TREE = DecisionTreeClassifier(max_depth=3, random_state=0)
MODELS = [RFE(Ridge()), RFE(Ridge(), step=3), RFE(LogisticRegression()), RFE(TREE), RFE(TREE, step=0.4)]
KEPT = [3, 1, 8, 6]


def target(model: Any) -> Any:
    return LABELS if is_classifier(model) else NUMBERS


FORMS = {"array": np.asarray, "sparse": sp.csr_matrix, "Fortran": np.asfortranarray}


@pytest.mark.cases(2)
@pytest.mark.parametrize(("form", "model"), covering(FORMS, MODELS, strength=1), ids=str)
def test_responses_are_equal_to_the_bit(model, form):
    y, train = target(model), np.arange(len(X)) % 3 > 0
    rows, rest = FORMS[form](X[train]), FORMS[form](X[~train])
    fold = FoldArrays(rows, y[train], rest, y[~train], None, rows, y[train], y[~train])
    settings, family = [{"n_features_to_select": k} for k in [*KEPT, 9]], family_of(RFE)
    family.check(model, settings)
    (answers,) = family.fit_many(model, settings, SingleFold(fold))
    assert list(answers.refused) == [4]  # RFE warns
    for j, setting in enumerate(settings[:-1]):
        alone = clone(model).set_params(**setting).fit(rows, y[train])
        for role, seen in (("test", rest), ("train", rows)):
            found = answers.subset([j]).respond(role, fold)
            for method, values in found.items():
                assert_array_equal(values[0], getattr(alone, method)(seen))
    assert set(found) >= ({"predict", "predict_proba"} if is_classifier(model) else {"predict"})


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("model", "scoring"),
    covering([*MODELS[:3], RFE(PoissonRegressor())], [None, "neg_max_error"], strength=1),
    ids=str,
)
def test_searches_make_one_fit_a_split(model, scoring):
    if scoring and is_classifier(model):
        scoring = "roc_auc_ovr"
    pipe = make_pipeline(MinMaxScaler(), model)
    options = {"cv": 3, "scoring": scoring, "return_train_score": True}
    search = both(pipe, {"rfe__n_features_to_select": KEPT}, X, target(model), **options)
    assert (search.report_.fits_done, search.report_.fits_shared) == (3, 12)
    assert search.best_estimator_[1].n_features_ == search.best_params_["rfe__n_features_to_select"]


def test_a_number_whose_features_tie_is_scikit_learns():
    same = np.repeat(X[:, :2], 4, axis=1)
    search = both(RFE(Ridge(), step=4), {"n_features_to_select": [1, 3, 4]}, same, NUMBERS, cv=3)
    assert search.report_.fits_shared <= 9


class Own(Ridge):
    pass


@pytest.mark.parametrize(
    ("model", "number", "reason"),
    [
        (RFE(RandomForestClassifier(3)), 2, "draws"),
        (RFE(Own()), 2, "Own"),
        (RFE(TREE, verbose=1), 2, "verbose=1"),
        *((RFE(TREE), number, "is not an integer") for number in (0, -1, True, 0.5, None, "all")),
    ],
    ids=str,
)
def test_what_is_left_alone(model, number, reason):
    with pytest.raises(Unsupported, match=reason):
        family_of(RFE).check(model, [{"n_features_to_select": number}])


def test_other_numbers_of_a_search_are_scikit_learns():
    grid = {"n_features_to_select": [2, 0.5, None, 99, 3]}
    with pytest.warns(UserWarning, match="n_features_to_select=99"):
        search = GridSearchCV(RFE(TREE), grid, cv=3).fit(X, LABELS)
    assert search.report_.fits_shared == 6
