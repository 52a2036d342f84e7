"""scikit-learn's estimators: checks of their parameters, and private parts that manyfit reads or sets."""

import importlib
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils import check_array
from sklearn.utils._indexing import _get_column_indices
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions, validate_parameter_constraints
from sklearn.utils._set_output import _wrap_data_with_container

__all__ = [
    "COLUMN_TRANSFORMER_REMAINDER",
    "HasMethods",
    "Interval",
    "StrOptions",
    "check_parameters",
    "column_indices",
    "fit_context",
    "has_glm_loss",
    "is_bound_of",
    "lda_svd_divisor",
    "learned_attributes",
    "naive_bayes_log_sum_exp",
    "output_container",
    "output_wrapping",
    "own_output_container",
    "parameter_constraints",
    "pca_dimension",
    "pca_solver",
    "prune_tree",
    "replace_hstack",
    "scores_of_first_trees",
    "set_glm_loss",
    "set_pca_solver",
    "svm_on_rows",
    "tree_with_nodes",
    "unknown_warning",
    "validate_parameters",
    "why_names_are_refused",
    "wrap_output",
]

Function = TypeVar("Function", bound=Callable[..., Any])

# The attribute of a ColumnTransformer with (name, transformer, columns) of the columns that are left over.
COLUMN_TRANSFORMER_REMAINDER = "_remainder"


def fit_context(fit: Function) -> Function:
    """Decorate a ``fit`` as scikit-learn does where estimators inside are validated by their own."""
    return _fit_context(prefer_skip_nested_validation=False)(fit)  # type: ignore[no-any-return]


def column_indices(X: Any, key: Any) -> list[int]:
    """Positions of columns of a frame or matrix that a ``ColumnTransformer`` chooses by `key`."""
    return [int(j) for j in _get_column_indices(X, key)]


def validate_parameters(estimator: Any) -> None:
    """Raise scikit-learn's own error for constructor parameters that it refuses before a fit."""
    if hasattr(estimator, "_parameter_constraints"):  # LabelEncoder has none
        estimator._validate_params()


def check_parameters(estimator: Any, names: Collection[str] | None = None) -> str | None:
    """The reason why scikit-learn refuses some or all constructor parameters of an estimator, or None."""
    if not hasattr(estimator, "_parameter_constraints"):
        return None
    try:
        if names is None and type(estimator)._validate_params is not BaseEstimator._validate_params:
            estimator._validate_params()
            return None
        constraints = estimator._parameter_constraints
        # Without `get_params`, which reads the signature of the constructor for each estimator.
        names = [name for name in constraints if hasattr(estimator, name)] if names is None else names
        given = {name: getattr(estimator, name) for name in names if name in constraints}
        validate_parameter_constraints(constraints, given, caller_name=type(estimator).__name__)
    except Exception as error:  # scikit-learn raises it again in its own fit
        return str(error)
    return None


def why_names_are_refused(composite: Any, names: Iterable[str]) -> str | None:
    """The reason why the fit of a composite refuses the names of its parts, or None."""
    try:
        composite._validate_names([*names])
    except Exception as error:  # scikit-learn raises it again in its own fit
        return str(error)
    return None


def parameter_constraints(cls: Any) -> dict[str, Any]:
    """The values that a class of scikit-learn allows for each constructor parameter."""
    return dict(cls._parameter_constraints)


def is_bound_of(estimator: Any, name: str, value: float, way: str) -> bool:
    """Whether an estimator refuses numbers that are "smaller" or "larger" (`way`) than a value."""
    path, _, last = name.rpartition("__")
    owner = estimator.get_params(deep=True).get(path) if path else estimator
    constraints = getattr(type(owner), "_parameter_constraints", {})
    if last not in constraints:
        return False
    step = -1 if way == "smaller" else 1
    beyond = value + step if isinstance(value, Integral) else math.nextafter(value, step * math.inf)
    try:
        validate_parameter_constraints({last: constraints[last]}, {last: beyond}, caller_name="")
    except ValueError:
        return True
    return False


