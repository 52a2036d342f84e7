"""The base of all searches: it adds the plan, shared work and the report to scikit-learn's searches.

What works on data is imported when a search is fitted: importing it takes longer than scikit-learn itself.
"""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from manyfit._compat import fit_context, parameter_constraints
from manyfit.model_selection.job._option_values import EarlyStopping, Engine, Sharing
from manyfit.model_selection.search._options import OPTIONS

if TYPE_CHECKING:
    from manyfit.model_selection.planning._plan import Plan
    from manyfit.model_selection.results._report import Report
    from manyfit.model_selection.running._race import Race


class SharedSearch:
    """A mixin for scikit-learn's search classes that adds a plan, shared work and a report."""

    _parameter_constraints: ClassVar[dict[str, Any]] = OPTIONS

    announces_refit = True  # scikit-learn's own searches print no line for it
    keeps_partial_results = True  # which scikit-learn's own searches do not have
    checks_input = False  # whether scikit-learn 1.7 has ``_check_input_parameters`` of this search
    # A constructor need not have these parameters.
    sharing: Sharing = "auto"
    verify: int = 0
    memory_limit: int | str | None = None
    client: Any = None
    checkpoint: str | os.PathLike[str] | None = None
    early_stopping: EarlyStopping = None
    engine: Engine = None
    time_budget: float | None = None
    race: str | float | None = None
    fit_timeout: float | None = None
    return_predictions: Any = False
    sample: float | None = None
    fits_within: Callable[[], AbstractContextManager[Any]] = nullcontext
    rounds_may_fail = False  # whether a round goes on to the next if all its fits fail
    continues_rounds = False  # whether a checkpoint may have settings that earlier scores have chosen
    estimator: Any
    scoring: Any
    n_jobs: Any
    refit: Any
    cv: Any
    verbose: Any
    pre_dispatch: Any
    error_score: Any
    return_train_score: Any
    report_: Report
    partial_results_: list[dict[str, Any]]
    best_estimator_: Any
    best_index_: int
    best_params_: dict[str, Any]
    best_score_: float
    cv_results_: dict[str, Any]
    multimetric_: bool
    n_splits_: int
    refit_time_: float
    scorer_: Any

    def __init_subclass__(cls, **options: Any) -> None:
        """Let a class that derives from one of scikit-learn's have its constraints of parameters, too."""
        super().__init_subclass__(**options)
        theirs = [one for one in cls.__mro__ if one.__module__.startswith("sklearn.model_selection.")]
        if theirs and cls._parameter_constraints is OPTIONS:
            cls._parameter_constraints = {**parameter_constraints(theirs[0]), **OPTIONS}

    def plan(self, X: Any, y: Any = None, **params: Any) -> Plan:
        """Return what `fit` on the same data will share and why, without fitting anything.

        Splits and settings are drawn now. A `fit` with the same data, parameters and search uses them, even
        if they are random.

        Parameters
        ----------
        X, y, **params
            As for `fit`.

        Returns
        -------
        Plan
            It prints as a tree, and holds no data.

        Notes
        -----
        The data are read once, so that `fit` can compare their content. Device data are copied to the host
        for that, here and again in `fit`.
        """
        plan: Plan = _import_run().plan_search(self, X, y, params)
        return plan

    @fit_context
    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Run the search.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, (n_samples, n_features) or (n_samples, n_samples)
            Training data, or a kernel if the estimator takes one. Dask arrays, frames and series, here and
            below, are computed once and loaded whole, and so are `h5py.Dataset` and `zarr.Array`. X may also
            be a `pyarrow.dataset.Dataset`, a path of Parquet files or `manyfit.folds.Blocks`. An X of these
            that is larger than `memory_limit`, or half of the machine's memory if that is None, is read in
            chunks. An object of another class is read by the `manyfit.folds.RowSource`
            registered for it. Then, and in chunks, every fit must be shared, and the estimator of the refit
            be one that reads chunks, or `refit` be False; unless the search is made on a `sample`.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Targets; None if they come with `Blocks`. The name of a column if X is a data set of Parquet
            files: the other columns are then the features.
        **params : dict
            Passed on to the estimator's ``fit``, the scorer and the splitter (``groups``), as in
            scikit-learn.

        Returns
        -------
        self : object
            The fitted search, with scikit-learn's attributes and `report_`.

        Raises
        ------
        ValueError
            If a parameter has a wrong value, if the checkpoint is that of another search, or if all fits
            fail.
        TypeError
            If X is read in chunks or by a `RowSource`, and scikit-learn has to make a fit.
        ImportError
            If the library of `engine` is not installed.

        Notes
        -----
        The time of a shared fit is split evenly over its settings, so that ``mean_fit_time`` in
        ``cv_results_`` adds up to the time spent.
        """
        _import_run().fit_search(self, X, y, params)
        return self

    def to_frame(self) -> Any:
        """The settings of a fitted search as a table, the best first.

        Returns
        -------
        pandas.DataFrame
            A row for each setting: its parameters, mean scores, their standard deviations and ranks, seconds,
            and how its fits were answered (``kind``). The index is the row of `cv_results_`.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        from manyfit.model_selection.results.displays._search_view import as_frame

        check_is_fitted(self, "cv_results_")
        return as_frame(self)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        """What notebooks show: scikit-learn's diagram, and the report of a fitted search below it."""
        shown: dict[str, Any] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        if "text/html" in shown:
            shown["text/html"] += self._report_as_html()
        return shown

    @property
    def _repr_html_(self) -> Callable[[], str]:
        diagram: Callable[[], str] = super()._repr_html_  # type: ignore[misc]
        return lambda: diagram() + self._report_as_html()

    def _report_as_html(self) -> str:
        if not hasattr(self, "report_") or not hasattr(self, "cv_results_"):
            return ""
        from manyfit.model_selection.results.displays._search_view import as_html

        return as_html(self)

    def _validate_params(self) -> None:
        try:
            super()._validate_params()  # type: ignore[misc]
        except ValueError as error:
            from manyfit.introspection.parameter_hints import suggest_metric

            suggest_metric(error, self.scoring)
            raise

    def _get_scorers(self) -> Any:
        from manyfit.metrics.scoring import refuse_metrics

        # scikit-learn recognizes its own metrics, given in place of a scorer, by their module.
        refuse_metrics(self.scoring)
        return super()._get_scorers()  # type: ignore[misc]

    def _make_race(self, n_splits: int, metric: str | None) -> Race | None:
        """The race of settings that are fitted one by one; None if all are fitted on all splits."""
        from manyfit.model_selection.running._race import race_of

        return None if self.race is None else race_of(self, n_splits, metric)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        state.pop("_frozen", None)
        if state.get("client"):
            state["client"] = None  # a connection cannot be pickled; the current client is used instead
        return state

    def __sklearn_clone__(self) -> Any:
        """A clone with the same client: a connection cannot be copied."""
        without = copy.copy(self)  # it takes the pickled state
        other = super(SharedSearch, without).__sklearn_clone__()  # type: ignore[misc]
        other.client = self.client
        return other


def _import_run() -> Any:
    """The module that runs searches.

    The collector of garbage finds none while it is imported, and would take a fifth of the time.
    """
    name = "manyfit.model_selection.search._run"
    if name in sys.modules or not gc.isenabled():
        return import_module(name)
    gc.disable()
    try:
        return import_module(name)
    finally:
        gc.enable()


Search = TypeVar("Search", bound=type)

# Methods of a fitted search that call its best estimator.
_METHODS = (
    "decision_function",
    "inverse_transform",
    "predict",
    "predict_log_proba",
    "predict_proba",
    "score",
    "score_samples",
    "transform",
)


def accept_device_data(search: Search) -> Search:
    """Make methods of a search class accept device data, even if its estimator was fitted on the host."""
    for name in _METHODS:
        member = inspect.getattr_static(search, name)
        if hasattr(member, "check"):  # of `available_if`
            setattr(search, name, available_if(member.check)(_with_device_data(member.fn)))
        else:
            setattr(search, name, _with_device_data(member))
    return search


def _with_device_data(inner: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(inner)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        from manyfit.model_selection.search._device_predict import call_with_device_data

        return call_with_device_data(inner, self, args, kwargs)

    return method
