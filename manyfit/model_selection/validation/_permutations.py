"""permutation_test_score: scikit-learn's, with the scores of all permutations from one set of moments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import partial, wraps
from itertools import chain, islice
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.parallel import Parallel

from manyfit._compat import replace_globals, unwrap_delayed
from manyfit.arrays import compute_dask_inputs
from manyfit.folds import Unsupported
from manyfit.model_selection.planning.places._data_location import move_data_to_host
from manyfit.model_selection.validation.moment_scores import NEAR, TargetScores, draw_fixed_splits

# Bytes of permuted targets that are answered together. Larger blocks would spend their time on fresh memory.
BLOCK_BYTES = 2**24


class PermutedFits:
    """In place of scikit-learn's ``Parallel``: the calls of its function that scores one permutation of y."""

    def __init__(self, y: Any, n_permutations: int) -> None:
        self._y, self._n = y, n_permutations
        self._one: Any = None  # in place of all clones, while no fit reads them

    def clone(self, estimator: Any) -> Any:
        """In place of scikit-learn's ``clone``, which would take longer than all scores."""
        return clone(estimator) if self._one is None else self._one

    def parallel(self, **options: Any) -> Callable[[Iterable[Any]], list[Any]]:
        """In place of ``Parallel``."""
        return partial(self._run, Parallel(**options))

    def _run(self, parallel: Parallel, calls: Iterable[Any]) -> list[Any]:
        stream = iter(calls)  # scikit-learn draws a permutation for each call that is read
        first = list(islice(stream, 1))
        try:
            shared = self._prepare(*first[0][1:])
        except Exception:  # whatever it is, scikit-learn's own fits say so
            return list(parallel(chain(first, stream)))
        self._one = first[0][1][0]
        return list(self._scores(shared, chain(first, stream)))

    def _prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TargetScores:
        estimator, X, _, cv, scorer = args
        if kwargs["fit_params"] or kwargs["score_params"]:
            raise Unsupported("fits or scores have parameters")
        if "Stratified" in type(cv).__name__:
            raise Unsupported("the splits depend on y")
        splits = draw_fixed_splits(cv, X, self._y, **kwargs["split_params"])
        return TargetScores(estimator, X, self._y, splits, scorer, self._n)

    def _scores(self, shared: TargetScores, calls: Iterator[Any]) -> Iterator[float]:
        own, size = None, max(1, BLOCK_BYTES // (8 * len(self._y)))
        columns = np.empty((size + 1, len(self._y)))
        columns[0] = self._y
        while block := list(islice(calls, size)):
            for j, (_, args, _) in enumerate(block, 1):
                columns[j] = args[2]
            means = shared.scores(columns[: len(block) + 1].T).mean(axis=1)
            function, (estimator, X, _, *rest), kwargs = block[0]
            score = unwrap_delayed(function)[0]
            if own is None:  # that of y itself, to which the others are compared
                own = means[0]
                if np.isnan(own):
                    own = score(clone(estimator), X, self._y, *rest, **kwargs)
            for (_, args, kwargs), mean in zip(block, means[1:], strict=True):
                near = not abs(mean - own) > NEAR * max(abs(own), 1.0)
                yield score(clone(args[0]), *args[1:], **kwargs) if near else mean


def _move_to_host(given: dict[str, Any]) -> None:
    """Copy data of a device to the host, where y is permuted, with the warning of a host fallback.

    Dask's collections are computed.
    """
    caller, names = "permutation_test_score", ("X", "y", "groups")
    move = partial(move_data_to_host, caller, "it permutes y on the host")
    values = compute_dask_inputs([given[name] for name in names], caller)
    given |= move(dict(zip(names, values, strict=True)))
    for option in ("params", "fit_params"):
        if given.get(option):
            given[option] = move(given[option])


def permute_on_moments(function: Callable[..., Any], module: str) -> Callable[..., Any]:
    """scikit-learn's ``permutation_test_score`` as a function of `module` that shares its fits."""
    signature = inspect.signature(function)

    @wraps(function)
    def permutation_test_score(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        _move_to_host(given.arguments)
        fits = PermutedFits(given.arguments["y"], given.arguments["n_permutations"])
        names = {"Parallel": fits.parallel, "clone": fits.clone}
        return replace_globals(function, module, **names)(*given.args, **given.kwargs)

    permutation_test_score.__module__ = module  # where pickle finds it
    return permutation_test_score
