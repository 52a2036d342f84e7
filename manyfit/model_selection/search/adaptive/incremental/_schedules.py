"""How many calls of `partial_fit` each model of an incremental search makes, and which models go on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

History = Mapping[Any, Sequence[Mapping[str, Any]]]


class Schedule(Protocol):
    """Decides about some models."""

    def start(self, ids: Sequence[Any]) -> dict[Any, int]:
        """Calls that each model makes before it is first compared."""

    def go_on(self, history: History) -> dict[Any, int]:
        """Calls in all after which the models that go on are compared next; empty at the end."""


@dataclass
class Decay:
    """All models make `step` calls at a time, and the best ``n / (1 + calls) ** rate`` of them go on."""

    n: int
    max_iter: int
    step: int
    rate: float

    def start(self, ids: Sequence[Any]) -> dict[Any, int]:
        self._left = list(ids)
        return dict.fromkeys(ids, 1)

    def go_on(self, history: History) -> dict[Any, int]:
        calls = max(history[one][-1]["partial_fit_calls"] for one in self._left)
        target = min(calls + self.step, self.max_iter)
        if self.rate:
            most = max(1, int(self.n / (1 + calls) ** self.rate))
            self._left = best_of(history, self._left, most)
            if len(self._left) == 1:
                return {}
        return {} if calls >= self.max_iter else dict.fromkeys(self._left, target)


@dataclass
class Halving:
    """One in `factor` models goes on each time, and makes `factor` times as many calls in all."""

    n: int
    first: int
    factor: float
    max_iter: int

    def rounds(self) -> list[tuple[int, int]]:
        """Models and calls in all of each round."""
        found: list[tuple[int, int]] = []
        for step in range(self.n + 1):
            models = math.floor(self.n / self.factor**step * (1 + 1e-12))
            calls = min(round(self.first * self.factor**step), self.max_iter)
            if models < 1 or (found and calls <= found[-1][1]):
                break
            found.append((models, calls))
        return found

    @property
    def n_calls(self) -> int:
        """Calls of all models, if none stops early."""
        rounds, before = self.rounds(), [0, *(calls for _, calls in self.rounds())]
        return sum(
            models * (calls - earlier) for (models, calls), earlier in zip(rounds, before, strict=False)
        )

    def start(self, ids: Sequence[Any]) -> dict[Any, int]:
        self._left, self._step = list(ids), 0
        return dict.fromkeys(ids, self.rounds()[0][1])

    def go_on(self, history: History) -> dict[Any, int]:
        self._step += 1
        rounds = self.rounds()
        if self._step >= len(rounds):
            return {}
        models, calls = rounds[self._step]
        self._left = best_of(history, self._left, models)
        return dict.fromkeys(self._left, calls)


def hyperband_brackets(max_iter: int, factor: float) -> dict[int, Halving]:
    """The brackets of Hyperband, the one that drops most first.

    Reference: Li, Jamieson, DeSalvo, Rostamizadeh and Talwalkar, Hyperband, JMLR 18, 2018, algorithm 1.
    """
    last = 0
    while factor ** (last + 1) <= max_iter * (1 + 1e-12):
        last += 1
    return {
        s: Halving(
            math.ceil((last + 1) / (s + 1) * factor**s * (1 - 1e-12)),
            max(int(max_iter / factor**s * (1 + 1e-12)), 1),
            factor,
            max_iter,
        )
        for s in range(last, -1, -1)
    }


def best_of(history: History, ids: Sequence[Any], n: int) -> list[Any]:
    """The `n` models with the highest last scores; of equal ones the earlier, and NaN last."""

    def score(one: Any) -> float:
        last: float = history[one][-1]["score"]
        return -math.inf if math.isnan(last) else last

    return sorted(ids, key=score, reverse=True)[:n]


def has_stalled(records: Sequence[Mapping[str, Any]], patience: int, tol: float | None) -> bool:
    """Whether no score of the last `patience` calls is more than `tol` above the one before them."""
    calls = records[-1]["partial_fit_calls"]
    if not patience or tol is None or calls < patience:
        return False
    recent = [one["score"] for one in records if calls - one["partial_fit_calls"] <= patience]
    return len(recent) > 1 and max(recent[1:]) - recent[0] <= tol
