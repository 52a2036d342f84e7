"""
Texts: counts, tf-idf and naive Bayes
=====================================

SciPy has some thousand functions with docstrings. Which of its modules does a docstring belong to? The
texts come with SciPy.

A search over a vectorizer and a classifier has two kinds of parameters. A parameter of the vectorizer
changes the counts. A parameter of the classifier does not: manyfit makes the counts of a fold once for all
of its values.
"""

from importlib import import_module
from inspect import getdoc

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from manyfit.model_selection import GridSearchCV, SearchHeatmapDisplay, SharingDisplay

MODULES = "fft integrate interpolate linalg ndimage optimize signal sparse special stats"
texts, labels = [], []
for name in MODULES.split():
    module = import_module(f"scipy.{name}")
    for member in module.__all__:
        text = getdoc(getattr(module, member)) or ""
        if len(text) > 200:
            texts.append(text.replace(name, ""))
            labels.append(name)
print(len(texts), "docstrings,", sum(map(len, texts)), "characters")

# %%
# The plan counts the fits of the transformer, too: one for each split and each of its settings.

model = make_pipeline(TfidfVectorizer(stop_words="english"), MultinomialNB())
grid = {
    "tfidfvectorizer__min_df": [1, 2, 5],
    "multinomialnb__alpha": np.logspace(-4, 1, 16),
}
search = GridSearchCV(model, grid, cv=4)
print(search.plan(texts, labels))

# %%
# Little smoothing is best. Cells within one standard error of the best one are outlined.

search.fit(texts, labels)
SearchHeatmapDisplay.from_search(search, "tfidfvectorizer__min_df", "multinomialnb__alpha")

# %%
# Fits asked for and made, and the seconds of each phase.

SharingDisplay.from_search(search)
