"""The tables of the pages say what the code says."""

from __future__ import annotations

import re
import tomllib
from inspect import signature
from typing import Any

import numpy as np
import pytest
from sklearn.feature_selection import f_classif, f_regression, r_regression
from sklearn.linear_model import Ridge
from sklearn.metrics import get_scorer
from sklearn.naive_bayes import GaussianNB
from sklearn.utils import all_estimators

from manyfit._compat import TESTED, scorer_parts
from manyfit.estimators import affine_step_of, family_of
from manyfit.estimators._catalog import CATALOG
from manyfit.families.protocol import _registry as _family
from manyfit.families.protocol import column_step_of
from manyfit.folds import Unsupported
from manyfit.introspection.class_names import ClassTable
from manyfit.metrics import SharedScoring
from manyfit.metrics.scoring._from_moments import MOMENT_METRICS
from manyfit.model_selection.planning._planner import FAMILY_STRATEGIES
from manyfit.model_selection.strategies._individual_fits import INDIVIDUAL_FITS, SHARED_STEPS
from tests.differential._compare import FLOAT32_ROUNDING, SLACK, Judge
from tests.differential._register import cases
from tests.docs._pages import PAGES, ROOT, marked, spans, table
from tests.structure import ORDER

README = PAGES["README.md"].read_text()
SHARING = PAGES["docs/sharing.md"].read_text()
CLUSTERS = PAGES["docs/clusters.md"].read_text()
ARCHITECTURE = PAGES["docs/architecture.md"].read_text()
FAMILIES, STEPS = table(SHARING, "families"), table(SHARING, "steps")
COLUMNS = table(SHARING, "columns")
ROOMS = table(ARCHITECTURE, "rooms")
ESTIMATORS = dict(all_estimators())
# What an estimator needs besides so that its other parameters are looked at.
BESIDES = {
    "SelectKBest": {"score_func": f_regression},
    "LinearSVR": {"loss": "squared_epsilon_insensitive"},
    "TweedieRegressor": {"power": 1},
    "ColumnTransformer": {"transformers": []},
    **{f"{kind}Classifier": {"estimators": [("a", GaussianNB())]} for kind in ("Voting", "Stacking")},
    **{f"{kind}Regressor": {"estimators": [("a", Ridge())]} for kind in ("Voting", "Stacking")},
    "CalibratedClassifierCV": {"estimator": GaussianNB()},
    "FeatureUnion": {"transformer_list": []},
    "GaussianProcessRegressor": {"optimizer": None},
    "IsolationForest": {"random_state": 0},
    "RFE": {"estimator": Ridge(), "n_features_to_select": 2},
}
VALUES = {"np": np, "f_regression": f_regression, "f_classif": f_classif, "r_regression": r_regression}


def name_of(row: dict[str, str]) -> str:
    (name,) = spans(row.get("Last step") or row["Step"])
    return name


def settings(cell: str) -> list[tuple[str, Any]]:
    """The code spans ``parameter=value`` of a cell."""
    pairs = [span.split("=", 1) for span in spans(cell) if "=" in span]
    return [(name, eval(value, {**VALUES})) for name, value in pairs]


def shipped(registry: ClassTable[Any]) -> set[str]:
    return {name.rpartition(".")[2] for name in registry.modules if name.startswith("sklearn.")}


@pytest.mark.invariant("Examples, tables and paths on the pages are true")
def test_the_ledger_is_the_registry() -> None:
    assert {name_of(row) for row in FAMILIES} == shipped(_family._families)
    assert {name_of(row) for row in STEPS} == shipped(_family._affine_steps)
    assert {name_of(row) for row in COLUMNS} == shipped(_family._column_steps) - {"Pipeline"}


@pytest.mark.parametrize("row", FAMILIES, ids=name_of)
def test_free_parameters(row: dict[str, str]) -> None:
    family = family_of(ESTIMATORS[name_of(row)])
    assert set(spans(row["Free"])) == family.free
    assert row["Free"] == "none" or family.free


def check(cls: type, name: str, value: Any) -> None:
    """Ask the family or step of a class about one value of one parameter."""
    assert name in signature(cls).parameters
    estimator = cls(**BESIDES.get(cls.__name__, {})).set_params(**{name: value})
    family, step = family_of(cls), affine_step_of(cls) or column_step_of(cls)
    if step is not None:
        step.check(estimator)
        return
    default = cls(**BESIDES.get(cls.__name__, {})).get_params(deep=False)
    given = {free: value if free == name else default[free] for free in family.free}
    family.check(estimator, [given])


