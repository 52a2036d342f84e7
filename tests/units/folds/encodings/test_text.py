"""Vectorizers fitted by the counts of all texts: every piece is scikit-learn's to the bit."""

from __future__ import annotations

import copy
import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context, get_config
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

from manyfit.exceptions import Unsupported
from manyfit.folds import FittedVectorizer, TermSelection, Texts, counts_texts
from tests._covering import spread

rng = np.random.default_rng(0)
# Many ties in document frequencies and totals, words of one letter, words with accents and in upper case.
WORDS = [f"{a}{b}" for a, b in itertools.product("abcdefgh", ("", "x", "yz", "É", "Ω", "的", "_1"))]
TEXTS = [" ".join(rng.choice(WORDS, size=size)) for size in rng.integers(0, 20, size=60)]
TEXTS[3] = TEXTS[41] = ""
TEXTS[7] = "  The only\ttext, with\n\nwhite space; and \ud800 the end.  "
TEXTS[50] = "onlyhere and\x1fthere, ax ax ax ax axé ax́"
ROWS = {
    "first rows": (np.arange(15, 60), np.arange(15)),
    "last rows": (np.arange(45), np.arange(45, 60)),
    "any order": (rng.permutation(60)[:40], rng.permutation(60)[:20]),
    "masks": (np.arange(60) % 3 > 0, np.arange(60) % 3 == 0),
    "lists": ([5, 3, 8, 21, 34, 2, 55, 13, 1, 40, 41, 42, 43, 44], [0, -1]),
    "repeated to score": (np.arange(30), np.array([40, 40, 31])),
}
OPTIONS = [
    {},
    {"lowercase": False},
    {"min_df": 2},
    {"min_df": 0.05, "max_df": 0.5},
    {"max_df": 6, "min_df": 3},
    {"max_features": 10},
    {"max_features": 10, "min_df": 2, "binary": True},
    {"max_features": 1000},
    {"ngram_range": (1, 2)},
    {"ngram_range": (2, 3), "max_df": 0.9},
    {"ngram_range": (3, 3)},
    {"ngram_range": (1, 2), "max_features": 40},
    {"stop_words": "english"},
    {"stop_words": ["ax", "byz"], "ngram_range": (1, 2)},
    {"strip_accents": "unicode"},
    {"strip_accents": "ascii", "lowercase": False},
    {"token_pattern": r"(?u)\b\w"},
    {"token_pattern": r"(?u)\b(\w)\w\b"},
    {"binary": True},
    {"dtype": np.float32},
    {"dtype": np.dtype("float32"), "max_features": 20},
    {"analyzer": "char", "ngram_range": (1, 3)},
    {"analyzer": "char", "token_pattern": None, "min_df": 3},
    {"analyzer": "char_wb", "ngram_range": (2, 4), "lowercase": False},
    {"analyzer": "char_wb", "ngram_range": (4, 5), "max_features": 30},
    {"vocabulary": ["bx", "nowhere", "ax", "the"]},
    {"vocabulary": {"hyz", "ax", "cx"}},
    {"vocabulary": {"ax": 1, "byz": 2, "nowhere": 0}, "binary": True},
    {"vocabulary": ("ax byz", "cx"), "ngram_range": (1, 2)},
]
COUNTS = [CountVectorizer(**options) for options in OPTIONS]
COUNTS += [CountVectorizer(dtype=dtype, max_features=9) for dtype in (np.int32, np.float64, int)]
WEIGHTS = [
    {},
    {"norm": "l1"},
    {"norm": None, "sublinear_tf": True},
    {"use_idf": False},
    {"smooth_idf": False, "sublinear_tf": True},
]
TFIDF = [TfidfVectorizer(**options, **WEIGHTS[j % 5]) for j, options in enumerate(OPTIONS)]
TFIDF += [TfidfVectorizer(**weights) for weights in WEIGHTS]


def _assert_same(ours, theirs):
    assert type(ours) is type(theirs)
    assert ours.shape == theirs.shape
    for name in ("data", "indices", "indptr"):
        got, expected = getattr(ours, name), getattr(theirs, name)
        assert got.dtype == expected.dtype
        assert got.tobytes() == expected.tobytes()
    assert ours.has_sorted_indices == theirs.has_sorted_indices


def _fitted(step, counts, train):
    return FittedVectorizer(step, TermSelection(step, counts, train))


def _take(texts, rows):
    return [texts[j] for j in np.arange(len(texts))[rows]]


