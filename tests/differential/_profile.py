"""Profiles: reproducible and short by default, ``MANYFIT_FUZZ=thorough`` for random examples by the thousand.

``MANYFIT_FUZZ_EXAMPLES`` sets the number of examples of each family in either.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

# An example runs a few dozen small fits, and drawing one is many small choices: slow is no sign of a fault.
QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

THOROUGH = os.environ.get("MANYFIT_FUZZ") == "thorough"
EXAMPLES = int(os.environ.get("MANYFIT_FUZZ_EXAMPLES", "500" if THOROUGH else "2"))

settings.register_profile(
    "differential-ci",
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=QUIET,
    print_blob=False,
)
settings.register_profile(
    "differential-thorough",
    max_examples=EXAMPLES,
    derandomize=False,
    deadline=None,
    suppress_health_check=QUIET,
    phases=[Phase.reuse, Phase.generate, Phase.shrink],
    report_multiple_bugs=False,
    print_blob=False,
)
PROFILE = settings.get_profile("differential-thorough" if THOROUGH else "differential-ci")
