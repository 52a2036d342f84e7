"""The same search on a device and on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.behaviour.iterations._optimum import Optimum
from tests.behaviour.metrics._crossings import there


def alike(found: Any, expected: Any, rtol: float = 1e-9) -> None:
    """Two searches have the same scores."""
    for key, wanted in expected.cv_results_.items():
        if "score" in key and "time" not in key and "rank" not in key:
            np.testing.assert_allclose(found.cv_results_[key], wanted, rtol=rtol, atol=rtol, err_msg=key)


def on_both(
    model: Any,
    grid: Any,
    X: Any,
    y: Any,
    *,
    place: Any = there,
    place_y: Any = None,
    params: dict[str, Any] | None = None,
    rtol: float = 1e-9,
    **options: Any,
) -> tuple[Any, Any]:
    """Searches without a refit on a device and on the host, which have the same scores.

    Parameters
    ----------
    place, place_y : callable
        Brings X, or y, to the device; y goes where X goes, unless it has texts.
    params : dict
        Of the fits.
    rtol : float
        Relative and absolute.
    **options : dict
        Of the searches.
    """
    searches = [Optimum(model, grid, **{"refit": False, **options}) for _ in range(2)]
    place_y = place_y or (place if y.dtype.kind != "U" else np.asarray)
    searches[0].fit(place(X), place_y(y), **(params or {}))
    searches[1].fit(X, y, **(params or {}))
    alike(*searches, rtol)
    return searches[0], searches[1]
