"""scikit-learn's public names under `sklearn.model_selection`, but for the searches: ours, or its own.

Type checkers read the stub beside this module, which ``python -m tests.stubs`` writes.
"""

from sklearn import model_selection

from manyfit.folds import SPLITTERS, train_test_split
from manyfit.model_selection.validation import _cross_validate as _validation

# scikit-learn's until they are enabled there, and then scikit-learn's again.
EXPERIMENTAL = ("HalvingGridSearchCV", "HalvingRandomSearchCV")
_SEARCHES = ("GridSearchCV", "RandomizedSearchCV")
_FUNCTIONS = (
    "cross_val_predict",
    "cross_val_score",
    "cross_validate",
    "learning_curve",
    "validation_curve",
)
_OURS = {
    **{name: getattr(_validation, name) for name in _FUNCTIONS},
    "train_test_split": train_test_split,
    **SPLITTERS,
}
# Which names there are is for the installed scikit-learn to say.
_PASSED_ON = {
    name: getattr(model_selection, name)
    for name in model_selection.__all__
    if name not in (*_OURS, *_SEARCHES, *EXPERIMENTAL)
}
globals().update(_OURS, **_PASSED_ON)

__all__ = [*_OURS, *_PASSED_ON]
