"""HalvingGridSearchCV and HalvingRandomSearchCV: scikit-learn's successive halving on manyfit's engine."""

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from manyfit._compat import (
    SklearnHalvingGridSearchCV,
    SklearnHalvingRandomSearchCV,
    joblib_is_local,
    num_samples,
    uses_callbacks,
)
from manyfit.cluster.pool.run import client_for
from manyfit.families import (
    ContinuedFits,
    EnsembleStore,
    FolderStore,
    ProcessStore,
    continuing,
    why_rounds_start_anew,
)
from manyfit.introspection.object_state import keep_arguments
from manyfit.introspection.parameter_docs import complete_parameters
from manyfit.model_selection._search import GridSearchCV
from manyfit.model_selection.job._joblib_tasks import joblib_workers
from manyfit.model_selection.job._option_values import (
    EarlyStopping,
    Engine,
    Sharing,
    memory_limit_in_bytes,
)
from manyfit.model_selection.planning._plan import Plan
from manyfit.model_selection.results._choices import Choice
from manyfit.model_selection.running.cluster._rounds import ClusterStore
from manyfit.model_selection.search._base import SharedSearch, accept_device_data
from manyfit.model_selection.search._hooks import attributes_restored
from manyfit.model_selection.search._randomized import RandomizedSearchCV
from manyfit.model_selection.search._setup import make_setup
from manyfit.model_selection.search.adaptive._rounds import list_rounds, plan_rounds


class HalvingSearch(SharedSearch):
    """A mixin for scikit-learn's halving searches, whose rounds and choices are its own code."""

    checks_input = True
    continues_rounds = True
    pre_dispatch = "2*n_jobs"  # scikit-learn's halving searches have no such parameter
    resource: str
    _n_samples_orig: int
    n_candidates_: list[int]

    def plan(self, X: Any, y: Any = None, **params: Any) -> Plan:
        """Return what the first round of `fit` will share and why, and how many settings go on.

        Parameters
        ----------
        X, y, **params
            As for `fit`.

        Returns
        -------
        Plan
            Of the first round. `Plan.rounds` has the sizes of all, and says if the full grid costs no more.

        Notes
        -----
        Settings and rows are drawn now. `fit` draws the same ones if `random_state` is an integer.
        """
        self._validate_params()  # type: ignore[attr-defined]
        with attributes_restored(self):
            setup = make_setup(self, X, y, params)
            return plan_rounds(self, setup, list_rounds(self, setup.n_splits), self._why_anew())

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Run the search.

        Parameters
        ----------
        X, y, **params
            As for `GridSearchCV.fit`.

        Returns
        -------
        self : object
            The fitted search, with scikit-learn's attributes and `report_`.
        """
        ensembles = self._ensembles()
        if ensembles is None:
            super().fit(X, y, **params)
            if self.resource != "n_samples" and (n := self.n_splits_ * sum(self.n_candidates_[1:])):
                self.report_.fitted_anew = {self._why_anew(): n}
        else:
            with ensembles as store, continuing(ContinuedFits(store)) as fits:
                super().fit(X, y, **params)
            self.report_.note_continued(fits.counts)
        # The choice is a method of the class, after which scikit-learn's base sets no score.
        self.best_score_ = self.cv_results_["mean_test_score"][self.best_index_]
        return self

    def _check_input_parameters(self, X: Any, y: Any, split_params: Any) -> None:
        """As scikit-learn's, with the rows that X has once it is loaded, or read in chunks."""
        self._n_samples_orig = num_samples(X)
        super()._check_input_parameters(X=X, y=y, split_params=split_params)  # type: ignore[misc]

    def _why_anew(self) -> str:
        """Why no fit goes on from one of the round before; empty if some may."""
        if uses_callbacks(self):
            return "callbacks follow each fit"
        if self.early_stopping is not None:
            return f"early_stopping={self.early_stopping!r} stops each fit by itself"
        why = why_rounds_start_anew(self.estimator, self.resource)
        one_process = client_for(self.client) is not None or joblib_workers(self.n_jobs) == 1
        if why or one_process or joblib_is_local():
            return why
        return "workers of joblib on other machines keep no models"

    def _ensembles(self) -> AbstractContextManager[EnsembleStore] | None:
        """Where a round keeps its ensembles for the next one; None if no fit can go on."""
        if self._why_anew():
            return None
        memory, client = memory_limit_in_bytes(self.memory_limit), client_for(self.client)
        if client is not None:
            return ClusterStore(client, self.resource, memory)
        if joblib_workers(self.n_jobs) == 1:
            return nullcontext(ProcessStore(memory))
        try:
            return FolderStore(memory)
        except OSError:
            return nullcontext(ProcessStore(0))  # there may be no folder for temporary files

    @staticmethod
    def _select_best_index(refit: Any, refit_metric: str, results: dict[str, Any]) -> int:
        if isinstance(refit, Choice):
            return refit(results)
        chosen: int = SklearnHalvingGridSearchCV._select_best_index(refit, refit_metric, results)
        return chosen


