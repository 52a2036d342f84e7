"""What crosses on the way of data on a device to the workers of a cluster."""

from __future__ import annotations

from sklearn.base import is_classifier

from manyfit.folds import is_foreign
from manyfit.model_selection._job import Job
from manyfit.model_selection._lend import bytes_of
from manyfit.model_selection._move import READ, Moves

_SENT = "it is sent to the workers from there"
_ARRIVED = "it is worked on there; what crosses then is in no plan and no report"


def name_moves_to_workers(job: Job, moves: Moves) -> None:
    """Name what this process brings home, and what each worker sends to its device; how many is not known.

    Parameters
    ----------
    job : Job
        The search, with a client.
    moves : Moves
        Takes what is found.
    """
    given = job.options
    if is_foreign(job.y) and is_classifier(job.estimator):
        moves.add("y", "host", "once a search", 1, bytes_of(job.y), READ)
    named = {"X": job.X, "y": job.y, **given.fit_params, **given.score_params}
    there = {what: one for what, one in named.items() if is_foreign(one)}
    for what, one in there.items():
        moves.add(what, "host", "once a search", 1, bytes_of(one), _SENT)
    for what, one in there.items():
        moves.add(what, "device", "once a worker", None, bytes_of(one), _ARRIVED)
