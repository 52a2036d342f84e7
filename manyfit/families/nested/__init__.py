"""Families of settings that nest: one fit of the largest setting holds the fits of the smaller ones."""

from manyfit.families.nested import _boosting, _forests, _trees  # noqa: F401  (they register themselves)
