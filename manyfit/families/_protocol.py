"""Families: how estimators of one kind answer many settings on many folds at once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from numpy.typing import NDArray

from manyfit.folds import Fold, TransformedMoments
from manyfit.metrics import LinearPredictors, Rounding

Array = NDArray[Any]
Role = Literal["train", "test"]


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
    """

    n_train: int
    n_features: int
    n_targets: int
    n_splits: int
    n_classes: int = 0
    n_entries: int | None = None


@dataclass(frozen=True)
class Cost:
    """Floating-point operations of a group, all its settings and splits together.

    A group whose `shared` is the larger of the two is left to scikit-learn.

    Attributes
    ----------
    shared : float
        Answered by the family, with the pass over X that sums moments.
    one_by_one : float
        Fitted by scikit-learn.
    """

    shared: float
    one_by_one: float


@runtime_checkable
class Answers(Protocol):
    """What a family answers for one fold.

    Attributes
    ----------
    alone : mapping of int to str
        Settings (positions in the list that `fit_many` was given) that this fold does not share, with
        the reason; scikit-learn fits each of them.
    classes : ndarray of shape (n_classes,) or None
        For classifiers: the classes, on the host, in the order of the columns of probabilities.
    """

    @property
    def alone(self) -> Mapping[int, str]:
        """Settings that scikit-learn is to fit on this fold, with the reason; empty if there are none."""

    @property
    def classes(self) -> Array | None:
        """Classes in the order of the columns of probabilities; None marks a regressor."""

    def subset(self, settings: Sequence[int]) -> "Answers":
        """The answers of some settings, none of them left alone."""

    def respond(self, role: Role, fold: Fold) -> dict[str, Array]:
        """Predictions for the rows of a role, by method name, each of shape (n_settings, n_rows, ...)."""


@dataclass(frozen=True)
class Predictions:
    """Answers given as arrays.

    Attributes
    ----------
    test : dict of str to ndarray of shape (n_settings, n_test, ...)
        By method: ``"predict"``, ``"predict_proba"``, ``"decision_function"``.
    train : dict of str to ndarray of shape (n_settings, n_train, ...), optional
        The same for the training rows; needed only where training scores are asked for.
    alone : mapping of int to str
        See `Answers`. The arrays keep a place for these settings, which nothing reads.
    classes : ndarray of shape (n_classes,) or None
        See `Answers`.
    """

    test: dict[str, Array]
    train: dict[str, Array] | None = None
    alone: Mapping[int, str] = field(default_factory=dict)
    classes: Array | None = None

    def subset(self, settings: Sequence[int]) -> "Predictions":
        """See `Answers`."""
        index = list(settings)
        train = None if self.train is None else {name: a[index] for name, a in self.train.items()}
        return Predictions({name: a[index] for name, a in self.test.items()}, train, {}, self.classes)

    def respond(self, role: Role, fold: Fold) -> dict[str, Array]:
        """The arrays of a role."""
        if role == "test":
            return self.test
        if self.train is None:
            raise ValueError(
                "The family gave no predictions for the training rows; training scores need them."
            )
        return self.train


@dataclass(frozen=True)
class LinearAnswers:
    """Answers that are linear in the columns of X: scored from moments where the metric allows it.

    Attributes
    ----------
    linear : LinearPredictors
        One for each setting, those left alone included; float64, on the host.
    alone : mapping of int to str
        See `Answers`.
    roundings : tuple of Rounding
        What the solver's rounding may do to the predictors, for consecutive settings, all of them. Settings
        whose score it could change are fitted by scikit-learn. Empty: the solver loses nothing.
    flat : bool
        Whether predictions of one target have one dimension even where y is a column, as Ridge's have.
    classes : None
        These are regressors.
    """

    linear: LinearPredictors
    alone: Mapping[int, str] = field(default_factory=dict)
    roundings: tuple[Rounding, ...] = ()
    flat: bool = False
    classes: None = None

    def subset(self, settings: Sequence[int]) -> "LinearAnswers":
        """See `Answers`."""
        index, linear = list(settings), self.linear
        return LinearAnswers(
            LinearPredictors(linear.coef[:, index], linear.at_origin[index], linear.origin), flat=self.flat
        )

    def respond(self, role: Role, fold: Fold) -> dict[str, Array]:
        """Predictions, from one matrix product for all settings."""
        predicted, y = self.linear(fold.rows(role)), fold.targets(role)
        one = y.ndim == 1 or (self.flat and y.shape[1] == 1)
        return {"predict": predicted[:, :, 0] if one else predicted}


