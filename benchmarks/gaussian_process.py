"""GaussianProcessRegressor with a fixed kernel: one kernel matrix serves all alphas."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import make_regression
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from benchmarks import _bars as bars
from benchmarks._benchmark import Benchmark, register
from benchmarks._contenders import manyfit, searches
from benchmarks._floor import reading_work
from benchmarks._task import Data, Task


def _data(quick: bool) -> Data:
    X, y = make_regression(150 if quick else 1_500, 20, noise=10.0, random_state=0)
    return X, (y - y.mean()) / y.std()


def _task(quick: bool) -> Task:
    model = GaussianProcessRegressor(optimizer=None)
    kernels = [RBF(scale) for scale in (2.0, 5.0, 10.0)]
    return Task(model, {"kernel": kernels[: 1 if quick else 3], "alpha": np.logspace(-3, 1, 5)})


register(
    Benchmark(
        name="gp-kernel",
        summary="GaussianProcessRegressor(optimizer=None), 5 alphas x 3 kernels x 5 folds, 1,500 x 20",
        task=_task,
        data=_data,
        contenders=searches(manyfit(), manyfit(-1)),
        bars=(bars.times_faster(3), bars.same_scores(1e-9)),
        work=reading_work,
        repeat=1,
    )
)
