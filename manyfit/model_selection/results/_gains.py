"""How much less CPU time everyday searches took than scikit-learn's, by what is searched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple


class Gain(NamedTuple):
    """The least and the greatest factor of some measured searches, in round numbers."""

    searched: str  # as in the table of docs/faster.md, which `python -m benchmarks everyday` measures
    least: float
    greatest: float

    def __str__(self) -> str:
        factor = f"{self.least:g}" if self.least == self.greatest else f"{self.least:g} to {self.greatest:g}"
        return f"Measured on everyday searches of {self.searched}: about {factor} times less CPU time."


LINEAR = Gain("a linear model with a penalty, on numbers", 8, 22)
FRAMES = Gain("a frame of numbers, gaps and categories, before a linear model", 4, 9)
TEXTS = Gain("texts, by counts or tf-idf", 2.4, 20)
# Of families that serve a fold, by the last estimator.
_OF_CLASSES = {
    "KNeighbors": Gain("`n_neighbors` and `weights` of neighbours", 6, 6),
    "DecisionTree": Gain("`ccp_alpha` of a tree", 6, 6),
    "RandomForest ExtraTrees Bagging Boost": Gain("the number of trees or boosting iterations", 1.4, 1.9),
    "Voting Stacking Calibrated": Gain("voting, stacking, calibration", 1.6, 1.8),
    "SVC SVR KernelRidge": Gain("`SVC`, `SVR` and `KernelRidge`", 1.4, 2.5),
    "NB Discriminant": Gain("naive Bayes and discriminant analysis", 4.5, 24),
}
# Searches of fewer settings gain less than those that were measured.
FEWEST_SETTINGS = 5


def expected_gain(groups: Iterable[Any]) -> Gain | None:
    """What was measured of searches whose plan has such groups; None if most fits are of no such kind."""
    settings = Counter[Gain | None]()
    for group in groups:
        settings[_gain_of(group)] += len(group.candidates)
    found, n = settings.most_common(1)[0] if settings else (None, 0)
    return found if n >= FEWEST_SETTINGS and 2 * n > settings.total() else None


def _gain_of(group: Any) -> Gain | None:
    *steps, last = group.estimator.split(" > ")
    if not (group.strategy.shares_fits and type(group.family).__module__.startswith("manyfit.")):
        return None
    if any("Vectorizer" in step for step in steps):
        return TEXTS
    if group.kind in ("moments", "shared iterations"):
        return FRAMES if "ColumnTransformer" in steps else LINEAR
    known = _OF_CLASSES.items() if not steps and not last.startswith("Hist") else ()
    return next((gain for names, gain in known if any(name in last for name in names.split())), None)
