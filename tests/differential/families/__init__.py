"""The registered families, one module for those that belong together."""

from tests.differential.families import iterated, least_squares, one_by_one

__all__ = ["iterated", "least_squares", "one_by_one"]
