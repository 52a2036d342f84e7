"""Answers from the neighbours within several radii."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from manyfit.families.neighbours._checks import require_countable_labels, require_rows
from manyfit.families.neighbours._radius_query import Ball, RadiusQuery
from manyfit.families.protocol import Answers, Responses, Role, refused_warnings
from manyfit.folds import Fold

Array = NDArray[Any]
# Responses of a method, from the values that were found for one setting.
Respond = Callable[[Array], Array]


class Within(NamedTuple):
    """One setting."""

    radius: float
    weights: str | None


class Found:
    """Predictions from the neighbours of some rows for each setting, and scikit-learn's for the other rows.

    Parameters
    ----------
    query : RadiusQuery
        The rows.
    settings : sequence of Within
        m of them.
    values : ndarray of shape (m, n, ...)
        Sums of votes or means of targets.
    near : ndarray of shape (m, n)
        Rows with a neighbour too close to the radius.
    empty : ndarray of shape (m, n)
        Other rows, which have no neighbours.
    """

    def __init__(
        self, query: RadiusQuery, settings: Sequence[Within], values: Array, near: Array, empty: Array
    ) -> None:
        self.query, self.settings, self.values, self.near, self.empty = query, settings, values, near, empty
        self._asked: dict[Any, Array] = {}

    def complete(self, j: int, method: str, responses: Array | None = None) -> None:
        """Set the responses of rows that scikit-learn answers; refuses a setting of which it warns or raises.

        It gives all rows without neighbours the same response.
        """
        near, empty = np.flatnonzero(self.near[j]), np.flatnonzero(self.empty[j])
        asked: list[tuple[Array, Any]] = [
            (near, (j, method)),
            (empty[:1], (self.settings[j].weights, method)),
        ]
        for rows, key in asked:
            if len(rows) and key not in self._asked:
                with refused_warnings("a row without neighbours"):
                    found = self.query.ask(self.settings[j]._asdict(), method, rows)
                self._asked[key] = found
        if responses is not None:
            for rows, (_, key) in zip((near, empty), asked, strict=True):
                if len(rows):
                    responses[rows] = self._asked[key]


class Fit:
    """The fitted estimator of a fold, and what it has found for the rows of a role.

    `reduce` makes responses of a ball: the sums of votes or the means of targets of its rows.
    """

    def __init__(self, model: Any, settings: Sequence[Within], reduce: Callable[[Ball, bool], Array]) -> None:
        self.model, self.settings, self._reduce = model, tuple(settings), reduce
        self._found: dict[Role, Found] = {}

    def found(self, role: Role, X: Any) -> Found:
        """Found once for the rows X of a role."""
        if role not in self._found:
            require_rows(X, self.model)
            self._found[role] = self._find(X)
        return self._found[role]

    def _find(self, X: Any) -> Found:
        radii = sorted({one.radius for one in self.settings}, reverse=True)
        query, m, n = RadiusQuery(self.model, X, radii), len(self.settings), X.shape[0]
        if is_classifier(self.model):
            require_countable_labels(query)
        values: Array | None = None
        near, empty = np.zeros((m, n), dtype=bool), np.zeros((m, n), dtype=bool)
        for ball in query.balls():
            at = ball.rows
            at_radius = [j for j, one in enumerate(self.settings) if one.radius == radii[ball.i]]
            for by_distance in (False, True):
                asked = [j for j in at_radius if (self.settings[j].weights == "distance") == by_distance]
                if not asked:
                    continue
                reduced = self._reduce(ball, by_distance)
                if values is None:
                    values = np.zeros((m, n, *reduced.shape[1:]))
                values[asked, at] = reduced
            near[at_radius, at] = ball.near
            empty[at_radius, at] = (ball.counts == 0) & ~ball.near
        assert values is not None
        return Found(query, self.settings, values, near, empty)


@dataclass(frozen=True)
class RadiusAnswers(Answers):
    """Answers of one estimator of neighbours within a radius a setting.

    Attributes
    ----------
    fit : Fit
        Of the fold.
    places : tuple of int
        Of the settings among those of the fit.
    methods : dict of str to callable
        By method: makes responses of what was found for a setting.
    outputs : int
        Numbers that a response has a row.
    refused : mapping of int to str
        See `Answers`.
    classes : ndarray of shape (n_classes,) or None
        See `Answers`.
    fits_made : int
        See `Answers`.
    """

    fit: Fit
    places: tuple[int, ...]
    methods: Mapping[str, Respond]
    outputs: int
    refused: Mapping[int, str] = field(default_factory=dict)
    classes: Array | None = None
    fits_made: int = 1

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        """See `Answers`."""
        return self.outputs

    def subset(self, settings: Sequence[int]) -> "RadiusAnswers":
        """See `Answers`."""
        return replace(self, places=tuple(self.places[j] for j in settings), refused={}, fits_made=0)

    def respond(self, role: Role, fold: Fold) -> Mapping[str, Array]:
        """See `Answers`."""
        found = self.fit.found(role, fold.rows(role))
        if role == "train":  # settings whose test rows have none are refused already
            for j in self.places:
                found.complete(j, next(iter(self.methods)))
        return Responses(**{name: partial(self._respond, name, found) for name in self.methods})

    def _respond(self, method: str, found: Found) -> Array:
        return np.stack([self._of_setting(method, found, j) for j in self.places])

    def _of_setting(self, method: str, found: Found, j: int) -> Array:
        responses = self.methods[method](found.values[j])
        found.complete(j, method, responses)
        return responses
