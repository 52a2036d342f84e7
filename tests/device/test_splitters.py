"""Splitters of data on a device give scikit-learn's folds, and bring home what they read, once."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import model_selection as theirs
from sklearn.base import clone
from sklearn.linear_model import Ridge

from manyfit import model_selection as ours
from manyfit.arrays import transfers
from manyfit.folds import SPLITTERS, Splits
from manyfit.introspection.class_names import sklearn_class_of
from tests.behaviour.metrics._crossings import DEVICE, here, there

N = 24
rng = np.random.default_rng(0)
X, Y = rng.normal(size=(N, 3)), np.tile([0, 1, 1], N // 3)
GROUPS = np.repeat(np.arange(6), 4)

OPTIONS = {
    "KFold": [{}, {"shuffle": True, "random_state": 1}],
    "StratifiedKFold": [{"n_splits": 3}, {"n_splits": 4, "shuffle": True, "random_state": 1}],
    "GroupKFold": [{"n_splits": 3}],
    "StratifiedGroupKFold": [{"n_splits": 3}],
    "ShuffleSplit": [{"random_state": 1}],
    "StratifiedShuffleSplit": [{"random_state": 1}],
    "GroupShuffleSplit": [{"random_state": 1}],
    "TimeSeriesSplit": [{"gap": 1}],
    "RepeatedKFold": [{"n_repeats": 2, "random_state": 1}],
    "RepeatedStratifiedKFold": [{"n_splits": 3, "n_repeats": 2, "random_state": 1}],
    "LeaveOneOut": [{}],
    "LeavePOut": [{"p": 2}],
    "LeaveOneGroupOut": [{}],
    "LeavePGroupsOut": [{"n_groups": 2}],
    "PredefinedSplit": [{"test_fold": np.repeat([0, 1, -1], 8)}],
}
CASES = [(name, options) for name, several in OPTIONS.items() for options in several]
IDS = [f"{name}-{i}" for name, several in OPTIONS.items() for i in range(len(several))]


def same(found, expected):
    found, expected = list(found), list(expected)
    assert len(found) == len(expected) > 0
    for pair, other in zip(found, expected, strict=True):
        for rows, wanted in zip(pair, other, strict=True):
            assert isinstance(rows, np.ndarray)
            np.testing.assert_array_equal(rows, wanted)


def test_every_splitter_of_scikit_learn_is_there():
    classes = {name for name, value in vars(theirs).items() if hasattr(value, "get_n_splits")}
    assert classes - {"BaseCrossValidator", "BaseShuffleSplit"} == set(SPLITTERS) == set(OPTIONS)


@pytest.mark.invariant("Splits of device data are scikit-learn's and copy y and groups to the host once")
@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_the_folds_are_scikit_learns(name, options):
    own, other = getattr(ours, name)(**options), getattr(theirs, name)(**options)
    groups = GROUPS if "Group" in name else None
    expected = list(other.split(X, Y, groups))
    same(own.split(X, Y, groups), expected)
    on_device = there(X), there(Y), None if groups is None else there(groups)
    with transfers() as crossed:
        same(own.split(*on_device), expected)
        n_splits = own.get_n_splits(X, Y, groups)
    arrays = ("Stratified" in name) + (groups is not None)
    assert crossed.synchronisations == arrays and crossed.bytes_to_host == arrays * N * 8
    assert n_splits == other.get_n_splits(X, Y, groups) == own.get_n_splits(*on_device) == len(expected)
    assert repr(own) == repr(other) and isinstance(own, type(other))
    assert sklearn_class_of(type(own)) is type(other)


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_a_copy_splits_alike(name, options):
    own, groups = getattr(ours, name)(**options), GROUPS if "Group" in name else None
    for copy in (pickle.loads(pickle.dumps(own)), clone(own, safe=False)):
        assert type(copy) is type(own)
        same(copy.split(X, Y, groups), own.split(X, Y, groups))


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_a_search_draws_them_once_whosever_they_are(name, options):
    groups = {"groups": there(GROUPS)} if "Group" in name else {}
    for module in (ours, theirs):
        cv, on_device, labels = getattr(module, name)(**options), there(X), there(Y)
        with transfers() as crossed:
            splits = Splits.draw(cv, on_device, labels, N, groups)
        assert crossed.synchronisations == ("Stratified" in name) + len(groups)
        expected = getattr(theirs, name)(**options).split(X, Y, GROUPS if groups else None)
        same([splits.indices(i) for i in range(splits.n_splits)], expected)


def test_a_splitter_of_the_user_gets_what_the_user_gave():
    class Own(theirs.KFold):
        def split(self, X, y=None, groups=None):
            assert X is given
            return super().split(np.zeros(N))

    given = there(X)
    assert Splits.draw(Own(3), given, None, N, {}).n_splits == 3


def test_searches_take_ours():
    search = ours.GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=ours.KFold(3)).fit(X, Y)
    other = ours.GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=theirs.KFold(3)).fit(X, Y)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"])
    assert search.report_.fits_done == other.report_.fits_done == 0


@pytest.mark.parametrize(
    "options",
    [{}, {"test_size": 5, "random_state": 3}, {"shuffle": False}, {"stratify": Y, "random_state": 0}],
)
def test_train_test_split(options):
    own = {"random_state": 7 if options.get("shuffle", True) else None, **options}
    texts = [str(i) for i in range(N)]
    expected = theirs.train_test_split(X, Y, sp.csr_array(X), texts, **own)
    found = ours.train_test_split(X, Y, sp.csr_array(X), texts, **own)
    for part, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(*(a.toarray() if sp.issparse(a) else a for a in (part, wanted)))
    if "stratify" in own:
        own["stratify"] = there(Y)
    given = there(X), there(Y), sp.csr_array(X), texts
    with transfers() as crossed:
        found = ours.train_test_split(*given, **own)
    assert crossed.bytes_to_device == N * 8  # the indices, once
    assert crossed.bytes_to_host == (N * 8 if "stratify" in own else 0)
    for part, wanted in zip(found[:4], expected[:4], strict=True):
        assert part.device == DEVICE
        np.testing.assert_array_equal(here(part), wanted)
    np.testing.assert_array_equal(found[4].toarray(), expected[4].toarray())
    assert found[6:] == expected[6:]


@pytest.mark.parametrize(
    ("arrays", "options"),
    [
        ((), {}),
        ((X, Y[:5]), {}),
        *(((X, Y[:5]), one) for one in ({"test_size": 0}, {"test_size": 1.5}, {"shuffle": "x"})),
    ],
)
def test_bad_input_of_train_test_split_is_scikit_learns(arrays, options):
    """Options are looked at first."""
    with pytest.raises(ValueError) as expected:
        theirs.train_test_split(*arrays, **options)
    with pytest.raises(ValueError) as found:
        ours.train_test_split(*(there(a) for a in arrays), **options)
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("make", [sp.csc_matrix, sp.coo_array, sp.csr_matrix])
def test_sparse_parts_are_scikit_learns_beside_arrays_on_a_device(make):
    for sides in ((X, make(X)), (make(X), X)):
        expected = theirs.train_test_split(*sides, random_state=0)
        found = ours.train_test_split(*(there(a) if a is X else a for a in sides), random_state=0)
        for part, wanted in zip(found, expected, strict=True):
            if sp.issparse(wanted):
                assert type(part) is type(wanted)
                np.testing.assert_array_equal(part.toarray(), wanted.toarray())


def test_an_array_of_no_dimension_has_no_rows():
    for ask in (lambda a: ours.train_test_split(a), lambda a: list(ours.KFold(2).split(a))):
        with pytest.raises(TypeError, match="Input should have at least 1 dimension"):
            ask(there(np.array(3.0)))
