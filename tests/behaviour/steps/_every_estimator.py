"""Estimators of scikit-learn with each of their options, on data of many kinds: what do they write into?"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.base import clone, is_classifier
from sklearn.decomposition import SparseCoder
from sklearn.exceptions import NotFittedError
from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer  # noqa: F401
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils import all_estimators, get_tags
from sklearn.utils._param_validation import Options, StrOptions
from sklearn.utils._test_common.instance_generator import _construct_instances

# No search hands rows to inverse_transform, which writes into them in OrdinalEncoder.
METHODS = (
    "transform",
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "score_samples",
    "score",
    "fit_transform",
    "fit_predict",
    "kneighbors",
    "partial_fit",
)
KINDS = ("C", "F", "C32", "F32", "csr", "csc", "csr32", "wide", "frame", "nan")
# Of these scikit-learn's checks have no instance, or one without what it is to be given.
WORDS = ("CountVectorizer", "TfidfVectorizer", "HashingVectorizer")
TEXTS = [f"row {i % 7} of {i % 3} words, the {i}th" for i in range(36)]
RECORDS = [{"a": float(i % 5), "b": f"v{i % 3}"} for i in range(36)]
# Transformers that read labels.
CLASSED = ("NeighborhoodComponentsAnalysis", "SequentialFeatureSelector")
# Search or choose thresholds: what they hold is fitted under its own name.
SLOW = (
    "GridSearchCV",
    "HalvingGridSearchCV",
    "HalvingRandomSearchCV",
    "LogisticRegressionCV",
    "RandomizedSearchCV",
    "SequentialFeatureSelector",
    "TSNE",
    "TunedThresholdClassifierCV",
)


@functools.cache
def classes() -> dict[str, type]:
    return dict(all_estimators())


def instances(cls: type) -> list[Any]:
    """Those of scikit-learn's own checks, or the plain one."""
    if cls is SparseCoder:
        return [SparseCoder(np.eye(6)[:4])]
    if cls is FrozenEstimator:
        return [FrozenEstimator(LogisticRegression().fit(np.eye(6), [0, 1] * 3))]
    with contextlib.suppress(Exception):
        return list(_construct_instances(cls))
    return [cls()]


def options(estimator: Any) -> Iterator[dict[str, Any]]:
    """Each option of each parameter by itself, as the class declares them; those that limit time stay."""
    yield {}
    constraints = getattr(type(estimator), "_parameter_constraints", None) or {}
    present = estimator.get_params(deep=False)
    for name, allowed in constraints.items():
        if name not in present or name in ("verbose", "n_jobs", "memory") or allowed == "no_validation":
            continue
        values: list[Any] = []
        for one in allowed:
            if isinstance(one, StrOptions | Options):
                values += sorted(one.options, key=repr)
            elif isinstance(one, str) and one == "boolean":
                values += [True, False, np.True_, np.False_]
            elif one is None:
                values.append(None)
        for value in values:
            if not (type(value) is type(present[name]) and value == present[name]):
                yield {name: value}


