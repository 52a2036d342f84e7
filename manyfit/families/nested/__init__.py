"""Families of settings that nest: one fit of the largest setting holds the fits of the smaller ones."""

from manyfit.families.nested import (  # noqa: F401  (they register themselves)
    _boosting,
    _boosting_libraries,
    _composites,
    _elimination,
    _forests,
    _isolation,
    _trees,
)
