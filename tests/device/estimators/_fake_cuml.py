"""Stand-ins for CuPy, cuDF and cuML, which need a GPU: small, and with the interfaces that the bridge uses.

CuPy's arrays are played by array-api-strict's of its second device, which refuse to become NumPy's. Nothing
here says anything of what the real libraries compute.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import array_api_strict
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn.cluster
import sklearn.feature_extraction.text
import sklearn.linear_model
import sklearn.naive_bayes
import sklearn.svm

from manyfit.arrays.transfer import _containers
from tests.behaviour.metrics._crossings import DEVICE, here, there


class DataFrame:
    """A frame of cuDF's."""

    def __init__(self, data: Any) -> None:
        self.frame = data if isinstance(data, pd.DataFrame) else pd.DataFrame(here(data))
        self.columns, self.shape = self.frame.columns, self.frame.shape

    @property
    def dtypes(self) -> Any:
        return self.frame.dtypes

    def to_pandas(self) -> Any:
        return self.frame

    def astype(self, dtype: Any) -> Any:
        return type(self)(self.frame.astype(dtype))

    def isna(self) -> Any:
        return type(self)(self.frame.isna())

    def to_cupy(self, dtype: Any = None) -> Any:
        return there(self.frame.to_numpy(dtype))


class Series(DataFrame):
    def __init__(self, data: Any) -> None:
        self.frame = data if isinstance(data, pd.Series) else pd.Series(here(data))
        self.shape, self.dtype = self.frame.shape, self.frame.dtype


DataFrame.__module__ = Series.__module__ = "cudf.core"


class csr_matrix:
    """A sparse matrix of CuPy's."""

    def __init__(self, host: Any) -> None:
        self.host, self.shape = scipy.sparse.csr_matrix(host), host.shape

    def get(self) -> Any:
        return self.host


csr_matrix.__module__ = "cupyx.scipy.sparse._csr"


output: dict[str, Any] = {"type": None}


@contextmanager
def using_output_type(name: str) -> Iterator[None]:
    """cuML's, for its own answers while a block runs."""
    output["type"] = name
    try:
        yield
    finally:
        output["type"] = None


class UnsupportedOnGPU(ValueError):
    """cuML's, for what it does not serve."""


def home(value: Any) -> Any:
    if isinstance(value, DataFrame):
        return value.to_pandas().to_numpy()
    if isinstance(value, csr_matrix):
        return value.get()
    return here(value) if type(value) is type(array_api_strict.empty(0)) else value


class Model:
    """cuML's estimators: they convert scikit-learn's, and give back what they are given."""

    served: Any
    refused: ClassVar[dict[str, tuple[Any, ...]]] = {}

    def __init__(self, **params: Any) -> None:
        self.params, self.output_type = params, "input"
        self.model: Any = None

    @classmethod
    def from_sklearn(cls, model: Any) -> Any:
        if not isinstance(model, cls.served):
            raise TypeError(f"Expected instance of {cls.served}")
        for name, values in cls.refused.items():
            if getattr(model, name) in values:
                raise UnsupportedOnGPU(f"`{name}={getattr(model, name)!r}` is not supported")
        made = cls(**model.get_params())
        made.output_type = "numpy"
        return made

    def as_sklearn(self) -> Any:
        self.converted = True
        return self.model

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return self.params

    def set_params(self, **params: Any) -> Any:
        self.params |= params
        return self

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        more = {} if sample_weight is None else {"sample_weight": home(sample_weight)}
        self.model = self.served(**self.params).fit(home(X), home(y), **more)
        return self

    def predict(self, X: Any) -> Any:
        return self.given(self.model.predict(home(X)), X)

    def given(self, result: Any, X: Any) -> Any:
        if self.output_type != "input" or output["type"] == "numpy":
            return result
        if result.dtype.kind not in "biuf" and not isinstance(X, np.ndarray):
            raise TypeError("output_type='cupy' doesn't support outputs of dtype object")
        if isinstance(X, DataFrame):
            return (DataFrame if result.ndim == 2 else Series)(there(result))
        return result if isinstance(X, np.ndarray) else there(result)

    def __getattr__(self, name: str) -> Any:
        if not name.endswith("_") or name.startswith("_") or self.__dict__.get("model") is None:
            raise AttributeError(name)
        value = getattr(self.model, name)
        if name == "inertia_":
            raise AttributeError(name)  # cuML has not all of them
        return there(value) if isinstance(value, np.ndarray) and name != "classes_" else value


class Ridge(Model):
    served, refused = sklearn.linear_model.Ridge, {"solver": ("lsqr", "sag"), "positive": (True,)}


class LogisticRegression(Model):
    served = sklearn.linear_model.LogisticRegression

    def predict_proba(self, X: Any) -> Any:
        return self.given(self.model.predict_proba(home(X)), X)


