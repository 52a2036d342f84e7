"""Written by ``python -m tests.stubs``: names that are made at run time, for type checkers."""

from typing import Any

import sklearn.model_selection
from sklearn.model_selection import BaseCrossValidator as BaseCrossValidator
from sklearn.model_selection import BaseShuffleSplit as BaseShuffleSplit
from sklearn.model_selection import FixedThresholdClassifier as FixedThresholdClassifier
from sklearn.model_selection import LearningCurveDisplay as LearningCurveDisplay
from sklearn.model_selection import ParameterGrid as ParameterGrid
from sklearn.model_selection import ParameterSampler as ParameterSampler
from sklearn.model_selection import TunedThresholdClassifierCV as TunedThresholdClassifierCV
from sklearn.model_selection import ValidationCurveDisplay as ValidationCurveDisplay
from sklearn.model_selection import check_cv as check_cv

__all__ = [
    "BaseCrossValidator", "BaseShuffleSplit", "FixedThresholdClassifier", "GroupKFold",
    "GroupShuffleSplit", "KFold", "LearningCurveDisplay", "LeaveOneGroupOut", "LeaveOneOut",
    "LeavePGroupsOut", "LeavePOut", "ParameterGrid", "ParameterSampler", "PredefinedSplit",
    "RepeatedKFold", "RepeatedStratifiedKFold", "ShuffleSplit", "StratifiedGroupKFold",
    "StratifiedKFold", "StratifiedShuffleSplit", "TimeSeriesSplit", "TunedThresholdClassifierCV",
    "ValidationCurveDisplay", "check_cv", "cross_val_predict", "cross_val_score", "cross_validate",
    "learning_curve", "permutation_test_score", "train_test_split", "validation_curve"
]  # fmt: skip

class GroupKFold(sklearn.model_selection.GroupKFold): ...
class GroupShuffleSplit(sklearn.model_selection.GroupShuffleSplit): ...
class KFold(sklearn.model_selection.KFold): ...
class LeaveOneGroupOut(sklearn.model_selection.LeaveOneGroupOut): ...
class LeaveOneOut(sklearn.model_selection.LeaveOneOut): ...
class LeavePGroupsOut(sklearn.model_selection.LeavePGroupsOut): ...
class LeavePOut(sklearn.model_selection.LeavePOut): ...
class PredefinedSplit(sklearn.model_selection.PredefinedSplit): ...
class RepeatedKFold(sklearn.model_selection.RepeatedKFold): ...
class RepeatedStratifiedKFold(sklearn.model_selection.RepeatedStratifiedKFold): ...
class ShuffleSplit(sklearn.model_selection.ShuffleSplit): ...
class StratifiedGroupKFold(sklearn.model_selection.StratifiedGroupKFold): ...
class StratifiedKFold(sklearn.model_selection.StratifiedKFold): ...
class StratifiedShuffleSplit(sklearn.model_selection.StratifiedShuffleSplit): ...
class TimeSeriesSplit(sklearn.model_selection.TimeSeriesSplit): ...

def cross_val_predict(
    estimator: Any,
    X: Any,
    y: Any = ...,
    *,
    groups: Any = ...,
    cv: Any = ...,
    n_jobs: Any = ...,
    verbose: Any = ...,
    params: Any = ...,
    pre_dispatch: Any = ...,
    method: Any = ...,
    memory_limit: Any = ...,
) -> Any: ...
def cross_val_score(
    estimator: Any,
    X: Any,
    y: Any = ...,
    *,
    groups: Any = ...,
    scoring: Any = ...,
    cv: Any = ...,
    n_jobs: Any = ...,
    verbose: Any = ...,
    params: Any = ...,
    pre_dispatch: Any = ...,
    error_score: Any = ...,
    engine: Any = ...,
    memory_limit: Any = ...,
) -> Any: ...
def cross_validate(
    estimator: Any,
    X: Any,
    y: Any = ...,
    *,
    groups: Any = ...,
    scoring: Any = ...,
    cv: Any = ...,
    n_jobs: Any = ...,
    verbose: Any = ...,
    params: Any = ...,
    pre_dispatch: Any = ...,
    return_train_score: Any = ...,
    return_estimator: Any = ...,
    return_indices: Any = ...,
    error_score: Any = ...,
    engine: Any = ...,
    memory_limit: Any = ...,
    return_predictions: Any = ...,
) -> Any: ...
def learning_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = ...,
    train_sizes: Any = ...,
    cv: Any = ...,
    scoring: Any = ...,
    exploit_incremental_learning: Any = ...,
    n_jobs: Any = ...,
    pre_dispatch: Any = ...,
    verbose: Any = ...,
    shuffle: Any = ...,
    random_state: Any = ...,
    error_score: Any = ...,
    return_times: Any = ...,
    params: Any = ...,
    engine: Any = ...,
    memory_limit: Any = ...,
) -> Any: ...
def permutation_test_score(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = ...,
    cv: Any = ...,
    n_permutations: Any = ...,
    n_jobs: Any = ...,
    random_state: Any = ...,
    verbose: Any = ...,
    scoring: Any = ...,
    params: Any = ...,
) -> Any: ...
def train_test_split(
    *arrays: Any,
    test_size: Any = ...,
    train_size: Any = ...,
    random_state: Any = ...,
    shuffle: Any = ...,
    stratify: Any = ...,
) -> list[Any]: ...
def validation_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    param_name: Any,
    param_range: Any,
    groups: Any = ...,
    cv: Any = ...,
    scoring: Any = ...,
    n_jobs: Any = ...,
    pre_dispatch: Any = ...,
    verbose: Any = ...,
    error_score: Any = ...,
    params: Any = ...,
    engine: Any = ...,
    memory_limit: Any = ...,
) -> Any: ...
