"""The demo, on grids and data that take moments."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
from joblib import parallel_config
from matplotlib.image import imread

from examples import demo


def _small(example):
    X, y = example.data
    grid = {name: values[:2] for name, values in example.grid.items()}
    return replace(example, grid=grid, data=(X[:150], y[:150]), n_jobs=None)


def test_prints_plans_tables_and_the_place_of_the_figure(monkeypatch, capsys, tmp_path):
    small = [_small(example) for example in demo.examples()]
    monkeypatch.setattr(demo, "examples", lambda: small)
    monkeypatch.setattr(demo, "_FIGURE", tmp_path / "demo.png")
    with parallel_config(backend="threading"):  # processes take longer to start than these searches
        demo.main()
    printed = capsys.readouterr()
    for example in small:
        assert example.title in printed.out
    assert printed.out.count("Plan:") == printed.out.count("fits asked for  ") == len(small)
    assert printed.out.count("the same setting as scikit-learn's") == len(small)
    assert printed.out.count("what scikit-learn's own tol (1e-4) leaves") == 1
    assert printed.out.count("from scikit-learn n_jobs=-1 tol=1e-06") == 1
    assert f"figure: {tmp_path / 'demo.png'}" in printed.out
    assert "100%" in printed.err  # the progress bar
    assert printed.out.count("fits of SVC, as many as scikit-learn") == 1
    picture = imread(tmp_path / "demo.png")
    assert picture.shape[0] > 500
    assert len({tuple(pixel) for pixel in picture[::8, ::8, :3].reshape(-1, 3).tolist()}) > 10


def test_difference_fires():
    def outcome(last):
        results = {"split0_test_score": np.array([1.0, 2.0]), "split1_test_score": np.array([3.0, last])}
        return demo.Outcome(SimpleNamespace(n_splits_=2, cv_results_=results), 1.0)

    assert demo._difference(outcome(4.0), outcome(4.0)) == 0
    assert demo._difference(outcome(4.5), outcome(4.0)) == 0.5
