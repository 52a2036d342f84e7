"""Parameters of the search itself: scorers of every form, refit, error_score, who is given the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from hypothesis import strategies as st
from sklearn.metrics import get_scorer

from tests.differential._recipe import mostly


def mean_prediction(estimator: Any, X: Any, y: Any) -> float:
    """A callable scorer that reads predictions and not the target."""
    return float(np.mean(np.asarray(estimator.predict(X)) * 1.0))


def two_numbers(estimator: Any, X: Any, y: Any) -> dict[str, float]:
    """A callable scorer that returns several metrics."""
    return {"own": float(estimator.score(X, y)), "rows": float(len(np.asarray(y)))}


def last_index(results: dict[str, Any]) -> int:
    """A callable refit that does not choose the best."""
    return len(results["params"]) - 1


CALLABLES = {f.__name__: f for f in (mean_prediction, two_numbers)}


@dataclass(frozen=True)
class Options:
    """How the search is asked to score and to refit."""

    scorers: tuple[str, ...] = ()
    form: Literal["one", "list", "dict", "object", "callable"] = "one"
    return_train_score: bool = False
    error_score: Any = np.nan
    refit: Literal["yes", "no", "callable", "missing"] = "yes"
    weighted: Literal["all", "last", "first"] = "all"
    routing: bool = False
    weighted_scores: tuple[bool, ...] = ()
    sharing: str = "auto"
    needless_groups: bool = False

    def scoring(self) -> Any:
        """The `scoring` parameter; under metadata routing the scorers ask for weights, or do not."""
        if not self.scorers:
            return None
        if self.form == "callable":
            return CALLABLES[self.scorers[0]]
        if self.form == "list":
            return list(self.scorers)
        if self.form == "dict":
            return {f"m{i}": self._scorer(i) for i in range(len(self.scorers))}
        return self._scorer(0)

    def requests(self, i: int) -> bool:
        """Whether the i-th scorer asks for weights; they are given in turn."""
        return bool(self.weighted_scores) and self.weighted_scores[i % len(self.weighted_scores)]

    def _scorer(self, i: int) -> Any:
        name = self.scorers[i]
        if self.routing:
            return get_scorer(name).set_score_request(sample_weight=self.requests(i) and name in WEIGHED)
        return get_scorer(name) if self.form == "object" else name

    def refit_parameter(self) -> Any:
        """The `refit` parameter: with several metrics the name of one."""
        if self.refit in ("no", "callable"):
            return False if self.refit == "no" else last_index
        if self.refit == "missing" or not self.multimetric:
            return True
        return {"list": self.scorers[-1], "dict": f"m{len(self.scorers) - 1}", "callable": "own"}[self.form]

    @property
    def multimetric(self) -> bool:
        """Whether there are several metrics, so that `refit` has to name one."""
        return self.form in ("list", "dict") or self.scorers == ("two_numbers",)


# The scorers that cannot be weighted.
WEIGHED = {
    "r2",
    "explained_variance",
    "neg_mean_squared_error",
    "neg_root_mean_squared_error",
    "neg_mean_absolute_error",
    "neg_median_absolute_error",
    "accuracy",
    "f1_macro",
    "neg_log_loss",
    "roc_auc",
    "balanced_accuracy",
    "neg_brier_score",
    "neg_mean_poisson_deviance",
    "neg_mean_gamma_deviance",
}


REQUESTS = st.sampled_from([(False,), (True,), (True, False), (False, True)])


@st.composite
def options(draw: st.DrawFn, names: tuple[str, ...], weighted: bool) -> Options:
    """Options with scorers from `names`."""
    form = mostly(draw, "one", ("list", "dict", "object", "callable"), odds=1)
    if form == "callable":
        scorers = (draw(st.sampled_from(tuple(CALLABLES))),)
    elif form in ("list", "dict"):
        scorers = tuple(draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True)))
    else:
        scorers = draw(st.sampled_from([(), *((name,) for name in names)]))
    routing = weighted and draw(st.booleans()) and form != "callable"
    return Options(
        scorers=scorers,
        form=form,
        return_train_score=draw(st.booleans()),
        error_score=mostly(draw, np.nan, (0.5, "raise", -1), odds=3),
        refit=mostly(draw, "yes", ("no", "callable", "missing"), odds=3),
        weighted=draw(st.sampled_from(("all", "last", "first"))) if weighted else "all",
        # Lists of names cannot ask for weights, so routing goes with the forms that hold scorers.
        routing=routing and form != "list",
        weighted_scores=draw(REQUESTS) if routing and form != "list" else (),
        sharing=mostly(draw, "auto", ("optimum", "optimum", "exact", "none")),
        needless_groups=mostly(draw, False, (True,), odds=4),
    )
