"""Answers from the neighbours within several radii."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier

from manyfit.families.neighbours._query import require_rows
from manyfit.families.neighbours._radius_query import Ball, RadiusQuery
from manyfit.families.protocol import Array, Responses, Role, refused_warnings
from manyfit.folds import Fold

# Responses of a method, from the values that were found for one setting.
Respond = Callable[[Array], Array]


class Within(NamedTuple):
    """One setting."""

    radius: float
    weights: str | None


class Found:
    """Predictions from the neighbours of n rows for m settings, and scikit-learn's for the other rows.

    `values`, (m, n, ...), are sums of votes or means of targets. `near`, (m, n), says which rows have a
    neighbour too close to the radius, and `empty`, (m, n), which others have no neighbours.
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
            query.require_countable_labels()
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


def radius_responses(
    fit: Fit, methods: Mapping[str, Respond], asked: tuple[Role, Fold], places: Sequence[int]
) -> Responses:
    """Responses of settings, given by their places in the fit."""
    role, fold = asked
    found = fit.found(role, fold.rows(role))
    if role == "train":  # settings whose test rows have none are refused already
        for j in places:
            found.complete(j, next(iter(methods)))

    def of_all(method: str) -> Array:
        responses = [methods[method](found.values[j]) for j in places]
        for j, own in zip(places, responses, strict=True):
            found.complete(j, method, own)
        return np.stack(responses)

    return Responses(**{name: partial(of_all, name) for name in methods})
