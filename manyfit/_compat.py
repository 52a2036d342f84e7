"""The one place that names private parts of other projects, with the versions they were read in.

scikit-learn 1.7, 1.8 and 1.9 (``TESTED``), the only versions that manyfit is installed with. If another one
is there nonetheless and has all names below, every search is fitted one by one, and its plan says so.
"""

import copy
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from types import FunctionType
from typing import Any, TypeVar

import dask.config
import sklearn
import sklearn.metrics
import sklearn.utils._array_api as _sklearn_array_api
from sklearn.base import _fit_context
from sklearn.metrics._scorer import (
    _BaseScorer,
    _MultimetricScorer,
    _Scorer,
    negative_likelihood_ratio,
    positive_likelihood_ratio,
)
from sklearn.metrics._scorer import _PassthroughScorer as PassthroughScorer
from sklearn.metrics.cluster._unsupervised import check_number_of_labels
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.model_selection._search import BaseSearchCV
from sklearn.model_selection._validation import _fit_and_score, _score
from sklearn.model_selection._validation import _insert_error_scores as insert_error_scores
from sklearn.model_selection._validation import _warn_or_raise_about_fit_failures as check_fit_failures
from sklearn.utils import _array_api
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._metadata_requests import MetadataRequest, MethodMetadataRequest
from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
    validate_parameter_constraints,
    validate_params,
)
from sklearn.utils.metadata_routing import _routing_enabled as routing_enabled
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.metaestimators import _safe_split as safe_split
from sklearn.utils.validation import _check_method_params as check_method_params
from sklearn.utils.validation import _num_samples as num_samples

try:
    from sklearn.callback import _transport
except ImportError:  # before 1.9 there are no callbacks
    _transport = None

__all__ = [
    "COLUMN_TRANSFORMER_REMAINDER",
    "INDICES_OF_THE_HOST",
    "NO_CALLBACKS",
    "TESTED",
    "BaseSearchCV",
    "Interval",
    "PassthroughScorer",
    "StrOptions",
    "any_callbacks",
    "array_api_dispatch",
    "as_sent",
    "asks_at_once",
    "callback_context",
    "callback_context_passed_on",
    "callbacks_of",
    "check_fit_failures",
    "check_method_params",
    "check_metric_options",
    "check_number_of_labels",
    "check_parameters",
    "d2_brier_score",
    "deliver",
    "dispatch_more",
    "drop_left_batches",
    "fail_parallel",
    "fit_and_score",
    "fit_context",
    "formats_results_itself",
    "has_callbacks",
    "has_glm_loss",
    "has_input_hook",
    "holds_callbacks",
    "insert_error_scores",
    "is_fit_and_score",
    "is_message_handle",
    "is_metadata_request",
    "is_multimetric",
    "is_tested",
    "keep_messages",
    "needs_estimator",
    "negative_likelihood_ratio",
    "num_samples",
    "output_container",
    "parameter_constraints",
    "pca_is_randomized",
    "plain_scorer",
    "positive_likelihood_ratio",
    "process_routing",
    "raising",
    "replace_hstack",
    "routing_enabled",
    "safe_indexing",
    "safe_split",
    "score",
    "score_params_by_name",
    "scorers_by_name",
    "set_glm_loss",
    "takes_callback_context",
    "validate_parameters",
    "wait_for_restarts",
    "waiting_for_restarts",
    "with_each_scorer",
    "with_metric",
    "with_names",
    "wraps_output",
]

Function = TypeVar("Function", bound=Callable[..., Any])

TESTED = ("1.7", "1.8", "1.9")


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[Function], Function]:
    """scikit-learn's decorator of ``fit``, which leaves its type as it is."""
    decorate: Callable[[Function], Function] = _fit_context(
        prefer_skip_nested_validation=prefer_skip_nested_validation
    )
    return decorate


def is_tested() -> bool:
    """Whether the installed scikit-learn is of a minor version that manyfit was tested on."""
    return ".".join(sklearn.__version__.split(".")[:2]) in TESTED


def is_multimetric(scorer: Any) -> bool:
    """Whether a scorer is scikit-learn's bundle of several."""
    return isinstance(scorer, _MultimetricScorer)


def scorers_by_name(scorer: Any) -> dict[str, Any]:
    """The single scorers behind a scorer, by the names of their columns in ``cv_results_``."""
    return dict(scorer._scorers) if is_multimetric(scorer) else {"score": scorer}


