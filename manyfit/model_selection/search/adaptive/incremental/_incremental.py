"""IncrementalSearchCV and SuccessiveHalvingSearchCV, with dask-ml's parameters and attributes."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from manyfit.introspection.object_state import keep_arguments
from manyfit.introspection.parameter_docs import complete_parameters
from manyfit.model_selection.search.adaptive.incremental._schedules import Decay, Halving, Schedule
from manyfit.model_selection.search.adaptive.incremental._training import IncrementalSearch


class IncrementalSearchCV(IncrementalSearch):
    """Search over models with `partial_fit`, which are scored as they train.

    It has the parameters and attributes of dask-ml's class of the same name, and needs no cluster. Models
    train on the same rows and are scored on the same held-out rows.

    Parameters
    ----------
    estimator : estimator
        With ``partial_fit``; or an ensemble of scikit-learn with ``warm_start``, or of XGBoost or LightGBM. A
        call then adds as many trees or iterations as its ``n_estimators`` or ``max_iter`` says.
    parameters : dict or list of dict
        Lists of values or distributions, as of `RandomizedSearchCV`.
    n_initial_parameters : int or "grid", default=10
        Settings to draw; "grid": all.
    decay_rate : float, default=0
        After so many calls, the best ``n_initial_parameters / (1 + calls) ** decay_rate`` models go on, and
        the last one ends. 0: all train to the end.
    test_size : float or int, default=None
        Share or number of rows that are held out; None: 0.2. Not together with `cv`.
    patience : int or bool, default=False
        A model stops if none of its scores of so many calls is more than `tol` above the one before them.
        True: a third of `max_iter`.
    tol : float, default=0.001
        See `patience`.
    fits_per_score : int, default=1
        Calls of ``partial_fit`` between two scores.
    max_iter : int, default=100
        The most calls of ``partial_fit`` of a model; each reads all training rows.
    random_state : int, RandomState instance or None, default=None
        Source of the settings and of the held-out rows.
    scoring : str or callable, default=None
        One metric, as in `GridSearchCV`.
    verbose : int, default=0
        Above 0, a line after each round.
    n_jobs : int, default=None
        Models that train at a time, as in `GridSearchCV`. With a current Dask client, its workers train.
    error_score : "raise" or float, default=nan
        Score of a model whose training fails, and then ends.
    cv : int, splitter or iterable, default=None
        Cross-validation in place of the one held-out part, as in `GridSearchCV`: each setting has a model for
        each split, and their mean score decides.
    checkpoint : str or path-like, default=None
        A file of scores and models. The search continues from it if it is interrupted, also in another
        process, with the same result; `random_state` has to be an integer, unless it goes through a grid with
        `cv`. The models in it are pickles, which can run any code when they are read: give no file that
        others may have written. Models that cannot be pickled are trained again from their first call.
    memory_limit : int or str, default=None
        Bytes (``"512MB"``) above which an X that lies in chunks is read in chunks; None: half of the
        machine's memory.

    Attributes
    ----------
    cv_results_ : dict of ndarray
        A row for each model: ``model_id``, ``params``, ``param_*``, ``test_score`` (the last one),
        ``rank_test_score``, ``partial_fit_calls``, and mean and standard deviation of ``partial_fit_time``
        (seconds of a call) and ``score_time``. With `cv`, ``test_score`` is the mean, and there are
        ``split<i>_test_score``, ``mean_test_score`` and ``std_test_score``.
    history_ : list of dict
        A record of each score: ``model_id``, ``params``, ``partial_fit_calls``, ``partial_fit_time``,
        ``score``, ``score_time``, ``elapsed_wall_time``; with `cv` ``split_scores``.
    model_history_ : dict of list of dict
        The same records by model.
    best_estimator_, best_score_, best_index_, best_params_
        The model whose last score is the highest, as it was trained. It is not fitted on the held-out rows.
        With `cv`, a model of its setting that makes as many calls on all rows.
    scorer_, n_splits_, multimetric_
        As in dask-ml.
    report_ : Report
        What the engine has done.

    See Also
    --------
    HyperbandSearchCV : Chooses by itself how many models train for how long.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import SGDClassifier
    >>> from manyfit.model_selection import IncrementalSearchCV
    >>> X, y = load_digits(return_X_y=True)
    >>> search = IncrementalSearchCV(
    ...     SGDClassifier(random_state=0), {"alpha": [1e-4, 1e-2, 1.0]}, "grid", max_iter=5, random_state=0
    ... )
    >>> search.fit(X, y).cv_results_["partial_fit_calls"]
    array([5, 5, 5])
    """

    def __init__(
        self,
        estimator: Any,
        parameters: Any,
        n_initial_parameters: int | str = 10,
        decay_rate: float = 0,
        test_size: float | None = None,
        patience: int | bool = False,
        tol: float | None = 0.001,
        fits_per_score: int = 1,
        max_iter: int = 100,
        random_state: Any = None,
        scoring: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        error_score: float | str = np.nan,
        cv: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        memory_limit: int | str | None = None,
    ) -> None:
        keep_arguments(self, locals())

    def _schedules(self) -> dict[str, tuple[Schedule, list[dict[str, Any]]]]:
        settings = self._draw(self.n_initial_parameters, self.random_state)
        return {"": (Decay(len(settings), self.max_iter, self.fits_per_score, self.decay_rate), settings)}


@complete_parameters(IncrementalSearchCV)
class SuccessiveHalvingSearchCV(IncrementalSearch):
    """Successive halving over models with `partial_fit`: the best of each round train on for longer.

    It has the parameters and attributes of dask-ml's class of the same name, and needs no cluster. A model
    goes on from where it was, so that the search costs no call twice.

    Parameters
    ----------
    n_initial_iter : int, default=9
        Calls of ``partial_fit`` before models are first compared.
    aggressiveness : float, default=3
        One in so many models goes on, to so many times the calls.

    Attributes
    ----------
    cv_results_, history_, model_history_, best_estimator_, ...
        As of `IncrementalSearchCV`.

    References
    ----------
    Jamieson and Talwalkar, Non-stochastic best arm identification and hyperparameter optimization, 2016.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import SGDClassifier
    >>> from manyfit.model_selection import SuccessiveHalvingSearchCV
    >>> X, y = load_digits(return_X_y=True)
    >>> search = SuccessiveHalvingSearchCV(
    ...     SGDClassifier(random_state=0), {"alpha": loguniform(1e-5, 1)}, n_initial_parameters=9,
    ...     n_initial_iter=1, random_state=0,
    ... )
    >>> sorted(search.fit(X, y).cv_results_["partial_fit_calls"].tolist())
    [1, 1, 1, 1, 1, 1, 3, 3, 9]
    """

    def __init__(
        self,
        estimator: Any,
        parameters: Any,
        n_initial_parameters: int | str = 10,
        n_initial_iter: int = 9,
        max_iter: int = 100,
        aggressiveness: float = 3,
        test_size: float | None = None,
        patience: int | bool = False,
        tol: float | None = 0.001,
        random_state: Any = None,
        scoring: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        error_score: float | str = np.nan,
        cv: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        memory_limit: int | str | None = None,
    ) -> None:
        keep_arguments(self, locals())

    def _schedules(self) -> dict[str, tuple[Schedule, list[dict[str, Any]]]]:
        settings = self._draw(self.n_initial_parameters, self.random_state)
        return {
            "": (Halving(len(settings), self.n_initial_iter, self.aggressiveness, self.max_iter), settings)
        }
