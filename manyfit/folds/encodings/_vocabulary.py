"""The vocabulary of a vectorizer on a fold, made when it is first read: few are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray


class LearnedVocabulary(Mapping[str, int]):
    """The numbers of some terms of `all_terms`, in an order; copies and pickles are plain dicts.

    `plain`: the numbers are Python's integers, as scikit-learn has them without `max_features`.
    """

    def __init__(
        self, all_terms: NDArray[Any], terms: NDArray[Any], numbers: NDArray[Any], plain: bool
    ) -> None:
        self._all_terms, self._terms, self._numbers, self._plain = all_terms, terms, numbers, plain

    @cached_property
    def _found(self) -> dict[str, int]:
        numbers = self._numbers.tolist() if self._plain else self._numbers.astype(np.int64)
        return dict(zip(self._all_terms[self._terms].tolist(), numbers, strict=True))

    def __getitem__(self, term: str) -> int:
        return self._found[term]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._terms)

    def __deepcopy__(self, memo: Any) -> dict[str, int]:
        return dict(self._found)

    def __reduce__(self) -> tuple[Callable[..., dict[str, int]], tuple[dict[str, int]]]:
        return dict, (self._found,)
