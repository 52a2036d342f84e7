"""Ensembles of given members: voting, stacking, calibration. Members that settings share are fitted once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier, StackingRegressor, VotingClassifier, VotingRegressor

from manyfit.families.nested._member_fits import MemberFit, MemberMemory
from manyfit.families.nested._prefix import fit_silently, require_known_parts, require_no_draws
from manyfit.families.protocol import (
    Answers,
    Cost,
    FoldFamily,
    ModelAnswers,
    Responses,
    Setting,
    Settings,
    Shape,
    lazy_responses,
    made_or_refused,
    register_family,
)
from manyfit.folds import Fold, Unsupported
from manyfit.introspection.structural_key import structural_key

# A final estimator reads few columns: the part that its fit takes of a member's.
_FINAL = 0.1


def ensemble_responses(X: Any, models: Sequence[Any]) -> Responses:
    """Responses of fitted ensembles, one for each setting."""
    return lazy_responses(models[0], lambda method: np.stack([getattr(one, method)(X) for one in models]))


class CompositeFamily(FoldFamily):
    """Ensembles that clone their members, fit and ask each: equal members are fitted once a fold."""

    def members(self, ensemble: Any) -> dict[str, Any]:
        """The members of an ensemble by name, without those that are dropped."""
        return {name: one for name, one in ensemble.estimators if not isinstance(one, str)}

    def with_members(self, ensemble: Any, members: Mapping[str, Any]) -> Any:
        """Put members in place of those of the same name."""
        return ensemble.set_params(
            estimators=[(name, members.get(name, one)) for name, one in ensemble.estimators]
        )

    def check(self, estimator: Any, settings: Settings) -> None:
        for setting in settings:
            model = clone(estimator).set_params(**clone(dict(setting), safe=False))
            if not self.members(model):
                raise Unsupported("no member is given")
            if getattr(model, "cv", None) == "prefit":
                raise Unsupported("cv='prefit' fits no member")
            for name, value in model.get_params(deep=True).items():
                leaf = name.rpartition("__")[2]
                if leaf.startswith("copy") and value is False:
                    raise Unsupported(f"{name}=False may write into the rows of other members")
                if leaf == "verbose" and value:
                    raise Unsupported(f"{name}={value!r} prints each fit")
            require_known_parts(model)
            require_no_draws(model)

    def cost(self, estimator: Any, settings: Settings, shape: Shape) -> Cost:
        distinct, made, fits, asked = set[Any](), 0.0, 0, 0.0
        for setting in settings:
            model = clone(estimator).set_params(**clone(dict(setting), safe=False))
            keys = {structural_key(one) for one in self.members(model).values()}
            # A member is fitted on parts of the rows, too; by default scikit-learn cuts five.
            cv = getattr(model, "cv", 0)
            inner = 1 + (cv if isinstance(cv, int) else 5)
            asked += len(keys) * inner + _FINAL
            made += len(keys - distinct) * inner + _FINAL
            fits += bool(keys - distinct)
            distinct |= keys
        columns = shape.n_features if shape.n_entries is None else shape.n_entries / shape.n_train
        one = shape.n_splits * shape.n_train * columns * 100
        # Rows are read once more, for the keys of fits: sharing nothing is no gain.
        memory = 8 * shape.n_train * (shape.n_classes or 1) * len(distinct)
        return Cost(one * made * 1.01, one * asked, fits=fits * shape.n_splits, memory=memory)

    def fit_fold(self, estimator: Any, settings: Settings, fold: Fold) -> Answers:
        memory, first, made = MemberMemory(), list[Any](), 0

        def fit(setting: Setting) -> Any:
            nonlocal made
            model = clone(estimator).set_params(n_jobs=1, **clone(dict(setting), safe=False))
            own = {name: MemberFit(one, memory) for name, one in self.members(model).items()}
            before = memory.n_fits
            try:
                model = fit_silently(self.with_members(model, own), fold)
            finally:
                made += memory.n_fits > before
            first.append(model)
            methods = [[*ensemble_responses(None, [one])] for one in (model, first[0])]
            if methods[0] != methods[1]:  # a scorer would read another one
                raise Unsupported("it predicts by other methods than the first setting")
            return model

        models, refused = made_or_refused(fit, settings)
        if not first:
            raise Unsupported(refused[0])
        classes = first[0].classes_ if is_classifier(estimator) else None
        return ModelAnswers(models, ensemble_responses, refused, classes, made)


class VotingFamily(CompositeFamily):
    """Voting by scikit-learn's estimators."""

    serves = (VotingClassifier, VotingRegressor)
    free = frozenset({"estimators", "weights"})


class StackingFamily(CompositeFamily):
    """Stacking: members and their cross-validated predictions are made once for all final estimators."""

    serves = (StackingClassifier, StackingRegressor)
    free = frozenset({"estimators", "final_estimator", "passthrough"})


class CalibrationFamily(CompositeFamily):
    """Calibrated classifiers: one fit of the classifier on each inner fold serves all methods."""

    serves = (CalibratedClassifierCV,)
    free = frozenset({"estimator", "method"})

    def members(self, ensemble: Any) -> dict[str, Any]:
        return {} if ensemble.estimator is None else {"estimator": ensemble.estimator}

    def with_members(self, ensemble: Any, members: Mapping[str, Any]) -> Any:
        return ensemble.set_params(**members)


register_family(VotingFamily())
register_family(StackingFamily())
register_family(CalibrationFamily())
