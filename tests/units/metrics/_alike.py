"""What a function of scikit-learn does on the host, beside what ours of the same name does on a device."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
import sklearn.metrics
from sklearn.metrics.cluster import pair_confusion_matrix

from manyfit import metrics
from manyfit.arrays import is_array
from tests.behaviour.metrics._crossings import DEVICE, crossings, here, there

# Dtypes are those of this scikit-learn and later ones: older ones have others for some counts and thresholds.
OWN_DTYPES = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)


@dataclass(frozen=True)
class Raised:
    """An error."""

    kind: type
    says: str


def outcome(call: Any, *args: Any, **kwargs: Any) -> tuple[Any, set[tuple[str, str]]]:
    """What a call returns, or `Raised`, and what it warns of; not what NumPy divides by."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call(*args, **kwargs)
        except Exception as error:
            return Raised(type(error), str(error)), set()
    return result, {
        (w.category.__name__, str(w.message)) for w in caught if not issubclass(w.category, RuntimeWarning)
    }


def theirs(name: str) -> Any:
    return pair_confusion_matrix if name == "pair_confusion_matrix" else getattr(sklearn.metrics, name)


def check(
    name: str,
    y: Any,
    predicted: Any,
    *,
    texts: bool = False,
    tol: float = 1e-12,
    dtypes: bool = OWN_DTYPES,
    **options: Any,
) -> tuple[Any, Counter[str]]:
    """Assert that the two do the same, results of ours lying on the device; scikit-learn's, and what crossed.

    Parameters
    ----------
    name : str
        Of the function.
    y, predicted : array
        Its first arguments, on the host; `y` stays there if these are `texts`.
    texts : bool
        See `y`.
    tol : float
        Absolute and relative.
    dtypes : bool
        Whether dtypes are equal too.
    **options : dict
        Its other arguments; weights go to the device.
    """
    expected, said = outcome(theirs(name), y, predicted, **options)
    ours = {k: there(v) if k == "sample_weight" and v is not None else v for k, v in options.items()}
    y_there, p_there = y if texts else there(y), there(predicted)
    with crossings() as crossed:
        found, our_said = outcome(getattr(metrics, name), y_there, p_there, **ours)
    assert our_said == said
    assert_same(at_home(found), expected, tol, dtypes)
    return expected, crossed


def at_home(result: Any) -> Any:
    """A result from the device, every array of which has to lie there."""
    if isinstance(result, tuple):
        return tuple(at_home(one) for one in result)
    if is_array(result):
        assert result.device == DEVICE
        return here(result)
    assert result is None or isinstance(result, str | dict | Raised), "a number of the host"
    return result


def assert_same(found: Any, expected: Any, tol: float, dtypes: bool) -> None:
    if isinstance(expected, str | Raised) or expected is None:
        assert _words(found) == _words(expected)
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            assert_same(found[key], value, tol, dtypes)
    elif isinstance(expected, tuple):
        assert isinstance(found, tuple) and len(found) == len(expected), found
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other, tol, dtypes)
    else:
        assert np.shape(found) == np.shape(expected)
        np.testing.assert_allclose(found, expected, rtol=tol, atol=tol)
        assert not dtypes or np.asarray(found).dtype == np.asarray(expected).dtype


def _words(text: Any) -> Any:
    """A text with the numbers in it rounded: reports print sums of weights with all of their digits."""
    if not isinstance(text, str):
        return text
    words = re.split(r"(\s+)", text)
    return [f"{float(w):.9g}" if re.fullmatch(r"-?[0-9]+\.[0-9]{9,}", w) else w for w in words]