class KMeans(Model):
    served = sklearn.cluster.KMeans

    def fit_predict(self, X: Any, y: Any = None) -> Any:
        return self.given(self.fit(X).model.labels_, X)


class MultinomialNB(Model):
    """One of those that do not convert."""

    served = sklearn.naive_bayes.MultinomialNB
    from_sklearn = as_sklearn = property()  # type: ignore[assignment]

    def __init__(self, *, alpha: float = 1.0) -> None:
        super().__init__(alpha=alpha)


class MinMaxScaler(Model):
    served = sklearn.preprocessing.MinMaxScaler
    from_sklearn = as_sklearn = property()  # type: ignore[assignment]

    def __init__(self, *, feature_range: tuple[int, int] = (0, 1)) -> None:
        super().__init__(feature_range=feature_range)

    def transform(self, X: Any) -> Any:
        if X.shape[1] != self.model.n_features_in_:
            raise ValueError(f"X has {X.shape[1]} features, as cuML says it.")
        return self.given(self.model.transform(home(X)), X)


class HDBSCAN(Model):
    served = None

    def fit(self, X: Any, y: Any = None) -> Any:
        self.n_features_in_ = X.shape[1]
        return self

    def as_sklearn(self) -> Any:
        raise ModuleNotFoundError("No module named 'hdbscan'")


class AgglomerativeClustering(HDBSCAN):
    """With other defaults than scikit-learn's, as cuML's has them."""

    def __init__(self, n_clusters: int = 2, *, linkage: str = "single", connectivity: str = "knn") -> None:
        super().__init__(n_clusters=n_clusters, linkage=linkage, connectivity=connectivity)

    def fit(self, X: Any, y: Any = None) -> Any:
        if self.params["linkage"] != "single":
            raise ValueError("Only single linkage clustering is supported currently")
        return super().fit(X, y)


class LinearSVR(Model):
    """Whose conversion makes an l1 penalty of a loss that is not squared, as cuML's does."""

    served = sklearn.svm.LinearSVR

    @classmethod
    def from_sklearn(cls, model: Any) -> Any:
        return cls(C=model.C, loss=model.loss, penalty="l1", penalized_intercept=False)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        self.model = X
        return self


class CountVectorizer(Model):
    """Of texts in a series of cuDF's, which it calls X, and scikit-learn raw_documents."""

    served = sklearn.feature_extraction.text.CountVectorizer

    def __init__(self, *, dtype: Any = np.float32, binary: bool = False) -> None:
        super().__init__(dtype=dtype, binary=binary)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        self.model = self.served(**self.params)
        return csr_matrix(self.model.fit_transform(X.frame))

    def transform(self, X: Any) -> Any:
        return csr_matrix(self.model.transform(X.frame))


class UMAP(Model):
    def __init__(self, **params: Any) -> None:
        super().__init__(**params)

    def fit(self, X: Any, y: Any = None) -> Any:
        self.model = SimpleNamespace(embedding_=home(X)[:, :2])
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        return self.given(self.fit(X).model.embedding_, X)


def install(monkeypatch: pytest.MonkeyPatch, *, cuml: bool = True) -> None:
    """Put the stand-ins where the bridge looks for the libraries, until the end of the test."""
    empty = lambda n: array_api_strict.empty(n, device=DEVICE)  # noqa: E731
    cuda = SimpleNamespace(Device=lambda: DEVICE)
    modules: dict[str, dict[str, Any]] = {
        "cupy": {"empty": empty, "ndarray": type("ndarray", (), {}), "cuda": cuda},
        "cudf": {"DataFrame": DataFrame, "Series": Series},
        "cupyx": {}, "cupyx.scipy": {}, "cupyx.scipy.sparse": {"csr_matrix": csr_matrix},
    }  # fmt: skip
    if cuml:
        modules |= {
            "cuml": {"using_output_type": using_output_type},
            "cuml.linear_model": {"Ridge": Ridge, "LogisticRegression": LogisticRegression},
            "cuml.cluster": {
                "KMeans": KMeans, "HDBSCAN": HDBSCAN, "AgglomerativeClustering": AgglomerativeClustering,
            },
            "cuml.svm": {"LinearSVR": LinearSVR},
            "cuml.feature_extraction": {},
            "cuml.feature_extraction.text": {"CountVectorizer": CountVectorizer},
            "cuml.naive_bayes": {"MultinomialNB": MultinomialNB},
            "cuml.preprocessing": {"MinMaxScaler": MinMaxScaler},
            "cuml.manifold": {"UMAP": UMAP},
        }  # fmt: skip
    for name, contents in modules.items():
        module = ModuleType(name)
        module.__path__ = []  # type: ignore[attr-defined]
        vars(module).update(contents)
        monkeypatch.setitem(sys.modules, name, module)
    # As if these were CuPy's arrays.
    monkeypatch.setattr(_containers, "library_name", lambda xp: "cupy")
