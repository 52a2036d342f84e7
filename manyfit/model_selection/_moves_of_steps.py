"""Moves at the boundaries of the steps of a pipeline, and of the parts of those that hold others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sklearn.base import TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from manyfit._compat import output_container
from manyfit._twins import twin_of
from manyfit.arrays import Place
from manyfit.cluster._takes_gpu import is_drop_in
from manyfit.estimators._routes import why_at_home
from manyfit.model_selection._move import BACK, JOINED
from manyfit.model_selection._parts import Part, is_left_out, makes_sparse, parts_of
from manyfit.model_selection._settings import part_key
from manyfit.model_selection._trips import Rows, Trips
from manyfit.model_selection._widths import n_columns


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
            parts = parts_of(step, rows.columns)
            return out if parts is None else self._joined(step, rows, out, parts, path)
        self.readers.append(who)
        if rows.cut:  # anew where a training score has it applied to the same columns again
            rows = replace(rows, again=again)
        self._trips.home(rows, who, why)
        return self._made_at_home(step, out)

    def _made_at_home(self, step: Any, out: Rows) -> Rows:
        """The output of a step on the host: a frame stays there, and what is sparse, but for CuPy's."""
        if output_container(step) != "default":
            return replace(out, at="host")
        is_sparse = makes_sparse(step)
        if is_sparse and self._place.library != "cupy":
            return replace(out, at="sparse")
        out = replace(out, columns=None) if is_sparse is None else out
        self._trips.there(out, BACK)
        return replace(out, at="both")

    # Parts

    def _joined(self, holder: Any, rows: Rows, out: Rows, parts: Sequence[Part], path: str) -> Rows:
        """The columns of a ColumnTransformer's or FeatureUnion's parts, side by side where they lie."""
        found = [self._part(part, rows, path) for part in parts]
        home, is_sparse = [one for one in found if one.stays], any(one.at == "sparse" for one in found)
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

    def _part(self, part: Part, rows: Rows, path: str) -> Rows:
        name = f"{path}__{part.name}" if path else part.name
        if part.cut:
            n = None if part.columns is None else len(part.columns)
            rows = rows.some(f"columns of {rows.name}", (rows.key, part.columns), n)
        return self._through(part.estimator, rows, name)

    def _through(self, estimator: Any, rows: Rows, path: str) -> Rows:
        if is_left_out(estimator):
            return rows
        if isinstance(estimator, Pipeline):
            for name, step in estimator.steps:
                rows = self._through(step, rows, f"{path}__{name}")
            return rows
        key = part_key(estimator, rows.key) if self._trips.shared else ()
        if rows.cut and rows.reader is None:
            rows = replace(rows, reader=key)
        return self.step(estimator, rows, key, path)
