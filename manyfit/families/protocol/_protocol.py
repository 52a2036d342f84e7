"""Families: how estimators of one kind answer many settings on many folds at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import scipy.sparse
from sklearn.base import clone

from manyfit.families.protocol._answers import Answers
from manyfit.folds import FoldColumns, Rows, TransformedMoments

Setting = Mapping[str, Any]
"""Values of the free parameters, by name."""
Settings = Sequence[Setting]


@dataclass(frozen=True)
class MomentSums:
    """`Family.reads`: only ``folded.view(i)``, the training moments of a fold.

    Affine steps then read no rows. The answers are `LinearAnswers`.

    Attributes
    ----------
    sparse : bool
        Whether they are those of the estimator's fit on sparse rows, too.
    """

    sparse: bool = False


@dataclass(frozen=True)
class Iterations:
    """`Family.reads`: the rows of all folds together, in passes through affine steps (`PassData`)."""


@dataclass(frozen=True)
class FoldRows:
    """`Family.reads`: ``folded.fold(i)``, the rows of one fold behind steps that are fitted once a fold.

    Attributes
    ----------
    sparse : bool
        Whether rows may be a CSR matrix.
    weights : bool
        Whether ``fold.fit_weight`` is read; else settings of a search with weights are not shared.
    device : bool
        Whether rows may lie on a device.
    categories : bool
        Whether rows may be a pandas frame of numbers and categories, which is given as it is.
    """

    sparse: bool = False
    weights: bool = False
    device: bool = True
    categories: bool = False


@dataclass(frozen=True)
class ClassSums(FoldRows):
    """`Family.reads`: as `FoldRows`, and sums over the training rows of each class.

    Without steps before the estimator and on the host, `fit_many` gets a `ClassedFold`, whose sums are made
    in one pass for all folds; else a `SingleFold`. With weights it does so of an X in chunks only.

    Attributes
    ----------
    sparse : bool
        See `FoldRows`.
    weights : bool
        See `FoldRows`.
    device : bool
        See `FoldRows`.
    categories : bool
        See `FoldRows`.
    products : bool
        Whether sums of products of columns are read, not of squares alone.
    counts : bool
        Whether sums of the columns alone are read, of sparse rows in chunks. All other rows are read fold by
        fold, as with `FoldRows`.
    """

    products: bool = False
    counts: bool = False


@dataclass(frozen=True)
class Shape:
    """Size of the data that one fit sees, for estimates of cost.

    Attributes
    ----------
    n_train : int
        Rows of one training set, rounded where they differ between splits.
    n_features : int
        Columns of X, before any step.
    n_targets : int
        Columns of y; 1 where it is one-dimensional.
    n_splits : int
        Splits of the search.
    n_classes : int
        Classes of y, for a classifier; else 0.
    n_entries : int or None
        Entries that a sparse X stores in one training set; None for a dense X.
    n_test : int
        Rows of one test set, rounded where they differ between splits.
    row_entries : int or None
        Numbers that a row stores, if one-hot columns are stored as codes; None otherwise.
    """

    n_train: int
    n_features: int
    n_targets: int
    n_splits: int
    n_classes: int = 0
    n_entries: int | None = None
    n_test: int = 0
    row_entries: int | None = None


@dataclass(frozen=True)
class Cost:
    """Floating-point operations of a group, all its settings and splits together.

    A group whose `shared` is the larger of the two is left to scikit-learn.

    Attributes
    ----------
    shared : float
        Operations of the family, with the pass over X that sums moments.
    individual : float
        Operations of scikit-learn's fits, one for each setting and split.
    fits : int
        Fits of the estimator that the family makes, as one forest for all numbers of trees on each split.
        The plan counts them; `Answers.fits_made` says how many there were.
    memory : int
        Bytes of the host that the answers of one fold take beside its rows, as a kernel matrix does. A fold
        that would need more than ``memory_limit`` is left to scikit-learn.
    """

    shared: float
    individual: float
    fits: int = 0
    memory: int = 0


class Family:
    """How estimators of one kind answer many settings at once: the base class of all families.

    Attributes
    ----------
    serves : tuple of type
        Estimators that it answers for, by exact type: a subclass may override anything.
    free : frozenset of str
        Parameters that may differ between the settings of one call; the others are the same in all.
    result : {"exact", "converged"}
        Whether the answers are scikit-learn's to rounding, or an optimum at least as tight as ``tol``;
        ``sharing="exact"`` leaves out "converged".
    reads : MomentSums, Iterations or FoldRows
        What `fit_many` reads of the data.
    path_params : frozenset of str
        Parameters of a "converged" family that change where a solver stops, and not the optimum. Settings
        are not shared if the search varies one of them.
    fits_in_threads : bool
        Whether threads of joblib make parts of a fit at the same time and leave its numbers as they are.
        They do if a search has fewer fits than workers, or some are left over.
    """

    serves: tuple[type, ...]
    free: frozenset[str]
    result: Literal["exact", "converged"]
    reads: MomentSums | Iterations | FoldRows
    path_params: frozenset[str] = frozenset()
    fits_in_threads: bool = False

    def check(self, estimator: Any, settings: Settings) -> None:
        """Raise `Unsupported` with the reason if an estimator, or one of its settings, is not served."""

    def other_stopping_rule(self, estimator: Any, shape: Shape) -> str | None:
        """Why scikit-learn's own fit does not stop by its gradient, from parameters and sizes; or None."""
        return None

    def cost(self, estimator: Any, settings: Settings, shape: Shape) -> Cost:
        """Operations of the shared and of the individual fits of some settings.

        Parameters
        ----------
        estimator : estimator
            Unfitted, with the parameters that all settings share.
        settings : sequence of dict
            Values of the free parameters.
        shape : Shape
            Size of the data.

        Returns
        -------
        Cost
            Of all settings and splits together.
        """
        raise NotImplementedError

    def fit_many(self, estimator: Any, settings: Settings, folded: Any) -> Iterable[Answers]:
        """Answer all settings on each fold of `folded`, in order.

        Parameters
        ----------
        estimator : estimator
            Unfitted, with the parameters that all settings share.
        settings : sequence of dict
            Values of the free parameters.
        folded : FoldedData or PassData
            The data, with X on the host or on a device; `PassData` for a family that reads `Iterations`.

        Returns
        -------
        iterable of Answers
            One for each split, on the host; best made when it is read, so that one fold's answers
            are in memory at a time.

        Raises
        ------
        Unsupported
            If a fold turns out not to be served; scikit-learn then fits all settings on it.
        """
        raise NotImplementedError


