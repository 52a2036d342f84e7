"""An estimator without the wrappers around its shared steps."""

from typing import Any

from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.pipeline import FeatureUnion, Pipeline

from manyfit._compat import COLUMN_TRANSFORMER_REMAINDER
from manyfit._drop_in_classes import sklearn_class_of
from manyfit.arrays import deep_copy
from manyfit.model_selection.sharing._cached_transformer import CachedTransformer

_PLACES = (
    "steps",
    "transformer_list",
    "transformers",
    "transformers_",
    "remainder",
    COLUMN_TRANSFORMER_REMAINDER,
    "regressor",
    "regressor_",
)


def _bare(thing: Any) -> Any:
    """`thing` without wrappers. What comes from the cache belongs to all settings: it is copied."""
    if type(thing) is CachedTransformer:
        target = thing._shared_target
        return deep_copy(target) if thing._shared_settled else _bare(target)
    if sklearn_class_of(type(thing)) not in (
        Pipeline,
        FeatureUnion,
        ColumnTransformer,
        TransformedTargetRegressor,
    ):
        return thing
    state = vars(thing)
    state.update({place: _bare_place(state[place]) for place in _PLACES if place in state})
    return thing


def _bare_place(value: Any) -> Any:
    if isinstance(value, list):
        new = [_bare_place(item) for item in value]
        return value if all(a is b for a, b in zip(new, value, strict=True)) else new
    if isinstance(value, tuple) and len(value) in (2, 3):  # (name, transformer[, columns])
        bare = _bare(value[1])
        return value if bare is value[1] else (value[0], bare, *value[2:])
    return _bare(value)


def unshare(estimator: Any) -> Any:
    """Replace every wrapper in an estimator by the real transformer, fitted where the wrapper is.

    Parameters
    ----------
    estimator : estimator
        As :func:`share_prefixes` returned it, fitted or not.

    Returns
    -------
    estimator
        The same object, a genuine scikit-learn one. Transformers that were fitted for several settings are
        copied, so that each setting may change its own.
    """
    return _bare(estimator)
