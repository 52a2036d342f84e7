"""cross_validate and related functions: scikit-learn's, with our engine in place of their parallel call."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import wraps
from typing import Any

from sklearn import model_selection
from sklearn.metrics import check_scoring
from sklearn.utils.parallel import Parallel

from manyfit._compat import is_fit_and_score, num_samples, replace_globals, unwrap_delayed
from manyfit.arrays import compute_dask_inputs
from manyfit.cluster.chunk_workers import chunk_workers
from manyfit.cluster.pool.run import client_for
from manyfit.folds import ChunkRows, Splits, prepare_rows
from manyfit.metrics.scoring import refuse_metrics
from manyfit.model_selection.job._chunk_inputs import (
    IndexedRows,
    chunk_input,
    read_for_shared_fits,
    weights_as_params,
)
from manyfit.model_selection.job._device_frames import arrays_of_frames
from manyfit.model_selection.job._job import Job, Options, Result
from manyfit.model_selection.job._option_values import Sharing, memory_limit_in_bytes
from manyfit.model_selection.job._predictions import METHODS
from manyfit.model_selection.planning._pipeline_spec import value_key
from manyfit.model_selection.planning._plan import Plan
from manyfit.model_selection.planning._planner import prepare
from manyfit.model_selection.planning.places._data_location import move_data_to_host, place_data
from manyfit.model_selection.results._report import Report
from manyfit.model_selection.results._result_sink import ResultSink
from manyfit.model_selection.running._engine import run
from manyfit.model_selection.running._predictions import collect_predictions, no_predictions
from manyfit.model_selection.validation._cross_val_predict import predict_on_any_device
from manyfit.model_selection.validation._device_cv import check_device_cv
from manyfit.model_selection.validation._nested_search import answer_nested_search
from manyfit.model_selection.validation._one_clone import (
    clone_once,
    draw_calls,
    have_one_estimator,
    with_own_clones,
)
from manyfit.model_selection.validation._own_keywords import OwnKeywords, own_keywords, with_own_keywords
from manyfit.model_selection.validation._permutations import permute_on_moments

Fit = tuple[Any, Any, Any, dict[str, Any]]
"""Estimator, X, y and the other arguments of one of scikit-learn's fits."""


class EngineParallel:
    """In place of scikit-learn's ``Parallel`` in its functions: fits run on the engine."""

    _sharing: Sharing = "auto"
    _memory_limit: int | str | None = None
    _client: Any = None
    _fits_within: Callable[[], AbstractContextManager[Any]] = nullcontext

    def __init__(self, n_jobs: Any = None, verbose: int = 0, pre_dispatch: Any = "2*n_jobs") -> None:
        self._n_jobs, self._verbose, self._pre_dispatch = n_jobs, verbose, pre_dispatch
        self._own = own_keywords()

    def __call__(self, calls: Iterable[Any]) -> list[Any]:
        # A fit of the engine clones its estimator.
        drawn = draw_calls(calls)
        are_fits = bool(drawn) and all(is_fit_and_score(unwrap_delayed(call)[0]) for call, _, _ in drawn)
        if are_fits and (have_one_estimator(drawn) or isinstance(drawn[0][1][1], IndexedRows)):
            return self._run(self._job([(*args[:3], kwargs) for _, args, kwargs in drawn]))
        return self._pass_on(with_own_clones(drawn))

    def _pass_on(self, calls: Iterable[Any]) -> list[Any]:
        """Run calls as scikit-learn does."""
        parallel = Parallel(n_jobs=self._n_jobs, verbose=self._verbose, pre_dispatch=self._pre_dispatch)
        return list(parallel(calls))

    def _job(self, fits: Sequence[Fit]) -> Job:
        """The job of fits of one estimator on one data set, which come split by split."""
        estimator, X, y, first = fits[0]
        X = X.source if isinstance(X, IndexedRows) else X
        settings = [kw["parameters"] or {} for *_, kw in fits]
        n_settings = _period([_values(params) for params in settings])
        splits = [(kw["train"], kw["test"]) for *_, kw in fits[::n_settings]]
        return Job(
            estimator, settings[:n_settings], X, y, Splits.given(splits, num_samples(X)),
            replace(_options(first, self._memory_limit, self._own), fits_within=self._fits_within),
            self._n_jobs, self._pre_dispatch, self._sharing,
            client=None if isinstance(X, ChunkRows) else client_for(self._client), by_split=True,
        )  # fmt: skip

    def _run(self, job: Job) -> list[Result]:
        """Run a job; results in the order of its fits."""
        recording = self._own.recording
        nested = answer_nested_search(job) if recording is None else None
        if nested is not None:
            results, plan, report = nested
            self._begin(job.estimator, plan)
            self._end(job.estimator, report)
            return results
        job = place_data(job)
        with chunk_workers(job.X, self._client):
            prepared = prepare(job)
            self._begin(job.estimator, prepared.plan)
            sink = ResultSink(job)
            results, report = run(job, prepared, sink)
            if recording is not None:
                (self._own.predictions,) = collect_predictions(job, [0], recording, sink.predicted)
        self._end(job.estimator, report)
        n_splits = job.splits.n_splits
        return [results[c * n_splits + i] for i in range(n_splits) for c in range(len(job.candidates))]

    def _begin(self, estimator: Any, plan: Plan) -> None:
        """Take the plan of fits that are about to be made."""

    def _end(self, estimator: Any, report: Report) -> None:
        """Take the report of fits that are made."""


