"""Answers from sorted neighbours, and what both families of k neighbours have in common."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier

from manyfit._compat import algorithm_of
from manyfit.families.neighbours._left_out import LeftOutNeighbors, RowsLeftOut
from manyfit.families.neighbours._queries import Neighbors, distance_weights
from manyfit.families.neighbours._query import (
    NeighborhoodAnswers,
    require_metric,
    require_rows,
    require_weighting,
)
from manyfit.families.protocol import (
    Answers,
    Array,
    Cost,
    FoldFamily,
    LeavesRowsOut,
    Responses,
    Role,
    Settings,
    Shape,
    refused_warnings,
)
from manyfit.folds import Fold, Unsupported


class Votes(NamedTuple):
    """One setting: how many neighbours, of which fit, and how they are weighted."""

    k: int
    weights: str | None
    brute: bool  # whether it belongs to the fit for more than half of the training rows

    @property
    def by_distance(self) -> bool:
        """Whether near neighbours weigh more."""
        return self.weights == "distance"


@dataclass
class Fits:
    """Fitted estimators of one fold, and the neighbours that they have found of the rows of a role.

    `fitted` has, by `Votes.brute`, the fit and the most neighbours that its settings ask for. `query` finds
    the neighbours of rows, which have the `targets` of training rows. X are the rows of every role, None
    for those of the fold.
    """

    fitted: dict[bool, tuple[Any, int]]
    targets: Array
    query: Callable[[Any, Any, Array, int], Neighbors]
    X: Any
    _found: dict[tuple[bool, str], Neighbors] = field(default_factory=dict)

    def neighbors(self, brute: bool, role: Role, fold: Fold) -> Neighbors:
        """The neighbours of the rows of a role; found once."""
        if (brute, role) not in self._found:
            X = fold.rows(role) if self.X is None else self.X
            require_rows(X, self.fitted[brute][0])
            model, most = self.fitted[brute]
            self._found[brute, role] = self.query(model, X, self.targets, most)
        return self._found[brute, role]


# Responses of a method for settings of one fit and one weighting, in the order of n_neighbors.
Respond = Callable[[Neighbors, Array | None, Sequence[Votes]], Iterator[Array]]


def _responses(
    fits: Fits, methods: Mapping[str, Respond], asked: tuple[Role, Fold], votes: Sequence[Votes]
) -> Responses:
    found = {brute: fits.neighbors(brute, *asked) for brute in {one.brute for one in votes}}
    return Responses(**{name: partial(_response, one, found, votes) for name, one in methods.items()})


def _response(respond: Respond, found: Mapping[bool, Neighbors], votes: Sequence[Votes]) -> Array:
    """The responses of a method for all settings, stacked."""
    responses = [np.empty(0)] * len(votes)
    for brute, by_distance in {(one.brute, one.by_distance) for one in votes}:
        at = [j for j, v in enumerate(votes) if (v.brute, v.by_distance) == (brute, by_distance)]
        at.sort(key=lambda j: votes[j].k)
        near = found[brute]
        weights = distance_weights(near.distances) if by_distance else None
        for j, values in zip(at, respond(near, weights, [votes[j] for j in at]), strict=True):
            responses[j] = values
    return np.stack(responses)


class NeighborsFamily(FoldFamily, LeavesRowsOut):
    """Estimators of k nearest neighbours: `n_neighbors` and `weights` are read off sorted neighbours."""

    free = frozenset({"n_neighbors", "weights"})

    def check(self, estimator: Any, settings: Settings) -> None:
        require_metric(estimator)
        for setting in settings:
            k = setting["n_neighbors"]
            if type(k) not in (int, np.int64) or k < 1:
                raise Unsupported(f"n_neighbors={k!r} is not an integer from 1")
            require_weighting(setting["weights"])

    def cost(self, estimator: Any, settings: Settings, shape: Shape) -> Cost:
        k, m = shape.n_splits, len(settings)
        query = 2.0 * shape.n_train * shape.n_test * max(shape.n_features, 1)
        most = max(int(setting["n_neighbors"]) for setting in settings)
        votes = 4.0 * shape.n_test * max(shape.n_classes, shape.n_targets, 1)
        votes_of_all = votes * (m + most)
        fits = len({_is_brute(estimator, s["n_neighbors"], shape.n_train) for s in settings})
        return Cost(k * (fits * query + votes_of_all), m * k * query + k * votes_of_all, fits=k * fits)

    def fit_fold(self, estimator: Any, settings: Settings, fold: Fold) -> Answers:
        if fold.fit_weight is not None:
            raise Unsupported("fit takes no weights")
        votes, most, refused = _asked(estimator, settings, fold.X_train.shape[0])
        fitted = {brute: (_fit(estimator, k, fold.X_train, fold.y_train), k) for brute, k in most.items()}
        return self._answers(votes, refused, fold.y_train, fitted)

    def leave_rows_out(self, estimator: Any, settings: Settings, X: Any, y: Array) -> Answers:
        if is_classifier(estimator) and (np.unique(y, return_counts=True)[1] < 2).any():
            raise Unsupported("a class has one row, and is none of the fold that leaves it out")
        votes, most, refused = _asked(estimator, settings, X.shape[0] - 1)
        fitted = dict[bool, tuple[Any, int]]()
        for brute, k in most.items():
            # The training rows of a fold choose the algorithm.
            own = clone(estimator).set_params(algorithm=algorithm_of(_fit(estimator, k, X[1:], y[1:])))
            fitted[brute] = _fit(own, k, X, y), k
        query = partial(LeftOutNeighbors, RowsLeftOut(estimator, X, y))
        return self._answers(votes, refused, y, fitted, query, X)

    def _answers(
        self,
        votes: Sequence[Votes],
        refused: Mapping[int, str],
        y: Array,
        fitted: dict[bool, tuple[Any, int]],
        query: Callable[[Any, Any, Array, int], Neighbors] = Neighbors,
        X: Any = None,
    ) -> Answers:
        targets, methods, classes = self.methods(y)
        predictions = partial(_responses, Fits(fitted, targets, query, X), methods)
        n_targets = 1 if y.ndim == 1 else y.shape[1]
        return NeighborhoodAnswers(votes, predictions, refused, classes, len(fitted), n_targets)

    def methods(self, y: Array) -> tuple[Array, dict[str, Respond], Any]:
        """Targets of the training rows as answers read them, responses by method, and the classes."""
        raise NotImplementedError


def _asked(
    estimator: Any, settings: Settings, n: int
) -> tuple[tuple[Votes, ...], dict[bool, int], dict[int, str]]:
    """Settings on n training rows; by `Votes.brute`, the most neighbours asked for; the refused ones."""
    votes, most, refused = list[Votes](), dict[bool, int](), dict[int, str]()
    for j, setting in enumerate(settings):
        k = int(setting["n_neighbors"])
        votes.append(Votes(k, setting["weights"], _is_brute(estimator, k, n)))
        if k > n:
            refused[j] = f"n_neighbors={k} is larger than the number of training rows, {n}"
        else:
            most[votes[j].brute] = max(k, most.get(votes[j].brute, 0))
    return tuple(votes), most, refused


def _is_brute(estimator: Any, k: int, n_train: int) -> bool:
    """Whether ``algorithm="auto"`` takes no tree because of so many neighbours."""
    return bool(estimator.algorithm == "auto" and k >= n_train // 2)


def _fit(estimator: Any, k: int, X: Any, y: Array) -> Any:
    """A fit of scikit-learn's own; refused if it raises or warns."""
    with refused_warnings("a fit"):
        fitted = clone(estimator).set_params(n_neighbors=k, weights="uniform").fit(X, y)
    require_rows(X, fitted)
    return fitted