class Family(Protocol):
    """How estimators of one kind answer many settings at once.

    Attributes
    ----------
    serves : tuple of type
        Exact types: a subclass may override anything.
    free : frozenset of str
        Parameters that may differ between the settings of one call.
    result : {"exact", "converged"}
        Whether the answers are scikit-learn's to rounding, or an optimum at least as tight as ``tol``.
    needs : {"moments", "rows", "passes"}
        Whether `fit_many` reads only `FoldedData.view`, so that affine steps before it need no data, or the
        rows of the folds, or goes over the rows of all folds together (`PassData`), behind affine steps.
    why_stops_elsewhere : callable, optional
        Of a "converged" family: ``why_stops_elsewhere(estimator, shape)`` says why scikit-learn's own fit
        does not end by its gradient, as far as parameters and the size of the data tell, or is None.
    coupled : bool, optional
        Whether a family that needs passes goes over the rows for all classes together, as most do; else for
        one after the other, in less memory.
    """

    @property
    def serves(self) -> tuple[type, ...]:
        """Estimators that this family answers for, by exact type."""

    @property
    def free(self) -> frozenset[str]:
        """Parameters that may differ between the settings of one call; the others are the same in all."""

    @property
    def result(self) -> Literal["exact", "converged"]:
        """How near to scikit-learn's the answers are; ``sharing="exact"`` leaves out "converged"."""

    @property
    def needs(self) -> Literal["moments", "rows", "passes"]:
        """What `fit_many` reads of the data."""

    def check(self, estimator: Any, settings: Sequence[Mapping[str, Any]]) -> None:
        """Raise `Unsupported` with the reason if an estimator, or one of its settings, is not served."""

    def cost(self, estimator: Any, settings: Sequence[Mapping[str, Any]], shape: Shape) -> Cost:
        """Operations of the shared and of the one-by-one way."""

    def fit_many(
        self, estimator: Any, settings: Sequence[Mapping[str, Any]], folded: Any
    ) -> Iterable[Answers]:
        """Answer all settings on each fold of `folded`, in order.

        Parameters
        ----------
        estimator : estimator
            Unfitted, with the parameters that all settings share.
        settings : sequence of dict
            Values of the free parameters.
        folded : FoldedData or PassData
            The data, on the host; `PassData` for a family that needs passes.

        Returns
        -------
        iterable of Answers
            One for each split, on the host; best made when it is asked for, so that one fold's answers
            are in memory at a time.

        Raises
        ------
        Unsupported
            If a fold turns out not to be served; scikit-learn then fits all settings on it.
        """


class AffineStep(Protocol):
    """How an affine transformer maps the training moments of a fold."""

    @property
    def serves(self) -> tuple[type, ...]:
        """Transformers that this step stands for, by exact type: a subclass may override anything."""

    def check(self, step: Any) -> None:
        """Raise `Unsupported` with the reason if the parameters are not served."""

    def apply(self, step: Any, view: TransformedMoments) -> TransformedMoments:
        """The view behind the step, as scikit-learn would fit it on this fold.

        Raises
        ------
        Unsupported
            Where moments cannot tell what scikit-learn would do.
        """


_families: dict[type, Family] = {}
_affine_steps: dict[type, AffineStep] = {}

F = TypeVar("F", bound=Family)
A = TypeVar("A", bound=AffineStep)


def register_family(family: F) -> F:
    """Let a family serve its types in every search of this process; returns it.

    A later registration for the same type replaces the earlier one.

    Parameters
    ----------
    family : Family
        An instance; it is pickled where workers are processes.

    Returns
    -------
    Family
        The same object.
    """
    for cls in family.serves:
        _families[cls] = family
    return family


def unregister_family(family: Family) -> None:
    """Take a family back: its types are fitted one by one from then on.

    Parameters
    ----------
    family : Family
        The instance that was registered. Types that another family has taken over stay with that one.
    """
    for cls in family.serves:
        if _families.get(cls) is family:
            del _families[cls]


def register_affine_step(step: A) -> A:
    """Let an affine step map moments in every search of this process; returns it.

    A later registration for the same type replaces the earlier one.

    Parameters
    ----------
    step : AffineStep
        An instance.

    Returns
    -------
    AffineStep
        The same object.
    """
    for cls in step.serves:
        _affine_steps[cls] = step
    return step


def family_of(cls: type) -> Family | None:
    """The family that serves exactly this type of estimator.

    Returns
    -------
    Family or None
        None if none is registered for `cls` itself; those of its bases do not count.
    """
    return _families.get(cls)


def affine_step_of(cls: type) -> AffineStep | None:
    """The affine step that serves exactly this type of estimator.

    Returns
    -------
    AffineStep or None
        None if none is registered for `cls` itself; those of its bases do not count.
    """
    return _affine_steps.get(cls)
