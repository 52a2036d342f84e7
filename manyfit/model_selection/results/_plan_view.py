"""The plan of a search (a `Plan`, which `planning` makes) as text, and as HTML for notebooks."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

from manyfit._config.sizes import format_count
from manyfit.model_selection.results._gains import expected_gain
from manyfit.model_selection.results._html import bullets, paragraph, table, view

_ADVICE = "advice"
_PLACES = "where each estimator works"
# More groups than this of one kind are counted, not listed.
_MOST_LINES = 12
# Columns of the table: how, and the attributes of a row.
_COLUMNS = (
    "how",
    "estimator",
    "groups",
    "settings",
    "fits asked for",
    "fits to be made",
    "transformer fits",
    "a fit of",
    "on all rows at once",
    "decided when this is seen",
    "settings by scikit-learn-intelex",
)


def foresee_sharing(plan: Any) -> str:
    """How many of the fits shared work will answer, in a sentence."""
    asked = plan.fits_requested
    shared = sum(group.fits_requested for group in plan.groups if group.strategy.shares_fits)
    if not shared:
        steps = ", and fits the steps before the last one once per split" if plan.transformer_fits else ""
        return f"No fit can be shared: scikit-learn makes {_all(asked)}{steps}."
    which = _all(asked) if shared == asked else f"{shared} of {format_count(asked, 'fit')}"
    if plan.fits_undecided:
        return f"Shared work may answer {which}: manyfit decides when it sees the rows of a split."
    return f"Shared work answers {which}."


def as_text(plan: Any) -> str:
    """The verdict, then the groups as a tree, with advice and places of work."""
    lines = [foresee_sharing(plan), f"Plan: {_heading(plan)}"]
    kinds = [(title, [row.line() for row in rows]) for title, rows in _by_kind(plan)]
    kinds += [(line, []) for line in (*plan.reading, *plan.rounds)]
    if plan.advice:
        kinds.append((_ADVICE, list(plan.advice)))
    if places := _place_lines(plan):
        kinds.append((_PLACES, places))
    kinds += [(warning, []) for warning in (*plan.warnings, *_measured(plan))]
    for j, (title, below) in enumerate(kinds):
        last = j == len(kinds) - 1
        lines.append(f"{'└' if last else '├'}─ {title}")
        most = len(below) if title in (_ADVICE, _PLACES) else _MOST_LINES
        lines += _children(below, "   " if last else "│  ", most)
    return "\n".join(lines)


def as_html(plan: Any) -> str:
    """The verdict, and the groups as a table."""
    return view(
        foresee_sharing(plan),
        paragraph(f"Plan: {_heading(plan)}"),
        table(((title, *row.cells()) for title, rows in _by_kind(plan) for row in rows), _COLUMNS),
        bullets(_ADVICE.capitalize(), plan.advice),
        bullets(_PLACES.capitalize(), _place_lines(plan)),
        *map(paragraph, (*plan.reading, *plan.rounds, *plan.warnings, *_measured(plan))),
    )


def _measured(plan: Any) -> list[str]:
    """The gain of searches like this one, which were measured on data in the host's memory."""
    gain = None if plan.reading or plan.places or plan.rounds else expected_gain(plan.groups)
    return [] if gain is None else [str(gain)]


