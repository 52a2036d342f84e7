"""All fits of a search, in one immutable object that every part of the engine reads."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from manyfit._config import get_config
from manyfit.arrays import TransferCache
from manyfit.folds import Splits
from manyfit.model_selection.job._option_values import DEFAULT_MEMORY_LIMIT, EarlyStopping, Engine, Sharing
from manyfit.model_selection.job._predictions import Recording
from manyfit.model_selection.job._rowwise_prefix import RowwiseOutputs

Pair = tuple[int, int]
"""(candidate, split)."""
Result = dict[str, Any]
"""The result of one pair, as scikit-learn's ``_fit_and_score`` returns it."""


@dataclass(frozen=True)
class Options:
    """How every fit of a job is made and scored; small, and sent with each task.

    It includes ``host_fallback`` of this process's configuration, which other processes do not have.
    """

    scorer: Any
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    score_params: Mapping[str, Any] = field(default_factory=dict)
    return_train_score: bool = False
    error_score: Any = float("nan")
    verbose: int = 0
    memory_limit: int = DEFAULT_MEMORY_LIMIT
    return_estimator: bool = False
    early_stopping: EarlyStopping = None
    engine: Engine = None
    fit_timeout: float | None = None
    recording: Recording | None = None  # predictions that are recorded beside scores
    fits_within: Callable[[], AbstractContextManager[Any]] = nullcontext  # in every process that makes fits
    host_fallback: str = field(default_factory=lambda: get_config()["host_fallback"])


@dataclass(frozen=True)
class Job:
    """All fits of a search; each pair is a candidate on a split."""

    estimator: Any  # unfitted
    candidates: Sequence[Mapping[str, Any]]
    X: Any
    y: Any
    splits: Splits
    options: Options
    n_jobs: int | None = None
    pre_dispatch: Any = "2*n_jobs"
    sharing: Sharing = "auto"
    search: Any = None  # the search itself, for callbacks
    contexts: Sequence[Any] | None = None  # a callback context for each pair, candidate by candidate
    client: Any = None  # of a cluster whose workers make the fits; None: this process and joblib's workers
    host_data: tuple[Any, Any] | None = None  # X and y on the host, if X was sent to a device for this search
    copy_to_host: TransferCache = field(
        default_factory=TransferCache, compare=False
    )  # host copies, each made once
    rowwise: RowwiseOutputs | None = (
        None  # outputs of rowwise steps; None: they run on the rows of each split
    )
    # Estimator and parameters, in classes of scikit-learn-intelex, of the settings that it fits one by one.
    by_sklearnex: Mapping[int, tuple[Any, Mapping[str, Any]]] = field(default_factory=dict)
    by_split: bool = False  # scikit-learn makes these fits split by split, not candidate by candidate

    @property
    def n_pairs(self) -> int:
        """The number of fits."""
        return len(self.candidates) * self.splits.n_splits

    def pairs(self, candidates: Sequence[int]) -> list[Pair]:
        """All pairs of some candidates, in scikit-learn's order: candidate by candidate."""
        return [(c, i) for c in candidates for i in range(self.splits.n_splits)]
