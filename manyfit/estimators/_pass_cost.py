"""What iterating families cost, by shared passes and one by one; see `manyfit.estimators._family.Cost`."""

from manyfit.estimators._family import Cost, Shape
from manyfit.estimators._hessians import COEFFICIENTS_A_COLUMN
from manyfit.estimators._stage import HEAD, WORTH_PASSES

# Passes that a fit takes where its Hessian is known in part.
SLOW_PASSES = 60.0
# Bytes of X that a cache holds, and operations that it takes to begin with another class.
CACHE = 2**21
SETTING_UP = 2e8


def pass_cost(n_settings: int, shape: Shape, *, coupled: bool = True) -> Cost:
    """Operations of an iterating family by shared passes, and one by one.

    By passes: about a dozen over all settings and splits, a Hessian or two of each setting, and a factor of
    one for each setting and split; several dozen passes where Hessians are known in part. One by one: about
    thirty iterations a fit.

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
    width, times = (d * outputs, 1) if coupled else (d, outputs)
    columns = n_settings * k
    if width <= WORTH_PASSES * columns:
        # Products with themselves of wide matrices, whose operations take a fifth of those of narrow ones.
        hessians = 1.5 * min(n_settings, max(1.0, COEFFICIENTS_A_COLUMN * columns / width))
        shared = times * (
            12.0 * 4.0 * n * width * columns + 0.2 * hessians * n * width**2 + 0.5 * columns * width**3
        )
    else:
        shared = times * SLOW_PASSES * 4.0 * n * width * columns
    # One problem a class: scikit-learn's finds an X that fits a cache there, where single products are fast.
    in_cache = not coupled and outputs > 1 and 8.0 * n * d < CACHE
    begun = SETTING_UP * times if times > 1 else 0.0
    iterations = 12.0 if in_cache else 30.0
    return Cost(shared + begun, columns * (1e6 + times * iterations * 4.0 * n * width))


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
    return Cost(SLOW_PASSES * columns * a_pass, n_settings * k * 1e6 + 30.0 * columns * (4.0 * n + vectors))
