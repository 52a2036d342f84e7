"""The rows of a fold that a family reads, behind the steps of a pipeline."""

from collections.abc import Callable
from typing import Any

from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from manyfit.arrays import is_xp_array
from manyfit.families import Family, FoldRows, Iterations
from manyfit.folds import (
    FoldArrays,
    Unsupported,
    as_labels,
    as_matrix,
    as_matrix_or_csr,
    as_targets,
    as_weights,
    holds_categories,
)
from manyfit.metrics.scoring import SharedScoring
from manyfit.model_selection.job._job import Job
from manyfit.model_selection.planning._metadata_routing import fit_weights
from manyfit.model_selection.planning._plan import Group
from manyfit.model_selection.planning.steps._order import build_candidate
from manyfit.model_selection.sharing._fold_store import SharedFold
from manyfit.model_selection.sharing.transformers._step_wrappers import share_prefixes


def rows_of_fold(group: Group, model: Any, fold: SharedFold, job: Job, scoring: SharedScoring) -> FoldArrays:
    """The rows of a fold behind the steps of a pipeline, as scikit-learn's own steps give them."""
    family, share = group.family, fold.cache.share
    assert family is not None
    if not (len(fold.train) and len(fold.test)):
        raise Unsupported("the split has no training or no test rows")
    X_train, X_test = share(fold.X_train), share(fold.X_test)
    X_score = X_train
    if type(model) is Pipeline and len(model.steps) > 1:
        before = share_prefixes(Pipeline(model.steps[:-1]), fold.cache, ends_in_transformer=True)
        X_fitted = before.fit_transform(X_train, share(fold.y_train))
        X_test = before.transform(X_test)
        X_score = before.transform(X_train) if job.options.return_train_score else X_fitted
        X_train = X_fitted
    read = _reader(family, X_train)
    train, test = read(X_train), read(X_test)
    named = hasattr(X_train, "columns") and train is not X_train
    names = tuple(X_train.columns) if named else None
    if is_xp_array(train):
        require_device_reader(family, type(group.prototype))
    score = train if X_score is X_train else read(X_score)
    read_y = as_labels if is_classifier(model) else as_targets
    y_train, y_test = read_y(fold.y_train), read_y(fold.y_test)
    n = job.splits.n_samples
    weights = as_weights(fit_weights(model, group.path, job.options.fit_params), n)
    scored = as_weights(scoring.weights, n)
    score_weights = None if scored is None else {"train": scored[fold.train], "test": scored[fold.test]}
    weight = None if weights is None else weights[fold.train]
    return FoldArrays(
        train, y_train, test, y_test, weight, score, fold.y_train, fold.y_test, score_weights, names
    )  # fmt: skip


def require_device_reader(family: Family | None, cls: type) -> None:
    """Raise `Unsupported` if the family of a class reads rows of the host only."""
    if family is not None and isinstance(family.reads, FoldRows) and not family.reads.device:
        raise Unsupported(f"shared fits of {cls.__name__} read rows of the host")


def require_weights(group: Group, scoring: SharedScoring, job: Job) -> None:
    """Raise `Unsupported` if the search has weights that the family does not read."""
    options, family = job.options, group.family
    if not (options.fit_params or options.score_params):
        return
    assert family is not None
    if not isinstance(family.reads, FoldRows):
        raise Unsupported("fit or score parameters go through steps that are not affine")
    given = fit_weights(build_candidate(job, group.candidates[0]), group.path, options.fit_params)
    if not family.reads.weights and not (given is None and scoring.weights is None):
        raise Unsupported(f"{type(family).__name__} does not read weights")
    if "float32" in str(getattr(given, "dtype", "")):  # of any array library
        raise Unsupported("scikit-learn rounds sums and products of weights of float32")


def _reader(family: Family, X: Any) -> Callable[[Any], Any]:
    """How the rows of a fold are read for a family."""
    reads = family.reads
    if isinstance(reads, FoldRows) and reads.categories and holds_categories(X):
        return lambda frame: frame
    sparse = isinstance(reads, Iterations) or (isinstance(reads, FoldRows) and reads.sparse)
    return as_matrix_or_csr if sparse else as_matrix
