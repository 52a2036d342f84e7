"""The plan of a search: the groups of settings that share work, and why, before anything is fitted."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from manyfit._config.sizes import format_count
from manyfit.families import Family
from manyfit.folds import ChunkRows
from manyfit.model_selection.planning._pipeline_spec import StepSpec
from manyfit.model_selection.results._plan_view import as_html, as_text, foresee_sharing


class GroupStrategy:
    """The part of a `Strategy` that a plan reads."""

    kind: ClassVar[str]  # its name in plans and reports
    title: ClassVar[str]  # the heading of its groups in a plan
    shares_fits: ClassVar[bool] = False  # whether the fits of the last step are shared
    is_usual: ClassVar[bool] = (
        True  # whether a plan says why it does not serve a group that another one serves
    )
    shares_steps: ClassVar[bool] = False  # whether steps are fitted for several settings at once
    # Where the last step works on device data, and why.
    last_step_place: ClassVar[tuple[Literal["device", "host"], str]] = ("device", "")

    def heading(self, group: "Group") -> str:
        """The heading of a group in a plan."""
        return self.title


@dataclass(frozen=True)
class WorkPlace:
    """The place where a part of the work of a search is done, and why.

    Attributes
    ----------
    what : str
        A class of estimator, such as "SVC"; a part of a FeatureUnion or ColumnTransformer behind its path,
        as "num__imputer: SimpleImputer"; or "moments of X and y", which are sums over rows.
    where : {"device", "host", "workers"}
        The device of the data, the host's memory, or the workers of a cluster.
    reason : str
        Why it is done in this place.
    """

    what: str
    where: Literal["device", "host", "workers"]
    reason: str

    def __str__(self) -> str:
        return f"{self.what}: on the {self.where}, because {self.reason}"


@dataclass(frozen=True)
class Group:
    """Settings that are served together.

    Attributes
    ----------
    strategy : Strategy
        How they are answered; `kind` is its name: "moments" (one pass over X serves all settings and folds),
        "shared iterations" (every pass over X serves all settings and folds), "class moments" (one pass over
        X that sums the rows of each class serves all settings and folds), "rows left out" (one fit of all
        rows serves splits that leave one out), "shared in folds" (steps are fitted once a fold, and a family
        answers all settings of the last one), "shared steps" (only the steps are shared) or "one by one".
    candidates : tuple of int
        Positions in the list of settings.
    estimator : str
        The estimators of the chain, as text.
    fits_requested : int
        Fits of the last estimator that were asked for: settings times splits.
    fits_planned : int
        Those that will be made in any case: 0 where a family answers, or may answer, else all.
    transformer_fits : int
        Fits of the steps before it that will be made where they are shared; one by one it would be more.
    reason : str
        Why no more is shared; empty where everything is.
    fits_undecided : int
        Fits beyond `fits_planned` that may have to be made, which is decided when `decided_by` is seen.
        Together they are more than `fits_requested` if fits of a family may answer nothing: scikit-learn
        then makes those fits again.
    decided_by : str
        Such as "the output of TfidfVectorizer"; empty where all is decided.
    settings : tuple of dict
        For a family: values of its free parameters.
    steps : tuple of Step
        The chain before the last estimator.
    family : Family or None
        Answers the settings; None where scikit-learn fits each.
    prototype : estimator or None
        The last estimator with the parameters that all settings share.
    wrapper : estimator or None
        The meta-estimator that holds the last estimator, without it.
    path : str
        Names of the steps that lead to the last estimator in nested pipelines.
    operations : float
        What the shared iterations are expected to take; 0 for other kinds.
    once : tuple of str
        Work on all rows at once, not on those of each split: steps that see one row at a time, and the
        tokens of texts.
    nested : tuple of str
        Steps of which one fit serves settings with several values of a parameter, such as "SelectKBest serves
        every k".
    by_sklearnex : tuple of int
        Settings that scikit-learn-intelex fits one by one, if its first scores are near scikit-learn's.
    places : tuple of WorkPlace
        Where its steps and its last estimator work; empty where all data are the host's.
    """

    strategy: GroupStrategy
    candidates: tuple[int, ...]
    estimator: str
    fits_requested: int
    fits_planned: int
    transformer_fits: int = 0
    reason: str = ""
    settings: tuple[Mapping[str, Any], ...] = ()
    steps: tuple[StepSpec, ...] = ()
    family: Family | None = None
    prototype: Any = None
    wrapper: Any = None
    path: str = ""
    operations: float = 0.0
    once: tuple[str, ...] = ()
    fits_undecided: int = 0
    decided_by: str = ""
    nested: tuple[str, ...] = ()
    by_sklearnex: tuple[int, ...] = ()
    places: tuple[WorkPlace, ...] = ()

    @property
    def kind(self) -> str:
        """The name of the strategy."""
        return self.strategy.kind

    def only(self, candidates: Container[int]) -> "Group":
        """The group of those of its settings that are among `candidates`.

        Parameters
        ----------
        candidates : container of int
            Positions in the list of settings.

        Returns
        -------
        Group
            The rest as in this group.
        """
        positions = [j for j, c in enumerate(self.candidates) if c in candidates]
        by_sklearnex = tuple(c for c in self.by_sklearnex if c in candidates)
        settings = tuple(self.settings[j] for j in positions) if self.settings else ()
        chosen = tuple(self.candidates[j] for j in positions)
        return replace(self, candidates=chosen, settings=settings, by_sklearnex=by_sklearnex)


@dataclass(frozen=True)
class Plan:
    """The work that a search will do. It prints as a tree, in a notebook as a table.

    Attributes
    ----------
    groups : tuple of Group
        Every setting is in one of them.
    n_candidates : int
        Settings of the search.
    n_splits : int
        Splits that each of them is fitted on.
    passes : float
        Passes over X that sum moments; fits made one by one read X as often as scikit-learn's.
    n_workers : int
        Fits that are made at a time. Several workers may each fit the steps of one split.
    advice : tuple of str
        What a missing ``random_state`` costs, and what to set.
    warnings : tuple of str
        What the scores of the search are not.
    rounds : tuple of str
        Of a halving search, whose first round this is: the sizes of all rounds.
    order : tuple or None
        For each candidate, a key that is equal where steps are shared; None where none is.
    by_candidate : bool
        Whether fits made one by one keep scikit-learn's order although steps are shared: where they draw
        from NumPy's global random state, or where the first that fails raises.
    by_sklearn : bool
        Whether scikit-learn's own function makes every fit, on rows that it cuts for that fit.
    from_predictions : bool
        Whether scores of shared fits are had neither from moments nor of all settings at once:
        scikit-learn's scorers are then called for each setting and split.
    refit_places : tuple of WorkPlace
        Where the estimators of the first setting would work in the refit; empty without one, and where all
        data are the host's.
    reading : tuple of str
        How an X in chunks is read, and whether it is computed anew in each pass; empty for an X in memory.

    Notes
    -----
    Values of X and y are not looked at before the fit: a fold that turns out not to be served (NaN, a
    constant column, a doubtful rank) is then fitted by scikit-learn, and counted in the report. Nor is it
    known how large outputs of shared steps will be: those over ``memory_limit`` are made again.
    """

    groups: tuple[Group, ...]
    n_candidates: int
    n_splits: int
    passes: float
    order: tuple[Any, ...] | None = None
    by_candidate: bool = False
    by_sklearn: bool = False
    from_predictions: bool = False
    refit_places: tuple[WorkPlace, ...] = ()
    reading: tuple[str, ...] = ()
    n_workers: int = 1
    advice: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    rounds: tuple[str, ...] = ()

    @property
    def fits_requested(self) -> int:
        """Settings times splits."""
        return self.n_candidates * self.n_splits

    @property
    def fits_planned(self) -> int:
        """Fits of last estimators that will be made in any case; a shared one counts as none."""
        return sum(group.fits_planned for group in self.groups)

    @property
    def fits_undecided(self) -> int:
        """Fits of last estimators that may have to be made beyond `fits_planned`."""
        return sum(group.fits_undecided for group in self.groups)

    @property
    def transformer_fits(self) -> int:
        """Fits of transformers that will be made where steps are shared; those of other fits do not count.

        More may be made where several workers fit settings of one split, where outputs do not fit the memory
        limit, where fits fail, and where the `k` of a SelectKBest is larger than the number of columns.
        """
        return sum(group.transformer_fits for group in self.groups)

    @property
    def places(self) -> tuple[WorkPlace, ...]:
        """The places where the estimators of all groups work, each once; empty for data on the host."""
        return tuple(dict.fromkeys(place for group in self.groups for place in group.places))

    @property
    def verdict(self) -> str:
        """How many of the fits shared work will answer, in a sentence."""
        return foresee_sharing(self)

    def __str__(self) -> str:
        return as_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self)

    def to_frame(self) -> Any:
        """The groups of the plan as a table.

        Returns
        -------
        pandas.DataFrame
            A row for each group: how its settings will be answered (``kind``), by which estimator, how many
            fits were asked for and will be made, and why no more is shared.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        import pandas as pd

        names = ("fits_requested", "fits_planned", "fits_undecided", "decided_by", "reason")
        rows = [
            {"kind": one.kind, "estimator": one.estimator, "settings": len(one.candidates)}
            | {name: getattr(one, name) for name in names}
            for one in self.groups
        ]
        return pd.DataFrame(rows)