def plain_scorer(scorer: Any) -> tuple[Callable[..., Any], float, dict[str, Any], Any] | None:
    """(metric, sign, keyword arguments, response method) of a scorer made by ``make_scorer``, else None.

    Exact type: a subclass may read the estimator.
    """
    if type(scorer) is not _Scorer:
        return None
    assert isinstance(scorer, _BaseScorer)
    return scorer._score_func, float(scorer._sign), dict(scorer._kwargs), scorer._response_method


def with_metric(scorer: Any, metric: Callable[..., Any]) -> Any:
    """A scorer made by ``make_scorer``, with another metric in place of its own; requests are kept."""
    out = copy.copy(scorer)
    out._score_func = metric
    return out


def with_each_scorer(scorer: Any, replace: Callable[[Any], Any]) -> Any:
    """A scorer, or a bundle of several, with ``replace(one)`` in place of each."""
    if not is_multimetric(scorer):
        return replace(scorer)
    replaced = {name: replace(one) for name, one in scorer._scorers.items()}
    return _MultimetricScorer(scorers=replaced, raise_exc=scorer._raise_exc)


_FIT_AND_SCORE_PARAMETERS = frozenset(inspect.signature(_fit_and_score).parameters)


def fit_and_score(estimator: Any, X: Any, y: Any, **kwargs: Any) -> dict[str, Any]:
    """scikit-learn's own fit and score of one setting on one split.

    Arguments that the installed version does not know (the callbacks of 1.9) are left out.
    """
    known = {name: value for name, value in kwargs.items() if name in _FIT_AND_SCORE_PARAMETERS}
    return _fit_and_score(estimator, X, y, **known)


score = _score


class _NoCallbacks:
    """The callback contexts of scikit-learn 1.9, for older versions: nothing happens."""

    def call_on_fit_task_begin(self, **kwargs: Any) -> "_NoCallbacks":
        return self

    call_on_fit_task_end = call_on_fit_task_begin

    def subcontext(self, **kwargs: Any) -> "_NoCallbacks":
        return self

    def propagate_callback_context(self, estimator: Any) -> Any:
        return nullcontext()


def callback_context(search: Any, max_subtasks: int) -> Any:
    """The root callback context of a search (scikit-learn 1.9 and later)."""
    if hasattr(search, "_init_callback_context"):
        return search._init_callback_context(max_subtasks=max_subtasks)
    return _NoCallbacks()


def asks_at_once(search: Any) -> bool:
    """Whether a search asks for all its settings at once, as scikit-learn's two do."""
    return type(search)._run_search in (GridSearchCV._run_search, RandomizedSearchCV._run_search)


def has_input_hook() -> bool:
    """Whether scikit-learn's base search calls ``_check_input_parameters`` of a search, from 1.8 on."""
    return hasattr(BaseSearchCV, "_check_input_parameters")


def formats_results_itself(search: Any) -> bool:
    """Whether the class of a search makes ``cv_results_`` by a method of its own."""
    return getattr(type(search), "_format_results", None) is not BaseSearchCV._format_results


def has_callbacks(estimator: Any) -> bool:
    """Whether callbacks are attached to an estimator or will be handed down to it."""
    return bool(getattr(estimator, "_skl_callbacks", ()))


def takes_callback_context(method: Callable[..., Any]) -> bool:
    """Whether a ``_run_search`` of scikit-learn or of a user's subclass takes the callback context."""
    return "callback_ctx" in inspect.signature(method).parameters


def check_parameters(estimator: Any, names: Collection[str] | None = None) -> str | None:
    """Why scikit-learn would refuse an estimator's constructor parameters, all or some of them, or None."""
    if not hasattr(estimator, "_parameter_constraints"):
        return None
    try:
        if names is None:
            estimator._validate_params()
        else:
            constraints = estimator._parameter_constraints
            given = {name: getattr(estimator, name) for name in names if name in constraints}
            validate_parameter_constraints(constraints, given, caller_name=type(estimator).__name__)
    except Exception as error:  # whatever it is, scikit-learn raises it again in its own fit
        return str(error)
    return None


def needs_estimator(scorer: Any) -> bool:
    """Whether a scorer may look at the fitted estimator itself, not only at what it predicts."""
    return any(
        not isinstance(one, PassthroughScorer) and plain_scorer(one) is None
        for one in scorers_by_name(scorer).values()
    )


