"""The models of an incremental search: trained, recorded, forgotten, and kept in a file."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from manyfit._compat import check_fit_failures
from manyfit.introspection.stable_digest import Digester
from manyfit.model_selection.checkpoint._models import (
    ModelCheckpoint,
    Trained,
    UnwrittenModels,
    load_model,
)
from manyfit.model_selection.checkpoint._search_identity import Identity
from manyfit.model_selection.job._job import Result
from manyfit.model_selection.results._report import Report
from manyfit.model_selection.search.adaptive.incremental._partial_fits import Step, Trainer, model_of
from manyfit.model_selection.search.adaptive.incremental._results import new_record
from manyfit.model_selection.search.adaptive.incremental._schedules import best_of

Records = list[dict[str, Any]]


@dataclass(frozen=True)
class ModelFile:
    """The checkpoint of a search, opened anew for each round; `identity` is that of all rounds."""

    path: str | os.PathLike[str]
    identity: Identity
    workers: int
    unwritten: UnwrittenModels

    def open(self, before: int, steps: Sequence[Step], settings: Sequence[Any]) -> ModelCheckpoint:
        """Open the file for a round; ValueError if it has another search, or another round at this place."""
        own = Digester()([(one.made, one.target, one.split) for one in steps])
        parts = {**self.identity.parts, "models of a round": Digester()([dict(one) for one in settings])}
        parts["calls of partial_fit"] = own
        texts = {
            **self.identity.texts,
            "models of a round": f"{len(settings)} settings",
            "calls of partial_fit": f"{sum(one.target - one.made for one in steps)}, after {before} scores",
        }
        identity = replace(self.identity, parts=parts, texts=texts, before=before)
        targets = [(str(one.name), one.target) for one in steps]
        return ModelCheckpoint(self.path, identity, self.workers, targets, model_of, self.unwritten)


class ModelPool:
    """The models of a search, one of each setting on each split.

    `history` has a record of each score, `records` the same by model. `stopped`: models that have failed or
    stalled. `trained`: models and splits that were trained in this process, and not restored from the file.
    `by_split`: whether records have the scores of the splits.
    """

    def __init__(
        self, trainer: Trainer, n_splits: int, error_score: Any, file: ModelFile | None, by_split: bool
    ) -> None:
        self.history: Records = []
        self.records: dict[Any, Records] = {}
        self.stopped: set[Any] = set()
        self.trained: set[tuple[Any, int]] = set()
        self.report = Report()
        self._trainer, self.n_splits, self._error_score, self._file = trainer, n_splits, error_score, file
        self._by_split = by_split
        self._models: dict[Any, list[Trained]] = {}
        self._params: dict[Any, Any] = {}
        self._failed: set[Any] = set()
        self._start = time.perf_counter()

    def add(self, name: Any, params: Any, model: Any) -> None:
        """Add a model that is not trained yet."""
        self._params[name] = params
        self._models[name] = [Trained(model, 0)] * self.n_splits

    @property
    def calls(self) -> dict[Any, int]:
        return {one: records[-1]["partial_fit_calls"] for one, records in self.records.items()}

    def reach(self, targets: Mapping[Any, int]) -> int:
        """Train models to some calls in all, and score them; return how many calls each split took."""
        made = self.calls
        steps = [
            Step(one, i, made.get(one, 0), target)
            for one, target in targets.items()
            for i in range(self.n_splits)
        ]
        checkpoint = None
        if self._file is not None:
            checkpoint = self._file.open(len(self.history), steps, [self._params[one] for one in targets])
            checkpoint.keep_models({str(one) for one in self._models})
            self._load(steps, checkpoint)
        trained = [self._models[one.name][one.split] for one in steps]
        results, report = self._trainer.train(steps, trained, checkpoint)  # which closes the file
        self.report = report if not self.history else self.report.merged(report)
        self._take(steps, results)
        seconds = time.perf_counter() - self._start
        for j, (one, target) in enumerate(targets.items()):
            own = results[j * self.n_splits : (j + 1) * self.n_splits]
            new = target - made.get(one, 0)
            record = new_record(one, self._params[one], target, new, own, self._by_split)
            self.records.setdefault(one, []).append(record | {"elapsed_wall_time": seconds})
            self.history.append(self.records[one][-1])
        others = self.records.keys() - targets.keys() - self._failed
        self._note_failures(targets, results)
        check_fit_failures(results + [{"fit_error": None}] * len(others), self._error_score)
        return sum(target - made.get(one, 0) for one, target in targets.items())

    def close(self) -> None:
        """Write the models that the file lacks."""
        if self._file is not None:
            self._file.unwritten.write_rest()

    def _load(self, steps: Sequence[Step], checkpoint: ModelCheckpoint) -> None:
        """Take models from the file that are ahead of ours, where they are needed."""
        for c, one in enumerate(steps):
            if (c, one.split) not in checkpoint.stored:
                found = checkpoint.load(str(one.name), one.split, one.target)
                if found is not None and found.calls > self._models[one.name][one.split].calls:
                    self._keep(one, found)

    def _take(self, steps: Sequence[Step], results: Sequence[Result]) -> None:
        for one, result in zip(steps, results, strict=True):
            if not result["restored"]:
                self.trained.add((one.name, one.split))
            if result["fit_error"] is None and result["model"] is not None:
                self._keep(one, Trained(result["model"], one.target))

    def _keep(self, step: Step, trained: Trained) -> None:
        own = list(self._models[step.name])
        own[step.split] = trained
        self._models[step.name] = own

    def _note_failures(self, targets: Mapping[Any, int], results: Sequence[Result]) -> None:
        """A model ends if its training fails on any split."""
        for j, one in enumerate(targets):
            own = results[j * self.n_splits : (j + 1) * self.n_splits]
            if any(result["fit_error"] is not None for result in own):
                self._failed.add(one)
        self.stopped |= self._failed

    def forget(self, going_on: Collection[Any]) -> None:
        """Drop the models that do not go on, but for the best of them, which may be the best of all."""
        ended = [one for one in self._models if one not in going_on]
        kept = {*going_on, *best_of(self.records, ended, 1)}
        self._models = {one: model for one, model in self._models.items() if one in kept}

    def model(self, name: Any, all_rows: Any = None) -> Any:
        """A model after the calls of its last score: that of the one split, or one trained on all rows."""
        calls = self.calls[name]
        if all_rows is not None:
            return self._trainer.further(Trained(all_rows, 0), None, calls)
        own = self._models[name][0]
        if own.calls >= calls or name in self._failed:
            return own.model
        return self._trainer.further(self._stored(name, own), 0, calls)

    def _stored(self, name: Any, own: Trained) -> Trained:
        """The model of the file, if it is ahead of ours."""
        found = None if self._file is None else load_model(self._file.path, str(name), 0, self.calls[name])
        return found if found is not None and found.calls > own.calls else own
