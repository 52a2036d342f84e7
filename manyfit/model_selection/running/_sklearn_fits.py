"""Individual fits in a process of joblib, which imports for them what scikit-learn's search would import."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from sklearn.base import clone

from manyfit._config import config_context
from manyfit.model_selection.sharing._fit_overhead import keep_signatures, skip_parameter_checks

Results = tuple[int, list[dict[str, Any]], float]
"""The number of a bundle, the result of each of its fits, and the seconds that they took together."""


def make_fits(
    number: int,
    function: Callable[..., dict[str, Any]],
    data: tuple[Any, Any, Any],
    common: Mapping[str, Any],
    fits: Sequence[Mapping[str, Any]],
    checked: Sequence[bool],
    host_fallback: str,
    fits_within: Callable[[], AbstractContextManager[Any]],
) -> Results:
    """Make a bundle of fits by scikit-learn's `function` for a fit and its scores.

    `data` are the estimator, X and y, and `common` the arguments that all fits have in common. `checked`
    says of which fits another one has checked the parameters. The last two are of `Options`.
    """
    estimator, X, y = data
    start, results = time.perf_counter(), []
    keep_signatures([estimator, *(value for fit in fits for value in (fit["parameters"] or {}).values())])
    with config_context(host_fallback=host_fallback), fits_within():
        for fit, skip in zip(fits, checked, strict=True):
            with skip_parameter_checks(skip):
                results.append(function(clone(estimator), X, y, **common, **fit))
    return number, results, time.perf_counter() - start
