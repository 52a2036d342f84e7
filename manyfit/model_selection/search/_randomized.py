"""RandomizedSearchCV: scikit-learn's search over drawn settings on manyfit's engine."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import model_selection

from manyfit.introspection.object_state import keep_arguments
from manyfit.introspection.parameter_docs import complete_parameters
from manyfit.model_selection._search import GridSearchCV
from manyfit.model_selection.job._option_values import EarlyStopping, Engine, Sharing
from manyfit.model_selection.search._base import SharedSearch, accept_device_data

__all__ = ["RandomizedSearchCV"]


@complete_parameters(GridSearchCV)
@accept_device_data
class RandomizedSearchCV(SharedSearch, model_selection.RandomizedSearchCV):
    """Search over settings drawn from distributions that does the common work of its fits only once.

    A drop-in for `sklearn.model_selection.RandomizedSearchCV` (1.7 to 1.9), with the same parameters,
    attributes, errors and numbers. It adds what `GridSearchCV` adds.

    Parameters
    ----------
    param_distributions : dict or list of dict
        Names of parameters with a list of values, or with a distribution that has ``rvs``, such as those of
        `scipy.stats`. Of a list of such dicts, one is drawn for each setting.
    n_iter : int, default=10
        Settings to draw.
    random_state : int, RandomState instance or None, default=None
        Source of the settings, as in scikit-learn; the same one draws the same settings.
    checkpoint : str or path-like, default=None
        As in `GridSearchCV`; `random_state` has to be an integer.
    sample : int, float or None, default=None
        As in `GridSearchCV`; drawn by `random_state`, too.

    Attributes
    ----------
    report_ : Report
        What the search has done: fits, passes over the data, transfers and seconds.
    cv_results_, best_params_, best_estimator_, ...
        As of `GridSearchCV`.

    Notes
    -----
    Those of `GridSearchCV` hold here, too.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from manyfit.model_selection import RandomizedSearchCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = RandomizedSearchCV(Ridge(), {"alpha": loguniform(1e-2, 1e2)}, n_iter=20, random_state=0)
    >>> search.fit(X, y).report_.fits_done
    0
    """

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_iter: int = 10,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: bool | str | Callable[..., int] = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        random_state: Any = None,
        error_score: float | str = np.nan,
        return_train_score: bool = False,
        sharing: Sharing = "auto",
        verify: int = 0,
        memory_limit: int | str | None = None,
        client: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        early_stopping: EarlyStopping = None,
        engine: Engine = None,
        time_budget: float | None = None,
        race: str | float | None = None,
        fit_timeout: float | None = None,
        return_predictions: bool | str | tuple[str, str] = False,
        sample: float | None = None,
    ) -> None:
        keep_arguments(self, locals())
