"""The table of drop-in estimators against the cuML that is installed: names, parameters, methods, fits.

What is wrong with a line of the table is said by the test of that line. Fits need a GPU, conversions a
driver; the rest needs cuML only.
"""

from __future__ import annotations

import inspect
import warnings
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest

from manyfit import estimators
from manyfit.arrays import container_kind, container_to_host, is_out_of_memory
from manyfit.estimators._catalog import ESTIMATORS
from manyfit.estimators._factory import WRAPPED_METHODS
from manyfit.estimators._method_call import RECORD
from manyfit.estimators.backends import _cuml as _with_cuml
from manyfit.folds import Unsupported
from manyfit.introspection.class_names import sklearn_class_of
from tests.units.families._samples import NEW, OF_TEXTS, TEXTS, made, sample

if find_spec("cuml") is None:
    pytest.skip("cuML is not installed", allow_module_level=True)

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore"),  # of other projects' imports and fits
]
LINES = {name: line.cuml for name, line in ESTIMATORS.items() if line.cuml is not None}
# What cuML 26.10 refuses of scikit-learn's own defaults, with words of why: when it is fitted, and when made.
REFUSED = {"AgglomerativeClustering": "single linkage"}
REFUSED |= {"TargetEncoder": "random seeds"} if NEW else {}  # scikit-learn 1.9 deprecates its random_state
# Their labels differ where two classes have nearly the same votes or distances.
CLOSE_LABELS = {"SVC", "LinearSVC"}
# cuML's answers for these are of another algorithm, or of another hash: only their shape is compared.
OF_ITS_OWN = {
    "GaussianRandomProjection", "SparseRandomProjection", "HashingVectorizer", "RandomForestClassifier",
    "RandomForestRegressor", "TSNE", "UMAP", "HDBSCAN", "KMeans", "IncrementalPCA", "TruncatedSVD", "PCA",
}  # fmt: skip


def cls_of(name):
    module, _, attribute = LINES[name].path.rpartition(".")
    return getattr(import_module(module), attribute)


def dense(values):
    return values.toarray() if hasattr(values, "toarray") else np.asarray(values)


@pytest.mark.parametrize("name", LINES)
def test_the_class_is_there_and_converts_as_the_table_says(name):
    cls, twin = cls_of(name), sklearn_class_of(getattr(estimators, name))
    theirs = getattr(cls, "_cpu_class_path", "") if hasattr(cls, "from_sklearn") else ""
    twins = theirs and theirs.rpartition(".")[2] == twin.__name__ and theirs.startswith("sklearn.")
    # What scikit-learn's dispatch serves as well need not be converted: it goes first.
    assert bool(twins) == LINES[name].converts or ESTIMATORS[name].dispatch is not None
    if LINES[name].converts:
        assert cls._get_cpu_class() is twin


def test_no_estimator_of_cumls_is_left_out():
    """Estimators that were added to cuML under a name of the table."""
    rooms = {line.path.rpartition(".")[0] for line in LINES.values()}
    known = {name for room in rooms for name in dir(import_module(room))}
    left = {name for name, line in ESTIMATORS.items() if line.cuml is None}
    assert not left & known


@pytest.mark.parametrize("name", LINES)
def test_parameters_arrive(name):
    """Those of the same name have scikit-learn's values, but for what cuML, or we, make of them."""
    estimator, line = made(name), LINES[name]
    if name == "TargetEncoder" and name in REFUSED:
        with pytest.raises(Unsupported, match=REFUSED[name]):
            _with_cuml.make_model(estimator, line)
        return
    model = _with_cuml.make_model(estimator, line)
    changes = line.changes(estimator) if line.changes else {}
    translated = model._params_from_cpu(estimator) if line.converts else {}
    theirs = model.get_params()
    for parameter, value in estimator.get_params(deep=False).items():
        if parameter in changes:
            assert theirs[parameter] == changes[parameter]
        elif parameter in translated:
            assert np.array_equal(theirs[parameter], translated[parameter]), parameter
        elif parameter in theirs and parameter != "verbose" and not line.converts:
            assert value is theirs[parameter] or np.array_equal(theirs[parameter], value), parameter
    assert model.output_type == "input"


