"""Keys and digests: what differs has another one, whatever its values are."""

from __future__ import annotations

import copy
import functools
import inspect
import itertools
import struct
import types
import warnings
from collections import OrderedDict, defaultdict

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.utils import all_estimators

from manyfit.introspection.object_state import Unkeyable
from manyfit.introspection.structural_key import structural_key
from tests.behaviour.steps import _odd_values as odd


def test_known_estimators_keep_their_parameters():
    kinds = [kind for _, kind in all_estimators() if _has_defaults(kind)]
    assert len(kinds) > 150
    elsewhere, without_key = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of classes that will go
        for kind in kinds:
            estimator = kind()
            state, params = vars(estimator), estimator.get_params(deep=False)
            if not all(name in state and state[name] is value for name, value in params.items()):
                elsewhere.append(kind)
            if structural_key(estimator) != structural_key(clone(estimator)):
                without_key.append(kind)
    assert elsewhere == without_key == []


def _has_defaults(kind):
    return all(one.default is not one.empty for one in inspect.signature(kind).parameters.values())


SHARED_LIST = [1]
LOOP: list[object] = []
LOOP.append(LOOP)
A = np.arange(12.0).reshape(3, 4)

APART = {
    "numbers": [1, 1.0, True, 1 + 0j, np.int64(1), np.longlong(1), np.int32(1), np.float32(1), "1", b"1"],
    "signs": [0.0, -0.0, float("nan"), -float("nan"), 0j, complex(0.0, -0.0), complex(-0.0, 0.0)],
    "subclasses": [odd.Level.LOW, 1, odd.length(1.0, 1.0), odd.length(1.0, 1.0), 1.0],
    "orders": [{1: 1, 2: 2}, {2: 2, 1: 1}, OrderedDict({1: 1, 2: 2}), OrderedDict({2: 2, 1: 1})],
    "containers": [[1, 2], (1, 2), {1, 2}, frozenset((1, 2)), range(1, 3), slice(1, 2), np.array([1, 2])],
    "empty": [[], (), {}, OrderedDict(), defaultdict(), defaultdict(int), set(), "", b"", None, range(0)],
    "ranges": [range(0), range(1, 1), range(0, 4, 3), range(0, 5, 3)],
    "long lists": [[1] * 50, [1.0] * 50, [True] * 50, ["1"] * 50, [1] * 49 + [True]],
    "twice the same": [[SHARED_LIST, SHARED_LIST], [[1], [1]]],
    "holds itself": [LOOP, [[]]],
    "arrays": [
        A, np.asfortranarray(A), A.astype("f4"), A.astype(">f8"), A.reshape(4, 3), np.repeat(A, 2, 0)[::2],
        A.ravel(), A.view(np.matrix), odd.Quantity(A, 1.0), np.ma.array(A), A + 1e-16 * A,
        np.arange(3), np.arange(3, dtype=np.longlong), np.array([[0.0]]), np.array([[-0.0]]), np.array(0.0),
    ],
    "structured": [
        np.zeros(1, [("a", "f8")]), np.zeros(1, [("b", "f8")]), np.zeros(1, [("a", "f4"), ("b", "f4")]),
        np.zeros(1, [(("t", "a"), "f8")]), np.zeros(1, np.dtype([("a", "f8")], align=True)),
        np.zeros(1, "V8"),
        np.zeros(1, [("a", np.dtype("f8", metadata={"k": 1}))]),
    ],
    "times": [
        np.array([1], "M8[s]"), np.array([1], "M8[ms]"), np.array([1], "m8[s]"), np.datetime64(1, "s"),
        np.datetime64(1, "ms"),
    ],
    "objects": [np.array([1, "a"], object), np.array([1.0, "a"], object), np.array([True, "a"], object)],
    "texts": [np.array(["a", "b"]), np.array(["a", "b"], object), np.array(["a", "b"], "U3"),
              np.array(["a", "b"], np.dtypes.StringDType())],
    "dtypes": [np.dtype("f8"), np.dtype(">f8"), np.dtype("q"), np.dtype("l"), np.float64,
               np.dtype("f8", metadata={"k": 1})],
    "sparse": [
        sp.csr_array(A), sp.csc_array(A), sp.coo_array(A), sp.csr_matrix(A), sp.csr_array(2 * A),
        sp.lil_array(A),
        sp.dok_array(A), sp.csr_array(A.astype("f4")), sp.csr_array(A)[:, ::-1],
    ],
    "functions": [
        odd.same_code(1), odd.same_code(1), np.mean, np.exp, functools.partial(np.mean, axis=0),
        functools.partial(np.mean, axis=1), [].append, [].append, Ridge().fit, Ridge(2.0).fit, str.lower, len,
    ],
    "estimators": [
        Ridge(), Ridge(1), Ridge(2.0), make_pipeline(Ridge()), Pipeline([("r", Ridge())]), StandardScaler(),
        StandardScaler().set_output(transform="pandas"), MinMaxScaler(), DummyRegressor(constant=np.ones(1)),
        DummyRegressor(constant=[1.0]), KFold(3), KFold(4), RBF(1.0), RBF(1), RBF(1.0) + WhiteKernel(),
        WhiteKernel() + RBF(1.0), odd.same_name(1), odd.same_name(1), FunctionTransformer(np.exp),
    ],
    "random states": [np.random.RandomState(0), np.random.RandomState(0), np.random.default_rng(0)],
    "frames": [
        pd.DataFrame(A), pd.DataFrame(A, columns=list("abcd")), pd.DataFrame(A, index=range(1, 4)),
        pd.DataFrame(A, index=[0, 1, 2]), pd.DataFrame(A).astype({0: "float32"}),
        pd.DataFrame({"a": ["x", "y"]}), pd.DataFrame({"a": ["x", "y"]}, dtype=object),
        pd.DataFrame({"a": pd.Categorical(["x", "y"])}),
        pd.DataFrame({"a": pd.Categorical(["x", "y"], ordered=True)}), pd.Series([1, 2]), pd.Series([1.0, 2]),
        pd.Series([1, 2], name="a"), pd.Series([1, None]), pd.Series([1, None], dtype="Int64"),
        pd.Series(pd.to_datetime(["2020"])), pd.Series(pd.to_datetime(["2020"], utc=True)), pd.Index([1, 2]),
        pd.MultiIndex.from_tuples([(1, 2)]), pl.DataFrame(A), pl.DataFrame(2 * A), pl.Series([1, 2]),
        pl.Series("a", [1, 2]), pl.Series([1.0, 2]), pl.DataFrame({"a": [1]}).with_columns(b=2),
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", APART)
def test_what_differs_has_another_key(kind):
    things = APART[kind]
    keys = [structural_key(thing) for thing in things]
    same = [
        (things[i], things[j]) for i, j in itertools.combinations(range(len(keys)), 2) if keys[i] == keys[j]
    ]
    assert same == []
    assert [structural_key(thing) for thing in things] == keys


def test_copies_of_known_types_have_the_key_of_the_original():
    frame = pd.DataFrame({"a": [1.0, 2], "b": ["x", "y"]})
    known = [
        {"a": [1, (2.0, None)], "b": {3}}, OrderedDict(a=1), A, np.asfortranarray(A),
        np.array(["a", 1], object), sp.csr_array(A), Ridge(), KFold(3),
        make_pipeline(StandardScaler(), Ridge()),
        RBF(2.0), LOOP,
        functools.partial(np.mean, axis=0), frame, frame["a"], pl.DataFrame(A), np.float32(1), np.dtype("f4"),
        odd.BySign([1, 2]), defaultdict(int, a=1), range(3), slice(1, None), ["a", "b"] * 100, Ridge().fit,
    ]  # fmt: skip
    for thing in known:
        key, other = structural_key(thing), structural_key(copy.deepcopy(thing))
        assert key == other and hash(key) == hash(other)
        if type(thing) is not types.MethodType:
            assert structural_key(thing, by_identity=False) == key


def test_what_is_known_by_identity_only():
    unknown = [
        odd.Config(1.0),
        np.random.RandomState(0),
        odd.Quantity(A, 1.0),
        np.ma.array(A),
        odd.length(1.0, 2.0),
    ]
    for thing in unknown:
        assert structural_key([thing]) == structural_key([thing])
        assert structural_key([thing]) != structural_key([copy.deepcopy(thing)])
        with pytest.raises(Unkeyable):
            structural_key([thing], by_identity=False)


def test_what_has_no_key():
    for thing in (odd.Delegates(1), odd.Slotted(1), odd.Computes(1), odd.ClonesItself(1)):
        with pytest.raises(Unkeyable, match="keeps parameters elsewhere than in its attributes"):
            structural_key([thing])
    deep: list[object] = []
    for _ in range(200):
        deep = [deep]
    with pytest.raises(Unkeyable, match="more than 60 deep"):
        structural_key(deep)


# The property: equal keys stand for what cannot be told apart


def described(thing):
    """Everything that a fit could read of a value, found another way than the keys are."""
    kind = type(thing)
    if kind is float:
        return kind, struct.pack("d", thing)
    if kind in (list, tuple, set, frozenset):
        return kind, [described(item) for item in thing]
    if kind in (dict, OrderedDict):
        return kind, [(described(name), described(value)) for name, value in thing.items()]
    if kind is np.ndarray:
        content = [*map(described, thing.ravel())] if thing.dtype.hasobject else thing.tobytes()
        layout = thing.strides if thing.size and thing.ndim > 1 else ()
        return kind, thing.dtype.str, thing.dtype.descr, thing.shape, layout, content
    if isinstance(thing, np.generic):
        return kind, thing.dtype.str, thing.tobytes()
    if sp.issparse(thing):
        return kind, thing.shape, [described(part) for part in (thing.data, thing.indices, thing.indptr)]
    if kind is pd.DataFrame:
        return kind, [described(thing[name].to_numpy()) for name in thing], repr(thing), str(thing.dtypes)
    if kind is pd.Series:
        return kind, thing.name, described(thing.to_numpy()), repr(thing)
    if kind is pl.DataFrame:
        return kind, repr(thing), thing.schema
    if isinstance(thing, functools.partial):
        return kind, id(thing.func), described(thing.args), described(thing.keywords)
    if isinstance(thing, BaseEstimator):
        return kind, sorted((name, described(value)) for name, value in vars(thing).items())
    return (
        (kind, repr(thing))
        if kind in (int, bool, str, bytes, complex, range, slice, type(None))
        else id(thing)
    )


def _array(numbers, dtype, form):
    X = np.array(numbers, dtype=dtype).reshape(2, 2)
    return {
        "C": X, "F": np.asfortranarray(X), "flat": X.ravel(), "gaps": np.repeat(X, 2, axis=1)[:, ::2],
        "back": X[::-1], "frame": pd.DataFrame(X), "series": pd.Series(X.ravel()), "polars": pl.DataFrame(X),
        "csr": sp.csr_array(X.astype(float)), "csc": sp.csc_array(X.astype(float)),
        "object": X.astype(object), "unit": odd.Quantity(X, 2.0),
    }[form]  # fmt: skip


CALLABLE = st.sampled_from([np.mean, np.exp, len, odd.same_code(1), odd.same_code(1), Ridge])
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(0, 2),
    st.sampled_from([0.0, -0.0, 1.0, 2.0, float("nan"), 0j, 1 + 0j]),
    st.sampled_from(["", "0", "1", "a", b"", b"1", np.str_("1"), np.bytes_(b"1")]),
    st.sampled_from([np.int64(1), np.int32(1), np.longlong(1), np.float64(1), np.float32(1), np.bool_(True)]),
    st.sampled_from([np.datetime64(1, "s"), np.datetime64(1, "ms"), odd.Level.LOW]),
    st.builds(range, st.integers(0, 2), st.integers(0, 2)),
)
HASHED = st.one_of(PLAIN.filter(lambda one: type(one) is not range), st.tuples(st.integers(0, 1)))
ARRAYS = st.builds(
    _array,
    st.lists(st.sampled_from([0.0, -0.0, 1.0]), min_size=4, max_size=4),
    st.sampled_from(["f8", "f4", ">f8", "i8", "q", "?"]),
    st.sampled_from(
        ["C", "F", "flat", "gaps", "back", "frame", "series", "polars", "csr", "csc", "object", "unit"]
    ),
)


def _containers(inner):
    pairs = st.lists(st.tuples(HASHED, inner), max_size=3)
    return st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.lists(HASHED, max_size=3).map(set),
        st.lists(HASHED, max_size=3).map(frozenset),
        pairs.map(dict),
        pairs.map(OrderedDict),
        st.builds(slice, st.integers(0, 1), st.integers(0, 1)),
        st.builds(functools.partial, CALLABLE, inner, axis=inner),
        st.builds(Ridge, alpha=inner),
        st.builds(odd.BySign, inner),
        st.builds(lambda value: make_pipeline(odd.BySign(value), Ridge()), inner),
    )


VALUES = st.recursive(st.one_of(PLAIN, ARRAYS, CALLABLE), _containers, max_leaves=4)
# Half of the pairs have much in common.
PAIRS = st.one_of(st.tuples(VALUES, VALUES), VALUES.map(lambda one: (one, copy.deepcopy(one))))


@pytest.mark.invariant("Equal steps on equal input are fitted once per fold, and only equal ones")
@given(PAIRS)
def test_equal_keys_stand_for_what_cannot_be_told_apart(pair):
    one, other = pair
    if structural_key(one) == structural_key(other):
        assert repr(described(one)) == repr(described(other))
