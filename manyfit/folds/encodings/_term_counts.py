"""Counts of the terms of all texts: each text is tokenised once, and n-grams are counted as numbers."""

from __future__ import annotations

import sys
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from manyfit.exceptions import Unsupported

# The default pattern of tokens: the longest runs of letters, digits and underscores, of two or more. Texts
# of ASCII are cut into these without the pattern, which takes five times as long.
WORDS = r"(?u)\b\w\w+\b"


@dataclass(frozen=True)
class Tokens:
    """The tokens of all texts, as numbers.

    `ids`: the number in `words` of each token, text after text. `starts`, (n_texts + 1,): where the tokens of
    each text begin.
    """

    words: list[str]
    ids: NDArray[np.int32]
    starts: NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        """Bytes of tokens and words."""
        return self.ids.nbytes + self.starts.nbytes + _nbytes_of_texts(self.words)

    def only(self, keeps: Callable[[str], bool]) -> Tokens:
        """The tokens of the words that `keeps` accepts; the words keep their numbers."""
        kept = np.fromiter(map(keeps, self.words), bool, len(self.words))[self.ids]
        starts = np.concatenate([[0], np.cumsum(kept)])[self.starts]
        return Tokens(self.words, self.ids[kept], starts)


@dataclass(frozen=True)
class TermCounts:
    """How often each text holds each term.

    `terms`, (n_terms,), are sorted, as scikit-learn sorts them; each is in some text. `by_text`, CSR, and
    `by_term`, CSC, are the counts, (n_texts, n_terms), int32. `places`, of each entry of `by_term`: the place
    among all words of the text where it first mentions the term.
    """

    terms: NDArray[np.object_]
    by_text: scipy.sparse.csr_array
    by_term: scipy.sparse.csc_array
    places: NDArray[np.int32]

    @property
    def nbytes(self) -> int:
        """Bytes of counts and terms."""
        pieces = [(one.data, one.indices, one.indptr) for one in (self.by_text, self.by_term)]
        arrays = sum(one.nbytes for one in (*pieces[0], *pieces[1], self.places))
        return arrays + _nbytes_of_texts(self.terms)


def tokenize(vectorizer: Any, texts: Iterable[Any], limit: int) -> Tokens:
    """Tokenise all texts by scikit-learn's own analyzer; parameters of the vectorizer are changed.

    For words this leaves stop words and n-grams to `count_terms`, so that vectorizers that differ in these
    only have tokens in common. Raises `Unsupported` if the tokens take more than `limit` bytes.
    """
    is_plain = vectorizer.analyzer == "word" and vectorizer.token_pattern == WORDS
    if vectorizer.analyzer == "word":
        vectorizer = vectorizer.set_params(stop_words=None, ngram_range=(1, 1))
    analyze, table = vectorizer.build_analyzer(), _to_words(vectorizer.lowercase)
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    ids, starts = array("i"), [0]
    for text in texts:
        quick = is_plain and type(text) is str and text.isascii()
        words = text.translate(table).split() if quick else analyze(text)
        ids.extend(map(numbers.__getitem__, words))
        starts.append(len(ids))
        if len(ids) * ids.itemsize > limit:
            raise Unsupported("the tokens of all texts take too much memory")
    found = Tokens(list(numbers), np.asarray(ids, np.int32), np.asarray(starts))
    return found.only(lambda word: len(word) > 1) if is_plain else found


def _to_words(lowercase: bool) -> str:
    """A table for ``str.translate`` that leaves only what `WORDS` finds in ASCII, and words of one letter."""
    letters = map(chr, range(128))
    return "".join((c.lower() if lowercase else c) if c.isalnum() or c == "_" else " " for c in letters)


