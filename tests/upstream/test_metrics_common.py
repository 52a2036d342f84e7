"""scikit-learn's own tests of metrics on devices, aimed at ours."""

from manyfit import metrics
from tests.upstream._aim import aimed, metric_names

_upstream = aimed("sklearn.metrics.tests.test_common", metric_names())
# The others look at arrays on the host, where our functions are scikit-learn's own.
test_array_api_compliance = _upstream.test_array_api_compliance


def test_the_tests_are_aimed_at_our_functions():
    assert _upstream.accuracy_score is metrics.accuracy_score
    assert _upstream.rbf_kernel is metrics.pairwise.rbf_kernel
