"""What answers from the nearest k neighbours and from those within a radius have in common."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, Self, TypeVar

from manyfit.families.protocol import Answers, Array, Responses, Role
from manyfit.folds import Fold

Setting = TypeVar("Setting")
Fit = TypeVar("Fit")
Respond = TypeVar("Respond")
Found = TypeVar("Found")


@dataclass(frozen=True)
class NeighborhoodAnswers(Answers, Generic[Setting, Fit, Respond, Found]):
    """Answers of one estimator a setting, from neighbours that are looked for once for all of them."""

    settings: tuple[Setting, ...]  # what each setting asks for
    fit: Fit  # what is fitted on the fold
    methods: Mapping[str, Respond]  # by method: makes responses of what was found
    outputs: int  # numbers that a response has a row
    refused: Mapping[int, str] = field(default_factory=dict)
    classes: Array | None = None
    fits_made: int = 1

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        """See `Answers`."""
        return self.outputs

    def subset(self, settings: Sequence[int]) -> Self:
        return replace(self, settings=tuple(self.settings[j] for j in settings), refused={}, fits_made=0)

    def respond(self, role: Role, fold: Fold) -> Mapping[str, Array]:
        """See `Answers`; neighbours are found, or refused, before a method is read."""
        found = self.find(role, fold)
        return Responses(**{name: partial(self.response, name, found) for name in self.methods})

    def find(self, role: Role, fold: Fold) -> Found:
        """The neighbours of the rows of a role."""
        raise NotImplementedError

    def response(self, method: str, found: Found) -> Array:
        """The responses of a method for all settings, stacked."""
        raise NotImplementedError