def _period(keys: Sequence[Any]) -> int:
    """The length of the shortest sequence that `keys` repeats.

    Splits and values that are given twice are fitted twice, as in scikit-learn, since fits may be random.
    """
    n = len(keys)
    return next(p for p in range(1, n + 1) if n % p == 0 and all(keys[j] == keys[j % p] for j in range(n)))


def _values(params: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple((name, value_key(value)) for name, value in params.items())


def _options(given: Mapping[str, Any], memory_limit: int | str | None, own: OwnKeywords) -> Options:
    return Options(
        scorer=given["scorer"],
        fit_params=given.get("fit_params") or {},
        score_params=given.get("score_params") or {},
        return_train_score=given.get("return_train_score", False),
        error_score=given["error_score"],
        verbose=int(given.get("verbose", 0)),
        memory_limit=memory_limit_in_bytes(memory_limit if own.memory_limit is None else own.memory_limit),
        return_estimator=given.get("return_estimator", False),
        engine=own.engine,
        recording=own.recording,
    )


@wraps(check_scoring)
def _check_scoring(estimator: Any = None, scoring: Any = None, **options: Any) -> Any:
    refuse_metrics(scoring)
    return check_scoring(estimator, scoring, **options)


def _with_note(function: Callable[..., Any], note: str) -> Callable[..., Any]:
    """A function with a note added to its docstring, which is scikit-learn's."""
    text = inspect.cleandoc(function.__doc__ or "")  # it is indented before Python 3.13
    head, mark, tail = text.partition("Notes\n-----\n")
    if not mark:
        head, end, tail = text.partition("Examples\n--------\n")
        mark, tail = "Notes\n-----\n", end + tail
    function.__doc__ = f"{head}{mark}{note}\n\n{tail}"
    return function


def _incremental_on_host(function: Callable[..., Any]) -> Callable[..., Any]:
    """learning_curve, with device data copied to the host for incremental learning, which reads no chunks."""
    signature = inspect.signature(function)

    @wraps(function)
    def learning_curve(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        if given.get("exploit_incremental_learning"):
            if isinstance(given["X"], IndexedRows):
                raise TypeError(
                    "exploit_incremental_learning=True calls partial_fit with rows in memory, and "
                    f"{read_for_shared_fits(given['X'].source)} Leave it out, or pass an X that memory "
                    "holds, such as a sample of the rows."
                )
            data: dict[str, Any] = {name: given[name] for name in ("X", "y", "groups") if name in given}
            given |= move_data_to_host("learning_curve", "incremental learning works on the host", data)
        return function(**given)

    return learning_curve


def _with_computed_inputs(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose Dask inputs are computed once, before the call; X may stay to be read in chunks."""
    signature = inspect.signature(function)
    # y may come with X.
    parameters = [
        one.replace(default=None) if one.name == "y" else one for one in signature.parameters.values()
    ]
    signature = signature.replace(parameters=parameters)

    @wraps(function)
    def loads(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        has_y = "y" in given
        rows = _take_chunks(given)
        if not has_y and given["y"] is None:  # it does not come with X
            del given["y"]
        params = given.get("params") or {}
        names = [name for name in ("X", "y", "groups") if name in given]
        values = compute_dask_inputs(
            [given[name] for name in names] + list(params.values()), function.__name__
        )
        values = arrays_of_frames(given["estimator"], values[0], values[1:])
        given |= dict(zip(names, values, strict=False))
        if params:
            given["params"] = dict(zip(params, values[len(names) :], strict=True))
        if rows is not None:
            prepare_rows(rows, given.get("y"))
            given["X"] = IndexedRows(rows)
        return function(**given)

    return loads


def _predict_in_chunks(function: Callable[..., Any]) -> Callable[..., Any]:
    """cross_val_predict; an X that is read in chunks is cross-validated, which predicts its test rows."""
    signature = inspect.signature(function)

    @wraps(function)
    def cross_val_predict(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        if not isinstance(given["X"], IndexedRows):
            return function(**given)
        method = given.get("method", "predict")
        if method not in METHODS:
            return function(**given)  # scikit-learn's own error
        getattr(given["estimator"], method)  # or the error of an estimator without it
        given.pop("method", None)
        own = {"memory_limit": own_keywords().memory_limit, "return_predictions": method}
        found = cross_validate(**given, error_score="raise", **own)["predictions"]
        if found is None:
            raise TypeError(no_predictions(given["X"].source, method))
        if isinstance(found, list):
            raise ValueError(
                "cross_val_predict only works for partitions: the splits of cv test some rows never, or more "
                f"than once. cross_validate(return_predictions={method!r}) has the predictions of each split."
            )
        return found

    return cross_val_predict


def _take_chunks(given: dict[str, Any]) -> ChunkRows | None:
    """The rows of X if it is read in chunks; y and weights that come with X join the arguments."""
    found = chunk_input(given["X"], given.get("y"), own_keywords().memory_limit)
    given |= {"X": found.X if found.rows is None else None, "y": found.y}
    if found.sample_weight is not None:
        given["params"] = weights_as_params(
            given["estimator"], found.sample_weight, given.get("params") or {}
        )
    return found.rows


_HERE = "manyfit.model_selection"
_SCORING = {"check_scoring": _check_scoring}
_NAMES = {
    "Parallel": EngineParallel,
    "check_cv": check_device_cv,
    "clone": clone_once,
    **_SCORING,
}

_SCORES = """Data may be on a device. They stay on it if families, or drop-in estimators, serve the fits;
otherwise they are copied to the host, with a `manyfit.exceptions.HostFallbackWarning`. Scores, times and
indices are NumPy arrays; fitted estimators stay as their fit has left them."""
_PREDICTIONS = """X, y and weights may be on a device. Predictions are returned on the device of X, labels of
classifiers on that of y. Drop-in estimators are fitted on device rows, one fit after the other whatever
`n_jobs` is; only y, weights and predictions are copied to the host. For others X is copied to the host, with
a `manyfit.exceptions.HostFallbackWarning`."""

_PERMUTATIONS = """For `Ridge` and `LinearRegression`, alone or behind a scaler or PCA, one pass over the rows
scores many permutations. Scores are scikit-learn's up to rounding; its own fits score the permutations that
come within 1e-8 of the score of y, so the p-value is its own."""


def _documented(function: Callable[..., Any], note: str) -> Callable[..., Any]:
    return _with_note(_with_computed_inputs(function), note)


_cross_validate = _documented(replace_globals(model_selection.cross_validate, _HERE, **_NAMES), _SCORES)
cross_validate = with_own_keywords(_cross_validate, ("engine", "memory_limit", "return_predictions"))
cross_val_score = with_own_keywords(
    _documented(
        replace_globals(model_selection.cross_val_score, _HERE, cross_validate=_cross_validate, **_SCORING),
        _SCORES,
    )
)
cross_val_predict = with_own_keywords(
    _documented(
        _predict_in_chunks(
            predict_on_any_device(
                replace_globals(model_selection.cross_val_predict, _HERE, Parallel=EngineParallel)
            )
        ),
        _PREDICTIONS,
    ),
    ("memory_limit",),
)
validation_curve = with_own_keywords(
    _documented(replace_globals(model_selection.validation_curve, _HERE, **_NAMES), _SCORES)
)
learning_curve = with_own_keywords(
    _documented(
        _incremental_on_host(replace_globals(model_selection.learning_curve, _HERE, **_NAMES)), _SCORES
    )
)
permutation_test_score = _with_note(
    permute_on_moments(model_selection.permutation_test_score, _HERE), _PERMUTATIONS
)
