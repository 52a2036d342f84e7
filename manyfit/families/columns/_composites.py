"""ColumnTransformer, FeatureUnion and nested pipelines, whose branches read some of the columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.pipeline import FeatureUnion, Pipeline

from manyfit._compat import check_parameters, column_indices, own_output_container
from manyfit.families.protocol import affine_step_of, column_step_of, register_column_step
from manyfit.folds import (
    FoldColumns,
    LinearColumns,
    MomentsNeeded,
    TransformedMoments,
    Unsupported,
    from_moments,
)

View = FoldColumns | TransformedMoments


def check_step(step: Any) -> None:
    """Raise `Unsupported` with the reason if the parameters of a step are not served.

    Parameters
    ----------
    step : transformer
        Unfitted; also "passthrough", "drop" or None.
    """
    known = column_step_of(type(step)) or affine_step_of(type(step))
    if known is None:
        raise Unsupported(f"{type(step).__name__} is not known to be linear in the columns of X")
    if own_output_container(getattr(step, "__dict__", {})) not in ("default", None):
        raise Unsupported(f"set_output was called on {type(step).__name__}")
    why = check_parameters(step)
    if why is not None:
        raise Unsupported(f"scikit-learn refuses a parameter: {why}")
    known.check(step)


def apply_step(step: Any, view: View) -> View:
    """The view of a fold behind a step: of its columns as long as steps read columns, else of its moments.

    Parameters
    ----------
    step : transformer
        Unfitted; also "passthrough", "drop" or None.
    view : FoldColumns or TransformedMoments
        The view before the step.

    Returns
    -------
    FoldColumns or TransformedMoments
        As scikit-learn would fit the step on this fold.

    Raises
    ------
    Unsupported
        Where this is not linear, or scikit-learn would warn or raise.
    MomentsNeeded
        If the step reads moments while the search is planned.
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
    """The moments of a view.

    Parameters
    ----------
    view : FoldColumns or TransformedMoments
        The view before the last step.

    Returns
    -------
    TransformedMoments
        Its training moments.
    """
    return view.moments if isinstance(view, FoldColumns) else view


def map_behind(view: View) -> TransformedMoments:
    """The features of a view as a map of the rows; without moments, where these are not known.

    Parameters
    ----------
    view : FoldColumns or TransformedMoments
        The view before the last step.

    Returns
    -------
    TransformedMoments
        As passes over the rows read it.
    """
    return view.without_moments if isinstance(view, FoldColumns) else view


def _branch(step: Any, columns: FoldColumns) -> FoldColumns:
    """The columns behind one branch of a composite."""
    view = apply_step(step, columns)
    return view if isinstance(view, FoldColumns) else columns.changed([from_moments(columns.fold, view)])


def _joined(
    columns: FoldColumns, branches: Iterator[tuple[Any, FoldColumns]], threshold: float
) -> FoldColumns:
    """The columns behind all branches, side by side; sparse if one is, and few entries of all are stored."""
    found, deferred = list[FoldColumns](), False
    for step, own in branches:
        try:
            found.append(_branch(step, own))
        except MomentsNeeded:
            deferred = True  # the other branches have yet to ask for their columns
    if deferred:
        raise MomentsNeeded
    parts = [part for one in found for part in one.parts]
    if not parts:
        raise Unsupported("no columns are left")
    joined = columns.changed(parts)
    if not joined.is_sparse:
        return joined
    return columns.changed([_as_one_matrix(joined, threshold)])


def _as_one_matrix(joined: FoldColumns, threshold: float) -> LinearColumns:
    """The columns of branches, one of them sparse, as one matrix: sparse if few of its entries are stored.

    scikit-learn counts all entries of a dense branch, and drops the zeros among them when it joins.
    """
    linear, n_train = joined.linear, joined.fold.n_train
    assert linear.stored is not None
    size = max(n_train * linear.width, 1)
    if linear.stored / size < threshold:
        sparse = (one for one in joined.parts if isinstance(one, LinearColumns) and one.stored is not None)
        n_dense = linear.width - sum(one.width for one in sparse)
        return replace(linear, may_be_zero=linear.may_be_zero + n_train * n_dense)
    if (linear.stored - linear.may_be_zero) / size < threshold:
        raise Unsupported("the zeros behind an inner step decide whether the outer one makes a sparse matrix")
    return replace(linear, stored=None, may_be_zero=0.0)


class ColumnTransformerStep:
    """ColumnTransformer (1.9): columns by name, position, mask or dtype."""

    serves = (ColumnTransformer,)

    def check(self, step: Any) -> None:
        if step.transformer_weights or step.verbose:
            raise Unsupported("ColumnTransformer has transformer_weights or verbose")
        for _, transformer, columns in step.transformers:
            if callable(columns) and type(columns) is not make_column_selector:
                raise Unsupported("columns are chosen by a function")
            if np.isscalar(columns):
                raise Unsupported("a transformer reads one column as a vector")
            check_step(transformer)
        check_step(step.remainder)

    def apply(self, step: Any, columns: FoldColumns) -> FoldColumns:
        """The columns behind all transformers."""
        return _joined(columns, self._branches(step, columns), float(step.sparse_threshold))

    def _branches(self, step: Any, columns: FoldColumns) -> Iterator[tuple[Any, FoldColumns]]:
        head = np.zeros((1, columns.width)) if columns.head is None else columns.head
        rest = set(range(columns.width))
        for _, transformer, chosen in step.transformers:
            index = column_indices(head, chosen(head) if callable(chosen) else chosen)
            rest.difference_update(index)
            if len(index) and transformer != "drop":
                yield transformer, columns.selected(index)
        if rest and step.remainder != "drop":
            yield step.remainder, columns.selected(sorted(rest))


class FeatureUnionStep:
    """FeatureUnion (1.9): all transformers read all columns."""

    serves = (FeatureUnion,)

    def check(self, step: Any) -> None:
        if step.transformer_weights or step.verbose:
            raise Unsupported("FeatureUnion has transformer_weights or verbose")
        for _, transformer in step.transformer_list:
            check_step(transformer)

    def apply(self, step: Any, columns: FoldColumns) -> FoldColumns:
        """The columns behind all transformers."""
        chosen = [transformer for _, transformer in step.transformer_list if transformer != "drop"]
        return _joined(columns, ((one, columns) for one in chosen), np.inf)


class PipelineStep:
    """A pipeline of transformers, as a branch of another step."""

    serves = (Pipeline,)

    def check(self, step: Any) -> None:
        if step.memory is not None or step.verbose or getattr(step, "transform_input", None) is not None:
            raise Unsupported("a nested pipeline has memory, verbose or transform_input")
        for _, inner in step.steps:
            check_step(inner)

    def apply(self, step: Any, columns: FoldColumns) -> FoldColumns:
        """The columns behind all steps."""
        for _, inner in step.steps:
            columns = _branch(inner, columns)
        return columns


class PassthroughStep:
    """The text "passthrough", or None in a pipeline: columns stay as they are."""

    serves = (str, type(None))

    def check(self, step: Any) -> None:
        if step not in ("passthrough", "drop", None):
            raise Unsupported(f"{step!r} is no transformer")

    def apply(self, step: Any, columns: FoldColumns) -> FoldColumns:
        """The columns themselves."""
        return columns


for _step in (ColumnTransformerStep(), FeatureUnionStep(), PipelineStep(), PassthroughStep()):
    register_column_step(_step)
