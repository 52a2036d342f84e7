"""Calls, as scikit-learn makes them, of the methods that a subclass of a search may override."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from manyfit._compat import NO_CALLBACKS, has_input_hook, overrides_format_results, takes_callback_context
from manyfit.arrays import container_to_host
from manyfit.folds import Splits
from manyfit.model_selection.early_stopping._iterations import iteration_columns
from manyfit.model_selection.job._job import Result


def check_input(search: Any, cv: Any, X: Any, y: Any, split_params: Mapping[str, Any]) -> Any:
    """Call ``_check_input_parameters``, a hook of scikit-learn 1.8 and later; return the splitter to use.

    Halving searches have it in 1.7, too.

    The hook reads the splitter from ``_checked_cv_orig``, and may replace it.
    """
    search._checked_cv_orig = cv
    if has_input_hook() or search.checks_input:
        search._check_input_parameters(X=X, y=y, split_params=split_params)
    return search._checked_cv_orig


@contextmanager
def attributes_restored(search: Any) -> Iterator[None]:
    """Undo all changes that hooks make to a search in the block."""
    before = dict(vars(search))
    try:
        yield
    finally:
        vars(search).clear()
        vars(search).update(before)


def list_candidates(search: Any, n_splits: int) -> list[Any]:
    """The settings that ``_run_search`` evaluates, without any fit.

    It raises NotImplementedError if they depend on scores, or on what a subclass's ``fit`` prepares.
    """
    drawn: list[Any] = []
    name = type(search).__name__
    unknown = _Unknown(f"{name} chooses settings by the scores of others: plan() cannot list them.")

    def record(candidate_params: Iterable[Any], *_: Any, **__: Any) -> Mapping[str, Any]:
        if drawn:
            unknown.refuse()
        drawn.extend(candidate_params)
        return unknown

    search.n_splits_ = n_splits
    context = {"callback_ctx": NO_CALLBACKS} if takes_callback_context(search._run_search) else {}
    try:
        search._run_search(record, **context)
    except AttributeError as error:
        raise NotImplementedError(
            f"plan() called {name}._run_search without {name}.fit, and it failed: {error}. Only a search "
            "that lists its settings without a fit can be planned."
        ) from error
    return drawn


class _Unknown(Mapping[str, Any]):
    """In place of results of settings that were not fitted; a search that reads them cannot be planned."""

    def __init__(self, why: str) -> None:
        self._why = why

    def refuse(self, *_: Any) -> NoReturn:
        raise NotImplementedError(self._why)

    __getitem__ = __iter__ = __len__ = refuse


def add_sizes(search: Any, out: Sequence[Result], splits: Splits) -> None:
    """Add the size of each test set, which a subclass's ``_format_results`` may read."""
    if not overrides_format_results(search):
        return
    tests = [np.asarray(test) for _, test in splits]
    sizes = [int(test.sum()) if test.dtype == bool else test.size for test in tests]
    for position, result in enumerate(out):
        result["n_test_samples"] = sizes[position % len(sizes)]


def format_results(
    search: Any, candidates: list[Any], n_splits: int, out: Sequence[Result], more: Mapping[str, list[Any]]
) -> dict[str, Any]:
    """``cv_results_``, made by ``_format_results``."""
    # scikit-learn puts values of settings into NumPy arrays, which cannot hold device arrays.
    shown = [
        {name: container_to_host(value, label="parameters") for name, value in one.items()}
        for one in candidates
    ]
    results: dict[str, Any] = search._format_results(shown, n_splits, out, more)
    results |= iteration_columns(out, n_splits)
    if results.get("params") is shown:  # a subclass may return other parameters
        results["params"] = candidates
    return results
