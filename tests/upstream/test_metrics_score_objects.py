"""scikit-learn's own tests of scorers, aimed at ours."""

from manyfit import metrics
from tests.upstream._aim import aimed, exported_by, metric_names

_upstream = aimed("sklearn.metrics.tests.test_score_objects", metric_names())
globals().update(exported_by(_upstream))


def test_the_tests_are_aimed_at_our_functions():
    assert _upstream.get_scorer is metrics.get_scorer
    assert _upstream.check_scoring is metrics.check_scoring
