"""Operations of least-squares groups, by moments and one by one."""

from manyfit.families.protocol import Cost, Shape

# Operations of a millisecond, which validation, copies and Python of one scikit-learn fit and score take.
FIT_OVERHEAD = 1e6
# Operations of an eigendecomposition, in units of the cube of the columns, measured against a matrix product.
SPECTRUM_OPERATIONS = 10.0


def pass_operations(shape: Shape) -> float:
    """Operations of the pass that sums the moments of all rows."""
    k = shape.n_splits
    return shape.n_train * (shape.n_features + shape.n_targets) ** 2 * k / max(k - 1, 1)


def moment_cost(n_settings: int, shape: Shape) -> Cost:
    """Operations of a least-squares group by moments and one by one.

    By moments: one pass, then one eigendecomposition a fold. One by one: a Gram matrix on the shorter
    side and its factorisation, each fit.
    """
    n, p, k = shape.n_train, shape.n_features, shape.n_splits
    short, long = min(n, p), max(n, p)
    shared = pass_operations(shape) + k * (
        SPECTRUM_OPERATIONS * p**3 + 4.0 * n_settings * p**2 * shape.n_targets
    )
    individual = n_settings * k * (FIT_OVERHEAD + long * short**2 + short**3 / 3.0)
    return Cost(shared, individual)
