"""scikit-learn's own tests of its searches, aimed at ours; `make test` sets SCIPY_ARRAY_API=1 for them."""

# The halving searches derive from scikit-learn's base while it is still its own.
import pytest
from sklearn.experimental import enable_halving_search_cv  # noqa: F401

from manyfit.model_selection import BaseSearchCV, GridSearchCV, RandomizedSearchCV
from tests.upstream._aim import aimed

_upstream = aimed(
    "sklearn.model_selection.tests.test_search",
    {
        "sklearn.model_selection": {"GridSearchCV": GridSearchCV, "RandomizedSearchCV": RandomizedSearchCV},
        "sklearn.model_selection._search": {"BaseSearchCV": BaseSearchCV},
    },
)
globals().update({name: value for name, value in vars(_upstream).items() if name.startswith("test_")})


@pytest.mark.invariant("scikit-learn's own tests run against manyfit")
def test_the_tests_are_aimed_at_our_classes():
    assert _upstream.GridSearchCV is GridSearchCV
    assert _upstream.RandomizedSearchCV is RandomizedSearchCV
    assert _upstream.BaseSearchCV is BaseSearchCV
