"""Pipelines behind the columns of a frame in chunks, fitted from the summaries of a search.

scikit-learn's own transformers are fitted to some made rows, which hold all categories. They are then given
the fills, means and ranges of all rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler

from manyfit._compat import column_indices
from manyfit.estimators.chunks._transformers import TransformedRows
from manyfit.families import apply_step, moments_behind
from manyfit.folds import (
    AtomGroup,
    ChunkEncoding,
    ChunkRows,
    FoldColumns,
    FoldedMatrix,
    Moments,
    Splits,
    Weights,
)

Array = NDArray[Any]

_FILLS = ("mean", "median", "constant")
_ENCODERS = (OneHotEncoder, OrdinalEncoder)


def begins_with_columns(model: Any) -> bool:
    """Whether a model is a pipeline whose first step reads the columns of X as they are."""
    return type(model) is Pipeline and len(model.steps) > 1 and _reads_columns(model.steps[0][1])


def _reads_columns(step: Any) -> bool:
    if type(step) is Pipeline:
        return any(_reads_columns(part) for _, part in step.steps)
    return type(step) in (ColumnTransformer, SimpleImputer, OneHotEncoder, OrdinalEncoder)


def why_not_summed(step: Any) -> str | None:
    """The reason why a transformer is not fitted from the summaries of a search, or None."""
    cls, parts = type(step), _parts(step)
    if step is None or cls is str:
        return None
    if cls is SimpleImputer and (step.add_indicator or step.strategy not in _FILLS):
        return f"SimpleImputer(strategy={step.strategy!r}, add_indicator={step.add_indicator}) reads X whole"
    if cls in _ENCODERS and (step.min_frequency or step.max_categories):
        return f"{cls.__name__} with rare categories reads X whole"
    if not (parts or cls in _LEARNED or cls in _ENCODERS):
        return f"{cls.__name__} reads X whole"
    for k, part in enumerate(parts):
        # The summaries are those of the columns of X.
        if cls is Pipeline and type(part) in _LEARNED and any(map(_encodes, parts[:k])):
            return f"{type(part).__name__} behind an encoder reads X whole"
    return next((why for part in parts if (why := why_not_summed(part)) is not None), None)


def _parts(step: Any) -> list[Any]:
    """The transformers in a composite; empty for any other step."""
    if type(step) is ColumnTransformer:
        return [part for _, part, _ in step.transformers] + [step.remainder]
    return [part for _, part in step.steps] if type(step) is Pipeline else []


def _encodes(step: Any) -> bool:
    """Whether a step holds an encoder of categories."""
    return type(step) in _ENCODERS or any(map(_encodes, _parts(step)))


def fit_behind_columns(
    model: Pipeline, X: ChunkRows, encoding: ChunkEncoding, y: Any, params: Mapping[str, Any]
) -> Any:
    """Fit a pipeline in place; `encoding` is that of its first step, in a search on the same rows.

    No pass is made for what the search has summed of all rows: means and ranges of columns, categories, and
    the moments of the encoding with y. `params` are those of ``fit``.
    """
    (name, step), *others = model.steps
    last = model.steps[-1][0]
    weights = params.get(f"{last}__sample_weight")
    own = {key.removeprefix(f"{last}__"): value for key, value in params.items()}
    whole, n = _of_all_rows(encoding), X.shape[0]
    every = np.arange(n)
    targets = np.asarray(y) if np.asarray(y).dtype.kind in "fiu" else np.zeros(n)
    used = None if weights is None else np.asarray(weights, dtype=np.float64)
    data = FoldedMatrix(whole, targets, Splits.given([(every, every)], n), Weights(used, used))
    fitted = clone(step).fit(_made_rows(X, encoding))
    columns = data.start(0)
    assert isinstance(columns, FoldColumns)
    behind = _learn(fitted, clone(step), columns)
    rows = TransformedRows(X, partial(_dense, fitted.transform))
    if targets.ndim == 1 and len(others) == 1 and isinstance(behind, FoldColumns):
        found = _moments(moments_behind(behind).weighted)
        rows.known_sums.add(np.reshape(targets, (n, 1)), used, [(found, 0)])
    model.steps[0] = name, fitted
    for _, part in others[:-1]:
        if part is not None and part != "passthrough":
            rows = part.fit_transform(rows, y)
    others[-1][1].fit(rows, y, **own)
    return model


def _of_all_rows(encoding: ChunkEncoding) -> ChunkEncoding:
    """The encoding over one atom, all rows; sums over the atoms of the search are merged."""
    table, groups = encoding.table.like(), encoding.table.groups
    n, one = table.shape[0], np.ones((1, 1))
    first = groups[0]
    table.groups = [AtomGroup(range(1), [slice(0, n)], one, one)]
    covers = sum(_size(rows) for rows in first.rows) == n
    table.merge_sums(slice(0, len(first.rows)) if covers else None)
    return encoding.behind(table)


def _size(rows: Any) -> int:
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


def _made_rows(X: ChunkRows, encoding: ChunkEncoding) -> Any:
    """Some rows that hold all categories, and no gaps among numbers."""
    first, labels = X.load_frame(0, 1), encoding.table.known_labels()
    size = max([2, *map(len, labels.values())])
    if not hasattr(first, "columns"):
        made = np.zeros((size, X.n_columns), dtype=first.dtype)
        for j, own in labels.items():
            made[:, j] = np.resize(own, size)
        return made
    import pandas as pd

    if not isinstance(first, pd.DataFrame):
        raise TypeError(f"The refit reads frames of pandas, not {type(first).__name__}. Set refit=False.")
    columns = {}
    for j, name in enumerate(first.columns):
        own = labels.get(j) or [first[name].iloc[0] if encoding.table.number_kind(j) is None else 0]
        dtype = first[name].dtype
        if isinstance(dtype, pd.CategoricalDtype) and j in labels:  # each part may have categories of its own
            dtype = pd.CategoricalDtype([label for label in own if not pd.isna(label)])
        columns[name] = pd.Series([own[k % len(own)] for k in range(size)], dtype=dtype)
    return pd.DataFrame(columns)


def _dense(transform: Any, frame: Any) -> Array:
    found = transform(frame)
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found)


def _moments(features: Any) -> Moments:
    """Moments of ``[features, y]``, where y is one column."""
    xx = np.diag(features.xx) if features.xx.ndim == 1 else features.xx
    scatter = np.block([[xx, features.xy], [features.xy.T, np.diag(features.yy)]])
    origin = np.concatenate([features.x_origin, features.y_mean])
    offset = np.concatenate([features.x_offset, np.zeros(len(features.y_mean))])
    return Moments(features.rows, features.weight, origin, offset, scatter)


def _learn(fitted: Any, step: Any, columns: Any) -> Any:
    """Give a fitted transformer what `step`, which is not fitted, learns from all rows.

    Returns the columns behind it.
    """
    behind = apply_step(step, columns)
    if type(step) is ColumnTransformer:
        unfitted = {name: part for name, part, _ in step.transformers} | {"remainder": step.remainder}
        head = np.zeros((1, columns.width)) if columns.head is None else columns.head
        for name, own, key in fitted.transformers_:
            index = column_indices(head, key)
            if len(index) and not isinstance(unfitted[name], str):
                _learn(own, unfitted[name], columns.selected(index))
    elif type(step) is Pipeline:
        for (_, own), (_, part) in zip(fitted.steps, step.steps, strict=True):
            if part is not None and not isinstance(part, str):
                columns = _learn(own, part, columns)
    elif type(step) in _LEARNED and not getattr(step, "strategy", "").startswith("constant"):
        known = [columns.fold.known(part) for part in columns.parts]
        _LEARNED[type(step)](fitted, known)
    return behind


def _fill(imputer: SimpleImputer, known: list[Any]) -> None:
    if imputer.strategy == "mean":
        imputer.statistics_ = np.array([one.mean for one in known])
    elif imputer.strategy == "median":
        imputer.statistics_ = np.array([float(np.median(one.values)) for one in known])


def _standardize(scaler: StandardScaler, known: list[Any]) -> None:
    sizes = np.array([one.size for one in known])
    scaler.n_samples_seen_ = np.int64(sizes[0]) if np.ptp(sizes) == 0 else sizes
    if scaler.mean_ is not None:
        scaler.mean_ = np.array([one.mean for one in known])
    if scaler.var_ is not None:
        scaler.var_ = np.array([0.0 if one.low == one.high else one.variance for one in known])
        scaler.scale_ = np.where(scaler.var_ > 0.0, np.sqrt(scaler.var_), 1.0)


def _range(scaler: MinMaxScaler, known: list[Any]) -> None:
    low, high = scaler.feature_range
    scaler.data_min_, scaler.data_max_ = (
        np.array([getattr(one, end) for one in known]) for end in ("low", "high")
    )
    scaler.data_range_ = scaler.data_max_ - scaler.data_min_
    scaler.scale_ = (high - low) / _without_zeros(scaler.data_range_)
    scaler.min_ = low - scaler.data_min_ * scaler.scale_
    scaler.n_samples_seen_ = max(one.size + one.n_gaps for one in known)


def _largest(scaler: MaxAbsScaler, known: list[Any]) -> None:
    scaler.max_abs_ = np.array([max(abs(one.low), abs(one.high)) for one in known])
    scaler.scale_ = _without_zeros(scaler.max_abs_)
    scaler.n_samples_seen_ = max(one.size + one.n_gaps for one in known)


def _without_zeros(scale: Array) -> Array:
    """As scikit-learn divides by it."""
    return np.where(scale < 10.0 * np.finfo(np.float64).eps, 1.0, scale)


_LEARNED: Mapping[type, Any] = {
    SimpleImputer: _fill,
    StandardScaler: _standardize,
    MinMaxScaler: _range,
    MaxAbsScaler: _largest,
}
