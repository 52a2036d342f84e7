"""Frames with gaps and categories, and texts."""

from __future__ import annotations

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC

from benchmarks.everyday_cases._case import grid
from benchmarks.everyday_cases._data import NUMBERS, WORDS, frame, texts


def _encoded(last: object) -> Pipeline:
    scaled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    columns = make_column_transformer((scaled, NUMBERS), (OneHotEncoder(handle_unknown="ignore"), WORDS))
    return Pipeline([("columns", columns), ("last", last)])


def _numbered(last: object) -> Pipeline:
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    columns = make_column_transformer((codes, WORDS), remainder="passthrough")
    return Pipeline([("columns", columns), ("last", last)])


_C = {"last__C": np.logspace(-2, 1, 6)}
_STRATEGIES = "columns__pipeline__simpleimputer__strategy"

grid("frame-ridge", frame(8_000, labels=False), _encoded(Ridge()), {"last__alpha": np.logspace(-2, 3, 10)})
grid(
    "frame-imputed-ridge",
    frame(8_000, labels=False),
    _encoded(Ridge()),
    {_STRATEGIES: ["mean", "median"], "last__alpha": np.logspace(-2, 3, 5)},
)
grid("frame-logistic", frame(8_000), _encoded(LogisticRegression()), _C, scoring="roc_auc")
grid("frame-svc", frame(1_000), _encoded(SVC()), _C)
grid(
    "frame-forest",
    frame(1_500),
    _encoded(RandomForestClassifier(30, random_state=0)),
    {"last__min_samples_leaf": [1, 3]},
    cv=3,
)
grid(
    "frame-hist-boosting",
    frame(4_000),
    _numbered(HistGradientBoostingClassifier(max_iter=30, random_state=0)),
    {"last__learning_rate": [0.05, 0.1], "last__max_leaf_nodes": [15, 31]},
    cv=3,
)

grid(
    "text-count-bayes",
    texts(1_000),
    make_pipeline(CountVectorizer(), MultinomialNB()),
    {"multinomialnb__alpha": np.logspace(-2, 1, 6)},
)
grid(
    "text-tfidf-bayes",
    texts(1_000),
    make_pipeline(TfidfVectorizer(), MultinomialNB()),
    {"tfidfvectorizer__min_df": [1, 3], "tfidfvectorizer__sublinear_tf": [False, True]},
)
grid(
    "text-tfidf-logistic",
    texts(800),
    make_pipeline(TfidfVectorizer(), LogisticRegression()),
    {"tfidfvectorizer__sublinear_tf": [False, True], "logisticregression__C": [1.0, 10.0]},
    cv=3,
)
grid(
    "text-tfidf-svc",
    texts(1_000),
    make_pipeline(TfidfVectorizer(), LinearSVC()),
    {"linearsvc__C": [0.1, 1.0, 10.0]},
)
grid(
    "text-sgd",
    texts(1_000),
    make_pipeline(TfidfVectorizer(), SGDClassifier(random_state=0)),
    {"tfidfvectorizer__ngram_range": [(1, 1), (1, 2)], "sgdclassifier__alpha": [1e-5, 1e-4]},
    cv=3,
)
