"""What scorers ask a fitted estimator for."""

from typing import Any

from sklearn.base import is_classifier

from manyfit._compat import PassthroughScorer, plain_scorer, scorers_by_name
from manyfit.metrics import SharedScoring


def stay_there(scoring: SharedScoring, n_targets: int) -> bool:
    """Whether predictions of a family are scored on a device: of one target, and all known there."""
    return n_targets == 1 and scoring.known_there(("predict", "predict_proba", "decision_function"))


class Asked:
    """What the scorers of a search ask of each fit, as far as they are scikit-learn's.

    Parameters
    ----------
    scorer : callable
        One scorer, or a bundle of several.

    Attributes
    ----------
    users : int
        Scorers that may do anything with a fitted estimator. Each is taken to call ``predict`` once, and to
        read y where it is.
    """

    def __init__(self, scorer: Any) -> None:
        self._own, self.users, self._methods = 0, 0, list[tuple[str, ...]]()
        for one in scorers_by_name(scorer).values():
            found = plain_scorer(one)
            if isinstance(one, PassthroughScorer):
                self._own += 1
            elif found is None:
                self.users += 1
            else:
                method = found[3]
                self._methods.append((method,) if isinstance(method, str) else tuple(method))

    @property
    def responses(self) -> int:
        """Times that the steps of a pipeline are applied to the rows of a role: once for each method."""
        return self._own + self.users + len(set(self._methods))

    @property
    def readers(self) -> int:
        """Scorers of scikit-learn's, each of which reads y."""
        return self._own + len(self._methods)

    @property
    def labels(self) -> bool:
        """Whether ``predict`` of a classifier is asked for, by a scorer or by its own score."""
        return self._own + self.users > 0 or ("predict",) in self._methods

    @property
    def ranks(self) -> bool:
        """Whether a scorer takes decisions or probabilities, whichever there are: by their order alone."""
        return any(len(names) > 1 for names in self._methods)

    def values_of(self, estimator: Any) -> list[str]:
        """Methods of an estimator that scorers ask for numbers, each once."""
        asked = [next((n for n in names if hasattr(estimator, n)), names[0]) for names in self._methods]
        return list(dict.fromkeys(n for n in asked if not (n == "predict" and is_classifier(estimator))))

    def readers_of(self, estimator: Any, own: bool) -> list[Any]:
        """Scorers that read numbers, with y beside them; `own`: its own score works where X lies, too."""
        if is_classifier(estimator):
            return [names for names in self._methods if names != ("predict",)]
        return [*self._methods, *(["score"] * self._own if own else [])]
