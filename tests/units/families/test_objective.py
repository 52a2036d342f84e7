"""Gradients of linear problems behind steps, against the objective of data that were really transformed."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from manyfit.estimators import affine_step_of
from manyfit.families.smooth.solver._losses import HalfMultinomial, HalfTweedie, SquaredHinge
from manyfit.families.smooth.solver._objective import Columns, LinearProblem, RowLoss
from manyfit.folds import NumPyRows, Unsupported
from manyfit.folds.passes._dense import DensePasses
from manyfit.folds.passes._sparse import SparsePasses
from tests.device.estimators._views import view_of

rng = np.random.default_rng(0)
N, P = 90, 4
X = rng.normal(size=(N, P)) @ rng.normal(size=(P, P)) + np.array([3.0, 0.0, -50.0, 1.0])
ROWS = [slice(0, 40), slice(40, 90)]
LABELS = rng.integers(0, 3, N)
WEIGHT = rng.random(N) * (rng.random(N) > 0.2)
INTERCEPTS = ["free", "penalised", "none"]
STEPS = {
    "none": [],
    "scaled": [StandardScaler()],
    "rotated": [StandardScaler(), PCA(3)],
    "rotated as it is": [PCA()],
}


def plain_losses(loss, Z, y):
    """Losses of linear predictors (n, K), written out."""
    if isinstance(loss, HalfMultinomial):
        return np.log(np.exp(Z).sum(axis=1)) - Z[np.arange(len(Z)), y]
    if isinstance(loss, SquaredHinge):
        return np.maximum(0.0, 1.0 - y * Z[:, 0]) ** 2
    return np.exp(Z[:, 0]) - y * Z[:, 0]


LOSSES = {
    "multinomial": (HalfMultinomial(3), np.eye(3)[:, LABELS], LABELS),
    "poisson": (HalfTweedie(1.0), LABELS[None].astype(float), LABELS),
    "hinge": (SquaredHinge(), np.sign(LABELS - 0.5)[None], np.sign(LABELS - 0.5)),
}


def split_of(i):
    """Rows of a split, repeated as it repeats them."""
    return np.concatenate(
        [np.tile(np.arange(N)[rows], int(c)) for rows, c in zip(ROWS, COUNTS[i], strict=True)]
    )


COUNTS = np.array([[1.0, 0.0], [2.0, 1.0]])


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize(("loss", "targets", "y"), LOSSES.values(), ids=LOSSES)
def test_gradient_behind_steps(intercept, steps, loss, targets, y):
    views, Zs = [], []
    for i in range(2):
        index = split_of(i)
        view, Z = view_of(X[index]) if steps else None, X
        for step in steps:
            view = affine_step_of(type(step)).apply(step, view)
            Z = step.fit(Z[index]).transform(Z)
        if steps:  # components are free to choose their signs
            seen = view.from_X((X - view.origin).T).T + view.plain.x_origin
            Z = Z * np.sign((seen * Z).sum(axis=0))
            np.testing.assert_allclose(seen, Z, rtol=1e-9, atol=1e-9)
        views.append(view)
        Zs.append(Z)
    classes = np.array([[1.0, 2.0, 0.5], [0.3, 1.0, 3.0]])
    rowwise = RowLoss(loss, targets, WEIGHT, classes, LABELS)
    split = np.array([0, 1, 1])
    total = np.array([sum(WEIGHT[j] * classes[i, LABELS[j]] for j in split_of(i)) for i in split])
    summed = [
        sum(c * rowwise.total(rows, int(i)) for c, rows in zip(COUNTS[i], ROWS, strict=True)) for i in split
    ]
    np.testing.assert_allclose(total, summed, rtol=1e-12)
    columns = Columns(split, np.array([0.1, 1.0, 0.0]), total, COUNTS[split])
    passes = DensePasses(NumPyRows(X), ROWS, np.median(X, axis=0) if not steps else views[0].origin)
    if steps:  # one origin for all splits, as the views of one X have
        views = [shifted(view, passes.origin) for view in views]
    problem = LinearProblem(passes, rowwise, columns, views, intercept)
    K, q = loss.n_outputs, Zs[0].shape[1]
    W = 0.1 * rng.normal(size=(3, K, q + 1))
    if intercept == "none":
        W[:, :, -1] = 0.0
    got = problem.gradient(W, np.arange(3))

    def objective(w, c):
        i, index = split[c], split_of(split[c])
        about = problem.at_origin(int(i)) if intercept == "free" else np.zeros(q)
        Z = (Zs[i] - about) @ w[:, :-1].T + w[:, -1]
        weights = WEIGHT[index] * classes[i, LABELS[index]]
        mean = (weights * plain_losses(loss, Z[index], y[index])).sum() / total[c]
        held = w if intercept == "penalised" else w[:, :-1]
        return mean + columns.penalty[c] / 2 * (held**2).sum()

    for c in range(3):
        for at in np.ndindex(K, q + 1):
            if intercept == "none" and at[1] == q:
                assert got[c][at] == 0.0
                continue
            e = np.zeros((K, q + 1))
            e[at] = 1e-6
            slope = (objective(W[c] + e, c) - objective(W[c] - e, c)) / 2e-6
            np.testing.assert_allclose(got[c][at], slope, rtol=1e-5, atol=1e-6)
    # Its size is that of scikit-learn's gradient, where the intercept is the value at zero.
    for c, size in enumerate(problem.size(got, np.arange(3))):
        own = got[c].copy()
        if intercept == "free":
            own[:, :-1] += own[:, -1:] * problem.at_origin(int(split[c]))
        np.testing.assert_allclose(size, np.abs(own).max(), rtol=1e-12)


def shifted(view, origin):
    """The same view with its map about another point."""
    from dataclasses import replace

    moved = view.plain.x_origin + view.from_X((origin - view.origin)[:, None])[:, 0]
    return replace(view, plain=replace(view.plain, x_origin=moved), origin=origin)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_sparse_rows_have_the_gradient_of_dense_ones(intercept):
    A = np.where(rng.random((N, P)) < 0.5, X, 0.0)
    rowwise = RowLoss(HalfMultinomial(3), np.eye(3)[:, LABELS], WEIGHT)
    columns = Columns(np.array([0, 1]), np.array([0.1, 1.0]), np.array([5.0, 7.0]), COUNTS)
    W = rng.normal(size=(2, 3, P + 1))
    G = [
        LinearProblem(passes, rowwise, columns, [None, None], intercept).gradient(W, np.arange(2))
        for passes in (DensePasses(NumPyRows(A), ROWS, np.zeros(P)), SparsePasses(sp.csr_array(A), ROWS))
    ]
    np.testing.assert_allclose(G[0], G[1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("bad", [-1e-300, np.nan])
def test_weights_that_make_no_convex_objective(bad):
    weight = np.where(np.arange(N) == 3, bad, 1.0)
    with pytest.raises(Unsupported, match="a weight is negative or NaN"):
        RowLoss(SquaredHinge(), np.ones((1, N)), weight)
    with pytest.raises(Unsupported, match="a weight is negative or NaN"):
        RowLoss(SquaredHinge(), np.ones((1, N)), None, np.array([[1.0, bad]]), LABELS)
