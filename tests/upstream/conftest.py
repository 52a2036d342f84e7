"""Fixtures that scikit-learn's conftest gives its tests, and which of its cases `make test` runs."""

from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# Of its own searches by halving on our base class, which runs nothing else of ours, one test is enough, and
# of its tests of ours one case, or two if there are no more.
HALVING, ON_OUR_BASE = "test_successive_halving.py", "test_cv_results_on_our_base"
# Of tests of many cases every fourth.
MANY = 12
# Each takes as long as a hundred others, and asks nothing that they do not.
DEAR = {
    "test_classification_classification_metric_division_by_zero_nan_validation",
    "test_cross_val_predict_class_subset",
    "test_cross_val_predict_with_method",
    "test_gridsearchcv_cross_val_predict_with_method",
    "test_permutation_test_score_allow_nans",
    "test_permutation_score",  # tests/behaviour/validation/test_permutations.py has its scores
    "test_permutation_test_score_pandas",
    "test_random_search_cv_results_multimetric",
    "test_search_with_2d_array",
}
# Cases that make a hundred permutations, or fits of many sizes, of what the other functions are asked too.
DEAR_CASES = dict.fromkeys(
    ("test_cross_validate_params_none", "test_validation_functions_routing"),
    ("learning_curve", "permutation_test_score"),
)
# Of a sparse matrix and a sparse array of one format the array is enough.
MATRICES = ("coo_matrix", "csr_matrix")


@pytest.fixture
def global_random_seed() -> int:
    """The seed that scikit-learn's suite runs with by default."""
    return 42


@pytest.hookimpl(tryfirst=True)  # before -m
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is for array libraries that are not installed: scikit-learn would skip each case."""
    cases = [item for item in items if item.path.parent == HERE and hasattr(item, "callspec")]
    absent = {id(item) for item in cases if not _is_installed(item.callspec.params.get("array_namespace"))}
    config.hook.pytest_deselected(items=[item for item in items if id(item) in absent])
    items[:] = [item for item in items if id(item) not in absent]
    tests: dict[tuple[str, str], list[pytest.Item]] = {}
    for item in items:
        if item.path.parent == HERE:
            tests.setdefault((item.path.name, item.originalname), []).append(item)
    for (file, name), found in tests.items():
        for item in set(found) - set(_chosen(file, name, found)):
            item.add_marker(pytest.mark.thorough)


def _chosen(file: str, name: str, cases: list[pytest.Item]) -> list[pytest.Item]:
    """The cases of a test that `make test` runs."""
    if name in DEAR or (name.endswith("_on_our_base") and name != ON_OUR_BASE):
        return []
    if file == HALVING:
        return cases if len(cases) == 2 else cases[-1:]
    others = (*MATRICES, *DEAR_CASES.get(name, ()))
    cases = [case for case in cases if not any(one in _id(case) for one in others)]
    return cases[::4] if len(cases) >= MANY else cases


def _id(case: pytest.Item) -> str:
    return str(case.callspec.id) if hasattr(case, "callspec") else ""


def _is_installed(library: object) -> bool:
    return not isinstance(library, str) or find_spec(library) is not None
