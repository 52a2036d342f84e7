"""The protocol of transformers of which one fit, the wide one, serves several values of a parameter."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from manyfit._compat import learned_attributes
from manyfit.introspection.class_names import ClassTable
from manyfit.introspection.randomness import Sizes
from manyfit.introspection.structural_key import structural_key


class NestedRule:
    """How the wide fit of a transformer becomes its fits with other values of some parameters."""

    serves: tuple[type, ...]  # the exact types of the transformers
    params: tuple[str, ...]  # the parameters that nest

    def kind(self, step: Any) -> Hashable:
        """A key beside all other parameters: one fit serves only transformers with equal keys."""
        return None

    def nests(self, step: Any, sizes: Sizes) -> bool:
        """Whether a wide fit may serve an unfitted transformer, for input of some sizes."""
        return True

    def wide(self, step: Any, asked: Sequence[Any], X: Any) -> Any:
        """An unfitted transformer whose fit serves `step`, or `step` itself; None if `step` needs its own.

        `asked` are the unfitted transformers of all settings that may read the fit.
        """
        return step if self.holds(step, None, X) else None

    def needs_output(self, wide: Any, X: Any) -> bool:
        return False

    def holds(self, step: Any, wide: Any, X: Any) -> bool:
        """Whether a fitted `wide` serves `step`, whose own fit neither warns nor raises.

        `wide` is None before there is one: the answer is then about the value of `step` alone.
        """
        raise NotImplementedError

    def narrow(self, step: Any, wide: Any, X: Any) -> None:
        """Give an unfitted `step` what its own fit would learn, from a fitted `wide`."""
        vars(step).update(learned_attributes(wide))

    def output(self, step: Any, output: Any) -> Any:
        """The output of ``fit_transform`` of a narrowed `step`; None if it is that of ``transform``.

        `output` is that of the wide fit, as an array; None if it was not read.
        """
        return None

    def transform(self, step: Any) -> Callable[[Any], Any]:
        """The method by which a narrowed `step` transforms."""
        return step.transform  # type: ignore[no-any-return]


# The modules of this room that serve classes of scikit-learn; tests hold that they do.
RULES = ClassTable[NestedRule](
    {
        f"sklearn.{name}": f"manyfit.model_selection.sharing.nested.{module}"
        for module, names in {
            "_clusters": "cluster.FeatureAgglomeration",
            "_decompositions": "decomposition.PCA",
            "_imputers": "impute.KNNImputer",
            "_paths": "feature_selection.RFE feature_selection.SequentialFeatureSelector",
            "_selectors": """
                feature_selection.GenericUnivariateSelect feature_selection.SelectFdr
                feature_selection.SelectFpr feature_selection.SelectFromModel feature_selection.SelectFwe
                feature_selection.SelectKBest feature_selection.SelectPercentile
                feature_selection.VarianceThreshold""",
        }.items()
        for name in names.split()
    }
)


def register_rule(rule: NestedRule) -> None:
    RULES.register(rule, *rule.serves)


def nested_rule(step: Any) -> NestedRule | None:
    """The rule of an unfitted transformer, if it has one."""
    return RULES.get(type(step))


def nested_key(step: Any) -> Hashable | None:
    """A key that is equal for transformers that one fit may serve; None for one without a rule."""
    rule = nested_rule(step)
    if rule is None:
        return None
    one = copy.copy(step)
    vars(one).update(dict.fromkeys(rule.params))
    return "nested", rule.kind(step), structural_key(one)


def is_number(value: Any, kind: type, least: float = 0, most: float = np.inf) -> bool:
    """Whether a value is a number of a kind in a range, and no bool."""
    return isinstance(value, kind) and not isinstance(value, bool) and least <= value <= most  # type: ignore[operator]


def is_count(value: Any, least: int, most: int) -> bool:
    return is_number(value, Integral, least, most)


def is_fraction(value: Any) -> bool:
    """Whether a value is a number above 0 and up to 1, and no integer."""
    return is_number(value, Real, 0, 1) and value > 0 and not isinstance(value, Integral)
