"""Each text is tokenised once a search for each analyzer, and scores are scikit-learn's to the bit."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.model_selection as theirs
from joblib import parallel_config
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import ShuffleSplit
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler

from manyfit import model_selection as ours
from tests._covering import covering, spread

rng = np.random.default_rng(0)
WORDS = np.array([f"{a}{b}" for a in "abcdefghij" for b in ("x", "yé", "Zz", "12")])
# A letter outside of ASCII has scikit-learn's analyzer read each text.
TEXTS = [" ".join(["é", *rng.choice(WORDS, size=size)]) for size in rng.integers(0, 12, size=60)]
LABELS = np.array([text.count("x") > 1 for text in TEXTS])
TFIDF = {"tfidfvectorizer__min_df": [1, 2, 0.2], "tfidfvectorizer__ngram_range": [(1, 1), (1, 2)]}


class Tokenised:
    """Counts the texts that scikit-learn's analyzers read, in threads of this process."""

    def __init__(self, monkeypatch):
        self.texts = 0
        decode = CountVectorizer.decode

        def counted(vectorizer, text):
            self.texts += 1
            return decode(vectorizer, text)

        monkeypatch.setattr(CountVectorizer, "decode", counted)


@pytest.fixture
def tokenised(monkeypatch):
    """A count of the texts that are tokenised."""
    return Tokenised(monkeypatch)


