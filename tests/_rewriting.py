"""Processes of pytest-xdist share the rewriting of assertions, which takes ten seconds in a new checkout."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from _pytest.assertion import rewrite


def share_rewriting(config: pytest.Config) -> None:
    """Rewrite a part of the test modules in each process, before each of them imports all."""
    worker = getattr(config, "workerinput", None)
    if worker is None or sys.dont_write_bytecode:
        return
    modules = sorted(Path(__file__).parent.rglob("test_*.py"))
    for module in modules[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
        _rewrite(module, config)


def _rewrite(module: Path, config: pytest.Config) -> None:
    """Write the code that pytest looks for before it rewrites a module itself."""
    folder = rewrite.get_cache_dir(module)
    written = folder / f"{module.stem}{rewrite.PYC_TAIL}"
    if rewrite._read_pyc(module, written) is None and rewrite.try_makedirs(folder):
        version, code = rewrite._rewrite_test(module, config)
        rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, version, written)
