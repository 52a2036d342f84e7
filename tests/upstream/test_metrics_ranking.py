"""scikit-learn's own tests of ranking metrics, aimed at ours."""

from manyfit import metrics
from tests.upstream._aim import aimed, exported_by, metric_names

_upstream = aimed("sklearn.metrics.tests.test_ranking", metric_names())
globals().update(exported_by(_upstream))


def test_the_tests_are_aimed_at_our_functions():
    assert _upstream.roc_auc_score is metrics.roc_auc_score
