"""scikit-learn's vectorizers of text: their fitted state, and the class of their output."""

from collections.abc import Mapping
from typing import Any

import scipy.sparse

try:
    from sklearn.utils._sparse import _align_api_if_sparse as align_sparse
except ImportError:  # before scikit-learn 1.9

    def align_sparse(X: Any) -> Any:
        """Return a sparse matrix as an object of the class that scikit-learn's estimators return."""
        return scipy.sparse.csr_matrix(X)


__all__ = ["align_sparse", "set_vocabulary"]


def set_vocabulary(vectorizer: Any, vocabulary: Mapping[str, int], tfidf: Any = None) -> None:
    """Give a vectorizer the attributes of its fit; `tfidf` is the fitted transformer of a TfidfVectorizer."""
    if tfidf is not None:
        vectorizer._tfidf = tfidf
    vectorizer.fixed_vocabulary_ = vectorizer.vocabulary is not None
    vectorizer.vocabulary_ = vocabulary
    if vectorizer.analyzer == "word":
        vectorizer._stop_words_id = id(vectorizer.stop_words)
