"""`explain`: what manyfit would share of a search, before anything is fitted."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from manyfit.installation._searches import base_of, reason_not_to_serve, shadow_of
from manyfit.installation._settings import Settings
from manyfit.model_selection import Plan
from manyfit.model_selection.search import SharedSearch

_DRAWING = frozenset({"cv", "random_state"})


def explain(search: Any, X: Any, y: Any = None, **params: Any) -> Plan:
    """Say what manyfit shares of a search of scikit-learn's or of its own, without fitting anything.

    Parameters
    ----------
    search : estimator
        A `GridSearchCV`, `RandomizedSearchCV` or halving search of scikit-learn, or a search of manyfit that
        has a plan. It stays as it is.
    X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
        The data that ``search.fit`` would get.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
        The targets that it would get.
    **params : dict
        Other arguments of ``search.fit``, such as ``groups``.

    Returns
    -------
    Plan
        It prints as a verdict, advice, and a tree of what is shared and why no more.

    Raises
    ------
    TypeError
        If `search` is no search that manyfit can run, with the reason; or if its `cv` is an iterator.

    See Also
    --------
    install : Lets scikit-learn's searches run so.
    manyfit.model_selection.GridSearchCV.plan : The same of a search of manyfit.

    Examples
    --------
    >>> import manyfit
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import GridSearchCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0, 10.0]})
    >>> print(manyfit.explain(search, X, y).verdict)
    Shared work answers all 15 fits.
    """
    if isinstance(search, SharedSearch):
        return search.plan(X, y, **params)
    base = base_of(search)
    if base is None:
        got = f"the class {search.__name__}" if isinstance(search, type) else f"a {type(search).__name__}"
        raise TypeError(
            "explain takes a grid, randomized or halving search of scikit-learn, or a search of manyfit that "
            f"has a plan, got {got}. Pass the search itself, not its estimator."
        )
    own_fit = type(search).fit is not base.fit or "fit" in vars(search)
    why = "its class overrides fit" if own_fit else reason_not_to_serve(search, (X, y, *params.values()))
    if why is not None:
        raise TypeError(f"manyfit does not run this search: {why}.")
    if isinstance(search.cv, Iterator):
        raise TypeError(
            f"explain would use up the splits of {type(search).__name__}, whose cv is an iterator: give a "
            "list of them."
        )
    shadow = shadow_of(search, base, Settings())
    # Drawing splits and settings moves random states on.
    vars(shadow).update(copy.deepcopy({name: vars(search)[name] for name in _DRAWING & vars(search).keys()}))
    plan: Plan = shadow.plan(X, y, **params)
    return plan
