"""Wrappers that let any estimator read an X in chunks: block by block in fits, or in predictions alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    RegressorMixin,
    clone,
    is_classifier,
)
from sklearn.metrics import get_scorer
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from manyfit.arrays import compute_dask_inputs
from manyfit.estimators.chunks._lazy import lazily
from manyfit.estimators.chunks._transformers import TransformedRows
from manyfit.folds import ChunkInput, is_dask, is_parquet_path, may_be_in_chunks, prepare_rows, read_input
from manyfit.introspection.class_names import sklearn_class_of
from manyfit.introspection.composites import last_step

# Memory for the reads of a method.
MEMORY = 2**30


def _has(name: str) -> Callable[[Any], bool]:
    return lambda self: hasattr(self.estimator if not hasattr(self, "estimator_") else self.estimator_, name)


def _by_block(name: str, what: str, shape: str) -> Any:
    """A method of the estimator, for an X that is read block by block if it is in chunks."""

    def method(self: ParallelPostFit, X: Any) -> Any:
        if is_dask(X) and hasattr(X, "numblocks"):
            return lazily(self._fitted(), name, X)
        rows, response = _read(X).rows, getattr(self._fitted(), name)
        if rows is None:
            return response(X)
        parts = [response(block) for _, block in rows.frames()]
        if isinstance(parts[0], list):  # an array for each target
            return [np.concatenate(own) for own in zip(*parts, strict=True)]
        return np.concatenate(parts)

    method.__name__, method.__qualname__ = name, f"ParallelPostFit.{name}"
    method.__doc__ = f"""{what} all rows.

        Parameters
        ----------
        X : array-like or X in chunks, of shape (n_samples, n_features)
            Read block by block if it is in chunks.

        Returns
        -------
        ndarray or dask.array.Array of shape {shape}
            A Dask array, computed when it is read, for a Dask array; on the host otherwise.
        """
    return available_if(_has(name))(method)


class ParallelPostFit(MetaEstimatorMixin, BaseEstimator):
    """An estimator that is fitted in memory, and predicts or transforms an X in chunks block by block.

    Parameters
    ----------
    estimator : estimator, default=None
        The estimator to fit, or one that is fitted: without a call of `fit` the methods use it as it is.
    scoring : str or callable, default=None
        The scorer of `score`. None: the score of the estimator.

    Attributes
    ----------
    estimator_ : estimator
        The clone that `fit` has fitted.

    Notes
    -----
    It has those of ``predict``, ``predict_proba``, ``predict_log_proba``, ``decision_function`` and
    ``transform`` that its estimator has. Fitted attributes of the estimator are read from the wrapper, too.
    Predictions are NumPy arrays, but those for a Dask array, which are Dask arrays. ``transform`` returns
    rows that are computed when they are read.

    Examples
    --------
    >>> import numpy as np, dask.array as da
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from manyfit.estimators import ParallelPostFit
    >>> X = np.arange(20.0).reshape(10, 2)
    >>> model = ParallelPostFit(DecisionTreeRegressor()).fit(X, X[:, 0])
    >>> model.predict(da.from_array(X, chunks=3))[:3].compute()
    array([0., 2., 4.])
    """

    def __init__(self, estimator: Any = None, scoring: Any = None) -> None:
        self.estimator, self.scoring = estimator, scoring

    def fit(self, X: Any, y: Any = None, **params: Any) -> ParallelPostFit:
        """Fit a clone of the estimator to X and y, which are in memory.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            In memory.
        y : array-like of shape (n_samples,), optional
            In memory.
        **params : dict
            As for the estimator's own ``fit``.

        Returns
        -------
        self : object
            The fitted wrapper.
        """
        self.estimator_ = clone(self.estimator).fit(X, y, **params)
        return self

    predict = _by_block("predict", "Predictions of", "(n_samples,) or (n_samples, n_outputs)")
    predict_proba = _by_block("predict_proba", "Probabilities of the classes for", "(n_samples, n_classes)")
    predict_log_proba = _by_block(
        "predict_log_proba", "Logarithms of the probabilities for", "(n_samples, n_classes)"
    )
    decision_function = _by_block(
        "decision_function", "Decision values of", "(n_samples,) or (n_samples, n_classes)"
    )

    @available_if(_has("transform"))
    def transform(self, X: Any) -> Any:
        """The transformed rows.

        Parameters
        ----------
        X : array-like or X in chunks, of shape (n_samples, n_features)
            See `predict`.

        Returns
        -------
        array-like of shape (n_samples, n_features_new)
            Rows that are computed when they are read if X is in chunks: a Dask array for a Dask array.
        """
        if is_dask(X) and hasattr(X, "numblocks"):
            return lazily(self._fitted(), "transform", X)
        rows = _read(X).rows
        return (
            self._fitted().transform(X) if rows is None else TransformedRows(rows, self._fitted().transform)
        )

    def score(self, X: Any, y: Any = None, **params: Any) -> Any:
        """The score of the predictions, by `scoring` or as the estimator's own ``score``.

        Parameters
        ----------
        X : array-like or X in chunks, of shape (n_samples, n_features)
            Predicted block by block if it is in chunks.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Targets, which are loaded.
        **params : dict
            As for the scorer, or the estimator's ``score``: a ``sample_weight``.

        Returns
        -------
        float
            The score.

        Raises
        ------
        TypeError
            If X is in chunks, `scoring` is None, and the estimator's ``score`` is another one than accuracy
            or R2.
        """
        found = _read(X, y)
        if self.scoring is not None:
            rows = found.X if found.rows is None else found.rows
            return get_scorer(self.scoring)(self, rows, found.y, **params)
        if found.rows is None:
            return self._fitted().score(X, y, **params)
        cls: Any = sklearn_class_of(type(last_step(self._fitted())))  # whose score is that of a pipeline, too
        own = cls.score
        if own is not ClassifierMixin.score and own is not RegressorMixin.score:
            raise TypeError(
                f"{type(self._fitted()).__name__}.score reads X whole. Set scoring, or score its predictions."
            )
        return own(self, found.rows, found.y, **params)  # of the predictions, which are made block by block

    def _fitted(self) -> Any:
        model = getattr(self, "estimator_", self.estimator)
        check_is_fitted(model)
        return model

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_") and not name.startswith("_") and name != "estimator_":
            return getattr(vars(self).get("estimator_", vars(self).get("estimator")), name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_tags__(self) -> Any:
        return self.estimator.__sklearn_tags__()


class Incremental(ParallelPostFit):
    """An estimator whose ``partial_fit`` is called with one block of X after the other.

    Parameters
    ----------
    estimator : estimator
        With ``partial_fit``.
    scoring : str or callable, optional
        See `ParallelPostFit`.
    shuffle_blocks : bool, default=True
        Whether the blocks come in random order.
    random_state : int, RandomState instance or None, default=None
        Of that order.

    Attributes
    ----------
    estimator_ : estimator
        The fitted clone.

    Notes
    -----
    A block is what is read at a time: whole chunks, up to 32 MiB. `fit` makes one pass over X. For a
    classifier the classes are those of y, unless ``classes`` is given. An X in memory is one block.
    """

    def __init__(
        self,
        estimator: Any = None,
        scoring: Any = None,
        shuffle_blocks: bool = True,
        random_state: Any = None,
    ) -> None:
        super().__init__(estimator, scoring)
        self.shuffle_blocks, self.random_state = shuffle_blocks, random_state

    def fit(self, X: Any, y: Any = None, **params: Any) -> Incremental:
        """Fit a clone of the estimator in one pass over the blocks of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            In memory or in chunks.
        y : array-like of shape (n_samples,), optional
            Targets, which are loaded.
        **params : dict
            For each call of ``partial_fit``. A ``sample_weight`` is cut to the rows of the block.

        Returns
        -------
        self : object
            The fitted wrapper.
        """
        return self._continue(clone(self.estimator), X, y, params)

    def partial_fit(self, X: Any, y: Any = None, **params: Any) -> Incremental:
        """Continue the fit with the blocks of X; see `fit`."""
        model = vars(self).get("estimator_")
        return self._continue(clone(self.estimator) if model is None else model, X, y, params)

    def _continue(self, model: Any, X: Any, y: Any, params: dict[str, Any]) -> Incremental:
        found = _read(X, y)
        rows, y = found.rows, found.y
        if found.sample_weight is not None:
            params = {"sample_weight": found.sample_weight, **params}
        if is_classifier(model) and "classes" not in params and not hasattr(model, "classes_"):
            params = {**params, "classes": np.unique(y)}
        if rows is None:
            model.partial_fit(X, y, **params)
        else:
            rows.count()
            check_consistent_length(rows, y, params.get("sample_weight"))
            borders = list(pairwise(rows.borders))
            if self.shuffle_blocks:
                check_random_state(self.random_state).shuffle(borders)
            for start, stop in borders:
                own = dict(params)
                if own.get("sample_weight") is not None:
                    own["sample_weight"] = np.asarray(own["sample_weight"])[start:stop]
                model.partial_fit(rows.load_frame(start, stop), None if y is None else y[start:stop], **own)
        self.estimator_ = model
        return self


def _read(X: Any, y: Any = None) -> ChunkInput:
    """X and y; an X of a kind that is read in chunks has rows, whatever its size."""
    in_chunks = may_be_in_chunks(X) or is_parquet_path(X)
    found = read_input(X, y, lambda: MEMORY, 0) if in_chunks else ChunkInput(X, y)
    targets = found.y
    if hasattr(targets, "__dask_graph__"):
        (targets,) = compute_dask_inputs([targets], "y")
    targets = targets if targets is None or found.rows is None else np.asarray(targets)
    if found.rows is not None:
        prepare_rows(found.rows, targets)
    return replace(found, y=targets)
