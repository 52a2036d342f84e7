"""One part: some problems at all sizes, for all contenders, within its time."""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import psutil
from joblib import cpu_count

from benchmarks._measure import describe
from benchmarks.gpu._accelerated import Accelerated
from benchmarks.gpu._contenders import ACCEL, Contender, contenders
from benchmarks.gpu._place import Place, find_place
from benchmarks.gpu._problems import PROBLEMS, Case, Problem, settings_of
from benchmarks.gpu._rates import Rates, library_versions, measure_rates
from benchmarks.gpu._seen import seen
from benchmarks.gpu._timed import Row, counted_bytes, some, timed

# Copies of X that a search may have at once on the device, on the host, and in each of its processes there.
_COPIES_THERE, _COPIES_HERE, _COPIES_EACH = 3.0, 4.0, 2.5
# Share of the remaining time that one contender may take on one case.
_SHARE = 0.25
# Longer runs are not repeated under the profiler.
_SEEN_SECONDS = 3.0


def run_part(names: Sequence[str], seconds: float, quick: bool, keep: Callable[[Row], None]) -> None:
    """Measure some problems, and pass on each row at once.

    The first row describes the device and its speed.
    """
    end = time.monotonic() + seconds
    place = find_place()
    rates = measure_rates(place, quick)
    about = {"device": place.name, "library": place.library, "imitated": place.imitated}
    about |= {"memory": place.memory.pool}
    keep({"about": about | {"rates": asdict(rates), "versions": library_versions()}})
    for number, name in enumerate(names):
        # Each problem has its share of the remaining time; unused time goes to the next problem.
        own_end = time.monotonic() + (end - time.monotonic()) / (len(names) - number)
        for row in _Runs(PROBLEMS[name], place, rates, own_end, quick).rows():
            keep(row)


class _Runs:
    """All cases of a problem."""

    def __init__(self, problem: Problem, place: Place, rates: Rates, end: float, quick: bool) -> None:
        self.problem, self.place, self.rates, self.end = problem, place, rates, end
        self.cases = problem.quick if quick else problem.cases
        self.settings = settings_of(problem, quick)
        self.quick = quick
        self.per_byte: dict[str, float] = {}  # seconds per setting and byte, at the largest size so far
        self._warm: set[tuple[str, str]] = set()

    def rows(self) -> Iterator[Row]:
        with Accelerated(self.problem, self.quick) as accelerated:
            for case in self.cases:
                X, y = self.problem.data(case)
                common = self._common(case, X, y)
                for contender in contenders(self.problem):
                    yield {**common, "contender": contender.name, **self._timed(contender, case, X, y)}
                yield {**common, "contender": ACCEL, **self._accelerated(accelerated, case, X.nbytes)}
            yield from self._seen()

    def _seen(self) -> Iterator[Row]:
        """Transfers and waits of the smallest case, as the driver sees them.

        This comes last, because the profiler might interfere with the other libraries.
        """
        case = self.cases[0]
        X, y = self.problem.data(case)
        for contender in contenders(self.problem):
            # Contenders that use other processes, or took long, are not profiled.
            expected = self.per_byte.get(contender.name)
            if contender.parallel or expected is None:
                continue
            if expected * counted_bytes(X.nbytes) * len(self.settings) > min(_SEEN_SECONDS, self._left()):
                continue
            found: dict[str, Any] | None
            row: Row = {"problem": self.problem.name, "case": case.name, "contender": contender.name}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    given = (self.place.put(X), self.place.put(y)) if contender.on_device else (X, y)
                    found = seen(lambda who=contender, data=given: self._fit(who, self.settings, *data))
                except Exception as error:
                    found = {"seen_failure": describe(error)}
            if found is not None:
                yield {**row, "seen": found}

    def _common(self, case: Case, X: Any, y: Any) -> Row:
        floor = self.rates.floor(self.problem.work(self.problem.task, X, y), case.dtype)
        return {
            "problem": self.problem.name,
            "case": case.name,
            "dtype": case.dtype,
            "shape": list(X.shape),
            "bytes": X.nbytes,
            "settings": len(self.settings),
            "splits": self.problem.task.cv,
            "floor": floor,
        }

    def _timed(self, contender: Contender, case: Case, X: Any, y: Any) -> Row:
        n_bytes = X.nbytes
        why = self._no_room(contender, n_bytes)
        if why is not None:
            return {"failure": why}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                if contender.on_device:
                    X, y = self.place.put(X), self.place.put(y)
                self._warm_up(contender, case.dtype)
            except Exception as error:
                return {"failure": describe(error)}
            row = self._race(contender, n_bytes, lambda now: self._fit(contender, now, X, y))
        gc.collect()
        return row

    def _fit(self, contender: Contender, now: Any, X: Any, y: Any) -> Any:
        fitted = contender.fit(self.problem, now, X, y)
        if contender.on_device:
            self.place.wait()
        return fitted

    def _race(self, contender: Contender, n_bytes: int, search: Callable[[Any], Any]) -> Row:
        name = contender.name
        # A search that shares its fits takes about as long for some settings as for all.
        shared = contender.search == "manyfit" and not self.problem.own
        first = self.settings if shared else some(self.settings, self.problem.task, contender.parallel)
        expected = self.per_byte[name] * counted_bytes(n_bytes) if name in self.per_byte else None
        again, memory = not self.quick, self.place.memory
        row = timed(search, self.settings, first, self._left(), expected, again, memory)
        if row["seconds"] is not None:
            self.per_byte[name] = row["seconds"] / row["settings_run"] / counted_bytes(n_bytes)
        return row

    def _accelerated(self, accelerated: Accelerated, case: Case, n_bytes: int) -> Row:
        if 2 * n_bytes > psutil.virtual_memory().available:
            return {"failure": "not run: too little memory on the host for a second process with the data"}
        row = accelerated.timed(case, self._left(), self.per_byte.get(ACCEL))
        if row.get("seconds"):
            self.per_byte[ACCEL] = row["seconds"] / row["settings_run"] / counted_bytes(n_bytes)
        return row

    def _left(self) -> float:
        return max(1.0, (self.end - time.monotonic()) * _SHARE)

    def _warm_up(self, contender: Contender, dtype: str) -> None:
        """Start workers, and compile most kernels for a dtype, on small data."""
        if (contender.name, dtype) in self._warm:
            return
        X, y = self.problem.data(replace(self.problem.quick[0], dtype=dtype))
        if contender.on_device:
            X, y = self.place.put(X), self.place.put(y)
        contender.fit(self.problem, self.settings[:: max(1, len(self.settings) - 1)], X, y)
        self._warm.add((contender.name, dtype))

    def _no_room(self, contender: Contender, n_bytes: int) -> str | None:
        """Return why the data would not fit, or None."""
        if contender.on_device:
            free, needed, where = self.place.memory.free(), _COPIES_THERE * n_bytes, "on the device"
        else:
            copies = _COPIES_HERE + (_COPIES_EACH * cpu_count() if contender.parallel else 0.0)
            free, needed, where = psutil.virtual_memory().available, copies * n_bytes, "on the host"
        if needed <= free:
            return None
        return f"not run: it may take {needed / 1e9:.1f} GB {where}, where {free / 1e9:.1f} GB are free"