@pytest.mark.cases(8)
@pytest.mark.invariant("A vectorizer fitted by the counts of all texts is scikit-learn's to the bit")
@pytest.mark.parametrize("step", spread([*COUNTS, *TFIDF], 22))
def test_fits_and_outputs_are_bit_for_bit_those_of_the_vectorizer(step):
    texts = Texts(TEXTS)
    assert counts_texts(step)
    for train, test in ROWS.values():
        ours, theirs = clone(step), clone(step)
        with np.errstate(divide="ignore"):
            fitted = _fitted(ours, texts.encode(ours, 2**30), train)
            expected = theirs.fit_transform(_take(TEXTS, train))
        _assert_same(fitted.transform_train(), expected)
        scored = theirs.transform(_take(TEXTS, test))
        _assert_same(fitted.transform(test), scored)
        _assert_same(fitted.transform(train), theirs.transform(_take(TEXTS, train)))
        _assert_same(ours.transform(_take(TEXTS, test)), scored)
        _assert_same_state(copy.deepcopy(ours), theirs)
        _assert_same_state(pickle.loads(pickle.dumps(ours)), theirs)
    assert texts.n_tokenized == 1


def _assert_same_state(ours, theirs):
    assert vars(ours).keys() == vars(theirs).keys()
    assert type(ours.vocabulary_) is dict
    assert list(ours.vocabulary_.items()) == list(theirs.vocabulary_.items())
    types = [{type(number) for number in one.vocabulary_.values()} for one in (ours, theirs)]
    assert types[0] == types[1]
    np.testing.assert_array_equal(ours.get_feature_names_out(), theirs.get_feature_names_out())
    if hasattr(theirs, "_tfidf"):
        assert vars(ours._tfidf).keys() == vars(theirs._tfidf).keys()
        if theirs.use_idf:
            assert ours.idf_.tobytes() == theirs.idf_.tobytes()


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    "options",
    [{}, {"lowercase": False}, {"strip_accents": "ascii", "stop_words": ["aa"]}, {"ngram_range": (1, 2)}],
)
def test_texts_of_ascii_are_cut_into_the_words_of_the_pattern(options, monkeypatch):
    every_pair = ["".join(pair) for pair in itertools.product(map(chr, range(128)), repeat=2)]
    texts = [" ".join(map("".join, np.array_split(rng.permutation(every_pair), 200))) for _ in range(5)]
    texts += ["".join(rng.choice([*map(chr, range(128))], size=300)) for _ in range(50)]
    texts += ["a", "", "a b_ c", "aé b", "xy aé"]  # the last ones are not of ASCII
    expected = CountVectorizer(**options)
    counts = expected.fit_transform(texts)
    decode, read = CountVectorizer.decode, list[str]()
    monkeypatch.setattr(CountVectorizer, "decode", lambda step, text: read.append(text) or decode(step, text))
    step = CountVectorizer(**options)
    fitted = _fitted(step, Texts(texts).encode(step, 2**30), slice(None))
    assert read == texts[-2:]
    _assert_same(fitted.transform_train(), counts)
    _assert_same_state(copy.deepcopy(step), expected)


@pytest.mark.parametrize("step", [TfidfVectorizer(), CountVectorizer(max_features=5)], ids=repr)
@pytest.mark.parametrize(
    "container", [tuple, np.array, pd.Series, lambda texts: np.array(texts, dtype=object)]
)
def test_texts_of_any_sequence(step, container):
    texts = container([text.replace("\ud800", "") for text in TEXTS])
    ours, theirs = clone(step), clone(step)
    fitted = _fitted(ours, Texts(texts).encode(ours, 2**30), np.arange(40))
    _assert_same(fitted.transform_train(), theirs.fit_transform(texts[:40]))
    _assert_same_state(copy.deepcopy(ours), theirs)


def test_bytes_are_decoded():
    texts = [text.replace("\ud800", "").encode("utf-16") for text in TEXTS]
    ours, theirs = (TfidfVectorizer(encoding="utf-16") for _ in range(2))
    fitted = _fitted(ours, Texts(texts).encode(ours, 2**30), np.arange(40))
    _assert_same(fitted.transform_train(), theirs.fit_transform(texts[:40]))
    assert Texts(texts).key_of(ours) != Texts(texts).key_of(TfidfVectorizer())


