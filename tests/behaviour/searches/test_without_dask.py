"""A process without Dask: searches work, and what needs a cluster says how to install it."""

import subprocess
import sys

import pytest

from manyfit._config.sizes import format_size, parse_size

pytestmark = pytest.mark.slow

WITHOUT_DASK = """
import sys


class Missing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in ("dask", "distributed"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Missing)
"""
SEARCHES = """
import numpy as np
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from manyfit.model_selection import GridSearchCV, cross_validate

X, y = load_iris(return_X_y=True)
directory = sys.argv[1]
for number, (estimator, grid) in enumerate([
    (Ridge(), {"alpha": [1, 2]}),
    (make_pipeline(StandardScaler(), LogisticRegression()), {"logisticregression__C": [1, 2]}),
    (SVC(), {"kernel": ["rbf", "linear"]}),
]):
    options = {"n_jobs": eval(sys.argv[2]), "memory_limit": "1 GB", "checkpoint": f"{directory}/{number}"}
    search = GridSearchCV(estimator, grid, **options)
    assert str(search.plan(X, y)).splitlines()[1].startswith("Plan: 2 settings")
    assert np.isfinite(search.fit(X, y).best_score_)
cross_validate(Ridge(), X, y)
file = np.memmap(f"{directory}/X", dtype=X.dtype, mode="w+", shape=X.shape)
file[:] = X
search = GridSearchCV(Ridge(), {"alpha": [1, 2]}, refit=False, memory_limit="4 kB").fit(file, y)
assert "read in chunks" in str(search.plan(file, y)) and np.isfinite(search.best_score_)
"""


CLUSTERS = """
from manyfit import cluster
from manyfit.model_selection import GridSearchCV
from sklearn.linear_model import Ridge

asked = GridSearchCV(Ridge(), {"alpha": [1, 2]}, client=3)
for call in cluster.local_cluster, lambda: cluster.describe(None), lambda: asked.fit([[1]] * 9, [1] * 9):
    try:
        call()
    except ImportError as error:
        print(error)
"""


def run(code: str, *arguments: str) -> list[str]:
    """Run a script in a process of its own, where warnings are errors; return the lines that it prints."""
    command = [sys.executable, "-W", "error", "-c", code, *arguments]
    return subprocess.run(
        command, stdout=subprocess.PIPE, text=True, timeout=120, check=True
    ).stdout.splitlines()


def says_how_to_install(said: list[str]) -> bool:
    return all(
        text.startswith(f"{caller} needs Dask's distributed") and "pip install 'manyfit[cluster]'" in text
        for caller, text in zip(["local_cluster", "describe", "client=3"], said, strict=True)
    )


def test_searches_import_no_dask_and_what_needs_a_cluster_says_how_to_install_it(tmp_path):
    """Dask is installed while the searches run: the first import of it would succeed."""
    no_dask = "assert 'dask' not in sys.modules and 'distributed' not in sys.modules"
    said = run("import sys\n" + SEARCHES + no_dask + WITHOUT_DASK + CLUSTERS, str(tmp_path), "None")
    assert says_how_to_install(said)


@pytest.mark.thorough
@pytest.mark.parametrize("n_jobs", ["None", "2"])
def test_searches_need_no_dask(n_jobs, tmp_path):
    said = run(WITHOUT_DASK + SEARCHES + CLUSTERS, str(tmp_path), n_jobs)
    assert says_how_to_install(said)


@pytest.mark.parametrize(
    "text", ["100", "100 MB", "5.4 kB", "1kiB", "1e6", "1E6 kb", "2 GiB", " 3 B ", "MB", "7k", "7Ki"]
)
def test_sizes_are_read_as_dask_reads_them(text):
    from dask.utils import parse_bytes

    assert parse_size(text) == parse_bytes(text)


@pytest.mark.parametrize("text", ["", "  ", "many", "5 XB", "1 MB 2", "-5 MB", "1..2 MB"])
def test_other_texts_are_no_sizes(text):
    with pytest.raises(ValueError, match=r"not a number of bytes|could not convert"):
        parse_size(text)


@pytest.mark.parametrize("n_bytes", [0, 1, 921, 922, 1024, 123456, 10**9, 3 * 10**12, 2**60])
def test_sizes_are_written_as_dask_writes_them(n_bytes):
    from dask.utils import format_bytes

    assert format_size(n_bytes) == format_bytes(n_bytes)
