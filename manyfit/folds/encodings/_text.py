"""CountVectorizer and TfidfVectorizer of a search: each text is tokenised once for each analyzer.

The fit of a vectorizer on a fold selects columns of the counts of all terms, and weights them. Its output is
scikit-learn's to the bit.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer

from manyfit._compat import check_parameters, set_vocabulary
from manyfit.exceptions import Unsupported
from manyfit.folds.encodings._term_counts import TermCounts, Tokens, count_terms, tokenize
from manyfit.folds.encodings._term_selection import TermSelection
from manyfit.introspection.structural_key import structural_key

# Those that hold all counts, and of which a fit does not warn.
_DTYPES: dict[type, tuple[Any, ...]] = {
    CountVectorizer: (np.float64, np.float32, np.int64, np.int32, float, int),
    TfidfVectorizer: (np.float64, np.float32),
}


def counts_texts(step: Any) -> bool:
    """Whether a step is a vectorizer whose fits follow from the counts of all texts."""
    try:
        check_vectorizer(step)
    except Exception:  # a stop word of another type, say
        return False
    return True


def check_vectorizer(step: Any) -> None:
    """Raise `Unsupported` unless a fit of the step counts terms of texts by code of scikit-learn alone.

    It also raises for parameters that a fit refuses, or of which it warns.
    """
    if type(step) not in _DTYPES:
        raise Unsupported("no vectorizer of texts")
    functions = (step.preprocessor, step.tokenizer, step.analyzer, step.strip_accents)
    if any(map(callable, functions)) or step.input != "content":
        raise Unsupported("it reads files, or calls functions of the user")
    if check_parameters(step) is not None or step.ngram_range[0] > step.ngram_range[1]:
        raise Unsupported("the fit refuses its parameters")
    if step.dtype not in _DTYPES[type(step)]:
        raise Unsupported(f"dtype={step.dtype!r}")
    if step.vocabulary is not None:
        _check_vocabulary(step)
    if step.analyzer == "word":
        _check_stop_words(step)
    elif step.stop_words is not None or step.token_pattern not in (None, CountVectorizer().token_pattern):
        raise Unsupported("the fit warns of parameters that it does not use")


def _check_vocabulary(step: Any) -> None:
    given = step.vocabulary
    if type(given) not in (list, tuple, set, dict) or not all(type(term) is str for term in given):
        raise Unsupported("a vocabulary of another type")
    columns = sorted(given.values()) if type(given) is dict else range(len(set(given)))
    if not given or list(columns) != list(range(len(given))):
        raise Unsupported("the fit refuses its vocabulary")
    if step.lowercase and any(any(map(str.isupper, term)) for term in given):
        raise Unsupported("the fit warns of its vocabulary")


def _check_stop_words(step: Any) -> None:
    words = step.get_stop_words()
    if words is None:
        return
    preprocess, tokens = step.build_preprocessor(), step.build_tokenizer()
    if not all(type(word) is str and words.issuperset(tokens(preprocess(word))) for word in words):
        raise Unsupported("the fit warns of its stop words")


def tokens_key(step: Any) -> Hashable:
    """A key of all parameters of a vectorizer that decide its tokens."""
    names = ["analyzer", "encoding", "decode_error", "lowercase", "strip_accents"]
    names += ["token_pattern"] if step.analyzer == "word" else ["ngram_range"]
    return structural_key([getattr(step, name) for name in names])


class Texts:
    """All texts of a search, with their tokens and term counts; both are made once for each key.

    `nbytes`: of what was made. `n_tokenized`: how often all texts were tokenised. A pickle has the counts
    made so far, and makes no others.
    """

    def __init__(self, texts: Sequence[Any] | None) -> None:
        self._texts = texts
        self._tokens: dict[Hashable, Tokens] = {}
        self._counts: dict[Hashable, TermCounts] = {}
        self.nbytes = self.n_tokenized = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_texts": None, "_tokens": {}}

    def encode(self, step: Any, limit: int) -> TermCounts:
        """The counts of all terms for a vectorizer; raises `Unsupported` if they take more than `limit`."""
        key = tokens, stop_words, ngram_range = self.key_of(step)
        if key not in self._counts:
            counts = count_terms(self._tokens_of(step, tokens, limit), stop_words, ngram_range)
            self._require(counts.nbytes, limit)
            self._counts[key] = counts
        return self._counts[key]

    @staticmethod
    def key_of(step: Any) -> tuple[Hashable, frozenset[str] | None, tuple[int, int]]:
        """The key of the counts: of the tokens, and of the options of `count_terms`."""
        if step.analyzer != "word":
            return tokens_key(step), None, (1, 1)
        return tokens_key(step), step.get_stop_words(), tuple(step.ngram_range)

    def _tokens_of(self, step: Any, key: Hashable, limit: int) -> Tokens:
        if key not in self._tokens:
            if self._texts is None:
                raise Unsupported("this process has not all texts")
            tokens = tokenize(clone(step), self._texts, limit)
            self._require(tokens.nbytes, limit)
            self._tokens[key] = tokens
            self.n_tokenized += 1
        return self._tokens[key]

    def _require(self, nbytes: int, limit: int) -> None:
        if self.nbytes + nbytes > limit:
            raise Unsupported("the counts of all texts take too much memory")
        self.nbytes += nbytes


def selection_key(step: Any) -> Hashable:
    """A key of all parameters of a vectorizer that decide its counts, without weights."""
    return structural_key({name: getattr(step, name) for name in CountVectorizer().get_params()})


class FittedVectorizer:
    """A vectorizer that is fitted on the training rows of a fold, by the terms selected of all texts."""

    def __init__(self, step: Any, selection: TermSelection) -> None:
        self._selection = selection
        self._tfidf: TfidfTransformer | None = None
        if type(step) is TfidfVectorizer:
            names = ("norm", "use_idf", "smooth_idf", "sublinear_tf")
            params = {name: getattr(step, name) for name in names}
            self._tfidf = TfidfTransformer(**params).fit(selection.train_counts)
        set_vocabulary(step, selection.vocabulary, self._tfidf)

    def transform_train(self) -> Any:
        """The output of ``fit_transform`` of the vectorizer; the counts may be those of other vectorizers."""
        counts = self._selection.train_counts
        return counts if self._tfidf is None else self._tfidf.transform(counts)

    def transform(self, rows: Any) -> Any:
        """The output of ``transform`` of the vectorizer for some rows."""
        counts = self._selection.counts(rows)
        return counts if self._tfidf is None else self._tfidf.transform(counts, copy=False)