@dataclass(frozen=True)
class _Row:
    """Groups of the same estimators, counted together."""

    estimator: str
    groups: int
    settings: int
    requested: int
    planned: str
    twice: int
    transformers: str
    nested: str
    once: str
    decided_by: str
    by_sklearnex: int

    @classmethod
    def from_groups(cls, estimator: str, groups: Sequence[Any], at_least: bool) -> "_Row":
        transformers = sum(g.transformer_fits for g in groups)
        once: tuple[str, ...] = max((g.once for g in groups), key=len)
        return cls(
            estimator, len(groups), sum(len(g.candidates) for g in groups),
            sum(g.fits_requested for g in groups), *_to_be_made(groups),
            f"at least {transformers}" if at_least and transformers else str(transformers),
            " and ".join(dict.fromkeys(text for g in groups for text in g.nested)),
            " > ".join(once),
            next((g.decided_by for g in groups if g.decided_by), ""),
            sum(len(g.by_sklearnex) for g in groups),
        )  # fmt: skip

    def cells(self) -> tuple[Any, ...]:
        made = f"{self.planned}, up to {self.twice} twice" if self.twice else self.planned
        return (*astuple(self)[:4], made, *astuple(self)[6:])

    def line(self) -> str:
        groups = f" in {self.groups} groups" if self.groups > 1 else ""
        text = f"{self.estimator}: {format_count(self.settings, 'setting')}{groups}, "
        text += f"{format_count(self.requested, 'fit')} asked for, {_made(self.planned, self.twice)}"
        if self.transformers != "0":
            text += f", {self.transformers} {'fit' if self.transformers == '1' else 'fits'} of transformers"
        if self.nested:
            text += f"; a fit of {self.nested}"
        if self.once:
            text += f"; {self.once} on all rows at once"
        if self.decided_by:
            verb = "are" if self.decided_by.startswith("the rows") else "is"
            text += f"; decided when {self.decided_by} {verb} seen"
        if self.twice:
            text += "; scikit-learn makes a fit again that shared work cannot use"
        if self.by_sklearnex:
            text += (
                f"; {format_count(self.by_sklearnex, 'setting')} fitted one by one by scikit-learn-intelex"
            )
        return text


def _place_lines(plan: Any) -> list[str]:
    """The places of work as text, and those of the refit if they are others."""
    known = set(plan.places)
    refit = [f"in the refit, {place}" for place in plan.refit_places if place not in known]
    return [*map(str, plan.places), *refit]


def _by_kind(plan: Any) -> list[tuple[str, list[_Row]]]:
    """The lines of the plan below their headings: the strategy and, if not all is shared, the reason."""
    rows = []
    together: dict[tuple[str, str], list[Any]] = {}
    for group in plan.groups:
        together.setdefault((group.strategy.heading(group), group.reason), []).append(group)
    for (title, reason), alike in together.items():
        names = dict.fromkeys(group.estimator for group in alike)
        several = plan.n_workers > 1
        lines = [_Row.from_groups(name, [g for g in alike if g.estimator == name], several) for name in names]
        if plan.from_predictions and alike[0].strategy.shares_fits:
            title += "; scores from predictions, by scikit-learn's scorer once a setting and split"
        comma = ", " if reason.startswith(("if ", "down to ")) else ": "  # a condition, or a reason
        rows.append((f"{title}{comma}{reason}" if reason else title, lines))
    return rows


def _heading(plan: Any) -> str:
    return (
        f"{format_count(plan.n_candidates, 'setting')} x {format_count(plan.n_splits, 'split')} = "
        f"{format_count(plan.fits_requested, 'fit')} asked for, {_made(*_to_be_made(plan.groups))}"
        + (f"; passes over X for moments: {plan.passes:g}" if plan.passes else "")
    )


def _children(lines: Sequence[str], indent: str, most: int) -> list[str]:
    shown = list(lines[:most])
    if len(lines) > most:
        shown.append(f"... and {len(lines) - most} more groups")
    return [f"{indent}{'└' if j == len(shown) - 1 else '├'}─ {line}" for j, line in enumerate(shown)]


def _to_be_made(groups: Sequence[Any]) -> tuple[str, int]:
    """How many of the fits asked for will be made, as text, and how many of them twice at most.

    A family's own fits may answer nothing; scikit-learn then makes all that were asked for.
    """
    least = sum(g.fits_planned for g in groups)
    twice = sum(max(g.fits_planned + g.fits_undecided - g.fits_requested, 0) for g in groups)
    most = least + sum(g.fits_undecided for g in groups) - twice
    return f"{least} to {most}" if most > least else str(least), twice


def _made(planned: str, twice: int) -> str:
    return f"{planned} to be made" + (f", up to {twice} of them twice" if twice else "")


def _all(n: int) -> str:
    return "the only fit" if n == 1 else f"all {n} fits"
