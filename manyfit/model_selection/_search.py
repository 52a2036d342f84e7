"""GridSearchCV and RandomizedSearchCV: scikit-learn's searches on manyfit's engine."""

import os
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn import model_selection

from manyfit._compat import BaseSearchCV as SklearnBaseSearchCV
from manyfit._compat import parameter_constraints
from manyfit.model_selection.job._job import Sharing
from manyfit.model_selection.search._base import SharedSearch
from manyfit.model_selection.search._device_predict import accept_device_data


@accept_device_data
class BaseSearchCV(SharedSearch, SklearnBaseSearchCV):
    """Base of searches that choose their settings themselves, as scikit-learn's of the same name.

    A subclass writes ``_run_search(evaluate_candidates)`` and may call it several times.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **parameter_constraints(SklearnBaseSearchCV),
        **SharedSearch._parameter_constraints,
    }
    # scikit-learn's constructor has no ``sharing`` and its kin; a subclass that wants them adds them.
    sharing: Sharing = "auto"
    verify = 0
    memory_limit = None
    client = None
    checkpoint = None


@accept_device_data
class GridSearchCV(SharedSearch, model_selection.GridSearchCV):
    """Exhaustive search over a parameter grid, with the work that its fits have in common done once.

    A drop-in for `sklearn.model_selection.GridSearchCV` (1.7 to 1.9), with the same parameters, attributes,
    errors and numbers. Its own are `sharing`, `verify`, `memory_limit`, `checkpoint`,
    `plan`, `report_` and `partial_results_`.

    Parameters
    ----------
    estimator : estimator
        As in scikit-learn.
    param_grid : dict or list of dict
        As in scikit-learn.
    scoring : str, callable, list, tuple or dict, default=None
        As in scikit-learn. Scorers that read the fitted estimator itself are not shared.
    n_jobs : int, default=None
        Workers, as in scikit-learn. Moments are summed in this process whatever it is.
    refit : bool, str or callable, default=True
        As in scikit-learn; made by scikit-learn on all rows, and not counted in `report_`.
    cv : int, splitter or iterable, default=None
        As in scikit-learn; the splits are drawn once.
    verbose : int, default=0
        0 shows a progress bar in an interactive session only; 1 always; above 1 scikit-learn's lines
        take its place.
    pre_dispatch : int or str, default="2*n_jobs"
        Tasks handed out ahead of the workers, as in scikit-learn.
    error_score : "raise" or float, default=nan
        Score of a fit that fails, as in scikit-learn.
    return_train_score : bool, default=False
        As in scikit-learn. Moments give these scores without another pass over X.
    sharing : {"auto", "exact", "optimum", "none"}, default="auto"
        How far settings share their work. "auto" shares fits that iterate only where scikit-learn's own
        solver would meet its ``tol`` before ``max_iter``, and where that is expected to be twice as fast; the
        refit is a check of that, which ``refit=False`` leaves out. If it stops at ``max_iter``, scikit-learn
        makes the fits that were shared with the best setting's, and the best is chosen again.
        "optimum" answers them with the optimum everywhere. "exact" leaves them out. "none" fits every
        setting on its own.
    verify : int, default=0
        So many random pairs of a setting and a split are fitted again by scikit-learn's own function; the
        report lists both scores.
    memory_limit : int or str, default=None
        Bytes, such as ``"512MB"``, that moments may take, and in each worker the outputs of shared steps on
        one fold; folds that are kept get a quarter of it. None: 1 GiB. Other texts raise ValueError in `fit`.
    client : distributed.Client, None or False, default=None
        The Dask cluster whose workers do the fits, all but the refit; `n_jobs` does not count there. None:
        that of the current client, if there is one. False: none. Within a task of a cluster the work is done
        where it is. A pickled search has none; a clone has the same one.
    checkpoint : str or path-like, default=None
        A file that finished scores are written to as they come. A search that was interrupted goes on there,
        in another process too, if it is the same in all that its results depend on; the refit is made again.
        Another search is refused with ValueError in `fit`, before anything is fitted, with what differs; so
        is a search that draws anything without an integer ``random_state``. See Notes.

    Attributes
    ----------
    report_ : Report
        What was really done.
    cv_results_, best_estimator_, ...
        As in scikit-learn. The time of a shared fit is split evenly over the settings that it served.
    partial_results_ : list of dict
        Only after a `fit` that was interrupted, or raised: for each setting and split that was finished,
        ``params``, ``split``, ``test_scores`` (a float, or a dict by scorer), with ``return_train_score``
        ``train_scores``, ``fit_time``, ``score_time`` and ``fit_error`` (None, or why the fit failed).

    See Also
    --------
    plan : What will be shared, before anything is fitted.

    Notes
    -----
    A checkpoint is a small SQLite file of one search; several threads or processes may run that search on it
    at once. What a search depends on is compared by content: estimator, settings with their types, X, y,
    parameters of fits and scores, splits, scorers, `error_score`, `return_train_score`, `sharing`,
    scikit-learn's configuration, and the versions of manyfit, scikit-learn, NumPy, SciPy and Python. How it
    is run (`n_jobs`, `client`, `memory_limit`, `verbose`, `refit`) may change. Functions and classes of your
    own count with their code, those of a script or notebook also with the values of the global names that
    they read; what an imported one calls in other modules does not count.

    Fits made one by one are restored one by one. What is answered together (all groups shared through
    moments; a group of shared iterations; a group behind steps on one split) is restored where all of it is
    there, and otherwise run again as a whole. Where the refit shows that scikit-learn has to make shared fits
    (see `sharing`), its scores take the place of the shared ones. Scores are stored as they are, to the last
    bit. Warnings of single fits are not stored; scikit-learn's summary of failed fits is given again.
    Callbacks hear of the fits that are made. The file stays when the search has ended: then nothing but the
    refit is left to do.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from manyfit.model_selection import GridSearchCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0, 10.0]}).fit(X, y)
    >>> search.best_params_
    {'alpha': 0.1}
    >>> search.report_.fits_requested, search.report_.fits_done
    (15, 0)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **parameter_constraints(model_selection.GridSearchCV),
        **SharedSearch._parameter_constraints,
    }

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: bool | str | Callable[..., int] = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        error_score: float | str = np.nan,
        return_train_score: bool = False,
        sharing: Sharing = "auto",
        verify: int = 0,
        memory_limit: int | str | None = None,
        client: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(
            estimator, param_grid, scoring=scoring, n_jobs=n_jobs, refit=refit, cv=cv, verbose=verbose,
            pre_dispatch=pre_dispatch, error_score=error_score, return_train_score=return_train_score,
        )  # fmt: skip
        self.sharing = sharing
        self.verify = verify
        self.memory_limit = memory_limit
        self.client = client
        self.checkpoint = checkpoint


