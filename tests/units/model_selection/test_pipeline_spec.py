"""Settings of pipelines are read as chains of steps."""

from __future__ import annotations

import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from manyfit.folds import Unsupported
from manyfit.model_selection.planning._pipeline_spec import PipelineReader, value_key


def chain(estimator, **params):
    return PipelineReader(estimator).read(params)


def test_a_pipeline_is_read_flat():
    pipe = make_pipeline(StandardScaler(), "passthrough", make_pipeline(MinMaxScaler(), None, Ridge(alpha=3)))
    read = chain(pipe, pipeline__ridge__alpha=5, standardscaler__with_mean=False)
    assert [step.cls for step in read.steps] == [StandardScaler, MinMaxScaler]
    assert read.final.cls is Ridge and read.final.params["alpha"] == 5
    assert read.final.path == "pipeline__ridge"
    assert read.steps[0].params["with_mean"] is False
    assert pipe.steps[0][1].with_mean is True  # the user's own is as it was


def test_an_estimator_as_a_value_changes_the_chain():
    pipe = Pipeline([("a", StandardScaler()), ("b", Ridge())])
    value = Ridge(alpha=7)
    read = chain(pipe, b=value, b__alpha=9, a="passthrough")
    assert not read.steps and read.final.params["alpha"] == 9
    assert value.alpha == 7


@pytest.mark.parametrize(
    ("estimator", "params", "message"),
    [
        (Pipeline([("a", StandardScaler())]), {"a": "passthrough"}, "the last step is 'passthrough'"),
        (Pipeline([("a", StandardScaler()), ("b", Ridge())], verbose=True), {}, "the pipeline is verbose"),
    ],
)
def test_what_is_no_chain_is_named(estimator, params, message):
    with pytest.raises(Unsupported, match=message):
        chain(estimator, **params)


def test_an_unknown_parameter_is_sklearns_error():
    with pytest.raises(ValueError, match="Invalid parameter 'beta'"):
        chain(Ridge(), beta=1)


def test_values_that_compare_equal_keep_their_types_apart():
    keys = [value_key(v) for v in (1, 1.0, True, "1")]
    assert len(set(keys)) == 4
    assert value_key(0.1) == value_key(0.1)
    assert value_key(Ridge(alpha=1)) == value_key(Ridge(alpha=1)) != value_key(Ridge(alpha=1.0))
    assert value_key(lambda x: x) != value_key(lambda x: x + 1)
