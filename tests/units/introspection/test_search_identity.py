"""What a search depends on: told apart by content, the same in every process, and never what is drawn."""

from __future__ import annotations

import copy
import functools
import json
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import array_api_strict
import cloudpickle
import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    BaggingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import SelectKBest, mutual_info_classif
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.metrics import make_scorer, silhouette_score
from sklearn.model_selection import KFold, ShuffleSplit, TimeSeriesSplit
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC, LinearSVR
from sklearn.tree import DecisionTreeClassifier

from manyfit.folds import Splits
from manyfit.introspection.randomness import Sizes, find_random_parameter, is_deterministic
from manyfit.introspection.stable_digest import Digester, Unkeyable
from tests.behaviour.steps import _odd_values as odd
from tests.units.introspection.test_structural_key import APART

RNG = np.random.default_rng(0)
A = RNG.normal(size=(6, 4))


def digest(thing):
    return Digester()(thing)


def scored(by):
    return lambda estimator, X, y: by


def made(name, body):
    """A function or class of a script, which no import finds."""
    space = {"__name__": "__main__", "np": np}
    exec(body, space)
    return space[name]


# What the content of things tells apart, beside what tells the keys of things apart.
TOLD_APART = {
    **{
        kind: APART[kind]
        for kind in (
            "numbers", "orders", "containers", "empty", "ranges", "long lists", "structured", "times",
            "objects", "texts", "dtypes", "frames",
        )
    },
    "sets": [{0, 8}, {8, 0}],
    "nested": [{1: 2}, [2, 1], [[1], 2], [1, [2]]],
    "subclasses": [odd.length(1.0, 1.0), odd.length(1.0, 2.0), 1.0, odd.Level.LOW, 1],
    "units": [odd.Quantity(A, 1.0), odd.Quantity(A, 2.0), odd.Forgetful(A, 1.0), odd.Forgetful(A, 2.0), A],
    "masks": [np.ma.array(A, mask=False), np.ma.array(A, mask=A > 0), np.ma.array(A, mask=A > 1)],
    "attributes of functions": [odd.with_attribute(1), odd.with_attribute(2)],
    "frames with more": [odd.with_attrs({}), odd.with_attrs({"a": 1}), odd.with_attrs({"a": 2})],
    "closures": [odd.same_code(1), odd.same_code(2), odd.same_name(1), odd.same_name(2)],
    "integers": [10**5000, 10**5000 + 1],
    "arrays": [
        A, A.T, A.astype(np.float32), np.asfortranarray(A), A[::2], A + 1e-16 * A, A.reshape(4, 6),
        A.tolist(),
    ],
    "sparse": [
        sp.csr_array(A), sp.csc_array(A), sp.coo_array(A), sp.csr_matrix(A), sp.csr_array(2 * A),
        sp.lil_array(A),
    ],
    "estimators": [
        Ridge(), Ridge(alpha=1), Ridge(alpha=2.0), make_pipeline(Ridge()),
        make_pipeline(StandardScaler(), Ridge()),
        Pipeline([("r", Ridge())]), StandardScaler(), StandardScaler().set_output(transform="pandas"),
        FrozenEstimator(Ridge().fit(A, A[:, 0])), FrozenEstimator(Ridge().fit(A, A[:, 1])),
        SelectKBest(), SelectKBest(mutual_info_classif), FunctionTransformer(np.log),
        FunctionTransformer(np.exp),
    ],
    "functions": [
        np.mean, np.median, len, str.lower, str.upper, np.exp, np.log, functools.partial(np.mean, axis=0),
        functools.partial(np.mean, axis=1), scored(1), scored(2), scored(1.0), lambda x: x, lambda y: y,
        lambda x: -x,
        [].append, [1].append, "a".join, Ridge().fit, Ridge(alpha=2).fit, made("f", "def f(x): return x + 1"),
        made("f", "def f(x): return x + 2"), made("f", "c = 1\ndef f(x): return x + c"),
        made("f", "c = 2\ndef f(x): return x + c"), made("f", "def g(x): return 1\ndef f(x): return g(x)"),
        made("f", "def g(x): return 2\ndef f(x): return g(x)"), made("f", "def f(x, k=1): return x"),
        made("f", "def f(x, *, k=1): return x"), made("f", "def f(x): return [x + y for y in (1,)]"),
        made("f", "def f(x): return [x + y for y in (2,)]"),
    ],
    "classes": [
        Ridge, SVC, made("C", "class C:\n def f(self): return 1"),
        made("C", "class C:\n def f(self): return 2"),
        made("C", "class C:\n k = 1"), made("C", "class C(dict):\n k = 1"),
        made("C", "class C:\n @property\n def f(self): return 1"),
        made("C", "class C:\n @staticmethod\n def f(self): return 1"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", TOLD_APART)
def test_what_differs_is_told_apart_and_what_is_equal_is_not(kind):
    things = TOLD_APART[kind]
    found = [digest(thing) for thing in things]
    assert len(set(found)) == len(things)
    # Copies of these are themselves, lie otherwise in memory, or have another form.
    if kind not in ("functions", "arrays", "dtypes", "frames"):
        assert [digest(copy.deepcopy(thing)) for thing in things] == found
    # The place of a thing in another one does not matter.
    assert digest([things[0], things[0]]) == digest([things[0], copy.copy(things[0])])


def test_a_memory_map_is_the_array_that_it_maps(tmp_path):
    np.save(tmp_path / "a.npy", A)
    assert digest(np.load(tmp_path / "a.npy", mmap_mode="r")) == digest(A)


def test_a_frame_that_was_read_is_the_same_frame():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # slowly made, in many blocks
        frame = pd.DataFrame({"a": [1.0, 2.0]})
        for j in range(120):
            frame[f"b{j}"] = [j, 2.0]
    before = digest(frame)
    frame.to_numpy(), frame.T, frame.sum(), frame["a"], frame.loc[0], frame.copy()
    assert digest(frame) == before == digest(frame.copy()) != digest(frame[::-1])
    for one in (*APART["frames"][:9], *APART["frames"][-6:]):
        assert digest(copy.deepcopy(one)) == digest(one)


def test_what_a_thing_keeps_beside_its_content_does_not_matter(tmp_path):
    index = pd.RangeIndex(3)
    before = digest(index)
    index.is_unique, index.get_indexer([1])
    assert vars(index)["_cache"] and digest(index) == before
    memory = [Pipeline([("r", Ridge())], memory=joblib.Memory(tmp_path, verbose=0)) for _ in "ab"]
    memory[1].memory.timestamp += 5.0
    assert digest(memory[0]) == digest(memory[1])


def test_use_of_a_class_does_not_change_it():
    body = "from sklearn.base import BaseEstimator as B\nclass C(B):\n def fit(self, X): return self"
    cls = made("C", body)
    before = digest(cls)
    cloudpickle.dumps(cls()), clone(cls()), repr(cls()), cls().fit(A), cls().get_params()
    assert "__slotnames__" in vars(cls) and digest(cls) == before


def test_an_array_of_another_library_counts_with_its_kind():
    strict = array_api_strict.asarray(A)
    assert digest(strict) == digest(array_api_strict.asarray(A.copy())) != digest(A)
    assert digest(strict) != digest(array_api_strict.asarray(A + 1))


def test_things_that_hold_themselves():
    loop = [1]
    loop.append(loop)
    other = [2]
    other.append(other)
    assert digest(loop) != digest(other) and digest(loop) == digest(loop)


def test_parameters_that_are_no_attributes_count():
    things = odd.Delegates(1), odd.Delegates(2), odd.Computes(1), odd.Computes(2)
    assert len({digest(thing) for thing in things}) == 4


def test_order_of_attributes_and_of_sets_does_not_matter():
    one, two = BaseEstimator(), BaseEstimator()
    one.a, one.b = 1, 2
    two.b, two.a = 2, 1
    assert digest(one) == digest(two)
    assert digest(set("abcdefgh")) == digest(set("hgfedcba"))


@pytest.mark.parametrize(
    "thing", [threading.Lock(), (x for x in "a"), memoryview(b"a"), np.frompyfunc(len, 1, 1)]
)
def test_what_has_no_content(thing):
    with pytest.raises(Unkeyable):
        digest({"inside": [thing]})


def test_callbacks_and_owners_of_requests_do_not_matter():
    plain, followed = Ridge(), Ridge()
    followed._skl_callbacks = [threading.Lock()]
    assert digest(plain) == digest(followed)


STABLE = """
import json, sys
sys.path.insert(0, {root!r})
import numpy as np
from tests.units.introspection import test_search_identity as here
local = {{kind: [here.digest(thing) for thing in things] for kind, things in here.TOLD_APART.items()}}

class Mine(here.BaseEstimator):
    FACTORS = frozenset("abc")

    def __init__(self, a=1, words=("x", "y")):
        self.a, self.words = a, words

    def fit(self, X, y=None):
        self.n_ = len({{"p", "q", "r"}} & self.FACTORS) + here.A.shape[0] * len(helper(X))
        return self

    def __sklearn_tags__(self):
        return super().__sklearn_tags__()

def helper(X):
    return [x for x in X if x in {{"u", "v", "w"}}]

local["mine"] = [here.digest(Mine()), here.digest(Mine), here.digest(lambda e, X, y: helper(X))]
local["scorer"] = [here.digest(here.make_scorer(one)) for one in (helper, here.silhouette_score)]
print(json.dumps(local))
"""


def in_a_process(seed):
    code = STABLE.format(root=str(Path(__file__).parents[2]))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, check=True, timeout=200,
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.mark.invariant("A checkpoint serves its own search and no other")
@pytest.mark.thorough
def test_digests_are_the_same_in_every_process():
    first, second = in_a_process("1"), in_a_process("2")
    assert first == second
    assert first["arrays"] == [digest(thing) for thing in TOLD_APART["arrays"]]


# Folds


def test_folds_by_content():
    X = np.zeros((20, 2))

    def content(cv):
        return digest(Splits.draw(cv, X, None, 20, {}).content)

    splitters = [
        KFold(4), KFold(5), KFold(4, shuffle=True, random_state=0), KFold(4, shuffle=True, random_state=1),
        ShuffleSplit(4, random_state=0), ShuffleSplit(4, random_state=1),
    ]  # fmt: skip
    assert len({content(cv) for cv in splitters}) == len(splitters)
    assert [content(cv) for cv in splitters] == [content(cv) for cv in splitters]


@pytest.mark.parametrize(
    "cv", [KFold(3), KFold(3, shuffle=True, random_state=0), ShuffleSplit(2, train_size=7, random_state=0)]
)
def test_sizes_of_training_sets(cv):
    X = np.zeros((20, 2))
    drawn = list(cv.split(X))
    masks = [(np.isin(np.arange(20), train), test) for train, test in drawn]
    expected = {len(train) for train, _ in drawn}
    assert Splits.draw(cv, X, None, 20, {}).train_sizes == expected == Splits.given(masks, 20).train_sizes


# What is drawn

BOOSTED = HistGradientBoostingClassifier
DRAWN = [
    (Ridge(), None),
    (Ridge(solver="saga"), "random_state"),
    (Ridge(solver="saga", random_state=0), None),
    (Ridge(solver="saga", random_state=np.int64(0)), None),
    (Ridge(solver="saga", random_state=np.random.RandomState(0)), "random_state"),
    (LogisticRegression(), None),
    (LogisticRegression(solver="liblinear"), "random_state"),
    (SVC(), None),
    (SVC(probability=True), "random_state"),
    (LinearSVC(), "random_state"),
    (LinearSVC(dual=False), None),
    (LinearSVC(dual=False, penalty="l1"), "random_state"),
    (LinearSVC(dual=False, multi_class="crammer_singer"), "random_state"),
    (LinearSVR(dual=False, loss="squared_epsilon_insensitive"), None),
    (DecisionTreeClassifier(), "random_state"),
    (RandomForestClassifier(), "random_state"),
    (RandomForestClassifier(random_state=3), None),
    (BaggingClassifier(DecisionTreeClassifier(), random_state=3), None),
    (SGDClassifier(), "random_state"),
    (DummyClassifier(), None),
    (DummyClassifier(strategy="stratified"), "random_state"),
    (GaussianProcessRegressor(), None),
    (GaussianProcessRegressor(n_restarts_optimizer=1), "random_state"),
    (BOOSTED(), None),
    (BOOSTED(early_stopping=False), None),
    (BOOSTED(early_stopping=True), "random_state"),
    (BOOSTED(max_features=0.5), "random_state"),
    (make_pipeline(StandardScaler(), SVC(probability=True)), "svc__random_state"),
    (
        make_pipeline(make_union(StandardScaler(), PCA(svd_solver="randomized"))),
        "featureunion__pca__random_state",
    ),
    (VotingClassifier([("a", SVC()), ("b", SGDClassifier())]), "b__random_state"),
    (CalibratedClassifierCV(SVC(probability=True)), "estimator__random_state"),
    (CalibratedClassifierCV(SVC(), cv=KFold(shuffle=True)), "cv__random_state"),
    (SelectKBest(mutual_info_classif), "score_func"),
    (SelectKBest(functools.partial(mutual_info_classif, random_state=0)), None),
    (FunctionTransformer(np.random.RandomState(0).permutation), "func"),
    (FunctionTransformer(kw_args={"random_state": None}), "kw_args__random_state"),
    (FrozenEstimator(RandomForestClassifier()), None),
    (KFold(), None),
    (TimeSeriesSplit(), None),
    (KFold(shuffle=True), "random_state"),
    (ShuffleSplit(), "random_state"),
    ([SVC(), SVC(probability=True)], "random_state"),
]


@pytest.mark.parametrize(
    ("thing", "name"), DRAWN, ids=lambda v: str(v).replace("\n", "")[:60].partition(" at 0x")[0]
)
def test_the_parameter_that_is_drawn_from_is_named(thing, name):
    sizes = Sizes(100, 5)
    found = find_random_parameter(thing, "", sizes)
    assert (found and found.name) == name
    # The same verdict by another route.
    if not isinstance(thing, list):
        assert (is_deterministic(thing, sizes) is True) == (found is None)


@pytest.mark.parametrize(
    ("steps", "shape", "drawn"),
    [
        ([PCA(2)], (400, 100), False),
        ([PCA(2)], (600, 100), True),
        ([StandardScaler(), MinMaxScaler(), PCA(2)], (400, 100), False),
        ([StandardScaler(), PCA(2)], (600, 100), True),
        ([StandardScaler(), PCA(2)], (2000, 100), False),
        ([SelectKBest(), PCA(2)], (400, 100), True),  # it is not known how many columns it is given
        ([PCA(0.9), PCA(2, svd_solver="full")], (600, 100), False),
    ],
)
def test_a_solver_that_depends_on_the_shape(steps, shape, drawn):
    assert (find_random_parameter(make_pipeline(*steps), "", Sizes(*shape)) is not None) is drawn
    assert (
        find_random_parameter(make_pipeline(BOOSTED()), "", Sizes(10_001, 3)).name
        == "histgradientboostingclassifier__random_state"
    )


def test_l1_machines_do_draw():
    """The rule is about what liblinear does, not what its documentation says."""
    X = np.random.default_rng(0).normal(size=(200, 30))
    y = (X[:, :5].sum(axis=1) > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it does not converge

        def fitted(seed, **params):
            return LinearSVC(dual=False, max_iter=2, random_state=seed, **params).fit(X, y).coef_

        assert np.array_equal(fitted(0), fitted(1))
        assert not np.array_equal(fitted(0, penalty="l1"), fitted(1, penalty="l1"))


def test_scores_that_draw():
    assert find_random_parameter(make_scorer(silhouette_score)) is None
    with_sample = functools.partial(silhouette_score, sample_size=10)
    assert find_random_parameter(make_scorer(with_sample)).name.endswith("random_state")
    assert find_random_parameter(make_scorer(functools.partial(with_sample, random_state=0))) is None