def score_params_by_name(scorer: Any, params: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What each scorer behind a scorer is given of the parameters of a score, by its name.

    As ``_MultimetricScorer.__call__`` has it: under metadata routing what a scorer requested, else the
    weights where its metric takes some.
    """
    named = scorers_by_name(scorer)
    if not routing_enabled():
        return {name: params if one._accept_sample_weight() else {} for name, one in named.items()}
    if not is_multimetric(scorer):
        return dict.fromkeys(named, params)
    routed = process_routing(scorer, "score", **params)
    return {name: dict(routed[name].score) for name in named}


def raising(scorer: Any, names: Iterable[str] | None = None) -> Any:
    """The same scorer, of a bundle only those named, raising where it would note a failure as a text."""
    if not is_multimetric(scorer):
        return scorer
    named = scorer._scorers
    chosen = named if names is None else {name: named[name] for name in names}
    return _MultimetricScorer(scorers=chosen, raise_exc=True)


def check_metric_options(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raise what scikit-learn raises of options that its metric function refuses."""
    constraints = getattr(function, "_skl_parameter_constraints", {})
    known = {name: value for name, value in options.items() if name in constraints}
    validate_parameter_constraints(constraints, known, caller_name=function.__name__)


def any_callbacks(search: Any) -> bool:
    """Whether callbacks are attached to a search or to any estimator among its parameters."""
    return bool(callbacks_of(search))


def holds_callbacks(thing: Any) -> bool:
    """Whether callbacks are attached to something or to the estimators among its parameters."""
    inner = (
        thing.get_params(deep=True).values()
        if hasattr(thing, "get_params") and not isinstance(thing, type)
        else ()
    )
    return any(map(has_callbacks, (thing, *inner)))


def callbacks_of(search: Any) -> list[Any]:
    """The callbacks that are attached to a search and to the estimators among its parameters, each once."""
    if not hasattr(search, "_init_callback_context"):
        return []
    holders = [search, search.estimator]
    if hasattr(search.estimator, "get_params"):
        holders += search.estimator.get_params(deep=True).values()
    found = [callback for holder in holders for callback in getattr(holder, "_skl_callbacks", ())]
    return list({id(callback): callback for callback in found}.values())


def is_message_handle(thing: Any) -> bool:
    """Whether it is where a callback of scikit-learn 1.9 sends its messages; these have an ``address``."""
    return _transport is not None and isinstance(thing, _transport.ListenerHandle)


def keep_messages(address: str, keep: Callable[[Any], None] | None) -> bool:
    """Have messages to an address kept in this process, or, with None, no longer.

    Returns
    -------
    bool
        False, and nothing is done, where this is the process that they are for.
    """
    if address in _transport._listeners:
        return False
    if keep is None:
        _transport._message_consumers.pop(address, None)
    else:
        _transport._message_consumers[address] = keep
    return True


def deliver(address: str, message: Any) -> None:
    """Give a message to the callback of this process that it is for, if it still listens."""
    consumer = _transport._message_consumers.get(address)
    if consumer is not None:
        consumer(message)


def pca_is_randomized(pca: Any, n_samples: int, n_features: int) -> bool:
    """Whether ``PCA.fit`` of 1.7 to 1.9 resolves ``svd_solver="auto"`` to "randomized", for dense data."""
    shortest, k = min(n_samples, n_features), pca.n_components
    if pca.svd_solver != "auto" or k == "mle":
        return False
    if (n_features <= 1_000 and n_samples >= 10 * n_features) or max(n_samples, n_features) <= 500:
        return False
    return bool(1 <= (shortest if k is None else k) < 0.8 * shortest)


NO_CALLBACKS = _NoCallbacks()

# Whether scikit-learn cuts arrays of a device by indices of the host, in more than its fits and scores (1.9).
INDICES_OF_THE_HOST = hasattr(_array_api, "move_to")

# Of scikit-learn 1.8 and later; else None.
d2_brier_score = getattr(sklearn.metrics, "d2_brier_score", None)


def is_metadata_request(thing: Any) -> bool:
    """Whether something holds an estimator's metadata requests; its ``owner`` leads back to the estimator."""
    return isinstance(thing, (MetadataRequest, MethodMetadataRequest))


# Where a ColumnTransformer keeps (name, transformer, columns) of the columns that no other transformer takes.
COLUMN_TRANSFORMER_REMAINDER = "_remainder"


@contextmanager
def callback_context_passed_on(holder: Any, estimator: Any) -> Iterator[None]:
    """Hand the callback context that a Pipeline (1.9) set on `holder` to what is fitted in its place."""
    context = vars(holder).get("_parent_callback_ctx")
    if context is None or not has_callbacks(estimator):
        yield
        return
    estimator._parent_callback_ctx = context
    try:
        yield
    finally:
        del estimator._parent_callback_ctx


def with_names(function: Callable[..., Any], module: str, **names: Any) -> Callable[..., Any]:
    """One of scikit-learn's functions, for a module of ours, with some of the global names it reads replaced.

    ``cross_validate`` and its kin are routing, checks and formatting around one call of ``Parallel``, as
    ``classification_report`` is checks and formatting around counts. They run here as scikit-learn wrote
    them, of whichever version, with what is ours in that one place; nothing of scikit-learn itself is
    changed.
    """
    inner = function.__wrapped__  # type: ignore[attr-defined]
    missing = set(names) - set(inner.__globals__)
    if missing:
        raise AttributeError(f"{function.__name__} of scikit-learn {sklearn.__version__} reads no {missing}")
    again = FunctionType(
        inner.__code__, {**inner.__globals__, **names}, inner.__name__, inner.__defaults__, inner.__closure__
    )
    again.__kwdefaults__ = inner.__kwdefaults__
    again.__doc__, again.__annotations__ = inner.__doc__, inner.__annotations__
    again.__module__ = module  # where pickle finds it
    constraints = function._skl_parameter_constraints  # type: ignore[attr-defined]
    return validate_params(constraints, prefer_skip_nested_validation=False)(again)


def is_fit_and_score(function: Callable[..., Any]) -> bool:
    """Whether a task of scikit-learn's is the fit and score of one setting on one split."""
    return function is _fit_and_score


def as_sent(function: Any) -> tuple[Any, dict[str, Any] | None]:
    """A function within what scikit-learn's own `delayed` makes of it, and the configuration sent with it.

    Any other function is itself, and has no configuration.
    """
    if not hasattr(type(function), "with_config_and_warning_filters"):
        return function, None
    return function.function, {**sklearn.get_config(), **getattr(function, "config", {})}


def parameter_constraints(cls: Any) -> dict[str, Any]:
    """What scikit-learn's class lets each constructor parameter be."""
    return dict(cls._parameter_constraints)


def waiting_for_restarts(cluster: type[Any]) -> type[Any]:
    """A class of Dask's clusters that does not give up on a worker while its nanny starts it again.

    See `wait_for_restarts`.
    """

    class Patient(cluster):  # type: ignore[misc, valid-type]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            wait_for_restarts(self)
            super().__init__(*args, **kwargs)

    Patient.__name__, Patient.__qualname__ = cluster.__name__, cluster.__qualname__
    return Patient


def wait_for_restarts(cluster: Any) -> None:
    """Have one of Dask's clusters not give up on a worker while its nanny starts it again.

    Dask's own looks for a worker 15 seconds after its process ended. It closes the worker for good where it
    is not there then, which it is not either if it has ended once more, and is just being started.
    """
    if "_update_worker_status" in vars(cluster):
        return
    update = cluster._update_worker_status

    def patiently(op: str, message: Any) -> None:
        with dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day"}):
            update(op, message)

    cluster._update_worker_status = patiently


def fail_parallel(callback: Any, outcome: Any) -> None:
    """End a call of ``joblib.Parallel`` (1.4 to 1.6) with an error that belongs to none of its batches.

    joblib does so for an Exception of the generator of tasks, but not for a SystemExit, say: the thread that
    reads the generator then dies of it, and the caller waits for ever.

    Parameters
    ----------
    callback : joblib.parallel.BatchCompletionCallBack
        Of any batch of the call.
    outcome : object
        What a backend's ``retrieve_result_callback`` raises the error of.
    """
    parallel = callback.parallel
    tracker = type(callback)(0.0, 1, parallel)
    with parallel._lock:
        if parallel._call_id == callback.parallel_call_id:
            # Of joblib 1.5.
            getattr(parallel, "_register_new_job", parallel._jobs.append)(tracker)
            tracker(outcome)


def dispatch_more(callback: Any, n: int) -> None:
    """Have a call of ``joblib.Parallel`` (1.4 to 1.6) hand out more batches than it does by itself.

    It has as many under way all the time as its ``pre_dispatch`` said at the start, by the number of jobs
    then. Whoever was given a number, or ``"all"``, is left alone.

    Parameters
    ----------
    callback : joblib.parallel.BatchCompletionCallBack
        Of any batch of the call.
    n : int
        How many.
    """
    parallel = callback.parallel
    if not isinstance(parallel.pre_dispatch, str):
        return
    with parallel._lock:
        for _ in range(n):
            if parallel._call_id == callback.parallel_call_id and parallel._original_iterator is not None:
                parallel.dispatch_next()


def drop_left_batches(parallel: Any) -> None:
    """Forget what a call of ``joblib.Parallel`` (1.4 to 1.6) has cut into batches and did not hand out.

    Where a call fails early some are left, and the next call of the same object would run them as its own.
    """
    while not parallel._ready_batches.empty():
        parallel._ready_batches.get(block=False)


_dispatches: ContextVar[bool] = ContextVar("manyfit_dispatches", default=False)


class _PassedOver:
    """A check that is made everywhere but within `array_api_dispatch`."""

    def __init__(self, check: Callable[[Any], None]) -> None:
        self._check = check

    def __call__(self, array_api_dispatch: Any) -> None:
        if not _dispatches.get():
            self._check(array_api_dispatch)


def _pass_over_check() -> None:
    """Put ours in front of whatever is there: cuML's accelerator puts its own there, perhaps around ours."""
    there = _sklearn_array_api._check_array_api_dispatch
    if not isinstance(there, _PassedOver):
        _sklearn_array_api._check_array_api_dispatch = _PassedOver(there)


@contextmanager
def array_api_dispatch() -> Iterator[None]:
    """scikit-learn's array API dispatch while a block runs, also where SciPy's is off.

    scikit-learn refuses it unless ``SCIPY_ARRAY_API=1`` was set before SciPy was imported. What is run in
    such blocks does not go through SciPy (a test runs all of it without the variable), so the check is passed
    over, in this context only: in scikit-learn's module a function takes its place that calls it everywhere
    else. cuML does the same. SciPy's own behaviour, which the variable changes for all of a process, stays as
    it is.
    """
    _pass_over_check()
    token = _dispatches.set(True)
    try:
        with sklearn.config_context(array_api_dispatch=True):
            yield
    finally:
        _dispatches.reset(token)


def validate_parameters(estimator: Any) -> None:
    """Raise what scikit-learn raises of an estimator's constructor parameters before a fit."""
    estimator._validate_params()


def wraps_output(cls: type) -> dict[str, Any]:
    """What a subclass of a transformer is declared with, for ``set_output`` where the class has it."""
    wrapped = getattr(cls, "_sklearn_auto_wrap_output_keys", None)
    return {"auto_wrap_output_keys": None} if wrapped == set() else {}


def has_glm_loss(estimator: Any) -> bool:
    """Whether it is a fitted generalised linear model, see `set_glm_loss`."""
    return "_base_loss" in vars(estimator)


def set_glm_loss(estimator: Any) -> None:
    """Give a generalised linear model what its predictions on the host need beside coefficients."""
    estimator._base_loss = estimator._get_loss()


def output_container(estimator: Any) -> str:
    """What ``set_output`` and the configuration ask a transformer's output to be; "default" is neither's."""
    own = getattr(estimator, "_sklearn_output_config", {}).get("transform")
    return str(own or sklearn.get_config()["transform_output"])


def replace_hstack(cls: Any, join: Callable[[Any, list[Any]], Any]) -> None:
    """Ask `join` first where a subclass of ColumnTransformer or FeatureUnion joins what its parts gave.

    ``join(self, parts)`` gives the result, or a list of parts that scikit-learn's own code is to join, or
    None, for it to join them as they are.
    """
    inner = cls._hstack

    def _hstack(self: Any, Xs: Iterable[Any], **options: Any) -> Any:
        parts = list(Xs)
        joined = join(self, parts)
        if joined is None or isinstance(joined, list):
            return inner(self, parts if joined is None else joined, **options)
        return joined

    cls._hstack = _hstack
