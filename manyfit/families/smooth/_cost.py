"""The base of iterating families, and their costs, shared and one by one."""

from dataclasses import dataclass
from typing import Any, Literal

from manyfit.families.protocol import Cost, Family, Iterations, Settings, Shape
from manyfit.families.smooth.solver._penalty_path import HEAD, WORTH_PASSES

# Passes of a fit whose Hessian is known in part.
SLOW_PASSES = 60.0


@dataclass(frozen=True)
class _Rates:
    """Nanoseconds of one core for n rows, d coefficients of each of q outputs, k splits and m settings.

    They were fitted to the CPU time of some 80 searches on one machine. A column is one output of a setting
    on a split. Its width w is the number of coefficients that have a Hessian in common. One by one: `fit`,
    `output`, `row` and `entry` count each fit, output, n q and n q d. Shared: `split`, `column`, `cell`,
    `product`, `hessian` and `vector` count each split, column, n and n d of each column, m n w w, and
    coefficient of each column.
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
# Nanoseconds of each search for plans, the trial of scikit-learn's solver and the doubts that `tol` leaves.
FIXED = 1.5e8
# The same where one-hot columns are stored as codes.
FIXED_CODES = 8e7
# For such rows: nanoseconds of scikit-learn for a row and each number that it stores, of a fit of some twenty
# iterations on sparse rows, and of the steps before it, once and for each number; and what a number adds to a
# row of cross tables.
SPARSE_ROW, SPARSE_ENTRY, STEPS, STEP_ENTRY, CROSS = 500.0, 15.0, 2e7, 150.0, 30.0
# Features a number, from which on categories get so rare that `tol` leaves scores open, and most of the fits
# that scikit-learn then makes.
RARE, MOST_OPEN = 20.0, 0.6
# Nanoseconds of a factorisation, for each coefficient to the third power.
FACTOR = 0.02


class IteratingFamily(Family):
    """Linear models that are fitted by passes over the rows of all folds, up to `tol`."""

    result: Literal["converged"] = "converged"
    reads = Iterations()
    path_params = frozenset({"max_iter", "tol", "solver"})

    def cost(self, estimator: Any, settings: Settings, shape: Shape) -> Cost:
        return pass_cost(len(settings), shape)


def pass_cost(n_settings: int, shape: Shape, *, coupled: bool = True) -> Cost:
    """Nanoseconds of an iterating family by shared passes, the trial of scikit-learn's solver included.

    `coupled`: whether the classes are fitted together, with one Hessian of all, or one after the other.
    """
    if shape.n_entries is not None:
        return _sparse_cost(n_settings, shape, coupled)
    n, d, k = shape.n_train, shape.n_features + 1, shape.n_splits
    outputs = shape.n_classes if shape.n_classes > 2 else 1
    rates = COUPLED if coupled else LIBLINEAR
    width, times = (d * outputs, 1) if coupled else (d, outputs)
    fits = n_settings * k
    columns = fits * outputs
    a_row, steps, fixed = rates.row + rates.entry * d, 0.0, FIXED
    entries, squares = float(d), width**2.0  # of products with a row
    if shape.row_entries is not None:
        # scikit-learn's rows are sparse, or dense and as expensive.
        a_row = min(a_row, SPARSE_ROW + SPARSE_ENTRY * shape.row_entries)
        steps = STEPS + (n + shape.n_test) * STEP_ENTRY * shape.row_entries
        # A row without entries, of constant columns only, leaves nothing open.
        open_ = min(MOST_OPEN, max(0.0, d / (shape.row_entries or d) / RARE - 1.0))
        fixed = FIXED_CODES + open_ * fits * (steps + rates.fit + outputs * (rates.output + n * a_row))
        entries = 2.0 * shape.row_entries
        squares = CROSS * (shape.row_entries * (outputs if coupled else 1)) ** 2.0
    individual = k * steps + fits * (rates.fit + outputs * (rates.output + n * a_row))
    shared = fixed + k * rates.split + columns * (rates.column + n * rates.cell + rates.vector * width)
    if width <= WORTH_PASSES * fits:
        shared += columns * n * entries * rates.product
        shared += times * (n_settings * n * squares * rates.hessian + fits * width**3 * FACTOR)
    else:
        # Whole Hessians need a dozen passes.
        shared += columns * n * entries * rates.product * SLOW_PASSES / 12.0
    return Cost(shared, individual)


def _sparse_cost(n_settings: int, shape: Shape, coupled: bool) -> Cost:
    """Products with stored entries, and vectors: L-BFGS goes over twenty of them in each iteration.

    Shared vectors hold the features of several rows, in texts one for a dozen entries or so, and do not fit a
    cache; those of single fits do. liblinear takes a few dozen products, no vectors.
    """
    n, p, k = shape.n_entries or 0, shape.n_features, shape.n_splits
    outputs = shape.n_classes if shape.n_classes > 2 else 1
    # By entry and by coefficient, and both ways through a factor of what is known of a Hessian.
    a_pass = 3.0 * n + 60.0 * min(p, n // 8) + 4.0 * min(HEAD**2, n)
    vectors = 60.0 * p if coupled else 0.0
    columns = n_settings * k * outputs
    return Cost(
        FIXED + SLOW_PASSES * columns * a_pass, n_settings * k * 1e6 + 30.0 * columns * (4.0 * n + vectors)
    )
