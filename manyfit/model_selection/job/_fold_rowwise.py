"""Outputs of rowwise steps and vectorizers for the rows of one split, cut from what was made of all rows."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from manyfit._compat import safe_indexing
from manyfit.folds import FittedVectorizer, TermCounts, TermSelection, Unsupported, selection_key
from manyfit.model_selection.job._rowwise_prefix import RowwiseOutputs, RowwisePrefix, is_rowwise

Rows = Any  # indices of rows of X, or a mask


class FoldRowwise:
    """The part of one split in `RowwiseOutputs`.

    `rows` refers weakly to a method, since data are in no cycle. It returns token and index of the training
    and of the test rows; it is called at the first use.
    """

    def __init__(
        self,
        rowwise: RowwiseOutputs,
        rows: weakref.WeakMethod[Callable[[], Sequence[tuple[int | None, Rows]]]],
    ) -> None:
        self._outputs, self._rows = rowwise, rows
        self._known: dict[int, tuple[RowwisePrefix, Rows]] | None = None
        self._last: tuple[Hashable, TermSelection] | None = None
        self._fitted = weakref.WeakKeyDictionary[Any, FittedVectorizer]()

    def fit_transform(self, step: Any, token: int | None, fit: Callable[[], Any]) -> Any:
        """Fit a step to the input with a token and return its output; None if the step has to run.

        `fit` fits a rowwise step, which learns nothing, but may refuse.
        """
        prefix, rows = self._place(token)
        if prefix is None:
            return None
        counts = self._outputs.term_counts(prefix, step)
        if counts is None:
            output = self.transform(step, token, step)
            if output is not None:
                fit()
            return output
        try:
            fitted = FittedVectorizer(step, self._selected(step, counts, token, rows))
        except Unsupported:  # most often since the fit raises
            return None
        self._fitted[step] = fitted
        return fitted.transform_train()

    def _selected(self, step: Any, counts: TermCounts, token: int | None, rows: Rows) -> TermSelection:
        """The terms that a vectorizer selects; settings that weight them in another way follow each other."""
        key = token, selection_key(step)
        if self._last is None or self._last[0] != key:
            self._last = key, TermSelection(step, counts, rows)
        return self._last[1]

    def transform(self, step: Any, token: int | None, fitted: Any) -> Any:
        """The output of a step for the input with a token; None if the `fitted` step has to run."""
        prefix, rows = self._place(token)
        if prefix is None:
            return None
        if fitted in self._fitted:
            try:
                return self._fitted[fitted].transform(rows)
            except Unsupported:
                return None
        prefix = prefix.then(step)
        whole = None if prefix is None else self._outputs.all_rows(prefix)
        return None if whole is None else safe_indexing(whole, rows)

    def follow(self, step: Any, token: int | None, made: int) -> None:
        """Note that the output of a step for the input `token` has the token `made`."""
        if is_rowwise(step):
            prefix, rows = self._place(token)
            self._note(None if prefix is None else prefix.then(step), rows, made)

    def follow_column(self, column: Any, token: int | None, made: int) -> None:
        """Note that one column of the input `token` has the token `made`."""
        prefix, rows = self._place(token)
        self._note(None if prefix is None else prefix.of_column(column), rows, made)

    def _note(self, prefix: RowwisePrefix | None, rows: Rows, made: int) -> None:
        if prefix is not None:
            self._tokens()[made] = prefix, rows

    def _place(self, token: int | None) -> tuple[RowwisePrefix | None, Rows]:
        return (None, None) if token is None else self._tokens().get(token, (None, None))

    def _tokens(self) -> dict[int, tuple[RowwisePrefix, Rows]]:
        if self._known is None:
            read = self._rows()
            found = [] if read is None else read()
            self._known = {token: (RowwisePrefix(), rows) for token, rows in found if token is not None}
        return self._known
