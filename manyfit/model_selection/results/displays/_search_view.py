"""A fitted search as HTML for notebooks, and its settings as a table."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

import numpy as np

from manyfit._config.sizes import format_count
from manyfit.model_selection.results._html import paragraph, picture
from manyfit.model_selection.results.displays._curve import SearchCurveDisplay
from manyfit.model_selection.results.displays._fold_scores import FoldScoresDisplay
from manyfit.model_selection.results.displays._heatmap import SearchHeatmapDisplay
from manyfit.model_selection.results.displays._parallel import SearchParallelDisplay
from manyfit.model_selection.results.displays._parameters import describe_settings, number_text
from manyfit.model_selection.results.displays._score_time import ScoreTimeDisplay
from manyfit.model_selection.results.displays._scores import OWN_FITS, SearchScores, read_scores, varying
from manyfit.model_selection.results.displays._sharing import SharingDisplay

_DPI = 80


def as_html(search: Any) -> str:
    """The report of a fitted search, its best setting, and pictures on a click."""
    report: str = search.report_._repr_html_()
    try:
        scores = read_scores(search, None, type(search).__name__)
    except ValueError:  # no score at all, or several metrics of which none chooses
        return report + "".join(_pictures(search, None))
    best = f'<div class="manyfit-view">{paragraph(_best(search, scores))}</div>'
    return best + report + "".join(_pictures(search, scores))


def as_frame(search: Any) -> Any:
    """The settings as a table, the best first."""
    import pandas as pd

    results = search.cv_results_
    columns = {name.removeprefix("param_"): one for name, one in results.items() if name.startswith("param_")}
    kept = ("mean_test_", "std_test_", "rank_test_", "mean_fit_time", "mean_score_time")
    columns |= {name: one for name, one in results.items() if name.startswith(kept)}
    kinds = {c: group["kind"] for group in search.report_.groups for c in group["candidates"]}
    columns["kind"] = [kinds.get(c, "") for c in range(len(results["params"]))]
    frame = pd.DataFrame(columns)
    ranks = [name for name in columns if name.startswith("rank_test_")]
    chosen = f"rank_test_{search.refit}"
    return frame.sort_values(chosen if chosen in ranks else ranks[0], kind="stable")


def _best(search: Any, scores: SearchScores) -> str:
    """What was asked, and the setting that was chosen."""
    (text,) = describe_settings(scores.params, [scores.best])
    asked = f"{format_count(len(scores.params), 'setting')} x {format_count(search.n_splits_, 'split')}"
    error = scores.standard_errors[scores.best]
    around = f" ± {number_text(error)} (standard error)" if np.isfinite(error) else ""
    return f"{asked}. Best: {text}; mean test {scores.name} {scores.mean[scores.best]:.4g}{around}."


def _pictures(search: Any, scores: SearchScores | None) -> Iterator[str]:
    """Pictures as HTML, if matplotlib is installed."""
    try:
        from matplotlib import style
    except ImportError:
        return
    with style.context("default"):
        if scores is not None:
            yield from _pictures_of_scores(search, scores)
        if search.report_.groups:
            yield _draw("What was shared, and seconds", SharingDisplay.from_search, search, (10, 3), 2)


def _pictures_of_scores(search: Any, scores: SearchScores) -> Iterator[str]:
    names = varying(scores.last_rounds())
    if len(names) == 1:
        yield _draw("Scores along the parameter", SearchCurveDisplay.from_search, search, (7.2, 4))
    elif len(names) == 2:
        yield _draw("Scores over both parameters", SearchHeatmapDisplay.from_search, search, (7.2, 4.4))
    elif names:
        size = max(7.2, 1.4 + 1.5 * len(names)), 4.4
        yield _draw("Scores over all parameters", SearchParallelDisplay.from_search, search, size)
    final = scores.final_round()
    if len(final.params) > 1 and final.folds.shape[1] > 1:
        size = 8.4, 1.8 + 0.3 * min(len(final.params), 15)
        yield _draw("Differences to the best, by split", FoldScoresDisplay.from_search, search, size)
    if len(scores.params) > 1 and any(group["kind"] in OWN_FITS for group in search.report_.groups):
        yield _draw("Scores and times", ScoreTimeDisplay.from_search, search, (9, 4.4))


def _draw(
    title: str, draw: Callable[..., Any], search: Any, size: tuple[float, float], n_axes: int = 1
) -> str:
    """A picture that opens on a click; drawn without pyplot, which would show it a second time."""
    from matplotlib.figure import Figure

    figure, written = Figure(figsize=size, layout="constrained"), BytesIO()
    axes = figure.subplots(1, n_axes)
    draw(search, ax=axes)
    figure.savefig(written, format="png", dpi=_DPI, facecolor="white")
    return picture(title, base64.b64encode(written.getvalue()).decode())
