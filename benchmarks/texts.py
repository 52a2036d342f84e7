"""Texts behind a vectorizer: each is tokenised once a search, and a fold selects terms of the counts."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from benchmarks import _bars as bars
from benchmarks._benchmark import Benchmark, register
from benchmarks._contenders import manyfit, sklearn
from benchmarks._floor import Work
from benchmarks._task import Data, Task

_LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))


def zipf_texts(quick: bool, classes: int = 2) -> Data:
    """Return texts of random words, which are as frequent as in a language, and their classes.

    Each class prefers words of its own.
    """
    n_texts, n_words, length = (200, 500, 20) if quick else (4_000, 30_000, 120)
    rng = np.random.default_rng(0)
    words = np.array(["".join(rng.choice(_LETTERS, size)) for size in rng.integers(2, 11, size=n_words)])
    frequency = 1.0 / np.arange(1, n_words + 1) ** 1.05
    preferred = frequency * np.exp(rng.normal(scale=0.5, size=(classes, n_words)))
    preferred /= preferred.sum(axis=1, keepdims=True)
    y = rng.integers(classes, size=n_texts)
    lengths = rng.integers(length // 2, length * 3 // 2, size=n_texts)
    texts = [
        " ".join(words[rng.choice(n_words, size=size, p=preferred[label])])
        for size, label in zip(lengths, y, strict=True)
    ]
    return np.array(texts, dtype=object), y


def tokens_work(task: Task, X: NDArray[Any], y: NDArray[Any]) -> Work:
    """Return the work of the words of all texts once, numbered, without n-grams.

    Random words are runs of letters between spaces, which Python cuts faster than a pattern finds them.
    """
    seconds = []
    for _ in range(3):
        start, numbers = time.perf_counter(), defaultdict[str, int](count().__next__)
        for text in X:
            deque(map(numbers.__getitem__, text.split()), maxlen=0)
        seconds.append(time.perf_counter() - start)
    return Work(sum(map(len, X)) + y.nbytes, 0.0, min(seconds))


def _task(quick: bool, estimator: Any, grid: dict[str, Any]) -> Task:
    return Task(estimator, {name: values[:2] if quick else values for name, values in grid.items()})


_TFIDF, _COUNTS = "tfidfvectorizer", "countvectorizer"
_SEARCHES: dict[str, tuple[str, Any, dict[str, Any], float, float]] = {
    # name: (what varies, last step, grid, bar, largest difference)
    "text-tfidf": (
        "TfidfVectorizer(2 min_df x 2 sublinear_tf) > MultinomialNB",
        make_pipeline(TfidfVectorizer(), MultinomialNB()),
        {f"{_TFIDF}__min_df": (1, 2), f"{_TFIDF}__sublinear_tf": (False, True)},
        6.0,
        0.0,
    ),
    "text-nb": (
        "CountVectorizer(2 ngram_range) > MultinomialNB(5 alpha)",
        make_pipeline(CountVectorizer(), MultinomialNB()),
        {f"{_COUNTS}__ngram_range": ((1, 1), (1, 2)), "multinomialnb__alpha": (0.01, 0.1, 0.3, 1.0, 3.0)},
        8.0,
        1e-9,
    ),
    "text-tfidf-svc": (
        "TfidfVectorizer > LinearSVC(4 C)",
        make_pipeline(TfidfVectorizer(), LinearSVC(random_state=0)),
        {"linearsvc__C": (0.01, 0.1, 1.0, 10.0)},
        3.0,
        1e-3,
    ),
    "text-sgd": (
        "TfidfVectorizer(2 ngram_range x 2 use_idf) > SGDClassifier(2 alpha)",
        make_pipeline(TfidfVectorizer(), SGDClassifier(random_state=0)),
        {
            f"{_TFIDF}__ngram_range": ((1, 1), (1, 2)),
            f"{_TFIDF}__use_idf": (False, True),
            "sgdclassifier__alpha": (1e-4, 1e-3),
        },
        3.0,
        0.0,
    ),
    "text-tfidf-logistic": (
        "TfidfVectorizer(2 sublinear_tf) > LogisticRegression(4 C), 4 classes",
        make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=1_000)),
        {f"{_TFIDF}__sublinear_tf": (False, True), "logisticregression__C": (0.1, 1.0, 10.0, 100.0)},
        1.7,
        1e-3,
    ),
}

for _name, (_what, _estimator, _grid, _least, _most) in _SEARCHES.items():
    register(
        Benchmark(
            name=_name,
            summary=f"{_what} x 5 folds, 4,000 texts",
            task=partial(_task, estimator=_estimator, grid=_grid),
            data=partial(zipf_texts, classes=4 if "logistic" in _name else 2),
            contenders=(manyfit(None), manyfit(-1), sklearn(None), sklearn(-1)),
            bars=(bars.times_faster(_least), bars.same_scores(_most)),
            work=tokens_work,
            repeat=3,
        )
    )
