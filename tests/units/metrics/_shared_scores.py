"""Scores of many settings at once beside those of scikit-learn's scorer."""

from __future__ import annotations

import warnings

import numpy as np

from manyfit.metrics import ScoredTargets, SharedScoring


def shared_and_own(scorer, estimator, y, responses, classes=None, weight=None):
    """Our scores, NaN where the scorer has to be called, and scikit-learn's, NaN where it warns or raises."""
    params = {} if weight is None else {"sample_weight": weight}
    shared = SharedScoring(scorer, params, estimator)
    truth = ScoredTargets(np.asarray(y), weight, classes, getattr(y, "dtype", None))
    m = len(next(iter(responses.values())))
    ours = shared.from_responses(responses, truth).get("score", np.full(m, np.nan))
    theirs = []
    for j in range(m):
        stub = shared.stub({method: P[j] for method, P in responses.items()}, classes)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                theirs.append(scorer(stub, None, y, **params))
            except Exception:
                theirs.append(np.nan)
    return ours, np.array(theirs, dtype=float)
