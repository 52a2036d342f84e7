"""The checked arguments of a search, and the splits and settings that a plan has drawn."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv

from manyfit._compat import check_method_params, num_samples
from manyfit.arrays import TransferCache, is_xp_array, label_transfers, to_host
from manyfit.cluster.pool.run import client_for
from manyfit.folds import ChunkRows, Splits, is_parquet_path, is_row_source, own_row_source
from manyfit.introspection.composites import build_setting, last_step
from manyfit.introspection.stable_digest import Digester
from manyfit.model_selection.early_stopping._iterations import require_stops
from manyfit.model_selection.job._chunk_inputs import IndexedRows, load_inputs, read_for_shared_fits
from manyfit.model_selection.job._job import Job, Options
from manyfit.model_selection.job._option_values import memory_limit_in_bytes
from manyfit.model_selection.job._predictions import recording_for
from manyfit.model_selection.job._sklearnex import sklearnex_version
from manyfit.model_selection.planning._pipeline_spec import value_key
from manyfit.model_selection.planning.steps._order import build_candidate
from manyfit.model_selection.running._predictions import require_choice
from manyfit.model_selection.search._hooks import check_input
from manyfit.model_selection.search._sample import Sample, sample_of

# Settings whose methods are looked at before the fits.
_MOST_ASKED = 50


@dataclass(frozen=True)
class Setup:
    """The checked arguments of a fit, and what follows from them before anything is fitted."""

    # The unfitted estimator of all fits, copied before splits and settings draw from a generator that it has.
    estimator: Any
    X: Any
    y: Any
    params: Mapping[str, Any]
    scorer: Any
    refit_metric: Any
    routed: Any
    cv: Any
    n_splits: int
    copy_to_host: TransferCache
    sample: Sample | None = None


@dataclass(frozen=True)
class Frozen:
    """The splits and settings of a plan, kept until the fit on the same data."""

    data: str | None
    search_key: Any
    params: dict[str, Any]  # kept alive, since `search_key` has identities of some
    cv: Any
    splits: Splits
    candidates: list[Any]
    sample: Sample | None = None


def search_key(params: Mapping[str, Any]) -> tuple[Any, ...]:
    """A key of a search's parameters, on which a plan depends."""
    # The state of a connection does not change a plan.
    return tuple(
        (name, id(value) if name == "client" else _content(value)) for name, value in sorted(params.items())
    )


def _content(value: Any) -> Any:
    """A key of a parameter value; of a distribution, whose state changes with each draw, its identity.

    The digest covers objects that the key knows by identity, since they may change in place.
    """
    if isinstance(value, dict):
        return tuple((name, _content(item)) for name, item in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(_content, value))
    if hasattr(value, "rvs"):
        return id(value)
    return value_key(value), _digest(value)


def draw_splits(setup: Setup, cv: Any) -> Splits:
    X = IndexedRows(setup.X) if is_row_source(setup.X) else setup.X
    given = X, setup.y, num_samples(setup.X), setup.routed.splitter.split
    splits = Splits.draw(cv, *given, copy_to_host=setup.copy_to_host)
    if splits.n_splits != setup.n_splits:
        raise ValueError(
            "cv.split and cv.get_n_splits return inconsistent results. "
            f"Expected {setup.n_splits} splits, got {splits.n_splits}"
        )
    return splits


def refuse_fits_by_sklearn(X: Any, refit: Any, verify: int) -> None:
    """Raise TypeError if `refit` or `verify` needs fits by scikit-learn, and only a `RowSource` reads X."""
    if isinstance(X, ChunkRows):
        refit = False  # see `refuse_refit_in_chunks`
    if is_row_source(X) and (refit or verify):
        name, off = ("refit", False) if refit else ("verify", 0)
        raise TypeError(
            f"{read_for_shared_fits(X)} {name}={refit or verify!r} needs a fit by scikit-learn. "
            f"Set {name}={off}."
        )


def fingerprint(setup: Setup) -> str | None:
    """A digest of all arguments of a fit, or None; device arrays are copied to the host for it."""
    with label_transfers("data compared with those of the plan"):
        X, y, *values = (
            to_host(one) if is_xp_array(one) else one for one in (setup.X, setup.y, *setup.params.values())
        )
    X = X.identity if isinstance(X, ChunkRows) else X
    return _digest((X, y, dict(zip(setup.params, values, strict=True))))


def _digest(thing: Any) -> str | None:
    try:
        return Digester()(thing)
    except Exception:  # it cannot be pickled, or a user's method fails
        return None


def weights_of(params: Mapping[str, Any]) -> dict[str, Any] | None:
    """The sample weights among the parameters of `fit`, as callbacks take them."""
    weights = params.get("sample_weight")
    return None if weights is None else {"sample_weight": weights}


def refuse_refit_in_chunks(X: ChunkRows, estimator: Any, candidates: Iterable[Mapping[str, Any]]) -> None:
    """Raise TypeError if the estimator of some setting could not be fitted to X in chunks."""
    from manyfit.estimators.chunks.methods import METHODS, why_not_refitted

    for params in candidates:
        try:
            chosen = build_setting(estimator, params)
        except Exception:  # an unknown parameter; its fit raises it again in scikit-learn's own words
            continue
        reason = why_not_refitted(chosen)
        if reason is not None:
            raise TypeError(
                f"X, a {X.kind} of {X.nbytes:,} bytes, is larger than memory_limit and is read in chunks, "
                f"which the refit cannot read: {reason}. Set refit=False, or use estimators of "
                f"manyfit.estimators that read chunks: {', '.join(METHODS)}, alone or in a Pipeline; or make "
                f"the search on some rows, by sample=100_000 or another number."
            )