def test_many_random_texts_and_limits():
    draw = np.random.default_rng(1)
    for seed in range(40):
        n = int(draw.integers(6, 40))
        vocabulary = [chr(97 + j) * int(draw.integers(1, 4)) for j in range(int(draw.integers(2, 26)))]
        texts = [" ".join(draw.choice(vocabulary, size=draw.integers(0, 9))) for _ in range(n)]
        first = int(draw.integers(1, 4))
        step = draw.choice([CountVectorizer, TfidfVectorizer])(
            min_df=draw.choice([1, 2, 0.1]).item(),
            max_df=draw.choice([1.0, 0.5]).item(),
            max_features=None if seed % 2 else int(draw.integers(1, 12)),
            ngram_range=(first, first + int(draw.integers(0, 3))),
            analyzer=str(draw.choice(["word", "char", "char_wb"])),
        )
        train = draw.permutation(n)[: max(2, n // 2)]
        theirs, ours = clone(step), clone(step)
        try:
            expected = theirs.fit_transform(_take(texts, train))
        except ValueError:
            with pytest.raises(Unsupported):
                _fitted(ours, Texts(texts).encode(ours, 2**30), train)
            continue
        fitted = _fitted(ours, Texts(texts).encode(ours, 2**30), train)
        _assert_same(fitted.transform_train(), expected)
        _assert_same(fitted.transform(np.arange(n)), theirs.transform(texts))
        _assert_same_state(copy.deepcopy(ours), theirs)


def test_vectorizers_have_tokens_and_counts_in_common():
    texts = Texts(TEXTS)
    same = [
        texts.encode(TfidfVectorizer(**options), 2**30)
        for options in ({}, {"min_df": 2}, {"norm": "l1"}, {"max_features": 3}, {"vocabulary": ["ax"]})
    ]
    assert all(one is same[0] for one in same)
    assert texts.encode(CountVectorizer(), 2**30) is same[0]
    for options in ({"ngram_range": (1, 2)}, {"stop_words": "english"}, {"stop_words": ["ax"]}):
        texts.encode(CountVectorizer(**options), 2**30)
    assert texts.n_tokenized == 1
    texts.encode(CountVectorizer(lowercase=False), 2**30)
    texts.encode(CountVectorizer(analyzer="char", ngram_range=(1, 2)), 2**30)
    assert texts.n_tokenized == 3
    kept = pickle.loads(pickle.dumps(texts))
    assert kept.encode(CountVectorizer(), 2**30).terms.tolist() == same[0].terms.tolist()
    with pytest.raises(Unsupported, match="has not all texts"):
        kept.encode(CountVectorizer(strip_accents="ascii"), 2**30)


@pytest.mark.skipif("sparse_interface" not in get_config(), reason="scikit-learn 1.9 has the option")
@pytest.mark.parametrize("interface", ["sparray", "spmatrix"])
def test_matrices_are_of_the_configured_class(interface):
    step = CountVectorizer()
    with config_context(sparse_interface=interface):
        fitted = _fitted(step, Texts(TEXTS).encode(step, 2**30), np.arange(9))
        _assert_same(fitted.transform_train(), clone(step).fit_transform(TEXTS[:9]))


class Own(CountVectorizer):
    """May do anything."""


@pytest.mark.parametrize(
    "step",
    [
        HashingVectorizer(),
        Own(),
        CountVectorizer(analyzer=str.split),
        CountVectorizer(tokenizer=str.split, token_pattern=None),
        CountVectorizer(preprocessor=str.lower),
        CountVectorizer(strip_accents=str.lower),
        CountVectorizer(input="file"),
        CountVectorizer(ngram_range=(2, 1)),
        CountVectorizer(min_df=-1),
        CountVectorizer(dtype=np.int8),
        CountVectorizer(vocabulary=frozenset({"ax"})),
        CountVectorizer(vocabulary=["ax", "ax"]),
        CountVectorizer(vocabulary={"ax": 1}),
        CountVectorizer(vocabulary=[]),
        CountVectorizer(vocabulary=[1, 2]),
        # A fit warns of these.
        CountVectorizer(vocabulary=["Ax"]),
        CountVectorizer(stop_words=["Ax"]),
        CountVectorizer(analyzer="char", stop_words="english"),
        CountVectorizer(analyzer="char", token_pattern="a"),
        TfidfVectorizer(dtype=np.int64),
        TfidfVectorizer(dtype="float32"),
    ],
    ids=repr,
)
def test_these_are_left_to_each_split(step):
    assert not counts_texts(step)


@pytest.mark.parametrize("step", [TfidfVectorizer(**options) for options in OPTIONS])
def test_what_is_counted_warns_of_nothing(step):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with np.errstate(all="ignore"):
            clone(step).fit(TEXTS)


@pytest.mark.parametrize(
    ("step", "texts", "reason"),
    [
        (CountVectorizer(), ["", "a"], "no text has a term"),
        (CountVectorizer(min_df=3), TEXTS[:2], "refuses the training rows"),
        (CountVectorizer(min_df=3, max_df=2), TEXTS, "refuses the training rows"),
        (CountVectorizer(token_pattern="[^,]+", ngram_range=(1, 2)), ["a b,c", "d"], "holds a space"),
    ],
)
def test_what_scikit_learn_has_to_decide(step, texts, reason):
    with pytest.raises(Unsupported, match=reason):
        _fitted(step, Texts(texts).encode(step, 2**30), np.arange(2))
    assert not hasattr(step, "vocabulary_")


def test_repeated_training_rows_and_too_little_memory():
    with pytest.raises(Unsupported, match="repeated"):
        _fitted(CountVectorizer(), Texts(TEXTS).encode(CountVectorizer(), 2**30), [1, 1, 2])
    for limit in (100, 2_000, 15_000):
        texts = Texts(TEXTS)
        with pytest.raises(Unsupported, match="memory"):
            texts.encode(CountVectorizer(ngram_range=(1, 2)), limit)
        assert texts.nbytes <= limit
