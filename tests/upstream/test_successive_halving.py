"""scikit-learn's own tests of its halving searches, with our base class in place of scikit-learn's."""

import pytest
from sklearn.experimental import enable_halving_search_cv  # noqa: F401

from manyfit.model_selection import BaseSearchCV
from tests.upstream._aim import aimed, copied

_halving = copied(
    "sklearn.model_selection._search_successive_halving",
    "sklearn.model_selection._halving_on_our_base",
    {"sklearn.model_selection._search": {"BaseSearchCV": BaseSearchCV}},
)
_SEARCHES = {name: getattr(_halving, name) for name in ("HalvingGridSearchCV", "HalvingRandomSearchCV")}
_upstream = aimed(
    "sklearn.model_selection.tests.test_successive_halving", {"sklearn.model_selection": _SEARCHES}
)
globals().update({name: value for name, value in vars(_upstream).items() if name.startswith("test_")})


@pytest.mark.invariant("scikit-learn's own tests run against manyfit")
def test_the_tests_are_aimed_at_searches_on_our_base():
    for name, search in _SEARCHES.items():
        assert getattr(_upstream, name) is search
        assert issubclass(search, BaseSearchCV)
