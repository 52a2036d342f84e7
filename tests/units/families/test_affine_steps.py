"""Each affine step gives the moments of the data that scikit-learn's fitted transformer gives."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_classif, f_regression
from sklearn.preprocessing import StandardScaler

from manyfit.estimators import affine_step_of
from manyfit.folds import Unsupported
from tests.device.estimators._views import assert_same_moments, real_moments, view_of

rng = np.random.default_rng(0)
N, P = 120, 6
X = rng.normal(size=(N, P)) @ rng.normal(size=(P, P)) + np.arange(P)
Y = X @ [1.0, 0.0, -2.0, 0.5, 0.0, 3.0] + rng.normal(size=N)


def apply(step, view):
    affine = affine_step_of(type(step))
    affine.check(step)
    return affine.apply(step, view)


def assert_like_sklearn(*steps, X=X, y=Y):
    view, Z = view_of(X, y), X
    for step in steps:
        view, Z = apply(step, view), step.fit_transform(Z, y)
    assert_same_moments(view.plain, real_moments(Z, y))
    return view


STEPS = {
    "scaler": [StandardScaler()],
    "scaler without mean": [StandardScaler(with_mean=False)],
    "scaler without std": [StandardScaler(with_std=False)],
    "scaler that does nothing": [StandardScaler(with_mean=False, with_std=False)],
    "variance": [VarianceThreshold(3.0)],
    "k best": [SelectKBest(f_regression, k=2)],
    "all best": [SelectKBest(f_regression, k="all")],
    "as many as there are": [SelectKBest(f_regression, k=P)],
    "pca": [PCA(3)],
    "pca of all": [PCA()],
    "pca by share": [PCA(0.9)],
    "pca whitened": [PCA(3, whiten=True)],
    "pca full": [PCA(2, svd_solver="full")],
    "pca covariance": [PCA(2, svd_solver="covariance_eigh")],
    "pca int of numpy": [PCA(np.int64(2))],
    "chain": [StandardScaler(), PCA(4), SelectKBest(f_regression, k=2), StandardScaler()],
    "selected first": [SelectKBest(f_regression, k=4), VarianceThreshold(0.5), StandardScaler(), PCA(2)],
    "pca twice": [PCA(4), PCA(2)],
}


@pytest.mark.invariant("Affine steps map moments as they map data")
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_moments_behind_steps(steps):
    assert_like_sklearn(*steps)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 1e6, -3.7e-5])
def test_the_scaler_leaves_constant_columns_unscaled(value):
    Z = X.copy()
    Z[:, 2] = value
    view = assert_like_sklearn(StandardScaler(), X=Z)
    assert view.plain.x_mean[2] == pytest.approx(0.0, abs=1e-9)
    step = StandardScaler().fit(Z)
    assert step.scale_[2] == 1.0


def test_the_variance_threshold_drops_constant_columns():
    Z = X.copy()
    Z[:, 2] = 0.1
    view = assert_like_sklearn(VarianceThreshold(), X=Z)
    np.testing.assert_array_equal(view.columns, [0, 1, 3, 4, 5])


@pytest.mark.invariant("Decisions that depend on rounding are left to scikit-learn")
@pytest.mark.parametrize("step", [StandardScaler(), VarianceThreshold()])
def test_nearly_constant_columns_are_left_to_sklearn(step):
    Z = X.copy()
    Z[:, 2] = 1.0
    Z[0, 2] = np.nextafter(1.0, 2.0)
    with pytest.raises(Unsupported, match="a feature is nearly constant: rounding decides"):
        apply(step, view_of(Z, Y))


def test_a_constant_behind_a_rotation():
    Z = np.c_[X[:, :2], X[:, :1]]  # rank 2: the third component is rounding
    with pytest.raises(Unsupported, match=r"eigenvalue|rotated feature"):
        apply(StandardScaler(), apply(PCA(3), view_of(Z, Y)))


@pytest.mark.invariant("Decisions that depend on rounding are left to scikit-learn")
def test_a_variance_at_the_threshold():
    with pytest.raises(Unsupported, match="a variance is within rounding of the threshold"):
        apply(VarianceThreshold(X[:, 1].var()), view_of(X, Y))


@pytest.mark.invariant("Decisions that depend on rounding are left to scikit-learn")
def test_f_values_that_tie():
    Z = np.c_[X, X[:, 0]]
    best_first = np.argsort(f_regression(Z, Y)[0])[::-1]
    ranks = np.flatnonzero(np.isin(best_first, [0, P]))  # where the twins stand
    k = int(ranks[0]) + 1
    with pytest.raises(Unsupported, match=r"the F values tie \(nearly\) at the cut"):
        apply(SelectKBest(f_regression, k=k), view_of(Z, Y))


@pytest.mark.filterwarnings("ignore:invalid value encountered in sqrt:RuntimeWarning")  # scikit-learn's
@pytest.mark.parametrize("k", [1, 3, 5])
def test_a_constant_column_that_is_not_near_the_cut(k):
    Z = X.copy()
    Z[:, 1] = 0.0
    step = SelectKBest(f_regression, k=k)
    view = apply(step, view_of(Z, Y))
    np.testing.assert_array_equal(view.columns, step.fit(Z, Y).get_support(indices=True))


@pytest.mark.parametrize("constant", [1e-3, 2.0, 1e6])
def test_f_value_of_a_constant_away_from_zero(constant):
    Z = X.copy()
    Z[:, 1] = constant
    with pytest.raises(Unsupported, match=r"constant away from 0|the F values tie"):
        apply(SelectKBest(f_regression, k=3), view_of(Z, Y))


REFUSED = [
    (VarianceThreshold(1e6), Y, "no feature meets the variance threshold"),
    (SelectKBest(f_classif, k=2), Y, "shared with f_regression only"),
    (SelectKBest(f_regression, k=0), Y, "k=0 is neither 'all' nor a positive integer"),
    (SelectKBest(f_regression, k=True), Y, "k=True is neither"),
    (SelectKBest(f_regression, k=0.5), Y, "k=0.5 is neither"),
    (SelectKBest(f_regression, k=P + 1), Y, "k is larger than the number of features"),
    (SelectKBest(f_regression, k=2), np.c_[Y, Y], "f_regression needs one target"),
    (SelectKBest(f_regression, k=2), np.ones(N), "y is constant"),
    (PCA("mle"), Y, "n_components='mle' is not served by moments"),
    (PCA(0), Y, "n_components=0 is not served"),
    (PCA(1.0), Y, "n_components=1.0 is not served"),
    (PCA(True), Y, "n_components=True is not served"),
    (PCA(P + 1), Y, "n_components is larger than the data allow"),
    (PCA(2, svd_solver="randomized"), Y, "svd_solver='randomized' is not deterministic"),
    (PCA(2, svd_solver="arpack"), Y, "svd_solver='arpack' is not deterministic"),
]


@pytest.mark.parametrize(("step", "y", "message"), REFUSED, ids=[message for *_, message in REFUSED])
def test_what_is_refused_is_named(step, y, message):
    with pytest.raises(Unsupported, match=message):
        apply(step, view_of(X, y))


def test_auto_is_refused_where_sklearn_draws_random_numbers():
    Z = rng.normal(size=(600, 520))
    assert PCA(5).fit(Z)._fit_svd_solver == "randomized"
    with pytest.raises(Unsupported, match="svd_solver='auto' resolves to the randomized solver"):
        apply(PCA(5), view_of(Z))


@pytest.mark.parametrize("shape", [(600, 20), (40, 30), (300, 450), (20, 40)])
@pytest.mark.parametrize("n_components", [None, 2, 0.5])
def test_auto_elsewhere_is_deterministic_and_served(shape, n_components):
    Z = rng.normal(size=shape) * np.linspace(1, 5, shape[1])
    step = PCA(n_components)
    assert step.fit(Z)._fit_svd_solver in ("full", "covariance_eigh")
    if n_components is None and shape[0] <= shape[1]:
        return  # one component less has any variance: see the test on rank
    view = apply(step, view_of(Z))
    assert_same_moments(view.plain, real_moments(step.transform(Z)), rtol=1e-7)  # close eigenvalues


@pytest.mark.invariant("Decisions that depend on rounding are left to scikit-learn")
def test_eigenvalues_that_tie_at_the_cut():
    Z = np.r_[np.eye(4), -np.eye(4)]  # a sphere: no direction is preferred
    with pytest.raises(Unsupported, match=r"eigenvalues at the cut \(nearly\) tie"):
        apply(PCA(2), view_of(Z))


def test_a_share_of_variance_at_a_step():
    share = PCA().fit(X).explained_variance_ratio_.cumsum()[2]
    with pytest.raises(Unsupported, match="share of variance is within rounding of a step"):
        apply(PCA(float(share)), view_of(X, Y))


def test_whitening_does_not_divide_by_rounding():
    Z = np.c_[X, X[:, 0] + X[:, 1]]
    with pytest.raises(Unsupported, match="whitening would divide by an eigenvalue that is rounding"):
        apply(PCA(P + 1, whiten=True), view_of(Z, Y))


@pytest.mark.invariant("Sample weights reach the last step and no transformer")
def test_weights_move_only_the_last_step():
    weights = rng.random(N)
    view = apply(StandardScaler(), view_of(X, Y, weights))
    Z = StandardScaler().fit_transform(X)  # without weights, as in a pipeline
    np.testing.assert_allclose(view.weighted.x_mean, np.average(Z, axis=0, weights=weights), atol=1e-12)
    np.testing.assert_allclose(view.plain.x_mean, 0, atol=1e-12)


def with_variances(*variances):
    """Rows whose principal components have exactly these variances, to the rounding of float64."""
    axes = np.linalg.qr(rng.normal(size=(N, len(variances))))[0]
    axes = np.linalg.qr(axes - axes.mean(axis=0))[0]
    return axes * np.sqrt(variances) @ np.linalg.qr(rng.normal(size=(len(variances),) * 2))[0]


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (PCA(2), r"eigenvalues at the cut \(nearly\) tie"),
        (PCA((5.0 + 1.0 + 1e-5) / (5.0 + 1.0 + 1e-5 + 1.0 + 1e-5) + 1e-7), "is within rounding of a step"),
        (PCA(whiten=True), "whitening would divide by an eigenvalue that is rounding"),
    ],
    ids=["tie", "share", "whitening"],
)
def test_what_float32_cannot_decide_is_left_to_sklearn(step, reason):
    """float64 can: its own thresholds are far below."""
    Z = with_variances(5.0, 1.0 + 1e-5, 1.0, 1e-5)
    apply(step, view_of(Z))
    with pytest.raises(Unsupported, match=reason):
        apply(step, view_of(Z.astype(np.float32)))
