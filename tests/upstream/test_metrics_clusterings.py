"""scikit-learn's own tests of scores of clusterings on devices, aimed at ours."""

import sklearn.metrics.cluster

from manyfit import metrics
from tests.upstream._aim import aimed, exported_by, metric_names

_names = metric_names()
_names["sklearn.metrics.cluster"] = {
    name: metric
    for name, metric in _names["sklearn.metrics"].items()
    if hasattr(sklearn.metrics.cluster, name)
}
_upstream = aimed("sklearn.metrics.cluster.tests.test_common", _names)
# The others look at arrays on the host, where our functions are scikit-learn's own.
globals().update({name: test for name, test in exported_by(_upstream).items() if "array_api" in name})


def test_the_tests_are_aimed_at_our_functions():
    assert _upstream.calinski_harabasz_score is metrics.calinski_harabasz_score
