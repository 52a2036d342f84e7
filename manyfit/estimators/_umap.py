"""UMAP, which scikit-learn does not have: umap-learn fits it on the host."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from manyfit._compat import Interval, StrOptions, validate_parameters
from manyfit.introspection.object_state import keep_arguments

_POSITIVE, _NOT_NEGATIVE = Interval(Real, 0, None, closed="neither"), Interval(Real, 0, None, closed="left")
_SHARE = Interval(Real, 0, 1, closed="both")


class UMAP(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Uniform manifold approximation and projection: nearby rows stay nearby in few dimensions.

    umap-learn fits data on the host, and cuML fits CuPy's and cuDF's data. The parameters are those that both
    have, with their common defaults.

    Parameters
    ----------
    n_neighbors : int, default=15
        Number of neighbours of a row.
    n_components : int, default=2
        Number of dimensions of the embedding.
    metric : str or callable, default="euclidean"
        Distance between rows.
    metric_kwds : dict or None, default=None
        Arguments of the metric.
    n_epochs : int or None, default=None
        Number of optimisation passes; None chooses it by the number of rows.
    learning_rate : float, default=1.0
        Initial step size of the optimisation.
    init : {"spectral", "random"} or ndarray, default="spectral"
        Initial embedding.
    min_dist : float, default=0.1
        Smallest distance between rows in the embedding.
    spread : float, default=1.0
        Scale of the embedding.
    set_op_mix_ratio : float, default=1.0
        Blend of intersection (0) and union (1) of the rows' neighbourhoods.
    local_connectivity : float, default=1.0
        Number of neighbours that every row is connected to.
    repulsion_strength : float, default=1.0
        Weight of rows that are not neighbours.
    negative_sample_rate : int, default=5
        Number of rows drawn that are not neighbours, for each that is.
    a : float or None, default=None
        Parameter of the distance curve of the embedding; None derives it from `min_dist` and `spread`.
    b : float or None, default=None
        Second parameter of the same curve.
    target_n_neighbors : int, default=-1
        Number of neighbours by target; -1 means `n_neighbors`.
    target_metric : str, default="categorical"
        Distance between targets.
    target_weight : float, default=0.5
        Weight of the targets relative to the rows.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers.
    verbose : bool, default=False
        Whether to print progress.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        Embedding of the training rows, on the device of X.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features seen during `fit`, if all are strings.

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
    random_state: Any

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
        keep_arguments(self, locals())

    def fit(self, X: Any, y: Any = None) -> UMAP:
        """Embed the rows of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,), optional
            Targets, which also pull rows together.

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
        try:
            import umap
        except ImportError as error:
            raise ImportError(
                "UMAP needs umap-learn on the host or cuML on a GPU, and umap-learn is not installed. Run "
                "pip install umap-learn, or install cuML and pass a CuPy array or cuDF frame."
            ) from error
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
            Targets, which also pull rows together.

        Returns
        -------
        array of shape (n_samples, n_components)
            The embedding, on the device of X.
        """
        return self.fit(X, y).embedding_

    def transform(self, X: Any) -> Any:
        """Embed other rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        array of shape (n_samples, n_components)
            Result, on the device of X.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        return self._model.transform(X)

    def inverse_transform(self, X: Any) -> Any:
        """Find rows whose embedding would be at given points.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            The points.

        Returns
        -------
        array of shape (n_samples, n_features)
            Result, on the device of X.
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
