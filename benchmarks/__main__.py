"""The command: list the benchmarks, or run one or all of them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks._benchmark import Benchmark, all_benchmarks
from benchmarks._full_results import Results
from benchmarks._measure import run
from benchmarks._pages import ROOT, write_pages
from benchmarks._report import table, write_json
from benchmarks._result import Result
from benchmarks._study import Findings, Study
from benchmarks.gpu._place import IMITATION

RESULTS = ROOT / "benchmarks" / "results"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Run benchmarks, or list them.")
    parser.add_argument("name", nargs="?", help="a benchmark, what several begin with, or 'all'")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write everything measured as JSON")
    parser.add_argument("--repeat", type=int, metavar="N", help="rounds (default: the benchmark's own)")
    parser.add_argument("--quick", action="store_true", help="a small size, to see that it works")
    parser.add_argument("--no-memory", action="store_true", help="leave out the peak of memory")
    parser.add_argument(
        "--write-docs", action="store_true", help="write the results in benchmarks/results into the pages"
    )
    # Tests the GPU benchmarks without a GPU: small data, on arrays of this library.
    parser.add_argument("--imitate", metavar="LIBRARY", help=argparse.SUPPRESS)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    known = all_benchmarks()
    if asked.write_docs:
        rounds = {name: one.repeat for name, one in known.items() if isinstance(one, Benchmark)}
        changed = write_pages(Results(RESULTS, rounds))
        print("\n".join(f"{page} was changed" for page in changed) or "The pages have these results already.")
        return 0
    if asked.name is None:
        width = max(map(len, known))
        print("\n".join(f"{name:{width}}  {benchmark.summary}" for name, benchmark in known.items()))
        return 0
    chosen = _chosen(asked.name, known)
    if not chosen:
        parser.error(f"no benchmark named {asked.name!r}; there are {', '.join(known)} and all")
    if asked.repeat is not None and asked.repeat < 1:
        parser.error(f"--repeat must be at least 1, got {asked.repeat}")
    if asked.imitate:
        asked.quick, os.environ[IMITATION] = True, asked.imitate
    results: list[Result | Findings] = []
    for benchmark in chosen:
        why = benchmark.why_not() if isinstance(benchmark, Study) else None
        if why is not None:
            if asked.name != "all":
                print(why, file=sys.stderr)
                return 1
            print(f"{benchmark.name}: not run. {why}", end="\n\n", flush=True)
            continue
        result = _result(benchmark, asked)
        results.append(result)
        print(table(result), end="\n\n", flush=True)
        if asked.out is not None:  # after each benchmark, in case the run is stopped
            write_json(results, asked.out)
    return 0


def _chosen(name: str, known: Mapping[str, Benchmark | Study]) -> list[Benchmark | Study]:
    """All benchmarks, the one with this name, or those whose names begin with it."""
    if name in known:
        return [known[name]]
    return [benchmark for other, benchmark in known.items() if name == "all" or other.startswith(f"{name}-")]


def _result(benchmark: Benchmark | Study, asked: argparse.Namespace) -> Result | Findings:
    if isinstance(benchmark, Study):
        return benchmark.run(quick=asked.quick, progress=True)
    return run(benchmark, repeat=asked.repeat, quick=asked.quick, memory=not asked.no_memory, progress=True)


if __name__ == "__main__":
    sys.exit(main())
