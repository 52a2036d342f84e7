"""Everything that the results of a search depend on, as digests that are equal in every process."""

from __future__ import annotations

import numbers
import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import sklearn
from sklearn.base import clone

from manyfit._compat import num_samples, scorers_by_name
from manyfit.cluster.inspection.versions import process_versions
from manyfit.folds import ChunkRows, is_row_source
from manyfit.introspection.randomness import RandomParameter, Sizes, find_random_parameter
from manyfit.introspection.stable_digest import Digester, Unkeyable
from manyfit.model_selection.job._job import Job
from manyfit.model_selection.job._sklearnex import sklearnex_version

# Of an X in files.
FILES_NOTE = (
    "Its files have other sizes, times of change or numbers (inodes) than when the scores were computed. A "
    "file that was written again, or a copy, counts as another X."
)
# Values of a block of rows that is digested at a time: 8 MiB of float64.
DIGESTED_VALUES = 2**20
# Characters of a description in a message.
_MAX_LENGTH = 160
# Names of packages in messages.
_NAMES = {"numpy": "NumPy", "scipy": "SciPy", "python": "Python"}
# Options of scikit-learn that change how things are shown, but no results.
_SHOWN_ONLY = ("print_changed_only", "display", "working_memory")


@dataclass(frozen=True)
class Identity:
    """Everything that the results of a search depend on, part by part under a name that users understand.

    `parts` are digests, equal for equal content in any process; `texts` are descriptions for messages.
    `before`: how many settings earlier rounds of the search have had, whose scores chose these. `settings`:
    digests of the settings, if the file may have results of others; None if they are one of `parts`.
    `notes`: what a message says of a part that differs, where "with different content" would not do.
    """

    parts: Mapping[str, str]
    texts: Mapping[str, str]
    before: int = 0
    settings: tuple[str, ...] | None = None
    notes: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def _names(self) -> list[str]:
        """Names of the settings in the file; a search may have a setting several times."""
        seen = Counter[str]()
        names = []
        for digest in self.settings or ():
            names.append(f"{digest} {seen[digest]}")
            seen[digest] += 1
        return names

    def name_of(self, c: int) -> str:
        """The name of a setting in the file: its content, or its position where that is one of `parts`."""
        return str(c) if self.settings is None else self._names[c]

    def places(self) -> Callable[[str], int | None]:
        """The reverse of `name_of`: None for settings that this search does not have."""
        return int if self.settings is None else {name: c for c, name in enumerate(self._names)}.get


class NoIdentity(ValueError):
    """A search cannot be compared with a later one."""


def identity(job: Job, search: Any = None, before: int = 0, *, may_grow: bool = False) -> Identity:
    """The identity of a job: not how it is run (workers, ``memory_limit``, ``verbose``).

    With `may_grow` a search of other settings may continue from the same file. It raises `NoIdentity` if the
    job, or the settings and splits of `search`, are random (the message names the parameter), or if a part
    has no content that can be compared.
    """
    _refuse_randomness(job, search)
    options = job.options
    files = job.X.file_identity() if isinstance(job.X, ChunkRows) else None
    notes = {} if files is None else {"X": FILES_NOTE}
    configuration = {
        name: value for name, value in sorted(sklearn.get_config().items()) if name not in _SHOWN_ONLY
    }
    contents: dict[str, tuple[Any, Callable[[], str]]] = {
        "estimator": (job.estimator, lambda: repr(job.estimator)),
        "settings": (list(map(dict, job.candidates)), lambda: _settings(job)),
        "X": (
            _content(job.X) if files is None else (type(job.X).__qualname__, files),
            lambda: _data(job.X, files),
        ),
        "y": (job.y, lambda: _data(job.y)),
        "folds": (job.splits.content, lambda: f"{job.splits.n_splits} splits of {job.splits.n_samples} rows"),
        "scorers": (options.scorer, lambda: ", ".join(map(repr, scorers_by_name(options.scorer).values()))),
        "fit parameters": (dict(options.fit_params), lambda: _names(options.fit_params)),
        "score parameters": (dict(options.score_params), lambda: _names(options.score_params)),
        "error_score": (options.error_score, lambda: repr(options.error_score)),
        "return_train_score": (
            bool(options.return_train_score),
            lambda: str(bool(options.return_train_score)),
        ),
        "sharing": (job.sharing, lambda: repr(job.sharing)),
        "early_stopping": (options.early_stopping, lambda: repr(options.early_stopping)),
        "engine": (options.engine, lambda: repr(options.engine)),
        "configuration of scikit-learn": (configuration, lambda: ""),
    }
    if may_grow:
        del contents["settings"]
    used = versions()
    if options.engine is not None:
        used["scikit-learn-intelex"] = sklearnex_version()
    for name, version in used.items():
        contents[f"version of {_NAMES.get(name, name)}"] = (version, version.__str__)
    parts = {name: _digest(content, name, Digester()) for name, (content, _) in contents.items()}
    texts = {name: _short(text) for name, (_, text) in contents.items()}
    if not may_grow:
        return Identity(parts, texts, before, notes=notes)
    digester = Digester()
    settings = tuple(_digest(dict(one), "settings", digester) for one in job.candidates)
    return Identity(parts, texts, before, settings, notes)