def pca_solver(pca: Any, n_samples: int, n_features: int) -> str:
    """The solver that ``PCA.fit`` of 1.7 to 1.9 resolves ``svd_solver`` to, for dense data."""
    if pca.svd_solver != "auto":
        return str(pca.svd_solver)
    if n_features <= 1_000 and n_samples >= 10 * n_features:
        return "covariance_eigh"
    shortest, k = min(n_samples, n_features), pca.n_components
    if k == "mle" or max(n_samples, n_features) <= 500:
        return "full"
    return "randomized" if 1 <= (shortest if k is None else k) < 0.8 * shortest else "full"


def set_pca_solver(pca: Any, solver: str) -> None:
    """Set the solver of a fit, which ``PCA`` reads for its tags."""
    pca._fit_svd_solver = solver


def pca_dimension(variances: NDArray[Any], n_samples: int) -> int:
    """The number of components that ``PCA(n_components="mle")`` chooses."""
    from sklearn.decomposition._pca import _infer_dimension  # here, as below: its module is long to import

    return int(_infer_dimension(variances, n_samples))


def has_glm_loss(estimator: Any) -> bool:
    """Whether an estimator is a fitted generalised linear model, see `set_glm_loss`."""
    return "_base_loss" in vars(estimator)


def set_glm_loss(estimator: Any) -> None:
    """Set the loss that a generalised linear model needs to predict on the host."""
    estimator._base_loss = estimator._get_loss()


def lda_svd_divisor(n_samples: int, n_classes: int) -> int:
    """The number by which LinearDiscriminantAnalysis divides the scatter within classes, ``solver="svd"``."""
    newest = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)
    return n_samples if newest else n_samples - n_classes


def naive_bayes_log_sum_exp(joint: Any) -> Any:
    """``log(sum(exp(joint)))`` of each row, by the function that ``predict_proba`` of naive Bayes calls.

    Its last bit decides which rows have equal probabilities. It is SciPy's, and scikit-learn's own from 1.8.
    """
    module: Any = importlib.import_module("sklearn.naive_bayes")
    function = module._logsumexp if hasattr(module, "_logsumexp") else module.logsumexp
    return function(joint, axis=1)


def tree_with_nodes(tree: Any, count: int) -> Any:
    """The first nodes of a `Tree` of scikit-learn as a tree, with leaves where it would go on."""
    cls, arguments, state = tree.__reduce__()
    nodes, depth = state["nodes"][:count].copy(), np.zeros(count, dtype=np.intp)
    ends = nodes["left_child"] >= count
    for name, value in (("left_child", -1), ("right_child", -1), ("feature", -2), ("threshold", -2.0)):
        nodes[name][ends] = value
    for i in np.flatnonzero(nodes["left_child"] > 0):  # parents come before their children
        depth[nodes["left_child"][i]] = depth[nodes["right_child"][i]] = depth[i] + 1
    first = cls(*arguments)
    first.__setstate__(
        {
            "max_depth": int(depth.max()),
            "node_count": count,
            "nodes": nodes,
            "values": state["values"][:count],
        }
    )
    return first


def prune_tree(tree: Any) -> None:
    """Prune a grown decision tree by its `ccp_alpha`, as the end of its fit does."""
    tree._prune_tree()


def scores_of_first_trees(forest: Any, X: Any, numbers: Collection[int]) -> dict[int, NDArray[Any]]:
    """``score_samples`` of isolation forests of the first trees of one, by their numbers of trees.

    Reference: sklearn.ensemble.IsolationForest._compute_score_samples (1.7 to 1.9).
    """
    from sklearn.ensemble._iforest import _average_path_length

    X = check_array(X, accept_sparse="csr", dtype=np.float32, ensure_all_finite=False)
    depths: NDArray[Any] = np.zeros(X.shape[0])
    found: dict[int, NDArray[Any]] = {}
    lengths, averages = forest._decision_path_lengths, forest._average_path_length_per_tree
    for n in range(1, max(numbers, default=0) + 1):
        tree, features = forest.estimators_[n - 1], forest.estimators_features_[n - 1]
        seen = X if forest._max_features == X.shape[1] else X[:, features]
        leaves = tree.apply(seen, check_input=False)
        depths += lengths[n - 1][leaves] + averages[n - 1][leaves] - 1.0
        if n in numbers:
            most = n * _average_path_length([forest._max_samples])
            shares = np.divide(depths, most, out=np.ones_like(depths), where=most != 0)
            found[n] = -(2 ** (-shares))
    return found


