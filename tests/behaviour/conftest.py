"""Fixtures of the tests of searches."""

from tests._search_fixtures import *  # noqa: F403  (fixtures are found by name)
