"""scikit-learn's own tests of scorers, aimed at ours."""

from manyfit import metrics
from tests.upstream._aim import aimed, exported_by, metric_names

_upstream = aimed("sklearn.metrics.tests.test_score_objects", metric_names())
globals().update(exported_by(_upstream))

# It looks for scikit-learn's name in the module of a function that is given in place of a scorer.
del globals()["test_scoring_is_not_metric"]


def test_the_tests_are_aimed_at_our_functions():
    assert _upstream.get_scorer is metrics.get_scorer