def _fit(search, X=TEXTS, y=LABELS, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return search.fit(X, y, **params)


def _assert_same_scores(search, reference):
    for name, values in reference.cv_results_.items():
        if name.endswith("_score"):
            np.testing.assert_array_equal(search.cv_results_[name], values)


def _both(estimator, grid, X=TEXTS, y=LABELS, fit_params=None, **options):
    options = {"refit": False, "cv": 3, **options}
    searches = [cls(estimator, grid, **options) for cls in (ours.GridSearchCV, theirs.GridSearchCV)]
    for search in searches:
        _fit(search, X, y, **(fit_params or {}))
    _assert_same_scores(*searches)
    return searches[0]


@pytest.mark.invariant("Each text of a search is tokenised once for each analyzer")
@pytest.mark.parametrize(
    ("n_jobs", "container"),
    spread(
        [(None, list), (None, pd.Series), (2, tuple), (None, lambda texts: np.array(texts, dtype=object))], 2
    ),
)
def test_each_text_is_tokenised_once(tokenised, n_jobs, container):
    X = container(TEXTS)
    search = ours.GridSearchCV(
        make_pipeline(TfidfVectorizer(), MultinomialNB()), TFIDF, cv=3, n_jobs=n_jobs, refit=False,
        return_train_score=True,
    )  # fmt: skip
    plan = search.plan(X, LABELS)
    assert "; tokens of TfidfVectorizer on all rows at once" in str(plan)
    assert tokenised.texts == 0
    with parallel_config(backend="threading"):
        _fit(search, X)
    assert tokenised.texts == 60
    assert search.report_.transformer_fits == 1 == plan.transformer_fits
    assert search.report_.transformer_fits + search.report_.transformer_fits_saved == 6 * 3
    reference = theirs.GridSearchCV(
        search.estimator, TFIDF, cv=3, refit=False, return_train_score=True
    )  # fmt: skip
    _assert_same_scores(search, _fit(reference, X))


def test_analyzers_that_differ_have_tokens_of_their_own(tokenised):
    grid = {
        "countvectorizer__lowercase": [True, False],
        "countvectorizer__stop_words": [None, ["ax", "bx"]],
        "multinomialnb__alpha": [0.1, 1.0],
    }
    pipeline = make_pipeline(CountVectorizer(), TfidfTransformer(), MultinomialNB())
    search = ours.GridSearchCV(pipeline, grid, cv=3, refit=False)
    _fit(search)
    assert tokenised.texts == 2 * 60
    # And a TfidfTransformer a split for each of four vectorizers.
    assert search.report_.transformer_fits == search.plan(TEXTS, LABELS).transformer_fits == 2 + 4 * 3
    _both(pipeline, grid)


def test_a_single_setting_and_cross_validate(tokenised):
    pipeline = make_pipeline(TfidfVectorizer(), MultinomialNB())
    found = ours.cross_validate(pipeline, TEXTS, LABELS, cv=4)
    assert tokenised.texts == 60
    expected = theirs.cross_validate(pipeline, TEXTS, LABELS, cv=4)
    np.testing.assert_array_equal(found["test_score"], expected["test_score"])
    assert tokenised.texts == (1 + 4) * 60
    estimators = ours.cross_validate(pipeline, TEXTS, LABELS, cv=4, return_estimator=True)["estimator"]
    assert type(estimators[0][0].vocabulary_) is dict
    assert tokenised.texts == (1 + 2 * 4) * 60  # real fits


@pytest.mark.parametrize("last", [LogisticRegression(), SGDClassifier(random_state=0, max_iter=20)], ids=repr)
def test_other_last_steps_and_weights(last):
    grid = {"tfidfvectorizer__use_idf": [True, False], "tfidfvectorizer__max_features": [None, 10]}
    name = type(last).__name__.lower()
    weights = {f"{name}__sample_weight": rng.uniform(0.5, 2.0, size=60)}
    _both(make_pipeline(TfidfVectorizer(), last), grid)
    search = _both(make_pipeline(TfidfVectorizer(), last), grid, fit_params=weights)
    assert search.report_.transformer_fits == 1


def test_a_callable_scorer_gets_a_vectorizer_of_its_own():
    def scorer(estimator, X, y):
        vectorizer = estimator[0]
        assert type(vectorizer) is TfidfVectorizer
        assert type(vectorizer.vocabulary_) is dict
        vectorizer.vocabulary_["not in any text"] = -1
        return len(vectorizer.vocabulary_) + vectorizer.idf_.sum() + estimator.score(X, y)

    _both(
        make_pipeline(TfidfVectorizer(), MultinomialNB()),
        {"multinomialnb__alpha": [0.1, 1.0]},
        scoring=scorer,
    )


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_column_of_texts_and_two_vectorizers_of_the_same_texts(tokenised, n_jobs):
    frame = pd.DataFrame({"number": np.arange(60.0), "text": TEXTS, "other": TEXTS[::-1]})
    columns = make_column_transformer(
        (StandardScaler(with_mean=False), ["number"]), (TfidfVectorizer(), "text"), (CountVectorizer(), 2)
    )
    union = make_union(TfidfVectorizer(min_df=2), CountVectorizer(analyzer="char"))
    sgd = SGDClassifier(random_state=0, max_iter=20)
    grid = {"sgdclassifier__alpha": [1e-4, 1e-2]}
    for first, X in ((columns, frame), (union, TEXTS)):
        before = tokenised.texts
        options = {"cv": 3, "refit": False}
        search = ours.GridSearchCV(make_pipeline(first, sgd), grid, n_jobs=n_jobs, **options)
        with parallel_config(backend="threading"):
            _fit(search, X)
        assert tokenised.texts == before + 2 * 60
        _assert_same_scores(search, _fit(theirs.GridSearchCV(search.estimator, grid, **options), X))


@pytest.mark.cases(2)
@pytest.mark.parametrize("bad", [None, np.nan, 7, b"\xff"], ids=repr)
def test_what_is_no_text_fails_where_it_is_read(bad):
    cv = ShuffleSplit(4, test_size=20, train_size=25, random_state=1)
    read = [np.concatenate(split) for split in cv.split(TEXTS)]
    row = next(row for row in range(60) if 0 < sum(row in some for some in read) < 4)
    X = [*TEXTS[:row], bad, *TEXTS[row + 1 :]]
    pipeline, grid = make_pipeline(TfidfVectorizer(), MultinomialNB()), {"multinomialnb__alpha": [0.1, 1.0]}
    search = _both(pipeline, grid, X, cv=cv)
    assert np.isnan([search.cv_results_[f"split{i}_test_score"] for i in range(4)]).any()
    errors = []
    for cls in (ours.GridSearchCV, theirs.GridSearchCV):
        with pytest.raises((AttributeError, ValueError, TypeError)) as caught:
            _fit(cls(pipeline, grid, cv=cv, error_score="raise"), X)
        errors.append((type(caught.value), str(caught.value)))
    assert errors[0] == errors[1]


@pytest.mark.parametrize(
    "params", [{"min_df": 60}, {"stop_words": ["Ax"]}, {"vocabulary": ["Ax"]}, {"token_pattern": "no such"}]
)
def test_errors_and_warnings_are_scikit_learns(params):
    pipeline = make_pipeline(CountVectorizer(**params), MultinomialNB())
    texts = []
    for cls in (ours.GridSearchCV, theirs.GridSearchCV):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                cls(pipeline, {"multinomialnb__alpha": [1.0]}, cv=2, refit=False).fit(TEXTS, LABELS)
            except ValueError as error:
                texts.append(str(error).replace("\n", " ")[-200:])
                continue
        texts.append({str(one.message) for one in caught})
    assert texts[0] == texts[1]
    assert texts[0]


def test_with_too_little_memory_each_split_tokenises_its_texts(tokenised):
    pipeline, grid = make_pipeline(TfidfVectorizer(), MultinomialNB()), {"multinomialnb__alpha": [0.1, 1.0]}
    search = ours.GridSearchCV(pipeline, grid, cv=3, refit=False, memory_limit=2_000)
    _fit(search)
    assert tokenised.texts > 3 * 60
    assert search.report_.transformer_fits >= 3
    _assert_same_scores(search, _fit(theirs.GridSearchCV(pipeline, grid, cv=3, refit=False)))


def test_nothing_of_the_texts_outlives_the_search():
    X = [f"{text} x" for text in TEXTS]
    before = sys.getrefcount(X[5])
    pipeline = make_pipeline(TfidfVectorizer(), MultinomialNB())
    search = _fit(ours.GridSearchCV(pipeline, TFIDF, cv=3, refit=False), X)
    after = sys.getrefcount(X[5])
    assert after == before
    assert search.report_.transformer_fits == 1


def _assert_same_state(step, expected):
    """Two fitted estimators have the same attributes, to the bit."""
    assert type(step) is type(expected) and vars(step).keys() == vars(expected).keys()
    for name, value in vars(expected).items():
        found = getattr(step, name)
        if hasattr(value, "get_params"):
            _assert_same_state(found, value)
        elif isinstance(value, np.ndarray):
            assert found.dtype == value.dtype and found.tobytes() == value.tobytes()
            assert found.flags.writeable == value.flags.writeable
        elif isinstance(value, dict):
            assert type(found) is dict and list(found.items()) == list(value.items())
        else:
            assert found is value or found == value


@pytest.mark.cases(2)
@pytest.mark.invariant(
    "The refit reads the texts that a search has tokenised, and is scikit-learn's to the bit"
)
@pytest.mark.parametrize(
    ("n_jobs", "container"),
    covering([None, 2], [list, pd.Series, lambda texts: np.array(texts, dtype=object)], strength=1),
)
def test_the_refit_tokenises_no_text_again(tokenised, n_jobs, container):
    pipeline, X = make_pipeline(TfidfVectorizer(max_features=20), MultinomialNB()), container(TEXTS)
    search = ours.GridSearchCV(pipeline, TFIDF, cv=3, n_jobs=n_jobs)
    with parallel_config(backend="threading"):
        _fit(search, X)
    assert tokenised.texts == 60
    reference = _fit(theirs.GridSearchCV(pipeline, TFIDF, cv=3), X)
    for step, expected in zip(search.best_estimator_, reference.best_estimator_, strict=True):
        _assert_same_state(step, expected)
    np.testing.assert_array_equal(search.predict(TEXTS), reference.predict(TEXTS))


def test_the_refit_of_composites_and_weights(tokenised):
    frame = pd.DataFrame({"number": np.arange(60.0), "text": TEXTS})
    columns = make_column_transformer(
        (StandardScaler(with_mean=False), ["number"]), (TfidfVectorizer(), "text")
    )
    last, weights = SGDClassifier(random_state=0, max_iter=20), rng.uniform(0.5, 2.0, size=60)
    pipeline, grid = make_pipeline(columns, last), {"sgdclassifier__alpha": [1e-4, 1e-2]}
    params = {"sgdclassifier__sample_weight": weights}
    search = _fit(ours.GridSearchCV(pipeline, grid, cv=3), frame, **params)
    assert tokenised.texts == 60
    reference = _fit(theirs.GridSearchCV(pipeline, grid, cv=3), frame, **params)
    vectorizers = [
        one.best_estimator_[0].named_transformers_["tfidfvectorizer"] for one in (search, reference)
    ]
    _assert_same_state(*vectorizers)
    assert search.best_estimator_[1].coef_.tobytes() == reference.best_estimator_[1].coef_.tobytes()
    np.testing.assert_array_equal(search.predict(frame), reference.predict(frame))


def test_a_refit_that_fails_or_warns_does_so_once():
    X = [*TEXTS[:-1], np.nan]  # in no split
    cv, grid = [(np.arange(30), np.arange(30, 50))], {"multinomialnb__alpha": [0.1, 1.0]}
    search = ours.GridSearchCV(make_pipeline(TfidfVectorizer(), MultinomialNB()), grid, cv=cv)
    with pytest.raises(ValueError, match="np.nan is an invalid document"):
        _fit(search, X)
    grid = {"sgdclassifier__alpha": [1e-4, 1e-2]}
    pipeline = make_pipeline(TfidfVectorizer(), SGDClassifier(random_state=0, max_iter=2))
    shown = []
    for cls in (ours.GridSearchCV, theirs.GridSearchCV):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            cls(pipeline, grid, cv=3).fit(TEXTS, LABELS)
        shown.append([str(one.message) for one in found])
    assert shown[0] == shown[1] and len(shown[0]) == 7


def test_a_refit_behind_a_step_that_may_write_reads_the_texts_itself(tokenised):
    def shorten(X):
        X.data[:] = 1.0
        return X

    pipeline = make_pipeline(
        TfidfVectorizer(), FunctionTransformer(shorten, accept_sparse=True), MultinomialNB()
    )
    grid = {"multinomialnb__alpha": [0.1, 1.0]}
    search = _fit(ours.GridSearchCV(pipeline, grid, cv=3))
    reference = _fit(theirs.GridSearchCV(pipeline, grid, cv=3))
    _assert_same_state(search.best_estimator_[0], reference.best_estimator_[0])
    np.testing.assert_array_equal(
        search.best_estimator_[2].feature_log_prob_, reference.best_estimator_[2].feature_log_prob_
    )


def test_the_refit_keeps_arrays_that_can_be_written():
    numbers, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    pipeline = make_pipeline(PolynomialFeatures(), KNeighborsRegressor(algorithm="kd_tree"))
    grid = {"kneighborsregressor__n_neighbors": [1, 2]}
    kept = [
        vars(cls(pipeline, grid, cv=3).fit(numbers, y).best_estimator_[-1])
        for cls in (ours.GridSearchCV, theirs.GridSearchCV)
    ]
    for name in ("_fit_X", "_y"):
        np.testing.assert_array_equal(kept[0][name], kept[1][name])
        assert kept[0][name].flags.writeable and kept[1][name].flags.writeable
