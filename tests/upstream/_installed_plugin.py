"""A pytest plugin that installs manyfit, and writes outcomes and what was shared to a file."""

import json
import os
from contextlib import ExitStack
from pathlib import Path

from manyfit.installation import install
from manyfit.installation._ledger import Entry, recorded

_OUT = Path(os.environ["MANYFIT_TEST_OUTCOMES"])
_outcomes: dict[str, str] = {}
_records: list[list[Entry]] = []
_stack = ExitStack()


def pytest_configure() -> None:
    if os.environ["MANYFIT_TEST_INSTALL"] == "1":
        install()
        _records.append(_stack.enter_context(recorded()))


def pytest_runtest_logreport(report) -> None:
    if report.when == "call" or report.outcome != "passed":
        _outcomes[report.nodeid] = report.outcome


def pytest_unconfigure() -> None:
    _stack.close()
    entries = [entry for record in _records for entry in record]
    found = {
        "outcomes": _outcomes,
        "served": len(entries),
        "shared": sum(one.report.fits_shared for one in entries),
        "left": sorted({why for one in entries for why in one.report.left_to_sklearn}),
    }
    _OUT.write_text(json.dumps(found))
