"""What iterating families cost, shared and one by one; see `manyfit.families._protocol.Cost`."""

from dataclasses import dataclass

from manyfit.families._protocol import Cost, Shape
from manyfit.families.smooth.solver._penalty_path import HEAD, WORTH_PASSES

# Parameters that do not change an optimum, but where a solver stops on its way to it.
PATH_PARAMS = frozenset({"max_iter", "tol", "solver"})
# Passes that a fit takes where its Hessian is known in part.
SLOW_PASSES = 60.0


@dataclass(frozen=True)
class _Rates:
    """Nanoseconds of one core for n rows, d coefficients of each of q outputs, k splits and m settings.

    They were fitted to the CPU time of some 80 searches on one machine. A column is one output of a setting
    on a split. Its width w is the number of coefficients that have a Hessian in common.

    Attributes
    ----------
    fit, output, row, entry : float
        One by one: for each fit, output, n q and n q d.
    split, column, cell, product, hessian, vector : float
        Shared: for each split, column, n and n d of each column, m n w w, and coefficient of each column.
    """

    fit: float
    output: float
    row: float
    entry: float
    split: float
    column: float
    cell: float
    product: float
    hessian: float
    vector: float


# scikit-learn's L-BFGS, and liblinear, which takes the classes one after the other.
COUPLED = _Rates(3.2e6, 6.6e5, 138.0, 5.9, 7.8e6, 2.5e5, 64.0, 1.4, 0.02, 1100.0)
LIBLINEAR = _Rates(3.0e6, 0.0, 57.0, 42.0, 1.8e6, 8.7e5, 85.0, 1.4, 0.02, 3200.0)
# What a search takes beside: plans, the trial of scikit-learn's solver, and what `tol` leaves open.
BESIDE = 1.5e8
# Solving with a Hessian, of each coefficient to the third power.
FACTOR = 0.02


def pass_cost(n_settings: int, shape: Shape, *, coupled: bool = True) -> Cost:
    """Nanoseconds of an iterating family by shared passes, the trial of scikit-learn's solver included.

    Parameters
    ----------
    n_settings : int
        Settings of the group.
    shape : Shape
        Of the data.
    coupled : bool
        Whether the classes are fitted together, with one Hessian of all; else one after the other.
    """
    if shape.n_entries is not None:
        return _sparse_cost(n_settings, shape, coupled)
    n, d, k = shape.n_train, shape.n_features + 1, shape.n_splits
    outputs = shape.n_classes if shape.n_classes > 2 else 1
    rates = COUPLED if coupled else LIBLINEAR
    width, times = (d * outputs, 1) if coupled else (d, outputs)
    fits = n_settings * k
    columns = fits * outputs
    alone = fits * (rates.fit + outputs * (rates.output + n * (rates.row + rates.entry * d)))
    shared = BESIDE + k * rates.split + columns * (rates.column + n * rates.cell + rates.vector * width)
    if width <= WORTH_PASSES * fits:
        shared += columns * n * d * rates.product
        shared += times * (n_settings * n * width**2 * rates.hessian + fits * width**3 * FACTOR)
    else:
        # A dozen passes where Hessians are whole.
        shared += columns * n * d * rates.product * SLOW_PASSES / 12.0
    return Cost(shared, alone)


def _sparse_cost(n_settings: int, shape: Shape, coupled: bool) -> Cost:
    """Products with stored entries, and vectors: L-BFGS goes over twenty of them in each iteration.

    Shared, vectors are of features that several rows have, of texts one for a dozen entries or so, and
    longer than a cache, as those of single fits are not. liblinear takes a few dozen products, no vectors.
    """
    n, p, k = shape.n_entries or 0, shape.n_features, shape.n_splits
    outputs = shape.n_classes if shape.n_classes > 2 else 1
    # By entry and by coefficient, and both ways through a factor of what is known of a Hessian.
    a_pass = 3.0 * n + 60.0 * min(p, n // 8) + 4.0 * min(HEAD**2, n)
    vectors = 60.0 * p if coupled else 0.0
    columns = n_settings * k * outputs
    return Cost(
        BESIDE + SLOW_PASSES * columns * a_pass, n_settings * k * 1e6 + 30.0 * columns * (4.0 * n + vectors)
    )
