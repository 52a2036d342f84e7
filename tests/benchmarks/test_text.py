"""The example on text, on a few texts of small packages."""

from __future__ import annotations

import numpy as np
import pytest
from joblib import parallel_config

from examples import text
from manyfit.model_selection import RandomizedSearchCV

PACKAGES = ("joblib", "tqdm")


@pytest.fixture(scope="module")
def found():
    return text.texts(PACKAGES)


def test_texts_are_real_and_do_not_name_their_package(found):
    X, y = found
    assert set(y) == set(PACKAGES)
    assert len(X) == len(y) == len(set(X)) > 80
    assert min(map(len, X)) >= 100
    assert not any(name in told.lower().split() for told in X for name in ("scipy", "sklearn", "scikit"))
    assert np.array_equal(X, text.texts(PACKAGES)[0])  # in the same order
    assert list(text.docstrings("no_such_package")) == []


def test_prints_plan_table_and_report(found, capsys, monkeypatch):
    monkeypatch.setattr(text, "texts", lambda packages: found)
    with parallel_config(backend="threading"):  # processes take longer to start
        text.main(PACKAGES, most=60, n_iter=6, n_features=2**10)
    printed, shown = capsys.readouterr()
    assert "30/30" in shown and "refit 100%" in shown  # the progress bars
    assert "60 texts, " in printed and f"(--all uses all {len(found[0]):,})" in printed
    assert "HashingVectorizer on all rows at once" in printed
    assert printed.count("Plan: 6 settings x 5 splits = 30 fits asked for") == 1
    assert "the same setting as scikit-learn's" in printed
    assert "fits of shared transformers" in printed


def test_difference_fires(found):
    X, y = found
    first, second = (text.search(RandomizedSearchCV, 3, n_features=64).fit(X[:60], y[:60]) for _ in "ab")
    assert text._difference(first, second) == 0.0
    second.cv_results_["split1_test_score"][2] += 0.25
    assert text._difference(first, second) == 0.25
