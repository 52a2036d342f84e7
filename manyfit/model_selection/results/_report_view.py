"""The report of a search as text, and as HTML for notebooks."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from manyfit._config.sizes import format_count
from manyfit.arrays import Crossings
from manyfit.model_selection.results._html import paragraph, table, view

if TYPE_CHECKING:
    from manyfit.model_selection.results._report import Report

# Kinds of groups whose last step shares no fits, and how many reasons the text has for them.
_ALONE = frozenset({"one by one", "shared steps"})
_MOST_REASONS = 4


def describe_sharing(report: "Report") -> str:
    """How many of the fits were answered by shared work, in a sentence."""
    asked, shared = report.fits_requested, report.fits_shared
    alone = report.fits_done - report.family_fits
    restored = f"{report.fits_restored} were restored from the checkpoint" if report.fits_restored else ""
    if shared == asked:
        text = f"All {format_count(asked, 'fit')} {_was(asked)} answered by shared work"
    elif shared:
        text = f"{shared} of {format_count(asked, 'fit')} {_was(asked)} answered by shared work"
    elif alone or not restored:
        all_of_them = "the only fit" if asked == 1 else f"all {asked} fits"
        which = all_of_them if alone == asked else f"{alone} of {asked} fits"
        text = f"No fit was shared: scikit-learn made {which}"
    else:
        text = f"No fit had to be made for the {format_count(asked, 'fit')} asked for"
    others = []
    if shared and alone:
        others.append(f"{alone} {_was(alone)} made one by one")
    if restored:
        others.append(restored)
    if report.transformer_fits_saved:
        others.append(f"{format_count(report.transformer_fits_saved, 'fit')} of transformers were saved")
    return "; ".join([text, *others]) + "."


def as_text(report: "Report") -> str:
    """The verdict, what to do, and the counts as a table."""
    rows = _rows(report)
    width = max(len(name) for name, _ in rows)
    table = [f"{name:<{width}}  {value}" for name, value in rows]
    said = [describe_sharing(report), *_alone(report), *_remarks(report), *_left(report)]
    return "\n".join([*said, "", *table])


def as_html(report: "Report") -> str:
    """The verdict, what to do, the groups of the search, and the counts on a click."""
    alike: dict[tuple[str, ...], list[int]] = {}
    for group in report.groups:
        sums = alike.setdefault((group["kind"], group["estimator"], _why(group)), [0, 0, 0])
        for j, n in enumerate((1, group["settings"], group["fits_requested"])):
            sums[j] += n
    groups = [(kind, name, *sums, why) for (kind, name, why), sums in alike.items()]
    return view(
        describe_sharing(report),
        *map(paragraph, (*_times(report), *_remarks(report), *_left(report))),
        table(groups, ("how", "estimator", "groups", "settings", "fits asked for", "why no more was shared")),
        f"<details><summary>All counts, and seconds</summary>{table(_rows(report))}</details>",
    )


def _times(report: "Report") -> list[str]:
    """The seconds of the search, and of what took the most."""
    if "total" not in report.seconds:
        return []
    parts = sorted(((s, kind) for kind, s in report.seconds.items() if kind != "total"), reverse=True)
    shown = ", ".join(f"{kind} {seconds:.2g} s" for seconds, kind in parts[:4])
    workers = f" (sums over {report.workers} workers)" if report.workers > 1 else ""
    return [f"{report.seconds['total']:.3g} s in all: {shown}{workers}."]


def _remarks(report: "Report") -> list[str]:
    stopped = [] if report.stopped is None else [f"The search stopped {report.stopped}."]
    sample = [] if report.sample is None else [f"{report.sample[0].upper()}{report.sample[1:]}."]
    return [
        *sample,
        *_expected(report),
        *_decisions(report),
        *stopped,
        *_race(report),
        *_rounds(report),
        *report.advice,
    ]


def _rounds(report: "Report") -> list[str]:
    """Which fits of a halving search went on from the round before, and why others did not."""
    lines, n = [], report.fits_continued
    if n:
        lines.append(
            f"{format_count(n, 'fit')} went on from the round before, and did not make "
            f"{report.members_kept} trees or iterations again."
        )
    if report.fitted_anew:
        fits = format_count(sum(report.fitted_anew.values()), "fit")
        lines.append(f"{fits} of later rounds did not go on: {_reasons(report.fitted_anew)}.")
    return lines


def _expected(report: "Report") -> list[str]:
    """With `verify`, the time that scikit-learn's own fits would take; not of fits by several workers."""
    took = {(str(row["params"]), row["split"]): row["seconds"] for row in report.verification}
    if not took or report.workers > 1 or "total" not in report.seconds:
        return []
    n, asked, seconds = len(took), report.fits_requested, sum(took.values())
    own = report.seconds["total"] - sum(report.seconds.get(kind, 0.0) for kind in ("verify", "refit"))
    return [
        f"scikit-learn repeated {format_count(n, 'fit')} in {seconds:.2g} s, and would take about "
        f"{seconds / n * asked:.2g} s for all {asked}. This search took {own:.2g} s without them and the "
        "refit."
    ]


