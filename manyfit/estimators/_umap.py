"""UMAP, which scikit-learn has no twin of: umap-learn's on the host."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from manyfit._compat import Interval, StrOptions, validate_parameters

_POSITIVE, _NOT_NEGATIVE = Interval(Real, 0, None, closed="neither"), Interval(Real, 0, None, closed="left")
_SHARE = Interval(Real, 0, 1, closed="both")


class UMAP(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Uniform manifold approximation and projection: rows near each other stay so in few dimensions.

    By umap-learn on the host and by cuML on CuPy's and cuDF's data. The parameters are those that both have,
    with the defaults that both have.

    Parameters
    ----------
    n_neighbors : int, default=15
        Neighbours that a row's surroundings are known by.
    n_components : int, default=2
        Dimensions of the embedding.
    metric : str or callable, default="euclidean"
        Distance of rows.
    metric_kwds : dict or None, default=None
        Arguments of the metric.
    n_epochs : int or None, default=None
        Passes of the optimisation; None: by the number of rows.
    learning_rate : float, default=1.0
        Of the optimisation, at its start.
    init : {"spectral", "random"} or ndarray, default="spectral"
        Where the embedding starts.
    min_dist : float, default=0.1
        Least distance of rows in the embedding.
    spread : float, default=1.0
        Scale of the embedding.
    set_op_mix_ratio : float, default=1.0
        From intersection (0) to union (1) of the rows' surroundings.
    local_connectivity : float, default=1.0
        Neighbours that every row is taken to be connected with.
    repulsion_strength : float, default=1.0
        Weight of rows that are not near each other.
    negative_sample_rate : int, default=5
        Such rows drawn for each that is near.
    a : float or None, default=None
        Of the curve of distances in the embedding; None: from `min_dist` and `spread`.
    b : float or None, default=None
        As `a`.
    target_n_neighbors : int, default=-1
        Neighbours of targets; -1: `n_neighbors`.
    target_metric : str, default="categorical"
        Distance of targets.
    target_weight : float, default=0.5
        Weight of targets beside rows.
    random_state : int, RandomState instance or None, default=None
        Seed.
    verbose : bool, default=False
        Whether progress is printed.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        Where X lies.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features seen during `fit`, where all are strings.

    References
    ----------
    L. McInnes, J. Healy, J. Melville, UMAP: Uniform Manifold Approximation and Projection for Dimension
    Reduction, arXiv:1802.03426, 2018.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [Interval(Integral, 2, None, closed="left")],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "metric": [str, callable],
        "metric_kwds": [dict, None],
        "n_epochs": [Interval(Integral, 0, None, closed="left"), None],
        "learning_rate": [_POSITIVE],
        "init": [StrOptions({"spectral", "random", "pca", "tswspectral"}), "array-like"],
        "min_dist": [_NOT_NEGATIVE],
        "spread": [_POSITIVE],
        "set_op_mix_ratio": [_SHARE],
        "local_connectivity": [_NOT_NEGATIVE],
        "repulsion_strength": [_NOT_NEGATIVE],
        "negative_sample_rate": [Interval(Integral, 0, None, closed="left")],
        "a": [Real, None],
        "b": [Real, None],
        "target_n_neighbors": [Interval(Integral, -1, None, closed="left")],
        "target_metric": [str, callable],
        "target_weight": [_SHARE],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_neighbors: int = 15,
        n_components: int = 2,
        metric: Any = "euclidean",
        metric_kwds: dict[str, Any] | None = None,
        n_epochs: int | None = None,
        learning_rate: float = 1.0,
        init: Any = "spectral",
        min_dist: float = 0.1,
        spread: float = 1.0,
        set_op_mix_ratio: float = 1.0,
        local_connectivity: float = 1.0,
        repulsion_strength: float = 1.0,
        negative_sample_rate: int = 5,
        a: float | None = None,
        b: float | None = None,
        target_n_neighbors: int = -1,
        target_metric: str = "categorical",
        target_weight: float = 0.5,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.n_components = n_components
        self.metric = metric
        self.metric_kwds = metric_kwds
        self.n_epochs = n_epochs
        self.learning_rate = learning_rate
        self.init = init
        self.min_dist = min_dist
        self.spread = spread
        self.set_op_mix_ratio = set_op_mix_ratio
        self.local_connectivity = local_connectivity
        self.repulsion_strength = repulsion_strength
        self.negative_sample_rate = negative_sample_rate
        self.a = a
        self.b = b
        self.target_n_neighbors = target_n_neighbors
        self.target_metric = target_metric
        self.target_weight = target_weight
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> UMAP:
        """Embed the rows of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,), optional
            Targets that bring rows together too.

        Returns
        -------
        UMAP
            This estimator.

        Raises
        ------
        ImportError
            On the host, if umap-learn is not installed.
        """
        validate_parameters(self)
        umap = _umap_learn()
        X = validate_data(self, X, accept_sparse="csr", ensure_min_samples=2)
        self._model = umap.UMAP(**self.get_params(deep=False)).fit(X, y)
        self.embedding_ = self._model.embedding_
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Embed the rows of X and return the embedding.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,), optional
            Targets that bring rows together too.

        Returns
        -------
        array of shape (n_samples, n_components)
            The embedding, where X lies.
        """
        return self.fit(X, y).embedding_

    def transform(self, X: Any) -> Any:
        """Place other rows in the embedding.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        array of shape (n_samples, n_components)
            Where X lies.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        return self._model.transform(X)

    def inverse_transform(self, X: Any) -> Any:
        """Find rows that would be placed at points of the embedding.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            The points.

        Returns
        -------
        array of shape (n_samples, n_features)
            Where X lies.
        """
        check_is_fitted(self)
        return self._model.inverse_transform(X)

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = self.random_state is None
        return tags


def _umap_learn() -> Any:
    try:
        import umap
    except ImportError as error:
        raise ImportError(
            "UMAP works by umap-learn on the host and by cuML on a GPU. umap-learn is not installed: "
            "pip install umap-learn, or pass a CuPy array or cuDF frame where cuML is installed."
        ) from error
    return umap
