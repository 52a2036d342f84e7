"""The command: list the benchmarks, or run one or all of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks._benchmark import all_benchmarks
from benchmarks._measure import run
from benchmarks._report import table, write_json


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Run or list benchmarks.")
    parser.add_argument("name", nargs="?", help="a benchmark, or 'all'; without it they are listed")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write everything measured as JSON")
    parser.add_argument("--repeat", type=int, metavar="N", help="rounds (default: the benchmark's own)")
    parser.add_argument("--quick", action="store_true", help="a small size, to see that it works")
    parser.add_argument("--no-memory", action="store_true", help="leave out the peak of memory")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    known = all_benchmarks()
    if asked.name is None:
        width = max(map(len, known))
        print("\n".join(f"{name:{width}}  {benchmark.summary}" for name, benchmark in known.items()))
        return 0
    if asked.name != "all" and asked.name not in known:
        parser.error(f"no benchmark named {asked.name!r}; there are {', '.join(known)} and all")
    if asked.repeat is not None and asked.repeat < 1:
        parser.error(f"--repeat must be at least 1, got {asked.repeat}")
    results = []
    for benchmark in known.values() if asked.name == "all" else [known[asked.name]]:
        result = run(
            benchmark, repeat=asked.repeat, quick=asked.quick, memory=not asked.no_memory, progress=True
        )
        results.append(result)
        print(table(result), end="\n\n", flush=True)
        if asked.out is not None:  # after each, so that a long run that is stopped leaves what it measured
            write_json(results, asked.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
