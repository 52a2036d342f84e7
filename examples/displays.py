"""The pictures of docs/displays.md: ``python -m examples.displays [FOLDER]``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.decomposition import PCA
from sklearn.linear_model import HuberRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manyfit.model_selection import GridSearchCV, SearchCurveDisplay, SearchHeatmapDisplay, SharingDisplay

FOLDER = Path(__file__).parent.parent / "docs" / "images"


def pictures() -> dict[str, Any]:
    """Draw each display; return them by the name of their file."""
    X, y = load_diabetes(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), PCA(), Ridge())
    grid = {"pca__n_components": range(1, 11), "ridge__alpha": np.logspace(-1, 4, 11)}
    search = GridSearchCV(pipeline, grid).fit(X, y)
    huber = HuberRegressor(max_iter=1000)
    other = {"ridge": [huber], "ridge__epsilon": [1.2, 1.5, 2.0], "ridge__alpha": [0.01, 1.0]}
    mixed = GridSearchCV(pipeline, [grid, other]).fit(X, y)
    phone = plt.subplots(2, 1, figsize=(4, 5.4), layout="constrained", height_ratios=[1.2, 1])[1]
    return {
        "search_curve": SearchCurveDisplay.from_search(search, "ridge__alpha"),
        "search_heatmap": SearchHeatmapDisplay.from_search(search, "pca__n_components", "ridge__alpha"),
        "sharing": SharingDisplay.from_search(mixed),
        "sharing_phone": SharingDisplay.from_search(mixed, ax=phone),
    }


def main(folder: Path) -> None:
    """Write the pictures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, display in pictures().items():
        display.figure_.savefig(folder / f"{name}.png", dpi=90)


if __name__ == "__main__":
    matplotlib.use("Agg")
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
