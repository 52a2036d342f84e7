"""The checked arguments of a search, and the splits and settings that a plan has drawn."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from manyfit._compat import num_samples
from manyfit.arrays import TransferCache, is_xp_array, label_transfers, to_host
from manyfit.estimators.chunks.methods import METHODS, why_not_refitted
from manyfit.folds import ChunkRows, Splits, is_row_source
from manyfit.introspection.stable_digest import ProcessDigester
from manyfit.model_selection.job._chunk_inputs import IndexedRows, read_for_shared_fits
from manyfit.model_selection.planning._pipeline_spec import value_key
from manyfit.model_selection.search._sample import Sample


@dataclass(frozen=True)
class Setup:
    """The checked arguments of a fit, and what follows from them before anything is fitted."""

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
        return ProcessDigester()(thing)
    except Exception:  # it cannot be pickled, or a user's method fails
        return None


def weights_of(params: Mapping[str, Any]) -> dict[str, Any] | None:
    """The sample weights among the parameters of `fit`, as callbacks take them."""
    weights = params.get("sample_weight")
    return None if weights is None else {"sample_weight": weights}


def refuse_refit_in_chunks(X: ChunkRows, estimator: Any, candidates: Iterable[Mapping[str, Any]]) -> None:
    """Raise TypeError if the estimator of some setting could not be fitted to X in chunks."""
    for params in candidates:
        try:
            chosen = clone(estimator).set_params(**clone(dict(params), safe=False))
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
