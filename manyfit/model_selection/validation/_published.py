"""All public names of `sklearn.model_selection` but the searches: our functions, or scikit-learn's.

Type checkers read the stub of the same name, which ``python -m tests.stubs`` writes.
"""

from sklearn import model_selection

from manyfit.folds import SPLITTERS, train_test_split
from manyfit.model_selection.validation import _cross_validate as _validation

# Ours; scikit-learn has the halving ones only after they are enabled.
_SEARCHES = ("GridSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV", "RandomizedSearchCV")
_FUNCTIONS = (
    "cross_val_predict",
    "cross_val_score",
    "cross_validate",
    "learning_curve",
    "permutation_test_score",
    "validation_curve",
)
_OURS = {
    **{name: getattr(_validation, name) for name in _FUNCTIONS},
    "train_test_split": train_test_split,
    **SPLITTERS,
}
# The installed scikit-learn decides which names exist.
_PASSED_ON = {
    name: getattr(model_selection, name)
    for name in model_selection.__all__
    if name not in (*_OURS, *_SEARCHES)
}
globals().update(_OURS, **_PASSED_ON)

__all__ = [*_OURS, *_PASSED_ON]