@pytest.mark.parametrize("row", [*FAMILIES, *STEPS, *COLUMNS], ids=name_of)
def test_what_the_ledger_says_of_parameters(row: dict[str, str]) -> None:
    cls = ESTIMATORS[name_of(row)]
    served, left = settings(row["Served with"]), settings(row["Left to scikit-learn"])
    assert served
    for name, value in served:
        check(cls, name, value)
    for name, value in left:
        with pytest.raises(Unsupported):
            check(cls, name, value)


def test_a_wrong_entry_is_found() -> None:
    with pytest.raises(Unsupported, match="lsqr"):
        check(ESTIMATORS["Ridge"], "solver", "lsqr")


def test_scores_from_moments() -> None:
    named = [eval(span) for span in spans(marked(SHARING, "scores"))]
    assert {scorer_parts(get_scorer(name))[0] for name in named} == set(MOMENT_METRICS)


def test_scores_of_all_settings_at_once() -> None:
    named = [span.strip('"') for span in spans(marked(SHARING, "batched")) if span.startswith('"')]
    assert len(named) > 5
    assert not any(SharedScoring(get_scorer(name), {}, Ridge()).calls_scorers for name in named)


def test_every_way_of_a_plan_is_explained() -> None:
    rows = re.findall(r"^\| ([^|]+) \| ", SHARING.split("The plan says", 1)[1].split("\n\n", 1)[0], re.M)
    strategies = (*FAMILY_STRATEGIES, SHARED_STEPS, INDIVIDUAL_FITS)
    alone = {"fits of the last step shared where that pays"}  # of fold families without steps
    assert {one.title.partition(":")[0] for one in strategies} | alone == set(rows)
    number = {7: "seven", 8: "eight", 9: "nine"}[len(rows)]
    assert f"in one of {number} ways" in PAGES["docs/first-search.md"].read_text()


def test_tolerances_are_those_of_the_differential_tests() -> None:
    rows = {row["Where"]: row["Held to"] for row in table(SHARING, "tolerances")}
    (exact,) = {case.tolerance for case in cases() if case.result == "exact"}
    assert f"within {exact:.0e} of" in rows["float64, scores"]
    assert f"at most {SLACK:g} times as far" in rows["float64, scores"]
    tight, converged = sorted({case.tolerance for case in cases() if case.result == "converged"})
    iterate = rows["families that iterate, scores"]
    assert (
        f"within {converged:g} ({tight:.0e} at a tight `tol`);" in iterate
        and f"at most {SLACK:g} times as far" in iterate
    )
    assert f"the same with {FLOAT32_ROUNDING:.0e}; 0.0001 where" in rows["float32, scores"]
    assert 1e-4 in Judge._against_truth.__code__.co_consts


def test_versions() -> None:
    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    (bounds,) = (text for text in project["dependencies"] if text.startswith("scikit-learn"))
    lowest = bounds.removeprefix("scikit-learn>=")  # and no upper bound: see `warn_untested`
    assert f"scikit-learn {lowest} to {TESTED[-1]}." in README
    assert lowest.startswith(TESTED[0])
    assert f"Python {project['requires-python'].removeprefix('>=')} or newer" in README
    assert f"has [{len(CATALOG)} estimators]" in README


def sub_rooms(room: str) -> set[str]:
    """The rooms within a room, as paths."""
    inner = (name.removeprefix(f"{room}.") for name in ORDER if name.startswith(f"{room}."))
    return {name.replace(".", "/") for name in inner if not name.rpartition(".")[2].startswith("_")}


def test_the_rooms_on_the_page_are_those_of_the_structural_test() -> None:
    on_page = {spans(row["Room"])[0]: set(spans(row["Inside"])) for row in ROOMS}
    top = dict.fromkeys(room.partition(".")[0] for room in ORDER)
    assert on_page == {room: sub_rooms(room) for room in top}
    assert list(on_page) == list(top)


def test_the_page_on_architecture_stays_short() -> None:
    assert len(ARCHITECTURE.splitlines()) <= 250
