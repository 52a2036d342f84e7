"""A race over splits: settings whose first scores are clearly worse are not fitted on the other splits."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

if TYPE_CHECKING:
    from manyfit.model_selection.job._job import Pair, Result

# A setting is out below this. `python -m benchmarks race-boosting` shows how often the choice stays the same.
_P = 0.1


@contextmanager
def few_splits() -> Iterator[None]:
    """Without the warning of scipy before 1.15 that its approximation is for more numbers than a few."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sample size too small for normal approximation", UserWarning)
        yield


@dataclass(frozen=True)
class Rule:
    """Says which settings are out of a race.

    A setting is compared when it is scored on the `first` splits. `worse` says whether it is clearly worse
    than the best one, by both scores on the same splits: ``worse(best, own)``.
    """

    first: int
    worse: Callable[[np.ndarray, np.ndarray], bool]


def margin(most: float) -> Rule:
    """A setting is out if its mean score is more than `most` below the best one's."""
    return Rule(2, lambda best, own: bool((best - own).mean() > most))


def _wilcoxon(best: np.ndarray, own: np.ndarray) -> bool:
    from scipy.stats import wilcoxon

    if (best == own).all():
        return False
    with few_splits():
        test = wilcoxon(best, own, alternative="greater", zero_method="zsplit")
    return bool(test.pvalue < _P)


def _paired_t_test(best: np.ndarray, own: np.ndarray) -> bool:
    from scipy.stats import ttest_rel

    differences = best - own
    if np.ptp(differences) == 0:
        return bool(differences[0] > 0)
    return bool(ttest_rel(best, own, alternative="greater").pvalue < _P)


# Fewer splits than four can never pass Wilcoxon's signed-rank test.
RULES = {"wilcoxon": Rule(4, _wilcoxon), "t-test": Rule(3, _paired_t_test)}


def rule_of(race: str | float, n_splits: int, name: str) -> Rule:
    """The rule that the parameter `race` of a search means; ValueError if there are too few splits for it."""
    rule = RULES[race] if isinstance(race, str) else margin(float(race))
    if n_splits <= rule.first:
        raise ValueError(
            f"race={race!r} compares settings after {rule.first} splits, and {name} has {n_splits}. Use more "
            "splits (cv=10), or race=None."
        )
    return rule


def race_of(search: Any, n_splits: int, metric: str | None) -> Race:
    """The race that a search asks for; ValueError if several scores could decide it."""
    if metric is None and isinstance(search.scoring, list | tuple | set | Mapping):
        refuse_scores(search.scoring)  # those of a function are known after the first fit
    return Race(rule_of(search.race, n_splits, type(search).__name__), metric)


Scores = Mapping[int, Mapping[int, float]]


class Race:
    """Divides the fits of settings into stages, and drops settings between them.

    `metric` is the name of the score that decides, if there are several. `dropped` has the number of splits
    on which each setting was scored that is out.
    """

    def __init__(self, rule: Rule, metric: str | None) -> None:
        self._rule, self._metric, self._first = rule, metric, rule.first
        self.dropped: dict[int, int] = {}

    def stages(
        self, pairs: Iterable[Pair], results: Mapping[Pair, Result], n_workers: int
    ) -> Iterator[list[Pair]]:
        """Pairs to fit next, some splits of each setting that is left; `results` grows in between.

        Where fewer settings are left than workers, a stage has more splits of each.
        """
        waiting: dict[int, list[Pair]] = defaultdict(list)
        for pair in sorted(pairs):
            waiting[pair[0]].append(pair)
        self._drop(waiting, results)  # by the scores of a checkpoint
        size = self._first
        while waiting:
            yield sorted(pair for left in waiting.values() for pair in left[:size])
            for c, left in list(waiting.items()):
                waiting[c] = left[size:]
            self._drop(waiting, results)
            for c in [c for c, left in waiting.items() if not left]:
                del waiting[c]
            size = max(1, n_workers // max(len(waiting), 1))

    def _drop(self, waiting: dict[int, list[Pair]], results: Mapping[Pair, Result]) -> None:
        scores: dict[int, dict[int, float]] = defaultdict(dict)
        for (c, i), result in results.items():
            if c not in self.dropped:
                scores[c][i] = self._score(result)
        for c in [c for c, left in waiting.items() if left]:
            if len(scores[c]) >= self._first and self.is_out(c, scores):
                self.dropped[c] = len(scores.pop(c))
                del waiting[c]

    def is_out(self, c: int, scores: Scores) -> bool:
        """Whether a setting is clearly worse than the best one that has its splits and is not out."""
        splits = sorted(scores[c])
        same = {k: np.array([own[i] for i in splits]) for k, own in scores.items() if own.keys() >= {*splits}}
        finite = {k: own for k, own in same.items() if np.isfinite(own).all()}
        if not finite or c not in finite:
            return bool(finite)  # its mean is not a number, and it ranks last
        best = max(finite, key=lambda k: finite[k].mean())
        return finite[best].mean() > finite[c].mean() and self._rule.worse(finite[best], finite[c])

    def _score(self, result: Result) -> float:
        scores: Any = result["test_scores"]
        if not isinstance(scores, Mapping):
            return float(scores)
        if self._metric not in scores:
            refuse_scores(scores)
        return float(scores[self._metric])


def refuse_scores(names: Iterable[str]) -> NoReturn:
    """Raise ValueError: there are several scores, and none is named that decides."""
    raise ValueError(
        f"race compares settings by one score, and there are {', '.join(map(repr, names))}. Set `refit` to "
        "the name of the one that decides."
    )


def describe(dropped: Mapping[int, int], candidates: Sequence[Any], n_splits: int) -> list[dict[str, Any]]:
    """Entries of the report for settings that are out, in their order."""
    return [
        {"candidate": c, "params": candidates[c], "fits": n, "fits_not_made": n_splits - n}
        for c, n in sorted(dropped.items())
    ]
