"""Ensembles of a search's rounds on a cluster: they stay on the workers that fit them, as futures."""

from __future__ import annotations

import pickle
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from manyfit.cluster.pool.kept_values import KeptValues
from manyfit.cluster.worker.kept_values import keep_on_worker
from manyfit.cluster.worker.task_context import task_context
from manyfit.families import LOST, Ensemble, EnsembleStore
from manyfit.introspection.structural_key import Unkeyable, structural_key
from manyfit.model_selection.job._job import Job, Pair
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.strategies._strategy import WorkItem

# Part of a worker's memory that the ensembles of a round may take there.
_MEMORY_PART = 4


@dataclass(frozen=True)
class WorkerRounds:
    """What a worker has to know to keep ensembles: the client that they are for, and the names of futures."""

    client: str
    prefix: str
    memory: int


class WorkerStore(EnsembleStore):
    """Ensembles of an item on a worker: those of the last round are inputs of its task.

    It keeps pickles, since a fit that goes on changes what it goes on from, and Dask may run a task twice.
    """

    def __init__(self, rounds: WorkerRounds) -> None:
        self._rounds = rounds
        self._last: dict[str, bytes] = dict(task_context().inputs)
        self._now: dict[str, tuple[str, bytes]] = {}
        self._unassigned: list[str] = []
        self._pairs: defaultdict[Pair, list[str]] = defaultdict(list)

    def take(self, name: str) -> Ensemble | None:
        pickled = self._last.pop(name, None)
        return LOST if pickled is None else Ensemble(*pickle.loads(pickled))

    def keep(self, name: str, ensemble: Ensemble, n_bytes: int) -> None:
        if n_bytes > self._rounds.memory:
            return
        with suppress(Exception):  # it cannot be pickled: the next round makes the fit from the start
            pickled = pickle.dumps(tuple(ensemble), pickle.HIGHEST_PROTOCOL)
            key = f"{self._rounds.prefix}-{uuid4().hex}"
            self._now[key] = name, pickled
            self._unassigned.append(key)

    def next_round(self) -> None:
        """Each item has a store of its own, for one round."""

    def assign(self, pairs: Collection[Pair]) -> None:
        """Note that fits since the last call were made for these pairs."""
        for pair in pairs:
            self._pairs[pair] += self._unassigned
        self._unassigned.clear()

    def send(self) -> dict[Pair, dict[str, int]]:
        """Keep the ensembles on this worker; return the bytes of those of each pair, by the keys of Dask."""
        nbytes = keep_on_worker(self._now, self._rounds.client)
        return {
            pair: {key: nbytes[key] for key in keys if key in nbytes} for pair, keys in self._pairs.items()
        }


class ClusterStore(EnsembleStore):
    """Ensembles on the workers of a client; those of a round take at most `memory` bytes of each worker.

    Nor more than a quarter of its memory. `resource`: the parameter in which the settings of rounds differ.
    A model is released when the fit that goes on from it has ended, or with the round that had no use for it.
    Use it in a ``with`` block.
    """

    def __init__(self, client: Any, resource: str, memory: int) -> None:
        self._values, self._resource, self._memory = KeptValues(client), resource, memory
        self._last: dict[Any, dict[str, Any]] = {}
        self._now: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        self._bytes: Counter[str] = Counter()
        self._limits: Mapping[str, float] = {}

    def __enter__(self) -> ClusterStore:
        return self

    def __exit__(self, *error: object) -> None:
        self._last, self._now = {}, defaultdict(dict)
        self._values.close()

    def take(self, name: str) -> Ensemble | None:
        return LOST  # a fit in this process, which has none of them

    def keep(self, name: str, ensemble: Ensemble, n_bytes: int) -> None:
        """Fits in this process keep nothing."""

    def next_round(self) -> None:
        self._last, self._now = dict(self._now), defaultdict(dict)
        self._bytes.clear()
        self._limits = self._values.memory_of_workers()

    def on_worker(self) -> WorkerRounds:
        """What is sent to workers."""
        return WorkerRounds(self._values.client_id, self._values.prefix, self._memory)

    def inputs(self, job: Job, item: WorkItem, tries: int) -> list[Any]:
        """The futures that an item goes on from; none if a try was lost, perhaps with its models."""
        found: dict[str, Any] = {}
        for pair in item.pairs if not tries else ():
            found |= self._last.get(self._key(job, pair), {})
        return self._values.usable(found.values())

    def note(self, job: Job, part: TaskResult) -> None:
        """Take the ensembles that a task has kept, as memory allows, and release those it went on from."""
        for pair in part.results:
            self._last.pop(self._key(job, pair), None)
        worker = part.worker or ""
        limit = min(self._memory, self._limits.get(worker, float("inf")) / _MEMORY_PART)
        futures = {key: self._values.future(key) for own in part.kept.values() for key in own}
        sizes = {key: n for own in part.kept.values() for key, n in own.items()}
        for key, nbytes in sizes.items():
            if self._bytes[worker] + nbytes > limit:
                del futures[key]
            else:
                self._bytes[worker] += nbytes
        for pair, own in part.kept.items():
            self._now[self._key(job, pair)] |= {key: futures[key] for key in own if key in futures}

    def _key(self, job: Job, pair: Pair) -> Any:
        """What a pair has in common with that of the other rounds."""
        c, i = pair
        params = {name: value for name, value in job.candidates[c].items() if name != self._resource}
        try:
            return structural_key(params), i
        except Unkeyable:
            return tuple((name, id(value)) for name, value in params.items()), i
