"""Profiles: reproducible and short by default, ``MANYFIT_FUZZ=thorough`` for random examples by the thousand.

``MANYFIT_FUZZ_EXAMPLES`` sets the number of examples of each family in the thorough profile.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings

from ._subject import sharing_whatever_it_costs

# An example runs a few dozen small fits, and drawing one is many small choices: slow is no sign of a fault.
QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile(
    "differential-ci",
    max_examples=8,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=QUIET,
    print_blob=False,
)
settings.register_profile(
    "differential-thorough",
    max_examples=int(os.environ.get("MANYFIT_FUZZ_EXAMPLES", "500")),
    derandomize=False,
    deadline=None,
    suppress_health_check=QUIET,
    phases=[Phase.reuse, Phase.generate, Phase.shrink],
    report_multiple_bugs=False,
    print_blob=False,
)
PROFILE = settings.get_profile(
    "differential-thorough" if os.environ.get("MANYFIT_FUZZ") == "thorough" else "differential-ci"
)


@pytest.fixture(autouse=True)
def _always_share() -> Iterator[None]:
    with sharing_whatever_it_costs():
        yield
