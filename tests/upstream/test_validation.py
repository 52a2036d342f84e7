"""scikit-learn's own tests of cross_validate and its kin, aimed at ours."""

import pytest
import sklearn.model_selection

from manyfit import model_selection
from tests.upstream._aim import aimed

_NAMES = ("cross_validate", "cross_val_score", "cross_val_predict", "validation_curve", "learning_curve")
_upstream = aimed(
    "sklearn.model_selection.tests.test_validation",
    {"sklearn.model_selection": {name: getattr(model_selection, name) for name in _NAMES}},
)
# Those of permutation_test_score, which is scikit-learn's own, would run nothing of ours.
globals().update(
    {
        name: value
        for name, value in vars(_upstream).items()
        if name.startswith("test_") and not name.startswith("test_permutation_")
    }
)


@pytest.mark.invariant("scikit-learn's own tests run against manyfit")
def test_the_tests_are_aimed_at_our_functions():
    for name in _NAMES:
        assert getattr(_upstream, name) is getattr(model_selection, name)


def test_what_is_left_out_is_not_ours():
    assert model_selection.permutation_test_score is sklearn.model_selection.permutation_test_score
    assert all(
        "permutation_test_score" in value.__code__.co_names
        for name, value in vars(_upstream).items()
        if name.startswith("test_permutation_")
    )
