"""Parameters of a search as axes: which values there are, in what order, on what scale."""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from manyfit.introspection.structural_key import Unkeyable, structural_key

LONGEST_TEXT, _LONGEST_SETTING = 24, 56
# A zero among values that are evenly spaced on a log scale has no place there; if there are at most so many
# values, each then has its own place. Texts of so many have all digits that tell them apart.
_MOST_PLACES = 30


class _NotSet:
    """The value of a parameter that a setting lacks, in a search over several grids."""

    def __repr__(self) -> str:
        return "not set"


NOT_SET = _NotSet()


@dataclass(frozen=True, eq=False)
class Parameter:
    """A parameter: its distinct values in the order of an axis, and for each setting which of them it has."""

    name: str
    label: str
    values: tuple[Any, ...]
    codes: NDArray[np.intp]

    @cached_property
    def scale(self) -> Literal["linear", "log", "categories"]:
        """The axis that shows the values best."""
        if not all(map(_is_finite, self.values)):
            return "categories"
        numbers_ = np.array([float(value) for value in self.values])
        if numbers_[0] > 0:
            return "log" if _is_even_on_log(numbers_) else "linear"
        positive = numbers_[numbers_ > 0]
        zero_and_log = numbers_[0] == 0 and _is_even_on_log(positive) and len(numbers_) <= _MOST_PLACES
        return "categories" if zero_and_log else "linear"

    @cached_property
    def positions(self) -> NDArray[np.float64]:
        """Where each distinct value stands: the number itself, or its rank among categories."""
        if self.scale == "categories":
            return np.arange(len(self.values), dtype=float)
        return np.array([float(value) for value in self.values])

    @cached_property
    def is_ordered(self) -> bool:
        """Whether the values are numbers, so that the axis has a direction."""
        return all(map(_is_finite, self.values))

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """A short text for each distinct value; only those of many numbers may be equal."""
        texts = [_text(value) for value in self.values]
        counts, seen = Counter(texts), Counter[str]()
        for i, text in enumerate(texts):
            if counts[text] > 1 and _is_finite(self.values[i]):
                if len(texts) <= _MOST_PLACES:
                    texts[i] = f"{float(self.values[i]):.15g}"
            elif counts[text] > 1:
                seen[text] += 1
                texts[i] = f"{text} ({seen[text]})"
        return tuple(texts)

    @property
    def varies(self) -> bool:
        return len(self.values) > 1


def read_parameters(params: Sequence[Mapping[str, Any]]) -> dict[str, Parameter]:
    """All parameters that any setting has, in the order in which they occur."""
    names = list(dict.fromkeys(name for one in params for name in one))
    labels = short_names(names)
    return {
        name: _parameter(name, labels[name], [one.get(name, NOT_SET) for one in params]) for name in names
    }


def column_of(name: str, values: Sequence[Any]) -> Parameter:
    """A parameter by itself, from one value for each setting."""
    return _parameter(name, short_names([name])[name], list(values))


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Each name without the steps that lead to it, as far as the rest is no other's."""
    names = list(names)
    short = {}
    for name in names:
        parts = name.split("__")
        ends = ("__".join(parts[-n:]) for n in range(1, len(parts) + 1))
        short[name] = next(
            end for end in ends if end == name or sum(_ends(other, end) for other in names) == 1
        )
    return short


def value_key(value: Any) -> tuple[Any, ...]:
    """Equal for values that stand in one place: 1 and 1.0 are the same number, True is none."""
    if isinstance(value, bool | np.bool_):
        return "bool", bool(value)
    if isinstance(value, numbers.Real):
        try:
            number = float(value)
        except OverflowError:
            return "number", value
        return "number", "nan" if np.isnan(number) else number
    if isinstance(value, str):
        return "text", str(value)
    try:
        return "content", structural_key(value)
    except Unkeyable:
        return "identity", id(value)


def _parameter(name: str, label: str, values: list[Any]) -> Parameter:
    keys = [value_key(value) for value in values]
    first: dict[Hashable, Any] = {}
    for key, value in zip(keys, values, strict=True):
        first.setdefault(key, value)
    order = sorted(first, key=lambda key: _rank(first[key]))
    places = {key: place for place, key in enumerate(order)}
    return Parameter(
        name,
        label,
        tuple(first[key] for key in order),
        np.array([places[key] for key in keys], dtype=np.intp),
    )


def _rank(value: Any) -> tuple[int, float]:
    """Numbers in order, then others as they occur, then what is not set."""
    number = value_key(value)
    if number[0] == "number" and isinstance(number[1], float):
        return 0, number[1]
    return (2 if value is NOT_SET else 1), 0


def _ends(name: str, end: str) -> bool:
    return name == end or name.endswith(f"__{end}")


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def _is_finite(value: Any) -> bool:
    try:
        return _is_number(value) and bool(np.isfinite(float(value)))
    except OverflowError:
        return False


def _is_even_on_log(values: NDArray[np.float64]) -> bool:
    """Whether sorted positive numbers span a factor of ten or more, and more evenly so on a log scale."""
    if len(values) < 2 or values[-1] < 9.99 * values[0]:
        return False
    linear, log = np.diff(values), np.diff(np.log(values))
    return len(values) == 2 or bool(log.std() / log.mean() < linear.std() / linear.mean())


def _text(value: Any) -> str:
    if isinstance(value, float | np.floating):
        text = number_text(float(value))
    elif isinstance(value, np.ndarray) and value.ndim and value.size > 3:
        text = f"array{list(value.shape)}".replace(" ", "")
    elif isinstance(value, str | np.generic):
        text = str(value)
    elif hasattr(value, "get_params") and not isinstance(value, type):
        text = _estimator_text(value)
    else:
        text = getattr(value, "__qualname__", None) or repr(value)
    text = " ".join(text.split())
    return shorten(text, LONGEST_TEXT)


def _estimator_text(estimator: Any) -> str:
    """An estimator with the parameters that are not defaults, or its class if that is too long."""
    text = " ".join(repr(estimator).split())
    return text if len(text) <= LONGEST_TEXT else type(estimator).__name__


def shorten(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def number_text(number: float) -> str:
    """A number with three digits, or as a whole number."""
    if 1000 <= abs(number) < 1e6 or (number.is_integer() and abs(number) < 1e6):
        return f"{number:.0f}"
    return f"{number:.3g}"


def describe_settings(params: Sequence[Mapping[str, Any]], shown: Sequence[int]) -> list[str]:
    """A short text for some settings, with the parameters in which they differ; for one, all that vary."""
    several = [params[i] for i in shown]
    varying = [one for one in read_parameters(several).values() if one.varies]
    if not varying:
        several = [*several, *params]
        varying = [one for one in read_parameters(several).values() if one.varies]
    texts = [
        ", ".join(
            f"{one.label}={one.texts[one.codes[i]]}"
            for one in varying
            if one.values[one.codes[i]] is not NOT_SET
        )
        for i in range(len(shown))
    ]
    return [shorten(text, _LONGEST_SETTING) or "the only setting" for text in texts]
