"""Results of benchmarks at their full size, which the pages of the documentation show."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Cells = dict[str, str]


@dataclass(frozen=True)
class Results:
    """The results in a folder, and the default number of rounds of each benchmark."""

    folder: Path
    rounds: Mapping[str, int]

    def read(self, name: str, file: str | None = None) -> dict[str, Any]:
        """The last result of a benchmark at its full size."""
        results = json.loads((self.folder / f"{file or name}.json").read_text())["results"]
        (found,) = (result for result in results if result["name"] == name)
        if found["quick"]:
            raise ValueError(f"{name} was run with --quick, which no page shows")
        return dict(found)