@accept_device_data
class RandomizedSearchCV(SharedSearch, model_selection.RandomizedSearchCV):
    """Search over settings drawn from distributions, with the work that its fits have in common done once.

    A drop-in for `sklearn.model_selection.RandomizedSearchCV` (1.7 to 1.9), with the same parameters,
    attributes, errors and numbers. What it has of its own is that of `GridSearchCV`.

    Parameters
    ----------
    estimator : estimator
        As in scikit-learn.
    param_distributions : dict or list of dict
        As in scikit-learn.
    n_iter : int, default=10
        Settings to draw.
    scoring : str, callable, list, tuple or dict, default=None
        As in `GridSearchCV`.
    n_jobs : int, default=None
        As in `GridSearchCV`.
    refit : bool, str or callable, default=True
        As in `GridSearchCV`.
    cv : int, splitter or iterable, default=None
        As in `GridSearchCV`.
    verbose : int, default=0
        As in `GridSearchCV`.
    pre_dispatch : int or str, default="2*n_jobs"
        As in `GridSearchCV`.
    random_state : int, RandomState instance or None, default=None
        Source of the settings, as in scikit-learn; the same one draws the same settings.
    error_score : "raise" or float, default=nan
        As in `GridSearchCV`.
    return_train_score : bool, default=False
        As in `GridSearchCV`.
    sharing : {"auto", "exact", "optimum", "none"}, default="auto"
        As in `GridSearchCV`.
    verify : int, default=0
        As in `GridSearchCV`.
    memory_limit : int or str, default=None
        As in `GridSearchCV`.
    client : distributed.Client, None or False, default=None
        As in `GridSearchCV`.
    checkpoint : str or path-like, default=None
        As in `GridSearchCV`; `random_state` has to be an integer.

    Attributes
    ----------
    report_ : Report
        What was really done.
    cv_results_, best_estimator_, ...
        As in scikit-learn.

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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **parameter_constraints(model_selection.RandomizedSearchCV),
        **SharedSearch._parameter_constraints,
    }

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
    ) -> None:
        super().__init__(
            estimator, param_distributions, n_iter=n_iter, scoring=scoring, n_jobs=n_jobs, refit=refit,
            cv=cv, verbose=verbose, pre_dispatch=pre_dispatch, random_state=random_state,
            error_score=error_score, return_train_score=return_train_score,
        )  # fmt: skip
        self.sharing = sharing
        self.verify = verify
        self.memory_limit = memory_limit
        self.client = client
        self.checkpoint = checkpoint
