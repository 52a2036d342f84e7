"""The ledger of docs/estimators.md, from the catalog of drop-in estimators.

``python -m tests.docs._ledger`` writes it into the page.
"""

from __future__ import annotations

import re

from manyfit import estimators
from manyfit.estimators._catalog import CATALOG, Dispatch
from manyfit.estimators.backends._native_registry import fitter_of
from manyfit.introspection.class_names import sklearn_class_of
from tests.docs._pages import ROOT

PAGE = ROOT / "docs" / "estimators.md"
HEADS = ("Estimator", "NumPy, pandas, SciPy", "torch, array-api-strict", "CuPy", "cuDF, sparse of CuPy")


def rows() -> list[dict[str, str]]:
    """A row for each drop-in estimator: who works on the data of each library, in the order that is tried."""
    return [dict(zip(HEADS, (f"`{name}`", *_of(name)), strict=True)) for name in CATALOG]


def _of(name: str) -> tuple[str, str, str, str]:
    line = CATALOG[name]
    own = ["manyfit"] if fitter_of(sklearn_class_of(getattr(estimators, name))) else []
    dispatched = [_dispatched(line.dispatch)] if line.dispatch else []
    same = ["scikit-learn"] if line.dispatch else []  # with the same conditions, a column before
    cuml = ["cuML"] if line.cuml else []
    first = cuml if line.cuml and line.cuml.converts else []
    later = [] if first else cuml
    here = "umap-learn" if name == "UMAP" else "scikit-learn"
    if name in ("HashingVectorizer", "CountVectorizer", "TfidfVectorizer"):
        return here, "takes texts", "takes texts", _chain(cuml)
    return here, _chain(own + dispatched), _chain(own + first + same + later), _chain(cuml)


def _chain(routes: list[str]) -> str:
    return ", else ".join([*routes, "host"])


def _dispatched(dispatch: Dispatch) -> str:
    conditions = [
        f"`{name}={' or '.join(map(repr, values))}`" for name, values in (dispatch.only or {}).items()
    ]
    conditions += [] if dispatch.since == (1, 7) else [f"{'.'.join(map(str, dispatch.since))} or newer"]
    conditions += ["all that it holds drop-in"] if dispatch.holds else []
    conditions += (
        [] if dispatch.columns == (1, 7) else [f"one target before {'.'.join(map(str, dispatch.columns))}"]
    )
    return "scikit-learn" + (f" ({'; '.join(conditions)})" if conditions else "")


def as_text() -> str:
    """The table as the page has it."""
    lines = ["| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS)]
    lines += ["| " + " | ".join(row.values()) + " |" for row in rows()]
    return "\n".join(lines) + "\n"


def main() -> None:
    text = PAGE.read_text()
    PAGE.write_text(
        re.sub(r"(?<=<!-- ledger -->\n).*?(?=<!-- /ledger -->)", lambda _: as_text(), text, flags=re.S)
    )


if __name__ == "__main__":
    main()
