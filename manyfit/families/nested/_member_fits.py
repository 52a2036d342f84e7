"""Members of ensembles that remember fits and predictions: equal ones are made once for equal rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from manyfit.families.protocol import CLASSIFIER_METHODS, refused_warnings
from manyfit.folds import Unsupported
from manyfit.introspection.structural_key import structural_key


class MemberMemory:
    """Fitted members of one fold by parameters and content of their rows, and their predictions."""

    def __init__(self) -> None:
        self.n_fits = 0
        self._fitted: dict[Hashable, Any] = {}
        self._predicted: dict[Hashable, Any] = {}
        self._failed: dict[Hashable, str] = {}

    def fit(self, member: Any, rows: tuple[Any, ...], params: dict[str, Any]) -> tuple[Hashable, Any]:
        """The key of a fit, and the fitted member, which no caller may change.

        A fit that warns is refused, now and whenever it is asked for: scikit-learn's own fit then warns.
        """
        key = structural_key(member), structural_key((*rows, params), by_identity=False)
        if key in self._failed:
            raise Unsupported(self._failed[key])
        if key not in self._fitted:
            self.n_fits += 1
            try:
                with refused_warnings(f"a fit of {type(member).__name__}"):
                    self._fitted[key] = clone(member).fit(*rows, **params)
            except Unsupported as why:
                self._failed[key] = str(why)
                raise
        return key, self._fitted[key]

    def predict(self, key: Hashable, method: str, fitted: Any, X: Any) -> Any:
        """The predictions of a fitted member; a copy, since callers may change it."""
        asked = key, method, structural_key(X, by_identity=False)
        if asked not in self._predicted:
            self._predicted[asked] = getattr(fitted, method)(X)
        return self._predicted[asked].copy()


class MemberFit(BaseEstimator):
    """Takes the place of a member in an ensemble, whose own code clones, fits and asks it."""

    def __init__(self, member: Any, memory: MemberMemory) -> None:
        self.member, self.memory = member, memory

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MemberFit:
        """Fit the member, or remember its fit."""
        params = {} if sample_weight is None else {"sample_weight": sample_weight}
        self._key, self._fitted = self.memory.fit(self.member, (X, y), params)
        return self

    @property
    def _target(self) -> Any:
        return vars(self).get("_fitted", vars(self).get("member"))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_key", "_fitted"):
            raise AttributeError(name)
        found = getattr(self._target, name)
        if name in CLASSIFIER_METHODS and "_fitted" in vars(self):
            remembered: Callable[[Any], Any] = partial(self.memory.predict, self._key, name, self._fitted)
            remembered.__name__ = name  # type: ignore[attr-defined]  # scikit-learn reads it
            return remembered
        return found

    def __sklearn_clone__(self) -> MemberFit:
        return MemberFit(clone(self.member), self.memory)

    def __sklearn_tags__(self) -> Any:
        return get_tags(self._target)

    def __sklearn_is_fitted__(self) -> bool:
        try:
            check_is_fitted(self._target)
        except NotFittedError:
            return False
        return True