def _digest(content: Any, name: str, digester: Digester) -> str:
    try:
        return digester(content)
    except Unkeyable as error:
        raise NoIdentity(
            f"A checkpoint compares searches by content. That of the {name} is not known: it holds {error}."
        ) from error


def versions() -> dict[str, str]:
    """Versions in this process that results depend on, by package."""
    found = {name: str(version) for name, version in process_versions().items()}
    return found | {"python": ".".join(found["python"].split(".")[:2])}


def _short(text: Callable[[], str]) -> str:
    try:
        said = " ".join(text().split())
    except Exception:  # a user's own repr
        return ""
    return said if len(said) <= _MAX_LENGTH else said[: _MAX_LENGTH - 4] + " ..."


def _settings(job: Job) -> str:
    first = dict(job.candidates[0]) if len(job.candidates) else {}
    return f"{len(job.candidates)} settings, the first {first!r}"


def _names(params: Mapping[str, Any]) -> str:
    return ", ".join(sorted(params)) or "none"


def _content(X: Any) -> Any:
    """X, or digests of the rows that a `RowSource` reads."""
    if not is_row_source(X):
        return X
    size = max(1, DIGESTED_VALUES // X.shape[1])
    if X.dtype == object and hasattr(X, "frame_blocks"):
        blocks = X.frame_blocks(size)
    else:
        blocks = (block for _, block in X.blocks(slice(0, X.shape[0]), size))
    return type(X).__qualname__, [Digester()(block) for block in blocks]


def _data(data: Any, files: Any = None) -> str:
    if data is None:
        return "None"
    if files is not None and getattr(data, "path", None):
        return f"{os.fspath(data.path)!r}, {tuple(data.shape)} of {data.dtype}"
    shape = getattr(data, "shape", None)
    size = str(tuple(shape)) if shape is not None else f"{num_samples(data)} items"
    dtype = getattr(data, "dtype", None)
    order = ""
    if isinstance(data, np.ndarray) and data.ndim > 1:
        is_c, is_fortran = data.flags.c_contiguous, data.flags.f_contiguous
        order = ", C order" if is_c else ", Fortran order" if is_fortran else ", strided"
    return f"{type(data).__name__} {size}{f' of {dtype}' if dtype is not None else ''}{order}"


# Randomness


def _refuse_randomness(job: Job, search: Any) -> None:
    if _reads_random_state(search) and not isinstance(search.random_state, numbers.Integral):
        kind = "None" if search.random_state is None else f"a {type(search.random_state).__name__}"
        raise NoIdentity(
            _advice(f"random_state of the search is {kind}, so that its settings or rows are drawn")
        )
    found = find_random_parameter(getattr(search, "cv", None), "cv")
    if found is not None:
        raise NoIdentity(_advice(f"{found.name} of the search {found.why}, so that its splits are drawn"))
    found = find_random_parameter(job.options.scorer, "scoring")
    if found is not None:
        raise NoIdentity(_advice(f"{found.name} {found.why}, so that scores are drawn"))
    found = _random_parameter(job)
    if found is not None:
        raise NoIdentity(_advice(f"{found.name} of the estimator {found.why}, so that fits are drawn"))


def _reads_random_state(search: Any) -> bool:
    """Whether a search draws settings, or rows: a sample, parts of them by halving, or held-out ones."""
    if not hasattr(search, "random_state"):
        return False
    through_grid = hasattr(search, "param_grid") or getattr(search, "n_initial_parameters", None) == "grid"
    samples = getattr(search, "sample", None) is not None or getattr(search, "resource", "") == "n_samples"
    holds_out = hasattr(search, "test_size") and search.cv is None
    return not through_grid or samples or holds_out


def draws(job: Job) -> bool:
    """Whether fits or scores of a job are random, so that two equal jobs have different results."""
    return (
        find_random_parameter(job.options.scorer, "scoring") is not None or _random_parameter(job) is not None
    )


def _advice(what: str) -> str:
    return f"{what} anew each time, and no two searches are the same. Set it to an integer."


def _random_parameter(job: Job) -> RandomParameter | None:
    """The first random parameter of any setting."""
    shape: Any = getattr(job.X, "shape", ())
    n_features = int(shape[1]) if len(shape) == 2 else None
    sparse = getattr(job.X, "nnz", None) is not None
    model, names = None, None
    for params in job.candidates:
        values = clone(dict(params), safe=False)
        try:
            # Settings of the same parameters can be set one after the other on one estimator.
            if model is None or names != params.keys():
                model, names = clone(job.estimator), params.keys()
            model.set_params(**values)
        except Exception:  # its fit raises it again in scikit-learn's own words
            model = None
            continue
        for n in job.splits.train_sizes:
            found = find_random_parameter(model, "", Sizes(n, n_features, sparse))
            if found is not None:
                return found
    return None
