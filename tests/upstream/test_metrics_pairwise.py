"""scikit-learn's own tests of distances and kernels on devices, aimed at ours."""

from manyfit import metrics
from tests.upstream._aim import aimed, exported_by, metric_names

_upstream = aimed("sklearn.metrics.tests.test_pairwise", metric_names())
# The others look at arrays on the host, where our functions are scikit-learn's own.
globals().update({name: test for name, test in exported_by(_upstream).items() if "array_api" in name})


def test_the_tests_are_aimed_at_our_functions():
    assert _upstream.pairwise_kernels is metrics.pairwise.pairwise_kernels
