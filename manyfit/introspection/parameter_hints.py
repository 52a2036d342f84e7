"""Hints for a parameter that the estimator of a search does not have, and for a metric of another name."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from sklearn.metrics import get_scorer_names

_UNKNOWN = re.compile(r"Invalid parameter '?(?P<name>\w+)'? for estimator")


# Names that people use for metrics, and scikit-learn's.
_METRICS = {
    "mse": "neg_mean_squared_error",
    "rmse": "neg_root_mean_squared_error",
    "mae": "neg_mean_absolute_error",
    "auc": "roc_auc",
    "logloss": "neg_log_loss",
}


def suggest_metric(error: BaseException, scoring: Any) -> None:
    """Add a note to scikit-learn's error for an unknown metric: the name that may have been meant."""
    known = get_scorer_names()
    if not isinstance(scoring, str) or scoring in known:
        return
    asked = scoring.lower().replace(" ", "_").replace("-", "_")
    found = [name for name in (asked, f"neg_{asked}", _METRICS.get(asked)) if name in known]
    found = found or get_close_matches(asked, known, n=1)
    if found:
        error.add_note(f"scoring={scoring!r}: did you mean {' or '.join(map(repr, found))}?")


def suggest_parameters(error: BaseException, estimator: Any, asked_for: Iterable[str] = ()) -> None:
    """Add a note to scikit-learn's error for an unknown parameter: the names that may have been meant.

    Most often the name of a step is missing, as in "C" for "logisticregression__C", an underscore is missing,
    or a letter is wrong.
    `asked_for`: the names of the search's parameters, since the error has only the first part of a name.
    """
    found = _UNKNOWN.match(str(error)) if isinstance(error, ValueError) else None
    if found is None or not hasattr(estimator, "get_params"):
        return
    names: dict[str, list[str]] = {}
    for name in estimator.get_params():
        names.setdefault(name.rpartition("__")[2], []).append(name)
    asked = found["name"]
    near = [asked] if asked in names else get_close_matches(asked, names, n=2)
    near = near or [name for name in names if name.lower() == asked.lower()]
    asked_for = [asked, *(one for one in asked_for if one.startswith(f"{asked}__"))]
    ends = [one.removeprefix(asked) for one in asked_for[1:]]
    known = {one for ones in names.values() for one in ones}
    joined = {one.replace("_", "") for one in asked_for}  # one underscore for two
    meant = sorted(one for one in known if "__" in one and one.replace("_", "") in joined)
    meant = meant or [name for one in near for name in sorted(names[one])]
    meant = [repr(next((name + end for end in ends if name + end in known), name)) for name in meant]
    meant = list(dict.fromkeys(meant))
    if meant:
        more = f" (and {len(meant) - 4} others)" if len(meant) > 4 else ""
        error.add_note(f"Did you mean {' or '.join(meant[:4])}{more}?")
