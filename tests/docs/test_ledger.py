"""The ledger of drop-in estimators agrees with the catalog."""

from __future__ import annotations

from manyfit import estimators
from manyfit.estimators._catalog import CATALOG
from tests.docs import _ledger
from tests.docs._pages import marked, table

PAGE = _ledger.PAGE.read_text()


def test_the_ledger_is_current():
    assert marked(PAGE, "ledger") == _ledger.as_text(), "run python -m tests.docs._ledger"
    assert table(PAGE, "ledger") == _ledger.rows()


def test_all_exports_have_a_row():
    classes = {name for name in estimators.__all__ if hasattr(getattr(estimators, name), "fit")}
    classes -= {"Incremental", "ParallelPostFit"}  # of no class of scikit-learn's
    assert classes == set(CATALOG) == {row["Estimator"].strip("`") for row in _ledger.rows()}


def test_what_a_row_says():
    rows = {row["Estimator"].strip("`"): list(row.values())[1:] for row in _ledger.rows()}
    assert rows["Lasso"] == ["scikit-learn", "host", "cuML, else host", "cuML, else host"]
    assert rows["NMF"] == ["scikit-learn", "host", "host", "host"]
    assert rows["PolynomialFeatures"] == [
        "scikit-learn",
        "scikit-learn (`order='C'`; 1.8 or newer), else host",
        "scikit-learn, else cuML, else host",
        "cuML, else host",
    ]
    held = "scikit-learn (1.9 or newer; all that it holds drop-in), else host"
    assert rows["FeatureUnion"] == ["scikit-learn", held, "scikit-learn, else host", "host"]
    assert rows["CountVectorizer"] == ["scikit-learn", "takes texts", "takes texts", "cuML, else host"]