def _race(report: "Report") -> list[str]:
    if not report.dropped:
        return []
    fits = sorted(one["fits"] for one in report.dropped)
    saved = sum(one["fits_not_made"] for one in report.dropped)
    after = format_count(fits[0], "fit") if fits[0] == fits[-1] else f"{fits[0]} to {fits[-1]} fits each"
    return [
        f"The race dropped {format_count(len(fits), 'setting')} after {after} (report_.dropped): "
        f"{format_count(saved, 'fit')} {_was(saved)} not made."
    ]


def _rows(report: "Report") -> list[tuple[str, Any]]:
    crossed = (report.bytes_to_device, report.bytes_to_host)
    rows: list[tuple[str, Any]] = [
        ("fits asked for", report.fits_requested),
        ("fits answered by shared work", report.fits_shared),
        ("fits made one by one", report.fits_done - report.family_fits),
        *_if_any("fits made in shared work", report.family_fits),
        *_if_any("fits made by scikit-learn-intelex", report.engine_fits),
        *_if_any("its settings compared with scikit-learn", report.engine_compared),
        *_if_any("fits restored from the checkpoint", report.fits_restored),
        *_if_any("fits of shared transformers", report.transformer_fits),
        *_if_any("fits of transformers saved", report.transformer_fits_saved),
        *([("passes over X by shared work", f"{report.passes:.4g}")] if report.passes else []),
        *_if_any("bytes read of X in chunks", report.bytes_read),
        *([("bytes to / from devices", " / ".join(map(str, crossed)))] if any(crossed) else []),
        *_if_any("synchronisations", report.synchronisations),
        *((f"crossed: {label}", _describe_crossings(one)) for label, one in report.transfers.items()),
        *([("workers", f"{report.workers} (seconds of fits are their sums)")] if report.workers != 1 else []),
        *((f"seconds, {kind}", f"{seconds:.4f}") for kind, seconds in report.seconds.items()),
        *_if_any("iterations of the refit, the mean over splits", report.refit_n_iter or 0),
        *_if_any("settings as good as the best within tol (as_good_as_best)", len(report.as_good_as_best)),
        *_if_any("fits that went on from the round before", report.fits_continued),
        *_if_any("trees and iterations of earlier rounds", report.members_kept),
        *_if_any("fits of later rounds made anew", sum(report.fitted_anew.values())),
        *_if_any("steps done again (memory_limit)", report.steps_repeated),
        *_if_any("scores checked by scikit-learn", len(report.verification)),
    ]
    if report.engine_difference is not None:
        rows.append(("largest difference between the two", f"{report.engine_difference:.1e}"))
    if report.verification:
        rows.append(("largest difference", f"{report.largest_difference:.1e}"))
    return rows


def _alone(report: "Report") -> list[str]:
    """Why the plan left settings to scikit-learn, a line for each reason; notebooks have a table of it."""
    fits, names = Counter[str](), dict[str, dict[str, None]]()
    for group in report.groups:
        if group["kind"] in _ALONE and group["reason"] and group["fits_requested"]:
            fits[group["reason"]] += group["fits_requested"]
            names.setdefault(group["reason"], {})[group["estimator"]] = None
    lines = [
        f"{', '.join(names[why])}: {format_count(n, 'fit')} one by one, because {why}."
        for why, n in list(fits.items())[:_MOST_REASONS]
    ]
    more = len(fits) - len(lines)
    return [*lines, *([f"report_.to_frame() has {format_count(more, 'more reason')}."] if more > 0 else [])]


def _decisions(report: "Report") -> list[str]:
    """Why undecided fits of the plan were not shared, a line for each chain of estimators."""
    asked, left = Counter[str](), dict[str, Counter[str]]()
    for group in report.groups:
        if group.get("fits_undecided"):
            name = group["estimator"]
            asked[name] += group["fits_requested"]
            left.setdefault(name, Counter()).update(group["left_to_sklearn"])
    lines = []
    for name, n in asked.items():
        if left[name]:
            shared = n - sum(left[name].values())
            lines.append(f"{name}: {shared} of {n} fits shared; not shared: {_reasons(left[name])}.")
    return lines


def _left(report: "Report") -> list[str]:
    """Fits that were to be shared, and that scikit-learn has made; not those that `_decisions` has."""
    left = Counter(report.left_to_sklearn)
    for group in report.groups:
        if group.get("fits_undecided"):
            left -= Counter(group["left_to_sklearn"])
    return [f"Left to scikit-learn: {format_count(n, 'fit')}, because {why}." for why, n in left.items()]


def _why(group: dict[str, Any]) -> str:
    left = _reasons(group.get("left_to_sklearn", {}))
    return "; ".join(text for text in (group["reason"], left) if text)


def _reasons(left: dict[str, int]) -> str:
    return "; ".join(f"{why} ({fits})" for why, fits in left.items())


def _if_any(name: str, count: int) -> list[tuple[str, int]]:
    """The row of a count, unless it is 0."""
    return [(name, count)] if count else []


def _describe_crossings(one: Crossings) -> str:
    """How often and how much crossed for one reason, in words."""
    ways = (("device", one.to_device, one.bytes_to_device), ("host", one.to_host, one.bytes_to_host))
    return "; ".join(
        f"{n} array{'s' * (n != 1)} to the {where}, {size} bytes" for where, n, size in ways if n
    )


def _was(n: int) -> str:
    return "was" if n == 1 else "were"
