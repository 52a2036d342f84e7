"""Moves at the boundaries of the steps of a pipeline, and of the parts of those that hold others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from manyfit._compat import output_container
from manyfit._twins import twin_of
from manyfit.arrays import Place
from manyfit.cluster import is_drop_in
from manyfit.estimators._routes import why_at_home
from manyfit.model_selection._move import BACK, JOINED
from manyfit.model_selection._settings import part_key
from manyfit.model_selection._trips import Rows, Trips
from manyfit.model_selection._widths import n_columns

# Those of them that make something sparse of numbers, unless `sparse_output` says otherwise.
_SPARSE = ("OneHotEncoder", "TfidfTransformer")


class MovesOfSteps:
    """Names what crosses where steps on the host stand among those on a device.

    Parameters
    ----------
    trips : Trips
        How often rows cross.
    place : Place
        Where X lies, or will lie.
    itemsize : int
        Bytes of a number behind a step.
    """

    def __init__(self, trips: Trips, place: Place, itemsize: int) -> None:
        self._trips, self._place, self._size = trips, place, itemsize
        self.readers = list[str]()  # who was handed y on the host

    def step(self, step: Any, rows: Rows, key: Any, path: str = "") -> Rows:
        """What a step hands on; `path` is that of a part within the one that holds it."""
        who = f"{path}: {type(step).__name__}" if path else type(step).__name__
        why = why_at_home(step, self._place) if is_drop_in(step) else None
        own = getattr(twin_of(type(step)), "fit_transform", None) is not TransformerMixin.fit_transform
        again = self._trips.with_train and (own or rows.again)
        out = Rows(f"output of {who}", key, n_columns(step, rows.columns), self._size, again=again)
        if rows.stays:
            self.readers.append(who)
            return replace(out, at="host")
        if why is None:
            parts = _parts(step, rows.columns)
            return out if parts is None else self._joined(step, rows, out, parts, path)
        self.readers.append(who)
        if rows.cut:  # anew where a training score has it applied to the same columns again
            rows = replace(rows, again=again)
        self._trips.home(rows, who, why)
        at = self._made_at(step)
        if at == "both":
            self._trips.there(out, BACK)
        return replace(out, at=at)

    def _made_at(self, step: Any) -> str:
        """Where the output of a step on the host goes: a frame stays, and what is sparse, but for CuPy's."""
        if output_container(step) != "default":
            return "host"
        is_sparse = twin_of(type(step)).__name__ in _SPARSE and getattr(step, "sparse_output", True)
        return "sparse" if is_sparse and self._place.library != "cupy" else "both"

    # Parts

    def _joined(self, holder: Any, rows: Rows, out: Rows, parts: Sequence[_Part], path: str) -> Rows:
        """The columns of a ColumnTransformer's or FeatureUnion's parts, side by side where they lie."""
        found = [self._part(part, rows, path) for part in parts]
        home, is_sparse = [one for one in found if one.stays], any(one.at == "sparse" for one in found)
        widths = [one.columns for one in found]
        columns = None if None in widths else sum(one for one in widths if one is not None)
        out = replace(out, columns=columns)
        if home and len(home) == len(found):
            return replace(out, at="sparse" if is_sparse else "host")
        if is_sparse and twin_of(type(holder)) is ColumnTransformer:
            return replace(out, columns=None)  # how dense it is decides, which a fit tells
        if is_sparse:
            for one in found:
                if not one.stays:
                    self._trips.home(one, type(holder).__name__, JOINED)
            return replace(out, at="sparse")
        for one in home:  # frames, which are sent whenever they are joined
            self._trips.there(replace(one, key=(out.key, one.key), again=out.again), BACK)
        return out

    def _part(self, part: _Part, rows: Rows, path: str) -> Rows:
        name = f"{path}__{part.name}" if path else part.name
        if part.cut:
            key = None if part.columns is None else tuple(part.columns)
            rows = rows.some(f"columns of {rows.name}", (rows.key, key), None if key is None else len(key))
        return self._through(part.estimator, rows, name)

    def _through(self, estimator: Any, rows: Rows, path: str) -> Rows:
        if estimator is None or isinstance(estimator, str):  # "passthrough"
            return rows
        if isinstance(estimator, Pipeline):
            for name, step in estimator.steps:
                rows = self._through(step, rows, f"{path}__{name}")
            return rows
        key = part_key(estimator, rows.key) if self._trips.shared else ()
        if rows.cut and rows.reader is None:
            rows = replace(rows, reader=key)
        return self.step(estimator, rows, key, path)


class _Part(NamedTuple):
    """One part of a ColumnTransformer or FeatureUnion."""

    name: str
    estimator: Any
    cut: bool = False
    columns: list[int] | None = None  # of those that it is handed, where it is not all


def _parts(step: Any, p: int | None) -> list[_Part] | None:
    """The parts of a step that holds some, without those that are dropped; None of any other."""
    kind = twin_of(type(step))
    if kind is FeatureUnion:
        return [_Part(*part) for part in step.transformer_list if not _is("drop", part[1])]
    if kind is not ColumnTransformer:
        return None
    read = [_columns_of(spec, p) for _, _, spec in step.transformers]
    named = set().union(*(found or () for found in read))
    left = None if p is None or None in read else [j for j in range(p) if j not in named]
    parts = [
        _Part(name, one, True, found) for (name, one, _), found in zip(step.transformers, read, strict=True)
    ]
    parts.append(_Part("remainder", step.remainder, True, left))
    return [part for part in parts if not _is("drop", part.estimator) and part.columns != []]


def _is(word: str, thing: Any) -> bool:
    return isinstance(thing, str) and thing == word


def _columns_of(spec: Any, p: int | None) -> list[int] | None:
    """Numbers of the columns that a ColumnTransformer is told to hand to a part; None where a fit tells."""
    if p is None or callable(spec):
        return None
    try:
        numbers = np.arange(p)[[int(spec)] if isinstance(spec, Integral) else spec]
    except (IndexError, TypeError, ValueError):  # names, and what a fit refuses
        return None
    return [int(one) for one in np.atleast_1d(numbers)]
