"""scikit-learn's own tests of cross_validate and its kin, aimed at ours."""

import pytest

from manyfit import model_selection
from tests.upstream._aim import aimed

_NAMES = (
    "cross_validate",
    "cross_val_score",
    "cross_val_predict",
    "validation_curve",
    "learning_curve",
    "permutation_test_score",
)
_upstream = aimed(
    "sklearn.model_selection.tests.test_validation",
    {"sklearn.model_selection": {name: getattr(model_selection, name) for name in _NAMES}},
)
globals().update({name: value for name, value in vars(_upstream).items() if name.startswith("test_")})


@pytest.mark.invariant("scikit-learn's own tests run against manyfit")
def test_the_tests_are_aimed_at_our_functions():
    for name in _NAMES:
        assert getattr(_upstream, name) is getattr(model_selection, name)
