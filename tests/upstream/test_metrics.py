"""scikit-learn's own tests of metrics, distances and scorers, aimed at ours."""

from __future__ import annotations

import pytest
import sklearn.metrics.cluster

from tests.upstream._aim import aimed, exported_by, metric_names

# Test modules, each with how the tests are named that run here, and with names that they have from us. Of
# some modules only the tests on devices run: the others look at arrays on the host, where our functions are
# scikit-learn's own.
MODULES = {
    "sklearn.metrics.tests.test_classification": ("", ["accuracy_score"]),
    "sklearn.metrics.tests.test_ranking": ("", ["roc_auc_score"]),
    "sklearn.metrics.tests.test_regression": ("", ["r2_score"]),
    "sklearn.metrics.tests.test_score_objects": ("", ["get_scorer", "check_scoring"]),
    "sklearn.metrics.tests.test_common": ("test_array_api_compliance", ["accuracy_score", "rbf_kernel"]),
    "sklearn.metrics.tests.test_pairwise": ("array_api", ["pairwise_kernels"]),
    "sklearn.metrics.cluster.tests.test_common": ("array_api", ["calinski_harabasz_score"]),
}
_names = metric_names()
_names["sklearn.metrics.cluster"] = {
    name: metric
    for name, metric in _names["sklearn.metrics"].items()
    if hasattr(sklearn.metrics.cluster, name)
}
_upstream = {module: aimed(module, _names) for module in MODULES}
for _module, (_part, _) in MODULES.items():
    # Modules have tests of the same name.
    _area = _module.removeprefix("sklearn.metrics.").replace("tests.test_", "").replace(".", "_")
    for _name, _test in exported_by(_upstream[_module]).items():
        if not _name.startswith("test_"):
            assert globals().setdefault(_name, _test) is _test
        elif _part in _name:
            globals()[_name.replace("test_", f"test_{_area}_", 1)] = _test


@pytest.mark.parametrize("module", MODULES)
def test_the_tests_are_aimed_at_our_functions(module):
    ours = {**_names["sklearn.metrics.pairwise"], **_names["sklearn.metrics"]}
    for name in MODULES[module][1]:
        assert vars(_upstream[module])[name] is ours[name]
