"""The report of a search."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from manyfit.model_selection.results._report_view import as_html, as_text, describe_sharing
from manyfit.model_selection.results._work_counts import WorkCounts


@dataclass
class Report(WorkCounts):
    """The work that a search has done; `search.report_`. It holds no data, and prints as a table.

    Reports are equal where the same amount of work was done, whatever it took and in whatever groups.

    Attributes
    ----------
    fits_requested : int
        Settings times splits; with `time_budget` or `race`, the fits that have a result.
    fits_done : int
        Fits of the last estimator that were made, one by one or by families (the refit is not counted). A
        group shared through moments makes none.
    family_fits : int
        Those of `fits_done` that families made to answer their settings; the others were made one by one.
    engine_fits : int
        Those of `fits_done` that scikit-learn-intelex made (``engine="sklearnex"``).
    engine_compared : int
        Settings that both libraries fitted on the first split beforehand, to compare their scores; these fits
        do not count in `fits_done`.
    engine_difference : float or None
        Largest difference of their scores, relative to scikit-learn's where that is above 1.
    fits_shared : int
        Requested fits that shared work answered. With those made one by one and `fits_restored` they add up
        to `fits_requested`.
    fits_restored : int
        Fits whose results were in the checkpoint; they count neither as made nor as answered.
    transformer_fits : int
        Fits of transformers whose steps are shared or could have been. Those within fits that scikit-learn's
        own function made are not counted.
    transformer_fits_saved : int
        Fits of transformers that fits made one by one, and families behind steps, did not make, since another
        setting had made the same one.
    steps_repeated : int
        Fits and transforms of shared steps that were done again, since what they gave did not fit in
        ``memory_limit``.
    fits_continued : int
        Fits of a halving search that went on from the model of the round before; they count in `fits_done`.
    members_kept : int
        Trees and boosting iterations that they took from it, and did not make again.
    fitted_anew : dict of str to int
        With a parameter as the resource of a halving search: fits of later rounds that did not go on, by
        reason.
    passes : float
        Passes over X that shared fits made: those that summed moments, and those of iterating fits. Rows
        that were read by themselves count as a part of one. Predictions count for an X in chunks only.
    bytes_read : int
        Bytes of an X that is read in chunks, which the search read before its refit: those of passes, of
        samples and of predictions. 0 for an X in memory.
    bytes_to_device : int
        Bytes copied from the host to a device; 0 for data on the host.
    bytes_to_host : int
        Bytes copied back.
    synchronisations : int
        Times that the host waited for a device.
    transfers : dict of str to Crossings
        What crossed between host and device by reason, such as "y", "coefficients" or "transform of
        SimpleImputer": arrays and bytes to the device, arrays and bytes to the host. They add up to
        `bytes_to_device`, `bytes_to_host` and `synchronisations`.
    seconds : dict of str to float
        By kind of work: "plan", "moments", "shared iterations", "shared in folds", "one by one", "verify",
        "refit", "total". Work done by several workers at once is the sum over them.
    workers : int
        Workers that the one-by-one fits ran on.
    split_workers : dict of int to list of str
        On a cluster: for each split, the addresses of the workers that made its fits, shared ones included.
    groups : list of dict
        For each group: kind, estimator, settings (how many), candidates (their rows in `cv_results_`),
        fits_requested, reason; fits_undecided, those of which the plan said that it is decided when
        `decided_by` is seen; and left_to_sklearn, how many of its fits were left to scikit-learn, by reason.
    advice : list of str
        What a missing ``random_state`` cost, and what to set; that scores are optimistic, if they are. Then
        what the scores say: a parameter with one value; a best value that is the smallest or largest of at
        least three listed ones, unless the one beside it scores as well or the estimator takes none beyond;
        how many settings score less than one standard error below the best one, that of the difference over
        the splits (corrected as in `FoldScoresDisplay`). With a callable `refit` only the first.
    stopped : str or None
        With ``time_budget``: after how many seconds the search stopped, and how many settings have all their
        scores; None if all have.
    sample : str or None
        With ``sample``: how many of the rows the search was made on, and what drew them.
    dropped : list of dict
        With ``race``: for each setting that was not fitted on all splits since it was clearly worse, its
        ``candidate`` (row of ``cv_results_``), ``params``, ``fits``, and ``fits_not_made``.
    refit_n_iter : int or None
        With ``early_stopping="fold"``: iterations of the refit, the mean of the best setting's over the
        splits.
    left_to_sklearn : dict of str to int
        Pairs of setting and split that a shared group handed back to scikit-learn, by reason.
    as_good_as_best : list of dict
        Parameters of settings whose mean test score is nearer the best one's than ``tol`` tells: another fit
        that meets ``tol`` might choose them. Known of shared fits that iterate.
    verification : list of dict
        With ``verify=k``: for each pair that scikit-learn fitted again, its parameters, split, scorer,
        both scores and their difference, and the seconds of scikit-learn's fit and scores.
    """

    @property
    def largest_difference(self) -> float | None:
        """Largest difference of a score to scikit-learn's among the verified; None if none were."""
        differences = [row["difference"] for row in self.verification]
        return float(np.max(differences)) if differences else None  # NaN, if any is

    @property
    def verdict(self) -> str:
        """How many of the fits were answered by shared work, in a sentence."""
        return describe_sharing(self)

    def __str__(self) -> str:
        return as_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self)

    def to_frame(self) -> Any:
        """The groups of the search as a table.

        Returns
        -------
        pandas.DataFrame
            A row for each group, in the order of `groups`, with its entries as columns: how its settings
            were answered (``kind``), by which estimator, of how many fits, and why no more was shared.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        import pandas as pd

        return pd.DataFrame(self.groups)
