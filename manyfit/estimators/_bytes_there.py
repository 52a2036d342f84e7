"""What iterations take of a device's memory, told before they are made: what there is at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from manyfit.estimators._hessians import HESSIANS_AS_A_RULE, SAMPLE_ROWS, SUMS, bytes_of_samples
from manyfit.estimators._lbfgs import LBFGS
from manyfit.estimators._path import COARSER, SMALL_ROWS
from manyfit.estimators._stage import HEAD, WORTH_PASSES, settings_at_once, settings_of_a_wave
from manyfit.folds import Gone, Rows, bytes_of_gradient, bytes_of_gram, length_of


@dataclass(frozen=True)
class Iterated:
    """What is iterated, over the splits of one atom group.

    Attributes
    ----------
    X : array of shape (n, p)
        Anywhere: what it takes is that of its shape and dtype on a device.
    n_settings : int
        Settings.
    n_sets : int
        Splits.
    n_outputs : int
        Outputs of each linear predictor.
    atoms : sequence of slice or ndarray of int
        The rows of each atom.
    share : float
        Of the splits that train on an atom.
    n_rowwise : int
        Numbers of each row beside the targets of all outputs: a weight, a class.
    """

    X: Any
    n_settings: int
    n_sets: int
    n_outputs: int
    atoms: Sequence[Rows]
    share: float
    n_rowwise: int = 0


def bytes_of_iterations(asked: Iterated, memory_limit: int) -> int:
    """Bytes of a device that iterations take at most beside X and y.

    Parameters
    ----------
    asked : Iterated
        See there.
    memory_limit : int
        That of the search, in bytes.

    Returns
    -------
    int
        Within a fifth, for the losses of the families here. Hessians are taken to be summed in single
        precision.
    """
    (n, p), K, sets = asked.X.shape, asked.n_outputs, asked.n_sets
    stages = _stages(n, K * (p + 1))
    settings = settings_at_once(sets, asked.n_settings, K, p + 1, LBFGS().memory, memory_limit / 2)
    if len(stages) == 1:
        settings = min(settings, settings_of_a_wave(sets, K))
    columns = settings * sets
    n_features = p
    if K * (p + 1) > WORTH_PASSES * sets * asked.n_settings:
        n_features = max(0, min(HEAD, int(min(n * p, memory_limit) ** 0.5)) // K - 1)
    sums = len(asked.atoms) * (K * (n_features + 1)) ** 2
    # One serves the same setting on all splits, as a rule.
    n_kept = min(settings, HESSIANS_AS_A_RULE, max(1, SUMS // sums))
    apart = any(not isinstance(rows, slice) for rows in asked.atoms)
    lie, found, largest = n * (K + asked.n_rowwise + apart), [], max(map(length_of, asked.atoms))
    for j, rows in enumerate(stages):
        gone = Gone(asked.X, -(-largest * rows // n), len(asked.atoms), apart or j > 0)
        sampled = len(range(0, rows, max(1, rows // SAMPLE_ROWS)))
        # Stages of more rows wait, with what they look at; rows of all but the last are chosen one by one.
        lie += sampled * p + (rows if j else 0)
        compared, held = bytes_of_samples(sampled, columns, K)
        gradient = bytes_of_gradient(gone, columns, K, asked.share)
        gram = bytes_of_gram(gone, K, n_features, n_kept)
        found.append(8 * lie + max(compared, held + gradient, held + gram))
    return max(found)


def _stages(n: int, size: int) -> list[int]:
    """Rows of all stages, those of the last one first."""
    found, share = [n], 1
    while n >= share * COARSER * SMALL_ROWS * size:
        share *= COARSER
        found.append(-(-n // share))
    return found
