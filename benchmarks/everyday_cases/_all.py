"""All cases, by name, in the order of the tables."""

from __future__ import annotations

# Each registers its cases.
from benchmarks.everyday_cases import _ensembles, _frames_and_text, _functions, _linear, _others  # noqa: F401
from benchmarks.everyday_cases._case import CASES

__all__ = ["CASES"]