def data(estimator: Any, kind: str, pairwise: bool = False) -> tuple[Any, Any]:
    """X and y as an estimator takes them, of a kind of X."""
    rng, name = np.random.default_rng(0), type(estimator).__name__
    tags = get_tags(estimator)
    n, p = (20, 30) if kind == "wide" else (36, 6)
    X = rng.uniform(0.1, 1.0, (n, p)) * (rng.uniform(size=(n, p)) < 0.8)
    y: Any = (X[:, 0] + 0.2 * rng.uniform(size=n) > np.median(X[:, 0])).astype(np.int64)
    if not (is_classifier(estimator) or name in CLASSED):
        y = 1.0 + X @ np.linspace(0.5, 1.5, p)
    if tags.target_tags.single_output is False and name.startswith("MultiTask"):
        y = np.c_[y, y**2]
    if name.startswith("MultiOutput") or "Chain" in name:
        y = np.c_[y, 1 - y] if is_classifier(estimator) else np.c_[y, y**2]
    if name in WORDS:
        return list(TEXTS), None
    if name in ("DictVectorizer", "FeatureHasher"):
        return [dict(record) for record in RECORDS], None
    if name in ("LabelEncoder", "LabelBinarizer"):
        return (X[:, 0] > 0.5).astype(int), None
    if name == "MultiLabelBinarizer":
        return [[i % 3, 3] for i in range(n)], None
    if name == "PatchExtractor":
        return rng.uniform(size=(4, 8, 8)), None
    if name == "IsotonicRegression":
        return _as_kind(X[:, :1], kind), y
    if pairwise or tags.input_tags.pairwise:
        X = np.abs(X[:, None] - X[None]).sum(axis=2)
        if getattr(estimator, "kernel", None) == "precomputed" or name == "KernelCenterer":
            X = np.exp(-X)
        return _as_kind(X, kind), y
    if (tags.input_tags.categorical and not tags.input_tags.two_d_array) or name == "CategoricalNB":
        X = np.floor(3 * X)
    return _as_kind(X, kind), y


def _as_kind(X: np.ndarray, kind: str) -> Any:
    if kind.startswith(("csr", "csc")):
        made = getattr(scipy.sparse, f"{kind[:3]}_array")(X)
        return made.astype(np.float32) if kind.endswith("32") else made
    if kind == "frame":
        return pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    if kind == "nan":
        X = X.copy()
        X[::5, 0] = np.nan
    dtype = np.float32 if kind.endswith("32") else np.float64
    return np.array(X, dtype=dtype, order="F" if kind[0] == "F" or kind == "wide" else "C")


def digest(thing: Any) -> Any:
    """What tells whether something was written into."""
    if isinstance(thing, np.ndarray):
        content = repr(thing.tolist()).encode() if thing.dtype.hasobject else thing.tobytes()
        return thing.shape, str(thing.dtype), hashlib.sha1(content).hexdigest()
    if scipy.sparse.issparse(thing):
        return (
            thing.format,
            thing.shape,
            *(digest(getattr(thing, part)) for part in ("data", "indices", "indptr")),
        )
    if isinstance(thing, pd.DataFrame | pd.Series):
        return list(getattr(thing, "columns", ())), digest(np.array(thing))
    return repr(thing)


def takes_weights(method: Any) -> bool:
    return "sample_weight" in inspect.signature(method).parameters


def writes(estimator: Any, kind: str) -> tuple[set[str], bool]:
    """Which of ``method: argument`` it writes into, and whether its fit went through."""
    values = [str(value) for value in estimator.get_params(deep=False).values()]
    X, y = data(estimator, kind, "precomputed" in values)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    weight = np.linspace(0.5, 1.5, n)
    found: set[str] = set()

    def call(method: str, target: Any, *args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip("Xy", args, strict=False)), **kwargs}
        before = {name: digest(value) for name, value in given.items()}
        try:
            return getattr(target, method)(*args, **kwargs)
        finally:
            changed = (name for name, value in given.items() if digest(value) != before[name])
            found.update(f"{method}: {name}" for name in changed)

    fitted = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ways: list[dict[str, Any]] = [{}]
        if takes_weights(estimator.fit):
            ways.append({"sample_weight": weight})
        for way in ways:
            model = clone(estimator)
            try:
                call("fit", model, X, *(() if y is None else (y,)), **way)
            except Exception:
                continue
            fitted = True
            for method in METHODS:
                if not hasattr(model, method):
                    continue
                args = (
                    (X,) if method not in ("score", "fit_transform", "fit_predict", "partial_fit") else (X, y)
                )
                target = clone(estimator) if method.startswith("fit_") else model
                with contextlib.suppress(Exception, NotFittedError):
                    call(method, target, *args)
    return found, fitted
