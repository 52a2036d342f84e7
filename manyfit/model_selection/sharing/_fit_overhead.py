"""The time that scikit-learn's fits take beside the fit itself, and how to save it.

scikit-learn reads the signature of a constructor each time that it clones an estimator or asks for its
parameters: a forest does so three times for each tree, which can take a tenth of its fit. It checks the
parameters of a setting in each of its fits. And where a fit calls BLAS and loops of OpenMP in turn, the
threads of each library keep a core busy for a while after each call, and those of the other one wait for it:
on small data such fits take many times as long as on one thread.

Workers of joblib import this module, so that it imports little.
"""

import inspect
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import FunctionType, MappingProxyType
from typing import Any

from sklearn import config_context

from manyfit.introspection.class_names import imported, is_instance

# Those that ensembles grow unless they are given others.
_TREES = tuple(
    f"sklearn.tree.{kind}Tree{task}" for kind in ("Decision", "Extra") for task in ("Classifier", "Regressor")
)
# In each of their iterations they call BLAS and a loop of OpenMP.
_ON_BOTH = (
    "sklearn.linear_model.LogisticRegression",
    "sklearn.linear_model.PoissonRegressor",
    "sklearn.linear_model.GammaRegressor",
    "sklearn.linear_model.TweedieRegressor",
    "sklearn.cluster.KMeans",
)
# Steps before such an estimator that call no BLAS, which would miss its threads.
_WITHOUT_BLAS = (
    "sklearn.preprocessing.StandardScaler",
    "sklearn.preprocessing.MinMaxScaler",
    "sklearn.preprocessing.MaxAbsScaler",
    "sklearn.preprocessing.RobustScaler",
    "sklearn.preprocessing.Normalizer",
    "sklearn.feature_extraction.text.CountVectorizer",
    "sklearn.feature_extraction.text.TfidfVectorizer",
    "sklearn.feature_extraction.text.TfidfTransformer",
)
# Products with a larger X take longer than threads wait for each other.
MOST_BYTES = 2**25


def keep_signatures(things: Iterable[Any]) -> None:
    """Let `inspect.signature` return at once for the constructors of estimators, and of all that they hold.

    `things` are estimators or values of their parameters. A constructor of scikit-learn gets the attribute
    ``__signature__``, for which `inspect.signature` looks first, and keeps it while the process lasts. Other
    constructors may change, and are left as they are.
    """
    for cls in _classes(things):
        _keep(cls)


def _classes(things: Iterable[Any]) -> Iterator[type]:
    """The classes of estimators among values, and of those inside them: each estimator once."""
    left, seen = list(things), dict[int, Any]()
    while left:
        thing = left.pop()
        # Its class says what it is: an attribute may be made by a `__getattr__` that fails.
        is_estimator = hasattr(type(thing), "get_params")
        if id(thing) in seen or not (is_estimator or type(thing) in (list, tuple)):
            continue
        seen[id(thing)] = thing
        if is_estimator:
            yield type(thing)
            left += getattr(thing, "__dict__", {}).values()
        else:
            left += thing


def _keep(cls: type) -> None:
    if not (cls.__module__ or "").startswith("sklearn."):
        return
    constructor = cls.__init__  # type: ignore[misc]
    if isinstance(constructor, FunctionType) and not vars(constructor):
        vars(constructor)["__signature__"] = inspect.signature(constructor)
    if cls.__module__.startswith("sklearn.ensemble."):
        for name in _TREES:
            tree = imported(name)
            if tree is not None:
                _keep(tree)


def skip_parameter_checks(skip: bool) -> AbstractContextManager[None]:
    """Let scikit-learn check no parameters within it if `skip`: a fit with the same ones has checked them."""
    return config_context(skip_parameter_validation=True) if skip else nullcontext()


def uses_blas_and_openmp(estimator: Any, params: Mapping[str, Any] = MappingProxyType({})) -> bool:
    """Whether a fit calls BLAS and OpenMP in turn, and nothing in it that needs many threads of BLAS.

    `params` are a setting, which may put other steps in the place of those of a pipeline.
    """
    from manyfit.introspection.composites import children

    steps = [estimator]
    if type(estimator) is imported("sklearn.pipeline.Pipeline"):
        own = [params.get(child.name, child.estimator) for child in children(estimator)]
        steps = [step for step in own if not (step is None or isinstance(step, str))]
    *before, last = steps or [None]
    known = is_instance(last, *_ON_BOTH) and all(is_instance(step, *_WITHOUT_BLAS) for step in before)
    return known and "steps" not in params


def threads_of_fit(blas_and_openmp: bool, n_bytes: int | None) -> AbstractContextManager[None]:
    """The context of a fit to X of so many bytes: one thread of BLAS if it `uses_blas_and_openmp`.

    The number of threads belongs to the process.
    """
    if not blas_and_openmp or n_bytes is None or n_bytes > MOST_BYTES:
        return nullcontext()
    from manyfit.folds import blas_threads, single_blas_thread

    return single_blas_thread() if blas_threads() > 1 else nullcontext()