_FAIL = (
    "scikit-learn cannot read X: a fit that is found not to be shared gets error_score, and the others keep "
    "their scores"
)


def reading_of(rows: ChunkRows | None, groups: Sequence[Group]) -> tuple[str, ...]:
    """The lines of a plan on an X that is read in chunks."""
    if rows is None:
        return ()
    undecided = any(group.fits_undecided for group in groups) and not rows.read_by_sklearn
    return (*_how_read(rows), *((_FAIL,) if undecided else ()))


def _how_read(rows: ChunkRows) -> tuple[str, ...]:
    """How an X is read in chunks, and whether each pass computes it anew."""
    line = (
        f"X, a {rows.kind}, is read in chunks: each pass reads {rows.nbytes:,} bytes in "
        f"{format_count(rows.n_reads, 'part')}, "
    )
    memory = ""
    if rows.workers is None:
        line += "one after the other, in this process"
        line += f", and not by the workers of the client: {rows.read_here}" if rows.read_here else ""
    else:
        tasks = rows.workers.tasks(rows.n_groups, rows.group_bytes)
        line += f"on the workers of the client, in {format_count(len(tasks), 'task')}"
        beside = "y and weights" if rows.dtype != object else "y, weights and codes of categories"
        memory = f"a task holds {rows.task_bytes(tasks[0]):,} bytes of X at most, beside its sums, {beside}"
    return tuple(filter(None, (line, memory, rows.recomputed)))