def make_setup(search: Any, X: Any, y: Any, params: Mapping[str, Any], frozen: Frozen | None = None) -> Setup:
    """Check the arguments of `fit` or `plan`; the data are loaded, and nothing is fitted."""
    scorer, refit_metric = search._get_scorers()
    source = own_row_source(X)
    # The letters of a text would be counted as rows.
    if source is None and isinstance(X, str) and not is_parquet_path(X):
        raise ValueError(
            f"X should be data, a Parquet file or a folder of such files; {X!r} is no folder, and does "
            "not end in .parquet. Read other files first, or pass their blocks: manyfit.folds.Blocks."
        )
    X, y, params = load_inputs(search, X, y, params, source)
    sample = sample_of(search, X, None if frozen is None else frozen.sample)
    if sample is not None:
        X, y, params = sample.take(search.estimator, X, y, params, memory_limit_in_bytes(search.memory_limit))
    copy_to_host, params = TransferCache(), check_method_params(X, params=params)
    routed = search._get_routed_params_for_fit(params)
    # The plan has consumed a `cv` that can be read only once. Any other depends on y.
    once = isinstance(search.cv, Iterable) and not hasattr(search.cv, "split")
    if frozen is not None and once:
        cv = frozen.cv
    else:
        # For a classifier, `check_cv` reads the kind of y.
        y_read = copy_to_host(y, "y") if is_classifier(search.estimator) else y
        cv = check_cv(search.cv, y_read, classifier=is_classifier(search.estimator))
    split_params = routed.splitter.split
    cv = check_input(search, cv, X, y, split_params)
    memory_limit_in_bytes(search.memory_limit)
    n_splits = cv.get_n_splits(X, y, **split_params)
    X = X.source if isinstance(X, IndexedRows) else X
    estimator = clone(search.estimator)
    return Setup(estimator, X, y, params, scorer, refit_metric, routed, cv, n_splits, copy_to_host, sample)


def make_job(search: Any, setup: Setup, candidates: list[Any], splits: Splits, contexts: Any) -> Job:
    """All fits of some settings of a search; raises if options cannot be combined."""
    if search.engine is not None:
        sklearnex_version()  # raises if it is not installed
    require_choice(search, setup.scorer)
    options = Options(
        scorer=setup.scorer,
        fit_params=setup.routed.estimator.fit,
        score_params=setup.routed.scorer.score,
        return_train_score=search.return_train_score,
        error_score=search.error_score,
        verbose=int(search.verbose),
        memory_limit=memory_limit_in_bytes(search.memory_limit),
        early_stopping=search.early_stopping,
        engine=search.engine,
        fit_timeout=search.fit_timeout,
        fits_within=search.fits_within,
        recording=recording_for(search.return_predictions, setup.y, len(candidates), search.memory_limit),
    )
    in_chunks = isinstance(setup.X, ChunkRows)
    if in_chunks and search.refit is not False:
        refuse_refit_in_chunks(setup.X, setup.estimator, candidates)
    job = Job(
        clone(setup.estimator), candidates, setup.X, setup.y, splits, options, search.n_jobs,
        search.pre_dispatch, search.sharing, search, contexts,
        client=None if in_chunks else client_for(search.client),  # see `chunk_workers`
        copy_to_host=setup.copy_to_host,
    )  # fmt: skip
    _require_predictions(job)
    return _require_timed_fits(require_stops(job))


def _require_predictions(job: Job) -> None:
    """Raise before anything is fitted if no setting has the predictions that `return_predictions` names."""
    recording, n = job.options.recording, len(job.candidates)
    if recording is None or not 0 < n <= _MOST_ASKED:
        return
    if not any(_may_have(build_candidate(job, c), recording.method) for c in range(n)):
        recording.require(last_step(build_candidate(job, 0)))


def _may_have(model: Any, method: str) -> bool:
    """Whether a model has a method, or may have it once it is fitted.

    Parameters may hide a method of its class, and fitted attributes may show it again.
    """
    last = last_step(model)
    return hasattr(last, method) or hasattr(type(last), method) or hasattr(type(last), "__getattr__")


def _require_timed_fits(job: Job) -> Job:
    """The job; ValueError if its fits cannot be made by processes of their own, as `fit_timeout` asks."""
    if job.options.fit_timeout is None:
        return job
    given = [job.X, job.y, *job.options.fit_params.values(), *job.options.score_params.values()]
    whys = {
        "callbacks follow the fits": job.contexts is not None,
        "the data are on a device": any(map(is_xp_array, given)),
        f"engine={job.options.engine!r}": job.options.engine is not None,
    }
    if any(whys.values()):
        why = next(one for one, is_so in whys.items() if is_so)
        raise ValueError(
            f"fit_timeout={job.options.fit_timeout:g} has each fit made by a process that can be ended. That "
            f"cannot be combined with this: {why}. Use fit_timeout=None."
        )
    return job