@pytest.mark.parametrize("name", LINES)
def test_methods_take_the_rows_by_place_and_the_others_by_name(name):
    cls, twin = cls_of(name), sklearn_class_of(getattr(estimators, name))
    for method in sorted(WRAPPED_METHODS & set(dir(twin)) & set(dir(cls))):
        first, *_ = [
            p for p in inspect.signature(getattr(cls, method)).parameters.values() if p.name != "self"
        ]
        assert first.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD, method
    assert "fit" in dir(cls) or "fit_transform" in dir(cls)


def test_refusals_and_no_memory_are_known_by_type():
    interop, cupy = import_module("cuml.internals.interop"), import_module("cupy")
    assert issubclass(interop.UnsupportedOnGPU, _with_cuml._REFUSALS)
    assert issubclass(interop.UnsupportedOnCPU, _with_cuml._REFUSALS)
    assert is_out_of_memory(cupy.cuda.memory.OutOfMemoryError(1, 1))


def test_containers_are_known_by_their_classes():
    cudf, sparse = import_module("cudf"), import_module("cupyx.scipy.sparse")
    for cls in (cudf.DataFrame, cudf.Series, cudf.Index):
        assert (
            container_kind(object.__new__(cls)) == "frame"
            and callable(cls.to_pandas)
            and callable(cls.to_cupy)
        )
    for form in ("csr", "csc", "coo"):
        cls = getattr(sparse, f"{form}_matrix")
        assert container_kind(object.__new__(cls)) == "sparse" and callable(cls.get)


@pytest.mark.parametrize("kind", ["cupy", "cudf"])
@pytest.mark.parametrize("name", LINES)
def test_fitted_by_cuml_where_the_ledger_says_so(name, kind, monkeypatch):
    """A fit of each on the device, its answers there, and near scikit-learn's where both do the same."""
    monkeypatch.setattr(_with_cuml, "LIBRARIES", ("cupy", "cudf"))
    cupy, cudf = import_module("cupy"), import_module("cudf")
    if not cupy.cuda.is_available():
        pytest.skip("no CUDA device")
    if name in OF_TEXTS and kind == "cupy":
        pytest.skip("CuPy has no texts")
    rows, y = sample(name)
    if name in OF_TEXTS:
        X = cudf.Series(TEXTS)
    else:
        X = cupy.asarray(rows)
        X = X if kind == "cupy" else (cudf.DataFrame if X.ndim == 2 else cudf.Series)(X)
    ours, twin = made(name), made(name, twin=True)
    monkeypatch.setattr("manyfit.estimators.backends.selection.fitter_of", lambda cls: None)
    if kind == "cupy" and not LINES[name].converts and ESTIMATORS[name].dispatch is not None:
        monkeypatch.setattr("manyfit.estimators.backends.array_api.dispatch_of", lambda estimator: None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ours.fit(*(one for one in (X, y) if one is not None))
    if name in REFUSED:
        assert any(REFUSED[name] in str(one.message) for one in caught)
        return
    assert vars(ours)[RECORD].route == "cuml", [str(one.message) for one in caught]
    if name == "UMAP":
        assert ours.embedding_.shape == (len(rows), 2)
        return
    twin.fit(*(one for one in (rows, y) if one is not None))
    for method in ("predict", "transform"):
        if not hasattr(twin, method):
            continue
        found, wanted = container_to_host(getattr(ours, method)(X)), getattr(twin, method)(rows)
        found, wanted = (
            one.toarray() if hasattr(one, "toarray") else np.asarray(one) for one in (found, wanted)
        )
        assert found.size == wanted.size and np.isfinite(found.astype(float)).all()
        if name in CLOSE_LABELS:
            assert np.mean(found == wanted) > 0.9
        elif name not in OF_ITS_OWN and name not in OF_TEXTS:
            np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=1e-2, atol=2e-2)
