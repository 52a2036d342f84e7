"""Steps that see one row at a time: applied to all rows once, they give the rows that a split's own would."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.model_selection as theirs
from joblib import parallel_config
from sklearn.base import clone
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    PolynomialFeatures,
    StandardScaler,
)

from manyfit._compat import safe_indexing
from manyfit.folds import Splits
from manyfit.model_selection import GridSearchCV, RandomizedSearchCV
from manyfit.model_selection.job import _rowwise_prefix as _front
from manyfit.model_selection.job._rowwise_prefix import (
    RowwiseOutputs,
    RowwisePrefix,
    count_rowwise_steps,
    is_rowwise,
    saves_work,
)
from tests._covering import covering, spread

rng = np.random.default_rng(0)
WORDS = [f"word{number}" for number in range(60)]


class Counting(HashingVectorizer):
    """Counts the texts that it hashes."""

    rows = 0

    def transform(self, X):
        """Count and hash."""
        Counting.rows += len(X)
        return super().transform(X)


@pytest.fixture(autouse=True)
def _counting(monkeypatch):
    """The class is one of those that are known, for the test."""
    monkeypatch.setitem(_front._OBJECT_STEPS, Counting, _front._own_analyzer)
    monkeypatch.setattr(Counting, "rows", 0)


def _texts(n=60):
    texts = [" ".join(rng.choice(WORDS, size=rng.integers(0, 12))) for _ in range(n)]
    return texts, np.array([("word1" in text) + ("word2" in text) for text in texts])


def _pipeline(*steps, **params):
    return make_pipeline(Counting(n_features=2**10, alternate_sign=False, **params), *steps)


def _splits(cv, n):
    return Splits.given(cv.split(np.zeros(n)), n)


# ------------------------------------------------------------------------------------------ the rows


DICTS = [{WORDS[j]: float(j) for j in rng.integers(0, 60, size=4)} for _ in range(50)]
PAIRS = [[(WORDS[j], 0.5), (WORDS[j], 1.25), ("x", -0.1)] for j in rng.integers(0, 60, size=50)]
TEXTS = _texts(50)[0]
DENSE = rng.normal(size=(50, 7))
CASES = [
    (HashingVectorizer(), TEXTS),
    (HashingVectorizer(n_features=8, norm="l1", ngram_range=(1, 3)), tuple(TEXTS)),
    (HashingVectorizer(analyzer="char_wb", norm=None, dtype=np.float32), np.array(TEXTS)),
    (HashingVectorizer(stop_words="english", binary=True), np.array(TEXTS, dtype=object)),
    (HashingVectorizer(strip_accents="unicode"), pd.Series(TEXTS, index=range(50, 0, -1))),
    (FeatureHasher(n_features=16), DICTS),
    (FeatureHasher(n_features=16, input_type="pair", alternate_sign=False), PAIRS),
    (Normalizer(), DENSE),
    (Normalizer("l1"), DENSE.astype(np.float32)),
    (Normalizer("max"), sp.csr_matrix(np.where(DENSE > 0, DENSE, 0.0))),
    (Normalizer(), sp.csr_array(np.where(DENSE > 0, DENSE, 0.0))),
    (Binarizer(threshold=0.3), DENSE),
    (Binarizer(), np.arange(100).reshape(50, 2)),
    (PolynomialFeatures(), DENSE),
    (PolynomialFeatures((2, 3), include_bias=False), DENSE.astype(np.float32)),
    (PolynomialFeatures(3, interaction_only=True), np.arange(150).reshape(50, 3)),
    (PolynomialFeatures(0), DENSE),
    (PolynomialFeatures(2), sp.csr_matrix(np.where(DENSE > 0, DENSE, 0.0))),
    (PolynomialFeatures(3, interaction_only=True), sp.csr_array(np.where(DENSE > 0, DENSE, 0.0))),
    (PolynomialFeatures(4, include_bias=False), sp.csr_array(np.where(DENSE > 0, DENSE, 0.0)[:, :3])),
]


@pytest.mark.cases(7)
@pytest.mark.invariant("A row-wise step runs once per row of a search and gives each split its own bits")
@pytest.mark.parametrize(
    ("step", "X", "index"),
    covering(
        CASES,
        {
            "all": np.arange(50),
            "some": np.arange(3, 41),
            "one": np.array([7]),
            "in any order": rng.permutation(50)[:20],
            "repeated": np.array([-1, 0, 0, 3, -50]),
            "a mask": np.arange(50) % 3 == 0,
        }.items(),
        strength=1,
    ),
)
def test_rows_are_bit_for_bit_those_of_the_split(step, X, index):
    rowwise = RowwiseOutputs(X, _splits(KFold(3), 50), 2**20)
    whole = rowwise.all_rows(RowwisePrefix().then(step))
    got, rows = safe_indexing(whole, index), safe_indexing(X, index)
    expected = clone(step).fit_transform(rows)
    assert type(got) is type(expected)
    assert got.shape == expected.shape
    if sp.issparse(got):
        assert got.format == expected.format
        pieces = ("data", "indices", "indptr")
    else:
        assert got.flags.c_contiguous == expected.flags.c_contiguous
        got, expected = {"data": got}, {"data": expected}
        pieces = ("data",)
    for piece in pieces:
        ours, same = ((x[piece] if isinstance(x, dict) else getattr(x, piece)) for x in (got, expected))
        assert ours.dtype == same.dtype
        assert np.asarray(ours).tobytes() == np.asarray(same).tobytes()
    assert rowwise.fits == 1


def test_one_step_behind_another():
    rowwise, other = (RowwiseOutputs(TEXTS, _splits(KFold(3), 50), 2**20) for _ in range(2))
    front = RowwisePrefix().then(HashingVectorizer(n_features=16, norm=None)).then(Normalizer("l1"))
    assert other.all_rows(front) is None  # what is before it was not made
    rowwise.prepare_setting(make_pipeline(*map(clone, front.steps), Ridge()), {})
    expected = make_pipeline(*map(clone, front.steps)).fit_transform(TEXTS)
    kept = pickle.loads(pickle.dumps(rowwise))
    assert kept.X is None
    assert (kept._made_outputs[front.key] != expected).nnz == 0
    assert kept.all_rows(RowwisePrefix().then(HashingVectorizer())) is None  # and makes no more


@pytest.mark.parametrize(
    "step",
    [
        HashingVectorizer(tokenizer=str.split),
        HashingVectorizer(analyzer=str.split),
        HashingVectorizer(preprocessor=str.lower),
        HashingVectorizer(input="filename"),
        FeatureHasher(input_type="string"),
        CountVectorizer(),
        FunctionTransformer(lambda X: X - X.mean()),
        StandardScaler(),
        PolynomialFeatures(order="F"),
        TfidfTransformer(),
        type("Own", (HashingVectorizer,), {})(),
    ],
)
def test_of_these_it_is_not_known(step):
    assert not is_rowwise(step)
    assert RowwisePrefix().then(step) is None


@pytest.mark.parametrize(
    ("step", "X"),
    [
        (HashingVectorizer(), pd.DataFrame({"text": TEXTS})),
        (HashingVectorizer(), np.array(TEXTS)[:, None]),
        (Normalizer(), pd.DataFrame(DENSE)),
        (Normalizer(), np.asfortranarray(DENSE)),
        (Normalizer(), DENSE.tolist()),
        (Normalizer(), sp.csc_matrix(DENSE)),
        (Normalizer().set_output(transform="pandas"), DENSE),  # with the index of a frame of its own
        (Binarizer(), np.where(DENSE > 2, np.nan, DENSE)),  # which it refuses
        (HashingVectorizer(), [*TEXTS[:-1], None]),
        (HashingVectorizer(n_features=-1), TEXTS),
    ],
)
def test_these_are_left_to_each_split(step, X):
    assert RowwiseOutputs(X, _splits(KFold(3), 50), 2**20).all_rows(RowwisePrefix().then(step)) is None


def test_what_is_too_large_or_does_not_pay_is_left_to_each_split():
    step = RowwisePrefix().then(HashingVectorizer(n_features=2**10))
    size = sum(x.nbytes for x in vars(HashingVectorizer(n_features=2**10).transform(TEXTS)).values()
               if isinstance(x, np.ndarray))  # fmt: skip
    assert RowwiseOutputs(TEXTS, _splits(KFold(3), 50), size // 2).all_rows(step) is None
    few = _splits(ShuffleSplit(2, train_size=10, test_size=5, random_state=0), 50)
    assert not saves_work(few)
    assert RowwiseOutputs(TEXTS, few, 2**20).all_rows(step) is None
    masks = Splits.given([(np.arange(50) < 40, np.arange(50) >= 40)] * 2, 50)
    assert saves_work(masks)
    assert count_rowwise_steps([HashingVectorizer(), Normalizer(), TfidfTransformer()], TEXTS) == 2
    assert count_rowwise_steps([Normalizer(), HashingVectorizer()], DENSE) == 1


# ------------------------------------------------------------------------------------------ searches


def _same(ours, reference, X, y, tol=0.0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours.fit(X, y)
        reference.fit(X, y)
    for name, values in reference.cv_results_.items():
        if name.endswith("_score"):
            np.testing.assert_allclose(ours.cv_results_[name], values, rtol=0, atol=tol)


@pytest.mark.invariant("A row-wise step runs once per row of a search and gives each split its own bits")
@pytest.mark.parametrize(("n_jobs", "container"), spread([(None, list), (None, pd.Series), (2, np.array)], 1))
def test_every_text_is_hashed_once_for_each_way_to_hash(n_jobs, container):
    X, y = _texts()
    X = container(X)
    params = {"counting__ngram_range": [(1, 1), (1, 2)], "multinomialnb__alpha": [0.1, 1.0, 10.0]}
    options = {"n_iter": 5, "random_state": 0, "return_train_score": True, "refit": False}
    pipeline = _pipeline(TfidfTransformer(), MultinomialNB())
    ours = RandomizedSearchCV(pipeline, params, n_jobs=n_jobs, **options)
    assert "Counting on all rows at once" in str(ours.plan(X, y))
    assert ">Counting</td>" in ours.plan(X, y)._repr_html_()
    assert Counting.rows == 0
    with parallel_config(backend="threading"), warnings.catch_warnings():  # threads, where they are counted
        warnings.simplefilter("ignore")
        ours.fit(X, y)
    assert Counting.rows == 2 * 60
    _same(ours, theirs.RandomizedSearchCV(pipeline, params, **options), X, y)
    assert Counting.rows == (2 + 2 + 5 * 5 * 1) * 60 + 5 * 5 * 48  # and those of the training scores
    if n_jobs is None:
        assert ours.report_.transformer_fits == ours.plan(X, y).transformer_fits == 2 + 2 * 5


def test_a_family_reads_what_was_hashed_once():
    X, y = _texts(100)
    params = {"logisticregression__C": np.logspace(-1, 1, 6)}
    pipeline = _pipeline(TfidfTransformer(), LogisticRegression(tol=1e-6, max_iter=1000))
    options = {"scoring": "neg_log_loss", "refit": False}
    ours = GridSearchCV(pipeline, params, **options)
    (group,) = ours.plan(X, y).groups
    assert (group.kind, group.once, group.transformer_fits) == ("shared in folds", ("Counting",), 1 + 5)
    _same(ours, theirs.GridSearchCV(pipeline, params, **options), X, y, tol=1e-4)
    assert Counting.rows == 100 + 6 * 5 * 100
    assert ours.report_.transformer_fits == 6


@pytest.mark.invariant("A row-wise step runs once per row of a search and gives each split its own bits")
def test_what_fails_for_some_rows_fails_where_they_are_read():
    X, y = _texts()
    cv = ShuffleSplit(4, test_size=20, train_size=25, random_state=1)
    rows = [np.concatenate(split) for split in cv.split(X)]
    bad = next(row for row in range(60) if 0 < sum(row in some for some in rows) < 4)
    X[bad] = None
    pipeline, grid = _pipeline(MultinomialNB()), {"multinomialnb__alpha": [0.1, 1.0]}
    options = {"cv": cv, "refit": False}
    ours, reference = (cls(pipeline, grid, **options) for cls in (GridSearchCV, theirs.GridSearchCV))
    _same(ours, reference, X, y)
    assert np.isnan([ours.cv_results_[f"split{i}_test_score"] for i in range(4)]).any()
    with pytest.raises(AttributeError) as expected:
        reference.set_params(error_score="raise").fit(X, y)
    with pytest.raises(AttributeError) as got:
        ours.set_params(error_score="raise").fit(X, y)
    assert str(got.value) == str(expected.value)


def test_with_too_little_memory_each_split_hashes_its_rows():
    X, y = _texts()
    pipeline, grid = _pipeline(MultinomialNB()), {"multinomialnb__alpha": [0.1, 1.0]}
    ours = GridSearchCV(pipeline, grid, refit=False, memory_limit=2_000)
    _same(ours, theirs.GridSearchCV(pipeline, grid, refit=False), X, y)
    assert ours.report_.transformer_fits >= 5


def test_branches_nested_pipelines_and_scorers_that_see_the_step():
    X, y = _texts()
    union = make_union(Counting(n_features=32, norm=None), _pipeline(Normalizer("l1"), norm=None))
    pipeline = make_pipeline(union, make_pipeline(StandardScaler(with_mean=False), Ridge()))

    def scorer(estimator, X, y):
        assert type(estimator[0].transformer_list[0][1]) is Counting
        return estimator.score(X, y)

    grid = {"pipeline__ridge__alpha": [0.1, 1.0, 10.0]}
    options = {"scoring": scorer, "refit": False}
    ours, reference = (cls(pipeline, grid, **options) for cls in (GridSearchCV, theirs.GridSearchCV))
    ours.fit(X, y)
    # Each branch once; a scorer is given an estimator of its own, which transforms what it is scored on.
    assert Counting.rows == 2 * 60 + 2 * 3 * 60
    _same(ours, reference, X, y)
