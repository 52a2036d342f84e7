"""scikit-learn's own tests of its halving searches, with ours in place of scikit-learn's."""

import pytest
from sklearn.experimental import enable_halving_search_cv  # noqa: F401

from manyfit.model_selection import BaseSearchCV, HalvingGridSearchCV, HalvingRandomSearchCV
from tests.upstream._aim import aimed, copied

# scikit-learn's own classes on our base class, as a user's search would be.
_copied = copied(
    "sklearn.model_selection._search_successive_halving",
    "sklearn.model_selection._halving_on_our_base",
    {"sklearn.model_selection._search": {"BaseSearchCV": BaseSearchCV}},
)
_SEARCHES = {name: getattr(_copied, name) for name in ("HalvingGridSearchCV", "HalvingRandomSearchCV")}
_OURS = {"HalvingGridSearchCV": HalvingGridSearchCV, "HalvingRandomSearchCV": HalvingRandomSearchCV}
_NAME = "sklearn.model_selection.tests.test_successive_halving"
_on_our_base = aimed(_NAME, {"sklearn.model_selection": _SEARCHES})
globals().update({f"{k}_on_our_base": v for k, v in vars(_on_our_base).items() if k.startswith("test_")})
_upstream = aimed(_NAME, {"sklearn.model_selection": _OURS})
globals().update({name: value for name, value in vars(_upstream).items() if name.startswith("test_")})


@pytest.mark.invariant("scikit-learn's own tests run against manyfit")
def test_the_tests_are_aimed_at_our_searches():
    for module, searches in ((_on_our_base, _SEARCHES), (_upstream, _OURS)):
        for name, search in searches.items():
            assert getattr(module, name) is search
    assert all(issubclass(search, BaseSearchCV) for search in _SEARCHES.values())
