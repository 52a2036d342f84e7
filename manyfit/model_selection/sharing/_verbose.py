"""The lines that scikit-learn prints about each fit, by ``verbose``."""

from collections.abc import Mapping
from typing import Any

from joblib.logger import short_format_time

from manyfit.model_selection.job._job import Options, Result

Progress = tuple[tuple[int, int] | None, tuple[int, int] | None]
"""((candidate, n_candidates), (split, n_splits))."""


def _where(options: Options, progress: Progress) -> str:
    candidate, split = progress
    text = f" {split[0] + 1}/{split[1]}" if split and options.verbose > 2 else ""
    if candidate and options.verbose > 9:
        text += f"; {candidate[0] + 1}/{candidate[1]}"
    return text


def _settings(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={params[name]}" for name in sorted(params))


def print_start(options: Options, params: Mapping[str, Any], progress: Progress) -> None:
    """Announce a fit (``verbose`` above 9)."""
    if options.verbose > 9:
        text = f"[CV{_where(options, progress)}] START {_settings(params)}"
        print(f"{text}{(80 - len(text)) * '.'}")


def print_end(options: Options, params: Mapping[str, Any], progress: Progress, result: Result) -> None:
    """Report a fit: time (``verbose`` above 1) and scores (above 2)."""
    if options.verbose <= 1:
        return
    text = _settings(params)
    text += ";" if text else ""
    if options.verbose > 2:
        text += _scores(options, result)
    text += f" total time={short_format_time(result['fit_time'] + result['score_time'])}"
    head = f"[CV{_where(options, progress)}] END "
    print(f"{head}{'.' * (80 - len(head) - len(text))}{text}")


def _scores(options: Options, result: Result) -> str:
    test, train = result["test_scores"], result.get("train_scores")
    if isinstance(test, dict):
        parts = []
        for name in sorted(test):
            before = f"train={train[name]:.3f}, " if options.return_train_score and train is not None else ""
            parts.append(f" {name}: ({before}test={test[name]:.3f})")
        return "".join(parts)
    if options.return_train_score:
        return f", score=(train={train:.3f}, test={test:.3f})"
    return f", score={test:.3f}"
