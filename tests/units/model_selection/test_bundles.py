"""The bundles of individual fits that are sent to processes of joblib."""

import subprocess
import sys

import numpy as np
import pytest

from manyfit.folds import Splits
from manyfit.model_selection.running._bundles import (
    LEAST_SECONDS,
    MOST_SECONDS,
    Bundles,
    training_rows,
)

FITS_AND_MODULES = """
import sys
import joblib
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier
from manyfit.model_selection import GridSearchCV

if __name__ == "__main__":
    grid = {"max_depth": [2, 3], "min_samples_leaf": [1, 2]}
    search = GridSearchCV(DecisionTreeClassifier(random_state=0), grid, n_jobs=2, refit=False)
    assert search.fit(*load_iris(return_X_y=True)).report_.fits_done == 20
    task = "[name for name in sys.modules if name.startswith('manyfit')]"
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(eval)(task, {"sys": sys}) for _ in range(2))
    print(*sorted({name for names in found for name in names}))
"""


def _finished(pairs, seconds):
    return {pair: {"fit_time": seconds(pair), "score_time": 0.0} for pair in pairs}


def _run(pairs, seconds, n_workers=2, n_rows=lambda i: 100, **options):
    """All bundles, each of which is finished before the next one is cut."""
    bundles = Bundles(pairs, n_workers, n_rows, **options)
    found = []
    for bundle in bundles:
        bundles.note(_finished(bundle, seconds))
        found.append(bundle)
    return found


def _pairs(n_settings, n_splits):
    return [(c, i) for c in range(n_settings) for i in range(n_splits)]


@pytest.mark.parametrize(("n_settings", "n_splits"), [(1, 1), (1, 10), (7, 3), (100, 5), (500, 2)])
@pytest.mark.parametrize("seconds", [1e-5, 0.004, 0.1, 3.0])
def test_each_pair_is_in_one_bundle(n_settings, n_splits, seconds):
    pairs = _pairs(n_settings, n_splits)
    found = _run(pairs, lambda pair: seconds)
    assert sorted(pair for bundle in found for pair in bundle) == pairs


def test_each_setting_is_tried_first_and_the_slowest_follows():
    found = _run(_pairs(3, 4), lambda pair: [1.0, 4.0, 2.0][pair[0]])
    assert found[:3] == [[(0, 0)], [(1, 0)], [(2, 0)]]
    assert [bundle[0][0] for bundle in found[3:]] == [1, 1, 1, 2, 2, 2, 0, 0, 0]


def test_settings_that_are_not_finished_follow_first_and_one_by_one():
    bundles = Bundles(_pairs(3, 4), 2, lambda i: 100)
    samples = [next(bundles) for _ in range(3)]
    bundles.note(_finished(samples[0] + samples[2], lambda pair: 0.001))
    assert [next(bundles) for _ in range(3)] == [[(1, 1)], [(1, 2)], [(1, 3)]]


def test_larger_training_parts_come_first():
    found = _run(_pairs(1, 4), lambda pair: 1.0 + pair[1], n_rows=lambda i: 10 * (i + 1))
    assert found == [[(0, 3)], [(0, 2)], [(0, 1)], [(0, 0)]]


def test_bundles_become_smaller_within_their_limits():
    seconds = 0.005
    found = _run(_pairs(2, 200), lambda pair: seconds)
    sizes = [len(bundle) for bundle in found[2:]]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] * seconds <= MOST_SECONDS + 1e-9
    assert len(found) < 40
    # The last ones are no larger than costs of sending allow.
    assert sizes[-2] * seconds <= LEAST_SECONDS + 1e-9


def test_fits_that_take_long_are_sent_one_by_one():
    assert all(len(bundle) == 1 for bundle in _run(_pairs(10, 5), lambda pair: MOST_SECONDS))


def test_order_is_kept_where_it_shows():
    pairs = [(1, 0), (0, 0), (1, 1), (0, 1)]
    found = _run(pairs, lambda pair: 1e-5, n_rows=lambda i: 10 * (i + 1), in_order=True)
    assert found == [[pair] for pair in pairs]


def test_training_rows_of_indices_and_masks():
    mask = np.array([True, False, True, True])
    splits = Splits.given([(np.array([0, 1]), np.array([2])), (mask, ~mask)], 4)
    assert [training_rows(splits)(i) for i in range(2)] == [2, 3]


@pytest.mark.thorough
@pytest.mark.invariant("joblib's processes import no engine for fits that share nothing")
def test_processes_import_what_sklearn_would(tmp_path):
    script = tmp_path / "search.py"
    script.write_text(FITS_AND_MODULES)
    done = subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True)
    names = done.stdout.split()
    introspection = [".introspection", ".introspection.class_names", ".introspection.late_names"]
    package = ["", "._config", "._config._options", *introspection]
    sharing = [".sharing", ".sharing._fit_overhead", ".sharing._plain_scores"]
    engine = ["", ".running", ".running._sklearn_fits", *sharing]
    assert names == [f"manyfit{one}" for one in package] + [f"manyfit.model_selection{one}" for one in engine]