def output_container(estimator: Any) -> str:
    """The output that ``set_output`` or the configuration names; "default" if neither names one."""
    own = own_output_container(getattr(estimator, "__dict__", {}))
    return own if own is not None else str(sklearn.get_config()["transform_output"])


def own_output_container(attributes: Mapping[str, Any]) -> str | None:
    """The output that ``set_output`` names for an estimator with some attributes; None if it names none."""
    own = attributes.get("_sklearn_output_config", {}).get("transform")
    return None if own is None else str(own)


def unknown_warning(encoder: Any, columns: list[int]) -> str:
    """The warning that a OneHotEncoder gives of unknown categories in some of its columns.

    Reference: sklearn.preprocessing._encoders._BaseEncoder._transform; versions before 1.8 or 1.9 name all
    zeros in any case.
    """
    rare = "infrequent category."
    named = any(rare in str(const) for const in type(encoder)._transform.__code__.co_consts)
    shares = named and encoder.handle_unknown in ("warn", "infrequent_if_exist")
    what = f"the {rare}" if shares else "all zeros"
    return (
        f"Found unknown categories in columns {columns} during transform. These unknown categories will be "
        f"encoded as {what}"
    )


def output_wrapping(cls: type) -> dict[str, Any]:
    """Class arguments that a subclass of a transformer needs so that ``set_output`` works as in the class."""
    wrapped = getattr(cls, "_sklearn_auto_wrap_output_keys", None)
    return {"auto_wrap_output_keys": None} if wrapped == set() else {}


def replace_hstack(cls: Any, join: Callable[[Any, list[Any]], Any]) -> None:
    """Let ``join(self, parts)`` join the outputs of the parts of a ColumnTransformer or FeatureUnion.

    `join` returns the result, or other parts as a list for scikit-learn to join, or None to leave it to
    scikit-learn.
    """
    inner = cls._hstack

    def _hstack(self: Any, Xs: Iterable[Any], **options: Any) -> Any:
        parts = list(Xs)
        joined = join(self, parts)
        if joined is None or isinstance(joined, list):
            return inner(self, parts if joined is None else joined, **options)
        return joined

    cls._hstack = _hstack


def svm_on_rows(estimator: Any, fitted: Any, X: NDArray[Any], gamma: float) -> Any:
    """A model fitted on the kernel matrix of rows X, as one that was fitted on these rows.

    `estimator` is unfitted, with a kernel that scikit-learn computes, and becomes the model. `fitted` has
    ``kernel="precomputed"`` and the same other parameters. `gamma` is the number that the kernel has on these
    rows.
    """
    parameters = estimator.get_params()
    vars(estimator).update({name: value for name, value in vars(fitted).items() if name not in parameters})
    estimator.support_vectors_ = X[fitted.support_]
    estimator.shape_fit_, estimator.n_features_in_ = X.shape, X.shape[1]
    estimator._gamma = gamma
    if not isinstance(X, np.ndarray):
        estimator._sparse = True
        estimator.dual_coef_ = _stored_whole(fitted.dual_coef_)
        estimator._dual_coef_ = _stored_whole(fitted._dual_coef_)
    return estimator


def _stored_whole(dense: NDArray[Any]) -> Any:
    """A matrix as CSR with all entries stored, as libsvm's coefficients are."""
    n_rows, n = dense.shape
    indices, indptr = np.tile(np.arange(n, dtype=np.int32), n_rows), np.arange(n_rows + 1, dtype=np.int32) * n
    return sp.csr_matrix((dense.ravel(), indices, indptr), dense.shape)


def learned_attributes(fitted: Any) -> dict[str, Any]:
    """The attributes of a fitted transformer beside its parameters and its output container."""
    own = {*fitted.get_params(deep=False), "_sklearn_output_config"}
    return {name: value for name, value in vars(fitted).items() if name not in own}


def wrap_output(output: Any, X: Any, transformer: Any) -> Any:
    """The output of a transformer for `X` in the container that ``set_output`` names."""
    return _wrap_data_with_container("transform", output, X, transformer)
