"""The command line: ``python -m manyfit [options] script.py``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import get_args

from manyfit.installation._install import install_settings
from manyfit.installation._ledger import Entry, recorded
from manyfit.installation._program import run_program
from manyfit.installation._settings import Settings
from manyfit.model_selection.search import Sharing, memory_limit_in_bytes

_USAGE = "python -m manyfit [options] (script.py | -m module | -c code | -) [arguments of the program]"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program that the command line names while manyfit is installed."""
    options, program = _parse(list(sys.argv[1:] if arguments is None else arguments))
    # To the end of the process: threads and exit functions of the program may outlive its last line.
    install_settings(Settings(options.sharing, options.verify, options.memory_limit, show_plans=options.plan))
    with _reporting(options.report):
        run_program(program)


def _parse(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """The options before the program, and the program with its arguments."""
    parser = argparse.ArgumentParser(
        "python -m manyfit",
        usage=_USAGE,
        description="Run a program whose searches by scikit-learn share the work of their fits.",
        allow_abbrev=False,
    )
    parser.add_argument("--plan", action="store_true", help="print the plan of each search to standard error")
    parser.add_argument(
        "--report",
        metavar="FILE",
        type=_report_file,
        help="write what was shared to a file; -: standard error",
    )
    parser.add_argument(
        "--verify", metavar="K", type=_number, default=0, help="fits of each search to repeat"
    )
    parser.add_argument(
        "--sharing", choices=get_args(Sharing), default="auto", help="how far fits share work"
    )
    parser.add_argument("--memory-limit", metavar="SIZE", type=_size, help='for shared work, such as "512MB"')
    n = 0
    while n < len(arguments) and arguments[n].startswith("--"):
        takes_value = arguments[n] in ("--report", "--verify", "--sharing", "--memory-limit")
        n += 2 if takes_value else 1
    if arguments[n : n + 1] == ["-h"]:
        n += 1
    options, program = parser.parse_args(arguments[:n]), arguments[n:]
    if not program or program in (["-m"], ["-c"]):
        parser.error("name a program to run: script.py, -m module, -c code, or -")
    if program[0].startswith("-") and program[0] != "-" and program[0][:2] not in ("-m", "-c"):
        parser.error(f"unknown option {program[0]}")
    return options, program


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not 0 or a positive whole number")
    return int(text)


def _size(text: str) -> str:
    try:
        memory_limit_in_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _report_file(text: str) -> str:
    folder = os.path.dirname(os.path.abspath(text))
    if text != "-" and not os.path.isdir(folder):  # known before the program runs, not after
        raise argparse.ArgumentTypeError(f"there is no folder {folder}")
    return text


@contextmanager
def _reporting(path: str | None) -> Iterator[None]:
    """Write the reports of all searches to a file when the program ends, also by an exception."""
    if path is None:
        yield
        return
    with recorded() as record:
        try:
            yield
        finally:
            text = _as_text(record)
            if path == "-":
                print(text, file=sys.stderr)
            else:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(f"{text}\n")


def _as_text(record: Sequence[Entry]) -> str:
    asked = sum(one.report.fits_requested for one in record)
    shared = sum(one.report.fits_shared for one in record)
    head = f"Searches and cross-validations: {len(record)}. Shared work answered {shared} of {asked} fits."
    return "\n\n".join([head, *(f"{i}. {one.title}\n{one.report}" for i, one in enumerate(record, 1))])
