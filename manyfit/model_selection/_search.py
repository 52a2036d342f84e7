"""GridSearchCV, and the base of other searches: scikit-learn's searches on manyfit's engine."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import model_selection

from manyfit._compat import BaseSearchCV as SklearnBaseSearchCV
from manyfit.introspection.object_state import keep_arguments
from manyfit.model_selection.job._option_values import EarlyStopping, Engine, Sharing
from manyfit.model_selection.search._base import SharedSearch, accept_device_data

__all__ = ["BaseSearchCV", "GridSearchCV"]


@accept_device_data
class BaseSearchCV(SharedSearch, SklearnBaseSearchCV):
    """Base class for searches that choose their settings by a method of their own, as in scikit-learn.

    A subclass writes ``_run_search(evaluate_candidates)`` and may call it several times.
    """


@accept_device_data
class GridSearchCV(SharedSearch, model_selection.GridSearchCV):
    """Exhaustive search over a parameter grid that does the common work of its fits only once.

    A drop-in for `sklearn.model_selection.GridSearchCV` (1.7 to 1.9), with the same parameters, attributes,
    errors and numbers. It adds `sharing`, `verify`, `memory_limit`, `client`, `checkpoint`, `early_stopping`,
    `engine`, `time_budget`, `race`, `fit_timeout`, `return_predictions`, `sample`, `random_state`, `plan`,
    `report_`, `cv_predictions_` and `partial_results_`.

    Parameters
    ----------
    estimator : estimator
        A classifier, regressor, clusterer or Pipeline with scikit-learn's interface. It is cloned for each
        fit and stays as it is. Without `scoring` it must have a ``score`` method.
    param_grid : dict or list of dict
        Names of parameters (``"alpha"``; ``"ridge__alpha"`` for a step of a Pipeline) with the values to try.
        A list of such grids is searched one grid after the other.
    scoring : str, callable, list, tuple or dict, default=None
        The name of a metric (``"neg_log_loss"``), or a function of an estimator, X and y that returns a
        number, or a dict of them. A list or tuple of names, or a dict of names and scorers, gives several
        metrics; `refit` must then say which one chooses. None: the ``score`` of the estimator. Fits are not
        shared for scorers that read the fitted estimator itself.
    n_jobs : int, default=None
        Fits made at a time, in processes of joblib; -1 takes all cores, and None is 1 unless a
        `joblib.parallel_config` says otherwise. Sums over rows are always made in this process.
    refit : bool, str or callable, default=True
        Whether scikit-learn fits the best setting on all rows after the search: `best_estimator_`, and with
        it `predict` and the other methods. With several metrics, the name of the one that chooses. A function
        that takes `cv_results_` returns the best index itself. `report_` does not count this fit.
    cv : int, splitter or iterable, default=None
        The number of folds (None: 5), stratified by y for classifiers; a splitter; or pairs of arrays with
        the numbers of training and test rows. The splits are drawn once.
    verbose : int, default=0
        0: a progress bar in interactive sessions only; 1: a progress bar; above 1: scikit-learn's lines.
    pre_dispatch : int or str, default="2*n_jobs"
        How many tasks wait in joblib's processes at a time: fewer need less memory.
    error_score : "raise" or float, default=nan
        The score of a fit that fails, with a warning. "raise" raises the error of the fit.
    return_train_score : bool, default=False
        Whether `cv_results_` has the scores of the training rows, too. Moments give them without another pass
        over X.
    sharing : {"auto", "exact", "optimum", "none"}, default="auto"
        How far settings share their work. "auto" shares iterative fits only if scikit-learn's solver is
        expected to meet its ``tol`` before ``max_iter``, and if sharing is expected to be twice as fast. The
        refit checks the former, unless ``refit=False``: if it stops at ``max_iter``, scikit-learn makes the
        fits that were shared with the best setting, and the best is chosen again. "optimum" shares all
        iterative fits, and scores their optimum. "exact" shares none of them. "none" fits every setting on
        its own.
    verify : int, default=0
        Number of random pairs of a setting and a split that scikit-learn's own function fits again; the
        report lists both scores.
    memory_limit : int or str, default=None
        Bytes (``"512MB"``) for shared work: for sums over rows and, in each worker, for the outputs of shared
        steps on one fold and for folds in memory (a quarter). None: 1 GiB. A larger X that can be read in
        chunks is not loaded; for it, None is half of the machine's memory. `fit` raises ValueError for other
        strings.
    client : distributed.Client, None or False, default=None
        The Dask cluster whose workers make all fits but the refit, and that too if X is in chunks; `n_jobs`
        has no effect then. None: that of the current client, if any. False: none. A search inside a task of a
        cluster runs in that task. A pickled search has no client; a clone has the same one.
    checkpoint : str or path-like, default=None
        A file to which finished scores are written. An interrupted search continues from it, also in another
        process, and so does the same search with other settings; the refit is made again. For another
        search, and for random parts without an integer ``random_state``, `fit` raises ValueError with the
        differences before it fits anything. See the notes of `GridSearchCV`.
    early_stopping : {"fold"} or None, default=None
        "fold": the test part of each fold is the validation set of its fits, of XGBoost, LightGBM and
        HistGradientBoosting, alone or as the last step of a Pipeline. The test part that chooses the number
        of iterations also scores it, so that scores are optimistic. See the notes of `GridSearchCV`.
    engine : {"sklearnex"} or None, default=None
        "sklearnex": scikit-learn-intelex fits the settings that share nothing, if it has the class of the
        estimator (or of the predictor in a Pipeline) and nothing draws random numbers. Scores may differ from
        scikit-learn's, see the notes of `GridSearchCV`. `fit` and `plan` raise ImportError if it is not
        installed.
    time_budget : float or None, default=None
        Seconds after which no more fits begin; those that run are finished, and the best setting is refitted.
        Scores of fits that were not made are NaN; at least one setting is fitted. See the notes of
        `GridSearchCV`.
    race : {"wilcoxon", "t-test"}, float or None, default=None
        Settings that are clearly worse than the best one on the first splits are not fitted on the others: by
        Wilcoxon's signed-rank test (p < 0.1), by a paired t-test (p < 0.1), or if their mean score is more
        than this number below. Only settings that need a fit each race. See the notes of `GridSearchCV`.
    fit_timeout : float or None, default=None
        Seconds after which a fit that is made one by one is ended, with its scores. It counts as a failed fit
        (`error_score`). See the notes of `GridSearchCV`.
    return_predictions : bool, str or tuple, default=False
        Whether `cv_predictions_` has the predictions of the best setting for the test rows of each split.
        True: those of ``predict``; or ``"predict_proba"``, ``"predict_log_proba"``, ``"decision_function"``.
        ``"all"``, or ``("all", method)``: those of every setting, which `memory_limit` must hold.
    sample : int, float or None, default=None
        Number of rows, or part of them, that the search is made on: folds, fits, scores and the refit. They
        are drawn without replacement. Any estimator can then be searched on an X in chunks. None: all rows.
    random_state : int, RandomState instance or None, default=None
        Source of the rows of `sample`.

    Attributes
    ----------
    report_ : Report
        What the search has done: fits, passes over the data, transfers and seconds.
    cv_results_ : dict of str to array
        A column for each fact and a row for each setting: ``params``, ``param_<name>``,
        ``split<k>_test_score``, ``mean_test_score``, ``std_test_score``, ``rank_test_score`` and times. With
        several metrics, the metric's name takes the place of "score". The time of a shared fit is split
        evenly over its settings.
    best_index_, best_params_, best_score_ : int, dict, float
        The row of the best setting, its parameters, and its mean test score.
    best_estimator_ : estimator
        The best setting, fitted to all rows. Only with `refit`, as the next.
    refit_time_ : float
        Seconds of that fit.
    n_splits_ : int
        Splits that each setting is fitted on.
    scorer_ : callable or dict
        The scorer, or all of them by name.
    multimetric_ : bool
        Whether there are several.
    classes_, n_features_in_, feature_names_in_
        Those of `best_estimator_`, if it has them.
    cv_predictions_ : array or list
        Only with `return_predictions`: predictions in the order of the rows of X, as those of
        `cross_val_predict`, if each row is tested once. For other splits a list of pairs: the test rows of a
        split, and their predictions. With "all", a list of these for the settings of `cv_results_`. None
        in place of a setting of which a fit failed or was not made.
    sample_indices_ : array of int
        Only with `sample`: the drawn rows of X, in order. `cv_predictions_` are of these.
    partial_results_ : list of dict
        Only after a `fit` that was interrupted, or raised: for each finished setting and split,
        ``params``, ``split``, ``test_scores`` (a float, or a dict by scorer), with ``return_train_score``
        ``train_scores``, ``fit_time``, ``score_time`` and ``fit_error`` (None, or why the fit failed).

    See Also
    --------
    plan : Shows what will be shared, without fitting anything.

    Notes
    -----
    A checkpoint is a small SQLite file of one search; several threads or processes may run that search on it
    at once. These are compared by content: estimator, X, y, parameters of fits and scores, splits, scorers,
    `error_score`, `return_train_score`, `sharing`, scikit-learn's configuration, and the versions of manyfit,
    scikit-learn, NumPy, SciPy and Python. The file may have settings of earlier searches. How a search is
    run (`n_jobs`, `client`, `memory_limit`, `verbose`, `refit`) may change. Functions and classes of your
    own are compared by their code, those of a script or notebook also by the values of the global names that
    they read. Changes in other modules that an imported one calls are not noticed.

    Individual fits are restored one by one. Fits that are computed together (all groups shared through
    moments; a group of shared iterations; a group behind shared steps on one split) are restored if the file
    has all of them, and run again otherwise. If the refit shows that scikit-learn has to make shared fits
    (see `sharing`), its scores replace the shared ones. Scores are stored to the last bit. Warnings of
    single fits are not stored; scikit-learn's summary of failed fits is shown again. Callbacks are called
    for the fits that are made. The file stays after the search, and only the refit is made from then on.

    With ``early_stopping="fold"`` a fit stops as its estimator says: ``early_stopping_rounds`` of XGBoost
    or an ``EarlyStopping`` among its callbacks, ``early_stopping_round`` of LightGBM,
    ``early_stopping=True`` and ``n_iter_no_change`` of HistGradientBoosting. ``n_estimators`` or
    ``max_iter`` is the most iterations, and the metric is the estimator's own. Steps before it are fitted
    on the training part, and transform the test part. Test rows have the weights that ``sample_weight``
    gives them; those of a class that the training part lacks are left out of the validation set, but not of
    the scores. ``cv_results_`` has ``split<k>_best_n_iter`` and ``mean_best_n_iter``: the iterations that
    predictions use. The refit has no validation set: it makes as many iterations as the rounded mean of the
    best setting's splits (``report_.refit_n_iter``), so `best_estimator_` has other parameters than
    `best_params_`. Families answer no settings.

    With ``engine="sklearnex"`` settings that differ in numbers only are of one kind. The first and the
    last of each kind are fitted on the first split by both libraries, in this process. If a score differs
    by more than 1e-3 (times scikit-learn's score, if that is above 1), or a fit fails, a warning says so,
    and scikit-learn fits all settings of the kind. Other fits are not compared; `verify` compares more. A
    fit that fails is made again by scikit-learn. Steps that transform, fits that callbacks follow, fits
    on device data, fits that shared work leaves, and the refit are scikit-learn's.

    With `time_budget` settings are fitted in a fixed order that goes through the grid at random
    (`RandomizedSearchCV`: in the order of its draws), some at a time. Groups of settings that share their
    fits come first, one after the other, and are finished. ``cv_results_`` has a row for every setting of
    the grid; ``report_.stopped`` says how many have all their scores, and a setting without a score is never
    the best. With a `checkpoint`, the next `fit` goes on with the rest. The refit and `verify` come after it.

    With `race` settings that need a fit each are fitted on some splits first: 4 for "wilcoxon", 3 for
    "t-test", 2 for a margin. After each further split, those that are clearly worse than the best one on the
    same splits, or whose fit fails, are out. Splits overlap in their training rows: the tests are guides, and
    `best_params_` may be another setting than without a race; it has all its scores. A setting that is out
    has NaN for the other splits and ranks last; ``report_.dropped`` names it.

    With `fit_timeout` each process or thread that makes fits has another process make them, and ends it if a
    fit takes too long. It gets a copy of X and y; the time to start it does not count.
    Steps are not shared. A fit that ends its process fails as well. Shared fits have no limit.

    With `return_predictions` shared fits give the predictions that their scores have read. Others are made
    once more after the search, for the best setting. Fits that draw random numbers without a seed record
    theirs, if those of all settings take at most an eighth of `memory_limit`. A checkpoint has none.

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
        early_stopping: EarlyStopping = None,
        engine: Engine = None,
        time_budget: float | None = None,
        race: str | float | None = None,
        fit_timeout: float | None = None,
        return_predictions: bool | str | tuple[str, str] = False,
        sample: float | None = None,
        random_state: Any = None,
    ) -> None:
        keep_arguments(self, locals())
