"""cross_validate and its kin: scikit-learn's functions, with our engine in place of their parallel call."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any

from sklearn import model_selection
from sklearn.utils.parallel import Parallel
from sklearn.utils.parallel import delayed as sklearn_delayed

from manyfit._compat import is_fit_and_score, num_samples, on_engine
from manyfit.folds import Splits
from manyfit.model_selection._chain import value_key
from manyfit.model_selection._engine import run
from manyfit.model_selection._job import Job, Options, Result
from manyfit.model_selection._planner import prepare

Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


def _delayed(function: Callable[..., Any]) -> Callable[..., Call]:
    """joblib's ``delayed``, keeping the function itself so that the engine can tell what it is asked for."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Call:
        return function, args, kwargs

    return call


class _EngineParallel:
    """Stands where scikit-learn makes its ``Parallel``."""

    def __init__(self, n_jobs: Any = None, verbose: int = 0, pre_dispatch: Any = "2*n_jobs") -> None:
        self._n_jobs, self._verbose, self._pre_dispatch = n_jobs, verbose, pre_dispatch

    def __call__(self, calls: Iterable[Call]) -> list[Any]:
        drawn = list(calls)
        if drawn and all(is_fit_and_score(function) for function, _, _ in drawn):
            return self._run([(*args[:3], kwargs) for _, args, kwargs in drawn])
        parallel = Parallel(n_jobs=self._n_jobs, verbose=self._verbose, pre_dispatch=self._pre_dispatch)
        return list(parallel(sklearn_delayed(f)(*args, **kwargs) for f, args, kwargs in drawn))

    def _run(self, fits: Sequence[tuple[Any, Any, Any, dict[str, Any]]]) -> list[Result]:
        """Fits of one estimator on one data set, in the order asked for."""
        estimator, X, y, first = fits[0]
        splits, split_of = _distinct([(kw["train"], kw["test"]) for *_, kw in fits], _identities)
        candidates, candidate_of = _distinct([kw["parameters"] or {} for *_, kw in fits], _values)
        n = num_samples(X)
        job = Job(
            estimator, candidates, X, y, Splits.given(splits, n), _options(first), self._n_jobs,
            self._pre_dispatch,
        )  # fmt: skip
        results, _ = run(job, prepare(job))
        return [results[c * len(splits) + i] for c, i in zip(candidate_of, split_of, strict=True)]


def _distinct(items: Sequence[Any], key: Callable[[Any], Any]) -> tuple[list[Any], list[int]]:
    """The different items in order of appearance, and the position among them of each."""
    positions: dict[Any, int] = {}
    different: list[Any] = []
    where: list[int] = []
    for item in items:
        k = key(item)
        if k not in positions:
            positions[k] = len(different)
            different.append(item)
        where.append(positions[k])
    return different, where


def _identities(split: tuple[Any, Any]) -> tuple[int, int]:
    return id(split[0]), id(split[1])


def _values(params: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple((name, value_key(value)) for name, value in params.items())


def _options(given: Mapping[str, Any]) -> Options:
    return Options(
        scorer=given["scorer"],
        fit_params=given.get("fit_params") or {},
        score_params=given.get("score_params") or {},
        return_train_score=given.get("return_train_score", False),
        error_score=given["error_score"],
        verbose=int(given.get("verbose", 0)),
        return_estimator=given.get("return_estimator", False),
    )


_NAMES = {"Parallel": _EngineParallel, "delayed": _delayed}

cross_validate = on_engine(model_selection.cross_validate, **_NAMES)
cross_val_score = on_engine(model_selection.cross_val_score, cross_validate=cross_validate)
cross_val_predict = on_engine(model_selection.cross_val_predict, **_NAMES)
validation_curve = on_engine(model_selection.validation_curve, **_NAMES)
learning_curve = on_engine(model_selection.learning_curve, **_NAMES)