class _Step(Protocol):
    """How a transformer is served."""

    @property
    def serves(self) -> tuple[type, ...]:
        """Transformers that this step stands for, by exact type: a subclass may override anything."""

    def check(self, step: Any) -> None:
        """Raise `Unsupported` with the reason if the parameters are not served."""
        return None


class AffineStep(_Step, Protocol):
    """How an affine transformer maps the training moments of a fold."""

    def apply(self, step: Any, view: TransformedMoments) -> TransformedMoments:
        """The view behind the step, as scikit-learn would fit it on this fold.

        Raises
        ------
        Unsupported
            Where moments cannot tell what scikit-learn would do.
        """


class SparseStep(_Step):
    """How a transformer is fitted to sparse rows that are read in chunks; it then maps them row by row.

    Attributes
    ----------
    is_exact : bool
        Whether what it learns has the bits of scikit-learn's fit.
    """

    is_exact = True

    def reads_rows(self, step: Any) -> bool:
        """Whether a fit learns from the numbers of the rows, which takes a pass."""
        return False

    def learned(self, step: Any, reduced: Callable[..., Any], dtype: Any) -> dict[str, Any]:
        """The fitted attributes; ``reduced(work, merge)`` is `ChunkReduction.reduced` of the rows."""
        return {}

    def fit(self, step: Any, X: Any, rows: Rows) -> Any:
        """The step, fitted to some rows of X, sparse and in chunks."""
        fitted = clone(step).fit(scipy.sparse.csr_array(np.ones((1, X.shape[1]), dtype=X.dtype)))
        if self.reads_rows(step):

            def reduced(work: Any, merge: Any) -> Any:
                return X.reduced(work, merge, [rows])

            vars(fitted).update(self.learned(step, reduced, X.dtype))
        return fitted


class ColumnStep(_Step, Protocol):
    """How a transformer maps the columns of a fold: a frame's, with gaps and categories."""

    def apply(self, step: Any, columns: FoldColumns) -> FoldColumns:
        """The columns behind the step, as scikit-learn would fit it on this fold.

        Raises
        ------
        Unsupported
            Where scikit-learn would warn or raise, or the output is not linear in the encoding.
        """