def count_terms(
    tokens: Tokens, stop_words: Collection[str] | None, ngram_range: tuple[int, int]
) -> TermCounts:
    """Count the n-grams of the tokens that are no stop words.

    Raises `Unsupported` if a token holds a space, so that it may equal two others that are joined.
    """
    if stop_words is not None:
        tokens = tokens.only(lambda word: word not in stop_words)
    ids, starts = tokens.ids, tokens.starts
    if ngram_range[1] > 1 and any(" " in word for word in tokens.words):
        raise Unsupported("a token holds a space, which joins the words of an n-gram")
    terms, blocks = list[str](), []
    for n, (names, grams, counts) in enumerate(_ngrams(tokens.words, ids, starts, ngram_range[1]), 1):
        if n >= ngram_range[0]:
            shape = (len(starts) - 1, len(names))
            blocks.append(scipy.sparse.csr_array((np.ones(len(grams), np.int32), grams, counts), shape=shape))
            terms += names
    if not any(block.nnz for block in blocks):
        raise Unsupported("no text has a term")
    if sum(block.nnz for block in blocks) > np.iinfo(np.int32).max:
        raise Unsupported("the texts have too many terms")
    # A text's n-grams follow each other by n and then by position.
    mentions = blocks[0] if len(blocks) == 1 else scipy.sparse.hstack(blocks, format="csr")
    used = np.flatnonzero(np.bincount(mentions.indices, minlength=len(terms)))
    order = np.array(sorted(used.tolist(), key=terms.__getitem__), np.intp)
    rank = np.empty(len(terms), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    pieces = mentions.data, rank[mentions.indices], mentions.indptr
    mentions = scipy.sparse.csr_array(pieces, shape=(mentions.shape[0], len(order)))
    counts, places = _summed(mentions)
    return TermCounts(np.array(terms, dtype=object)[order], counts.tocsr(), counts, places)


def _ngrams(words: list[str], ids: Any, starts: Any, longest: int) -> Iterable[tuple[list[str], Any, Any]]:
    """For each n up to `longest`: the n-grams, the number of that at each position, and where texts begin."""
    n_texts, n_words = len(starts) - 1, len(words)
    text = np.repeat(np.arange(n_texts), np.diff(starts))
    first, grams, names = np.arange(len(ids)), ids.astype(np.int64), words
    yield names, ids, starts.astype(np.int32)
    for n in range(2, longest + 1):
        complete = first + n <= len(ids)
        complete[complete] = text[first[complete] + n - 1] == text[first[complete]]
        first = first[complete]
        pairs, grams = np.unique(grams[complete] * n_words + ids[first + n - 1], return_inverse=True)
        left, right = np.divmod(pairs, n_words)
        names = [f"{names[a]} {words[b]}" for a, b in zip(left.tolist(), right.tolist(), strict=True)]
        begins = np.concatenate([[0], np.cumsum(np.bincount(text[first], minlength=n_texts))])
        yield names, grams.astype(np.int32), begins.astype(np.int32)


def _summed(mentions: scipy.sparse.csr_array) -> tuple[scipy.sparse.csc_array, NDArray[np.int32]]:
    """The counts of mentions, given text by text, and the place of the first of each term in a text."""
    starts = mentions.indptr
    text = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
    mentions.data = np.arange(mentions.nnz, dtype=np.int32) - starts[text]
    by_term = mentions.tocsc()  # keeps the order of the mentions of a term
    changes = np.ones(mentions.nnz, bool)
    changes[1:] = by_term.indices[1:] != by_term.indices[:-1]
    changes[by_term.indptr[:-1][by_term.indptr[:-1] < mentions.nnz]] = True
    firsts = np.flatnonzero(changes)
    ends = np.searchsorted(firsts, by_term.indptr).astype(np.int32)
    counts = np.diff(firsts, append=mentions.nnz).astype(np.int32)
    pieces = counts, by_term.indices[firsts], ends
    return scipy.sparse.csc_array(pieces, shape=mentions.shape), by_term.data[firsts]


def _nbytes_of_texts(texts: Collection[str]) -> int:
    return sum(map(sys.getsizeof, texts)) + 8 * len(texts)