@complete_parameters(GridSearchCV)
@accept_device_data
class HalvingGridSearchCV(HalvingSearch, SklearnHalvingGridSearchCV):
    """Search over a grid in rounds: the best settings of each round go on with more of a resource.

    A drop-in for scikit-learn's experimental class of the same name, without an import that enables it. It
    adds what `GridSearchCV` adds.

    Parameters
    ----------
    factor : int or float, default=3
        Each round keeps the best one in `factor` settings, and gives it `factor` times the resource.
    resource : str, default="n_samples"
        What grows: "n_samples", or an integer parameter of the estimator, such as "n_estimators".
    max_resources : int or "auto", default="auto"
        The most that a setting may use; "auto" is the number of samples. A parameter needs a number.
    min_resources : {"exhaust", "smallest"} or int, default="exhaust"
        What a setting uses in the first round, as in scikit-learn.
    aggressive_elimination : bool, default=False
        As in scikit-learn.
    cv : int, splitter or iterable, default=5
        As in scikit-learn; it has to give the same splits each time.
    scoring : str or callable, default=None
        One metric, as in scikit-learn.
    refit : bool or callable, default=True
        Whether the best setting of the last round is fitted on all rows. `one_standard_error` and
        `cheapest_within` choose among the settings of the last round; scikit-learn ignores other callables.
    return_train_score : bool, default=True
        As in scikit-learn, where it is True only for this kind of search.
    random_state : int, RandomState instance or None, default=None
        Source of the rows of a round.
    verbose : int, default=0
        As in `GridSearchCV`; above 0 it prints scikit-learn's lines on rounds, too.
    verify : int, default=0
        As in `GridSearchCV`, in each round.
    checkpoint : str or path-like, default=None
        As in `GridSearchCV`; `random_state` has to be an integer if rows or settings are drawn. A search that
        continues repeats its choices from the stored scores.
    return_predictions : bool or str, default=False
        As in `GridSearchCV`, of the best setting. Rows that its round has not tested have none.

    Attributes
    ----------
    report_ : Report
        What all rounds have done: fits, passes over the data, transfers and seconds.
    cv_predictions_ : ndarray, sparse matrix or list
        With `return_predictions`, as of `GridSearchCV`.
    n_resources_, n_candidates_, cv_results_, best_estimator_, ...
        As in scikit-learn. `cv_results_` has a row for each setting of each round.

    See Also
    --------
    plan : Shows the rounds, and says if the full grid costs no more.

    Notes
    -----
    Settings of a round share their work as those of any search do. Where sums over rows answer all fits, the
    full grid on all rows costs no more than the rounds: the plan then says so.

    The notes of `GridSearchCV` hold here, too.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from manyfit.model_selection import HalvingGridSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"max_depth": [2, 4, None], "min_samples_split": [2, 10, 50]}
    >>> forest = RandomForestClassifier(random_state=0)
    >>> search = HalvingGridSearchCV(forest, grid, resource="n_estimators", max_resources=18)
    >>> search.fit(X, y).n_candidates_, search.n_resources_
    ([9, 3, 1], [2, 6, 18])
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        factor: float = 3,
        resource: str = "n_samples",
        max_resources: int | str = "auto",
        min_resources: int | str = "exhaust",
        aggressive_elimination: bool = False,
        cv: Any = 5,
        scoring: Any = None,
        refit: Any = True,
        error_score: float | str = np.nan,
        return_train_score: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        sharing: Sharing = "auto",
        verify: int = 0,
        memory_limit: int | str | None = None,
        client: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        early_stopping: EarlyStopping = None,
        engine: Engine = None,
        return_predictions: bool | str = False,
    ) -> None:
        keep_arguments(self, locals())


@complete_parameters(HalvingGridSearchCV, RandomizedSearchCV)
@accept_device_data
class HalvingRandomSearchCV(HalvingSearch, SklearnHalvingRandomSearchCV):
    """Search over drawn settings in rounds: the best of each round go on with more of a resource.

    A drop-in for scikit-learn's experimental class of the same name, without an import that enables it. It
    adds what `GridSearchCV` adds.

    Parameters
    ----------
    n_candidates : int or "exhaust", default="exhaust"
        Settings of the first round. "exhaust": as many as let the last round use the most resources.
    min_resources : {"exhaust", "smallest"} or int, default="smallest"
        As in `HalvingGridSearchCV`; not "exhaust" together with `n_candidates`.
    random_state : int, RandomState instance or None, default=None
        Source of the settings, and of the rows of a round.

    Attributes
    ----------
    report_ : Report
        What all rounds have done: fits, passes over the data, transfers and seconds.
    cv_predictions_ : ndarray, sparse matrix or list
        With `return_predictions`, as of `GridSearchCV`.
    n_resources_, n_candidates_, cv_results_, best_estimator_, ...
        As in scikit-learn. `cv_results_` has a row for each setting of each round.

    Notes
    -----
    Those of `GridSearchCV` hold here, too.

    Examples
    --------
    >>> from scipy.stats import randint
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from manyfit.model_selection import HalvingRandomSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> space = {"max_depth": [2, 4, None], "min_samples_split": randint(2, 20)}
    >>> tree = DecisionTreeClassifier(random_state=0)
    >>> HalvingRandomSearchCV(tree, space, random_state=0).fit(X, y).n_resources_
    [30, 90]
    """

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_candidates: int | str = "exhaust",
        factor: float = 3,
        resource: str = "n_samples",
        max_resources: int | str = "auto",
        min_resources: int | str = "smallest",
        aggressive_elimination: bool = False,
        cv: Any = 5,
        scoring: Any = None,
        refit: Any = True,
        error_score: float | str = np.nan,
        return_train_score: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        sharing: Sharing = "auto",
        verify: int = 0,
        memory_limit: int | str | None = None,
        client: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        early_stopping: EarlyStopping = None,
        engine: Engine = None,
        return_predictions: bool | str = False,
    ) -> None:
        keep_arguments(self, locals())
