"""A hint for a parameter that the estimator of a search does not have."""

import re
from difflib import get_close_matches
from typing import Any

_UNKNOWN = re.compile(r"Invalid parameter '?(?P<name>\w+)'? for estimator")


def suggest_parameters(error: BaseException, estimator: Any) -> None:
    """Add a note to scikit-learn's error for an unknown parameter: the names that may have been meant.

    Most often the name of a step is missing, as in "C" for "logisticregression__C", or a letter is wrong.
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
    meant = [repr(name) for one in near for name in sorted(names[one])]
    if meant:
        more = f" (and {len(meant) - 4} others)" if len(meant) > 4 else ""
        error.add_note(f"Did you mean {' or '.join(meant[:4])}{more}?")
