"""Randomized search for a text classifier, on real text: ``python -m examples.text [--all]``.

Does a docstring come from SciPy or from scikit-learn? The texts are docstrings of the installed packages,
without the names that would give them away. The search covers hashing, tf-idf and logistic regression. Each
text is hashed once for each way to hash, not once for each split, setting and score. Settings of the
classifier with the same steps before them are fitted together.

The example uses 1,000 texts and takes half a minute on two cores. With ``--all`` it uses all texts, about
5,000, and takes minutes. scikit-learn's search, for comparison, takes most of the time.
"""

from __future__ import annotations

import argparse
import ast
import re
import time
import warnings
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from joblib import cpu_count
from numpy.typing import NDArray
from scipy.stats import loguniform
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RandomizedSearchCV as SklearnRandomizedSearchCV
from sklearn.pipeline import make_pipeline

from manyfit.model_selection import RandomizedSearchCV

PACKAGES = ("scipy", "sklearn")
_NAMES = re.compile(r"\b(scipy|sp|sklearn|scikit|learn)\b", re.I)
_SHORTEST = 100  # characters
_FEW = 1_000

PARAMS = {
    "hashingvectorizer__binary": [False, True],
    "tfidftransformer__sublinear_tf": [False, True],
    "logisticregression__C": loguniform(1e-1, 1e2),
}


def docstrings(package: str) -> Iterator[str]:
    """Yield the docstrings of an installed package, without its tests, and without importing it."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return
    root = Path(spec.origin).parent
    for path in sorted(root.rglob("*.py")):
        if "test" in str(path.relative_to(root)):
            continue
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):  # a template, or a file for another version of Python
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                yield ast.get_docstring(node) or ""


def texts(packages: Sequence[str] = PACKAGES) -> tuple[list[str], NDArray[Any]]:
    """Return texts, each once and in random order, and the package that each comes from."""
    owner: dict[str, str] = {}
    for package in packages:
        for text in docstrings(package):
            told = _NAMES.sub(" ", text)
            if len(told) >= _SHORTEST:
                owner.setdefault(told, package)
    order = np.random.default_rng(0).permutation(len(owner))
    everything = list(owner.items())
    return [everything[j][0] for j in order], np.array([everything[j][1] for j in order])


def search(cls: Any, n_iter: int, n_jobs: int | None = None, n_features: int = 2**18) -> Any:
    """Return a search of either library, with the same settings."""
    hasher = HashingVectorizer(n_features=n_features, alternate_sign=False)
    pipeline = make_pipeline(hasher, TfidfTransformer(), LogisticRegression())
    return cls(pipeline, PARAMS, n_iter=n_iter, cv=5, random_state=0, n_jobs=n_jobs, verbose=1)


def main(packages: Sequence[str] = PACKAGES, most: int | None = None, **options: Any) -> None:
    """Search with both libraries, and print plan, times, scores and report."""
    options = {"n_iter": 12, **options}
    print(f"Reading the docstrings of {' and '.join(packages)} ...", flush=True)
    X, y = texts(packages)
    n_texts = len(X)
    X, y = X[:most], y[:most]
    names, counts = np.unique(y, return_counts=True)
    shown = ", ".join(f"{name} {count:,}" for name, count in zip(names, counts, strict=True))
    print(f"{len(X):,} texts, {sum(map(len, X)) / 1e6:.3g} MB: {shown}")
    if len(X) < n_texts:
        print(f"(--all uses all {n_texts:,})")
    print("Each text is hashed and weighted. Logistic regression predicts the package that it comes from.\n")
    ours = search(RandomizedSearchCV, **options)
    print(ours.plan(X, y), flush=True)
    rows = [("manyfit n_jobs=None", ours, _timed(ours, X, y))]
    print("\nThe same search by scikit-learn, which shows no progress ...", flush=True)
    theirs = search(SklearnRandomizedSearchCV, n_jobs=-1, **options)
    rows.append((f"scikit-learn n_jobs=-1, {cpu_count()} cores", theirs, _timed(theirs, X, y)))
    print(f"\n{_table(rows)}\n\n{ours.report_}")


def _timed(searching: Any, X: Any, y: Any) -> float:
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        searching.fit(X, y)
    return time.perf_counter() - start


def _table(rows: list[tuple[str, Any, float]]) -> str:
    head = f"{'one run with its refit':34}{'time':>10}{'times':>9}{'best accuracy':>16}{'difference':>13}"
    lines = [head, "-" * len(head)]
    _, reference, slowest = rows[-1]
    for name, searching, seconds in rows:
        lines.append(
            f"{name:34}{seconds:8.3g} s{slowest / seconds:9.3g}{searching.best_score_:16.4f}"
            f"{_difference(searching, reference):13.1e}"
        )
    lines.append("times: relative to scikit-learn; difference: the largest over all settings and splits")
    best = rows[0][1].best_params_
    same = best == reference.best_params_
    chosen = ", ".join(f"{name.rpartition('__')[2]} = {value}" for name, value in best.items())
    return "\n".join(
        [*lines, f"chosen: {chosen}; {'the same' if same else 'ANOTHER'} setting as scikit-learn's"]
    )


def _difference(searching: Any, reference: Any) -> float:
    names = [f"split{split}_test_score" for split in range(reference.n_splits_)]
    pairs = ((searching.cv_results_[name], reference.cv_results_[name]) for name in names)
    return max(float(np.max(np.abs(first - second))) for first, second in pairs)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Search over a text classifier with both libraries.")
    parser.add_argument("--all", action="store_true", help="use all texts (takes minutes)")
    main(most=None if parser.parse_args().all else _FEW)
