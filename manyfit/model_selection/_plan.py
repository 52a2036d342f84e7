"""The plan of a search: what is shared and why, before anything is fitted. It is what is run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

from manyfit.estimators import Family
from manyfit.estimators._chain import Step

Kind = Literal["moments", "family", "steps", "one by one"]

_TITLES: dict[str, str] = {
    "moments": "shared through moments",
    "family": "shared fits, steps before them shared",
    "steps": "steps before the last one shared",
    "one by one": "one by one",
}


@dataclass(frozen=True)
class Group:
    """Settings that are served together.

    Attributes
    ----------
    kind : {"moments", "family", "steps", "one by one"}
        "moments": one pass over X serves all settings and folds. "family": steps are fitted once a fold and
        a family answers all settings of the last one. "steps": only the steps are shared.
    candidates : tuple of int
        Positions in the list of settings.
    estimator : str
        The estimators of the chain, as text.
    fits_requested, fits_planned : int
        Fits of the last estimator: settings times splits, and those that will be made.
    transformer_fits : int
        Fits of the steps before it that will be made; one by one it would be more.
    passes : float
        Passes over X that sum moments.
    reason : str
        Why no more is shared; empty where everything is.
    settings : tuple of dict
        For a family: values of its free parameters.
    steps : tuple of Step
        The chain before the last estimator.
    family : Family or None
    prototype : estimator or None
        The last estimator with the parameters that all settings share.
    """

    kind: Kind
    candidates: tuple[int, ...]
    estimator: str
    fits_requested: int
    fits_planned: int
    transformer_fits: int
    passes: float
    reason: str
    settings: tuple[Mapping[str, Any], ...] = ()
    steps: tuple[Step, ...] = ()
    family: Family | None = None
    prototype: Any = None

    def line(self) -> str:
        """One line of the plan."""
        text = (
            f"{self.estimator}: {len(self.candidates)} settings, {self.fits_requested} fits -> {self.fits_planned}"
        )
        if self.transformer_fits:
            text += f", {self.transformer_fits} fits of transformers"
        return text


@dataclass(frozen=True)
class Plan:
    """What a search will do. Prints as a tree, in a notebook as a table.

    Attributes
    ----------
    groups : tuple of Group
    n_candidates, n_splits : int
    passes : float
        Passes over X that sum moments; fits made one by one read X as often as scikit-learn's.
    bytes_to_device : int
        Bytes moved to a device; 0 for data on the host.
    order : tuple or None
        For each candidate, a key that is equal where steps are shared.
    """

    groups: tuple[Group, ...]
    n_candidates: int
    n_splits: int
    passes: float
    bytes_to_device: int = 0
    order: tuple[Any, ...] | None = None

    @property
    def fits_requested(self) -> int:
        """Settings times splits."""
        return self.n_candidates * self.n_splits

    @property
    def fits_planned(self) -> int:
        """Fits of last estimators that will be made, shared ones counted as what they cost: none."""
        return sum(group.fits_planned for group in self.groups)

    @property
    def transformer_fits(self) -> int:
        """Fits of transformers that will be made."""
        return sum(group.transformer_fits for group in self.groups)

    def _by_kind(self) -> list[tuple[str, list[Group]]]:
        kinds = list(dict.fromkeys((group.kind, group.reason) for group in self.groups))
        return [
            (_TITLES[kind] + (f": {reason}" if reason else ""),
             [g for g in self.groups if (g.kind, g.reason) == (kind, reason)])
            for kind, reason in kinds
        ]  # fmt: skip

    def _heading(self) -> str:
        return (
            f"{self.n_candidates} settings x {self.n_splits} splits = {self.fits_requested} fits asked for, "
            f"{self.fits_planned} to be made; {self.passes:g} passes over X for moments; "
            f"{self.bytes_to_device} bytes to devices"
        )

    def __str__(self) -> str:
        lines = [f"Plan: {self._heading()}"]
        kinds = self._by_kind()
        for j, (title, groups) in enumerate(kinds):
            last = j == len(kinds) - 1
            lines.append(f"{'└' if last else '├'}─ {title}")
            lines += _children([group.line() for group in groups], "   " if last else "│  ")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(title)}</td><td>{escape(group.estimator)}</td><td>{len(group.candidates)}</td>"
            f"<td>{group.fits_requested}</td><td>{group.fits_planned}</td><td>{group.transformer_fits}</td></tr>"
            for title, groups in self._by_kind()
            for group in groups
        )
        head = "".join(
            f"<th>{name}</th>"
            for name in ("how", "estimator", "settings", "fits asked for", "fits to be made", "fits of transformers")
        )
        return f"<p>Plan: {escape(self._heading())}</p><table><tr>{head}</tr>{rows}</table>"


# More groups than this of one kind are counted, not listed.
_MOST_LINES = 12


def _children(lines: Sequence[str], indent: str) -> list[str]:
    shown = list(lines[:_MOST_LINES])
    if len(lines) > _MOST_LINES:
        shown.append(f"... and {len(lines) - _MOST_LINES} more groups")
    return [f"{indent}{'└' if j == len(shown) - 1 else '├'}─ {line}" for j, line in enumerate(shown)]
