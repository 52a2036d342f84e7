"""ColumnTransformer, FeatureUnion and nested pipelines, whose branches read some of the columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.pipeline import FeatureUnion, Pipeline

from manyfit._compat import (
    check_parameters,
    column_indices,
    own_output_container,
    why_names_are_refused,
)
from manyfit.families.protocol import ColumnStep, affine_step_of, column_step_of, register_column_step
from manyfit.folds import (
    FoldColumns,
    LinearColumns,
    MomentsNeeded,
    StepNotes,
    TransformedMoments,
    Unsupported,
    from_moments,
)

View = FoldColumns | TransformedMoments


def check_step(step: Any) -> None:
    """Raise `Unsupported` with the reason if the parameters of a step are not served."""
    known = column_step_of(type(step)) or affine_step_of(type(step))
    if known is None:
        raise Unsupported(f"{type(step).__name__} is not known to be linear in the columns of X")
    check_output(step, own_output_container(getattr(step, "__dict__", {})))
    why = check_parameters(step)
    if why is not None:
        raise Unsupported(f"scikit-learn refuses a parameter: {why}")
    known.check(step)


def check_output(step: Any, kind: str | None) -> None:
    """Raise `Unsupported` unless the frame or array that a step returns holds the same numbers.

    `kind` is as `set_output` takes it; None for that of scikit-learn's configuration.
    """
    kind = kind or get_config()["transform_output"]
    if kind not in ("default", "pandas"):
        raise Unsupported(f"the output of {type(step).__name__} is set to {kind!r}")
    is_sparse = getattr(step, "sparse_output", False) or getattr(step, "encode", "") == "onehot"
    if kind == "pandas" and is_sparse:
        raise Unsupported(f"{type(step).__name__} makes a sparse matrix, and its output is set to a frame")
    names = getattr(step, "verbose_feature_names_out", True)
    if kind == "pandas" and names is not True and not (names is False and type(step) is ColumnTransformer):
        raise Unsupported(f"names of columns behind {type(step).__name__} may not be unique")


def apply_step(step: Any, view: View) -> View:
    """The view of a fold behind a step: of its columns as long as steps read columns, else of its moments.

    Raises `Unsupported` where this is not linear, or scikit-learn would warn or raise, and `MomentsNeeded` if
    the step reads moments while the search is planned.
    """
    if isinstance(view, FoldColumns):
        column_step = column_step_of(type(step))
        affine = affine_step_of(type(step))
        if column_step is not None and (affine is None or view.is_raw):
            return column_step.apply(step, view)
        if view.is_sparse:
            raise Unsupported(f"{type(step).__name__} reads a sparse matrix")
        view = view.moments
    affine = affine_step_of(type(step))
    if affine is None:
        raise Unsupported(f"{type(step).__name__} reads columns that a step has mixed")
    return affine.apply(step, view)


def moments_behind(view: View) -> TransformedMoments:
    """The training moments of a view."""
    return view.moments if isinstance(view, FoldColumns) else view


def map_behind(view: View) -> TransformedMoments:
    """The features of a view as a map of the rows; without moments, where these are not known."""
    return view.without_moments if isinstance(view, FoldColumns) else view


def _branch(step: Any, columns: FoldColumns) -> FoldColumns:
    """The columns behind one branch of a composite."""
    view = apply_step(step, columns)
    return view if isinstance(view, FoldColumns) else columns.changed([from_moments(columns.fold, view)])


def _joined(
    columns: FoldColumns, branches: Iterator[tuple[Any, FoldColumns, float]], threshold: float
) -> FoldColumns:
    """The columns behind all branches, side by side; sparse if one is, and few entries of all are stored.

    Each branch is multiplied by its weight.
    """
    found, deferred = list[FoldColumns](), False
    for step, own, weight in branches:
        try:
            branch = _branch(step, own)
            found.append(branch if weight == 1.0 else branch.changed([_times(branch.linear, weight)]))
        except MomentsNeeded:
            deferred = True  # the other branches have yet to be seen
    if deferred:
        for one in found:
            _ = one.linear  # asks the encoding for the columns of the branch
        raise MomentsNeeded
    parts = [part for one in found for part in one.parts]
    if not parts:
        raise Unsupported("no columns are left")
    notes = reduce(StepNotes.joined, (one.notes for one in found), columns.notes)
    joined = replace(columns.changed(parts), notes=notes)
    return _as_one_matrix(joined, threshold) if joined.is_sparse else joined


def _as_one_matrix(joined: FoldColumns, threshold: float) -> FoldColumns:
    """The columns of branches, one of them sparse: a sparse matrix if few of its entries are stored.

    scikit-learn counts all entries of a dense branch, and drops the zeros among them when it joins.
    """
    linear, n_train = joined.linear, joined.fold.n_train
    assert linear.stored is not None
    size = max(n_train * linear.width, 1)
    if linear.stored / size < threshold:
        sparse = (one for one in joined.parts if isinstance(one, LinearColumns) and one.stored is not None)
        n_dense = linear.width - sum(one.width for one in sparse)
        return joined.changed([replace(linear, may_be_zero=linear.may_be_zero + n_train * n_dense)])
    if (linear.stored - linear.may_be_zero) / size < threshold:
        raise Unsupported("the zeros behind an inner step decide whether the outer one makes a sparse matrix")
    dense = [
        replace(one, stored=None, may_be_zero=0.0) if isinstance(one, LinearColumns) else one
        for one in joined.parts
    ]
    return joined.changed(dense)


def _times(columns: LinearColumns, weight: float) -> LinearColumns:
    """Linear columns, multiplied by a number."""
    entries = tuple((rows, places, numbers * weight) for rows, places, numbers in columns.entries)
    return replace(columns, entries=entries, constant=columns.constant * weight)


def _weights(step: Any, names: Iterable[str] | None = None) -> dict[str, float]:
    """The weights of the branches of a composite, by name, which is among `names` if these are known."""
    weights = step.transformer_weights or {}
    if not all(type(weight) in (int, float) and math.isfinite(weight) for weight in weights.values()):
        raise Unsupported("transformer_weights are not plain numbers")
    if names is not None and not set(weights) <= set(names):
        raise Unsupported("transformer_weights name no transformer")
    return weights


def _require_names(step: Any, names: Iterable[str]) -> None:
    why = why_names_are_refused(step, names)
    if why is not None:
        raise Unsupported(f"scikit-learn refuses a name: {why}")


class ColumnTransformerStep(ColumnStep):
    """ColumnTransformer (1.9): columns by name, position, mask or dtype."""

    serves = (ColumnTransformer,)

    def check(self, step: Any) -> None:
        if step.verbose:
            raise Unsupported("ColumnTransformer is verbose")
        _weights(step)
        _require_names(step, [name for name, _, _ in step.transformers])
        for _, transformer, columns in step.transformers:
            if callable(columns) and type(columns) is not make_column_selector:
                raise Unsupported("columns are chosen by a function that is no make_column_selector")
            if np.isscalar(columns):
                raise Unsupported("a transformer reads one column as a vector")
            check_step(transformer)
        check_step(step.remainder)

    def apply(self, step: Any, columns: FoldColumns) -> FoldColumns:
        return _joined(columns, self._branches(step, columns), float(step.sparse_threshold))

    def _branches(self, step: Any, columns: FoldColumns) -> Iterator[tuple[Any, FoldColumns, float]]:
        weights = _weights(step, [*(name for name, _, _ in step.transformers), "remainder"])
        used = list[int]()
        head = np.zeros((1, columns.width)) if columns.head is None else columns.head
        rest = set(range(columns.width))
        for name, transformer, chosen in step.transformers:
            index = _positions(head, chosen(head) if callable(chosen) else chosen)
            rest.difference_update(index)
            used.extend(index if transformer != "drop" else [])
            if step.verbose_feature_names_out is not True:
                _require_unique_names(transformer, columns.head, used)
            if not len(index) and isinstance(chosen, slice):
                raise Unsupported("a slice selects no column, which scikit-learn does not pass over")
            if len(index) and transformer != "drop":
                yield transformer, columns.selected(index), weights.get(name, 1.0)
        if rest and step.remainder != "drop":
            if step.verbose_feature_names_out is not True:
                _require_unique_names(step.remainder, columns.head, used)
            yield step.remainder, columns.selected(sorted(rest)), weights.get("remainder", 1.0)


def _positions(head: Any, chosen: Any) -> list[int]:
    """The columns that a ColumnTransformer chooses; known names are looked up without scikit-learn."""
    if isinstance(chosen, list) and all(type(name) is str for name in chosen) and hasattr(head, "columns"):
        place = {name: j for j, name in enumerate(head.columns)}
        if all(name in place for name in chosen):
            return [place[name] for name in chosen]
    return column_indices(head, chosen)


def _require_unique_names(transformer: Any, head: Any, used: Sequence[int]) -> None:
    """Raise `Unsupported` if names that a transformer gives to its columns may be those of other ones.

    Without a prefix, scikit-learn refuses a frame with one name twice. Encoders add to the name of a column.
    """
    names = set() if head is None else set(map(str, head.columns))
    if any(name[:end] in names for name in names for end, letter in enumerate(name) if letter == "_"):
        raise Unsupported("the name of a column begins as that of another, and names may not be unique")
    if len(set(used)) < len(used):
        raise Unsupported("two transformers read a column, and names may not be unique")
    steps = [one for _, one in transformer.steps] if isinstance(transformer, Pipeline) else [transformer]
    for one in steps:
        keeps = column_step_of(type(one)) and not isinstance(one, ColumnTransformer | FeatureUnion | Pipeline)
        combiner = getattr(one, "feature_name_combiner", None)
        if not keeps or getattr(one, "add_indicator", False) or callable(combiner):
            raise Unsupported(f"names of columns behind {type(one).__name__} may not be unique")


class FeatureUnionStep(ColumnStep):
    """FeatureUnion (1.9): all transformers read all columns."""

    serves = (FeatureUnion,)

    def check(self, step: Any) -> None:
        if step.verbose:
            raise Unsupported("FeatureUnion is verbose")
        _weights(step)
        _require_names(step, [name for name, _ in step.transformer_list])
        for _, transformer in step.transformer_list:
            check_step(transformer)

    def apply(self, step: Any, columns: FoldColumns) -> FoldColumns:
        weights = _weights(step, [name for name, _ in step.transformer_list])
        kept = [(name, one) for name, one in step.transformer_list if one != "drop"]
        return _joined(columns, ((one, columns, weights.get(name, 1.0)) for name, one in kept), np.inf)


class PipelineStep(ColumnStep):
    """A pipeline of transformers, as a branch of another step."""

    serves = (Pipeline,)

    def check(self, step: Any) -> None:
        if step.memory is not None or step.verbose or getattr(step, "transform_input", None) is not None:
            raise Unsupported("a nested pipeline has memory, verbose or transform_input")
        _require_names(step, [name for name, _ in step.steps])
        for _, inner in step.steps:
            check_step(inner)

    def apply(self, step: Any, columns: FoldColumns) -> FoldColumns:
        for _, inner in step.steps:
            columns = _branch(inner, columns)
        return columns


class PassthroughStep(ColumnStep):
    """The text "passthrough", or None in a pipeline: columns stay as they are."""

    serves = (str, type(None))

    def check(self, step: Any) -> None:
        if step not in ("passthrough", "drop", None):
            raise Unsupported(f"{step!r} is no transformer")

    def apply(self, step: Any, columns: FoldColumns) -> FoldColumns:
        return columns


for _step in (ColumnTransformerStep(), FeatureUnionStep(), PipelineStep(), PassthroughStep()):
    register_column_step(_step)
