"""Metrics of many settings at once, wherever predictions lie: what a kernel sees, and how it is called."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from manyfit.arrays import array_namespace, block_size, float_dtype, to_device_of
from manyfit.folds import Unsupported
from manyfit.metrics.kernels._label_codes import encoded, require_exact

Array = Any

# Bytes of predictions that a kernel sees at a time on the host, where a second-level cache holds them from
# one step to the next, and elsewhere, where each call costs a launch.
HOST_BYTES = 2**19
DEVICE_BYTES = 2**28

Kind = Literal["numbers", "labels", "scores", "probabilities"]


@dataclass(frozen=True)
class Targets:
    """What the predictions of n rows are scored against; arrays lie where the predictions do.

    Attributes
    ----------
    numbers : array of shape (n,) or (n, q), or None
        Targets of regression, or indicators of several labels.
    codes : array of int64 of shape (n,), or None
        Positions of labels in `classes`.
    classes : ndarray of shape (n_classes,), or None
        Sorted labels; on the host.
    weight : array of shape (n,), or None
        Sample weights; None: all 1.
    rows : dict
        Numbers and weights in the precision for predictions of a dtype, for all blocks of settings.
    """

    numbers: Array = None
    codes: Array = None
    classes: Any = None
    weight: Array = None
    rows: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 if there are none."""
        return 0 if self.classes is None else len(self.classes)

    def mean(self, rows: Array) -> Array:
        """Weighted mean along the last axis, of shape (n,)."""
        xp = array_namespace(rows)
        if not xp.isdtype(rows.dtype, "real floating"):
            rows = xp.astype(rows, float_dtype(rows) if self.weight is None else self.weight.dtype)
        if self.weight is None:
            return xp.mean(rows, axis=-1)
        return xp.sum(rows * self.weight, axis=-1) / xp.sum(self.weight)


@dataclass(frozen=True)
class MetricKernel:
    """A metric that takes the predictions of many settings.

    Attributes
    ----------
    kernel : callable
        ``kernel(targets, P, **options)`` returns scores of shape (m,), where `P` lies, from predictions of m
        settings: numbers of shape (m, n) or (m, n, q); codes of labels, of shape (m, n) and an integer dtype;
        or scores of classes, (m, n) or (m, n, n_classes). Array API only, no shape that depends on data, and
        nothing that makes the host wait. NaN where scikit-learn refuses these predictions.
    kind : {"numbers", "labels", "scores", "probabilities"}
        What it reads; probabilities are scores in [0, 1].
    options : dict
        Keyword arguments of scikit-learn's function, with the values that they have if not given. An option
        that is not here is not supported.
    rowwise : bool
        Whether it is the mean of a loss of each row, which is defined for any targets.
    """

    kernel: Callable[..., Array]
    kind: Kind
    options: Mapping[str, Any] = field(default_factory=dict)
    rowwise: bool = False

    def __call__(
        self,
        y_true: Array,
        predictions: Array,
        *,
        sample_weight: Array | None = None,
        classes: Any = None,
        max_bytes: int | None = None,
        **options: Any,
    ) -> Array:
        """Scores of m settings.

        Parameters
        ----------
        y_true : array of shape (n,), (n, q) or (n, n_labels)
            Targets, where the predictions lie or on the host.
        predictions : array of shape (m, n) or (m, n, q)
            Of m settings.
        sample_weight : array of shape (n,), optional
            Where the predictions lie or on the host.
        classes : ndarray of shape (n_classes,), optional
            Sorted labels, on the host. By default they are looked for, for which the host waits twice.
        max_bytes : int, optional
            Predictions that are scored at a time; the kernel takes a small multiple of it beside them.
        **options : dict
            See the class.

        Returns
        -------
        array of shape (m,)
            Where the predictions lie.

        Raises
        ------
        Unsupported
            If an option is not supported, or labels or scores are not told apart by the dtype they are
            brought to.
        """
        strange = set(options) - set(self.options)
        if strange:
            raise Unsupported(f"{', '.join(sorted(strange))} is not supported for many settings")
        targets, predictions = as_targets(self.kind, y_true, predictions, sample_weight, classes)
        chosen = {**self.options, **options}
        return in_chunks(lambda P: self.kernel(targets, P, **chosen), predictions, max_bytes)


def as_targets(
    kind: Kind, y_true: Array, predictions: Array, sample_weight: Array | None = None, classes: Any = None
) -> tuple[Targets, Array]:
    """What a kernel is given of targets and predictions; see `MetricKernel.__call__`."""
    xp = array_namespace(predictions)
    if kind == "probabilities":
        kind = "scores"
    if kind == "scores":
        require_exact(predictions)
    if kind == "scores" and isinstance(y_true, np.ndarray) and y_true.dtype.kind in "OUS":
        # A device has no texts: their positions go there.
        classes, y_true, _ = encoded(y_true, None, classes)
        texts, classes = classes, np.arange(len(classes))
    else:
        texts = None
    texts_here = isinstance(y_true, np.ndarray) and y_true.dtype.kind not in "biufc"
    if kind == "labels" and texts_here and not isinstance(predictions, np.ndarray):
        raise ValueError(
            f"Mix of label input types (string and number): y_true has dtype {y_true.dtype}, and predictions "
            f"are {predictions.dtype}. Give both as texts, on the host, or both as numbers."
        )
    y_true = to_device_of(y_true, predictions, label="y")
    sample_weight = to_device_of(sample_weight, predictions, label="weights")
    if sample_weight is not None and not xp.isdtype(sample_weight.dtype, "real floating"):
        sample_weight = xp.astype(sample_weight, float_dtype(predictions))
    if kind == "labels" and y_true.ndim == 1:
        classes, y_true, predictions = encoded(y_true, predictions, classes)
        targets = Targets(codes=y_true, classes=classes, weight=sample_weight)
    elif kind == "scores" and y_true.ndim == 1:
        classes, y_true, _ = encoded(y_true, None, classes)
        classes = classes if texts is None else texts
        targets = Targets(codes=y_true, classes=classes, weight=sample_weight)
    else:
        targets = Targets(numbers=y_true, classes=classes, weight=sample_weight)
    return targets, predictions


def in_chunks(scores: Callable[[Array], Array], predictions: Array, max_bytes: int | None = None) -> Array:
    """Scores of (m, ...) predictions, some settings at a time."""
    xp, m = array_namespace(predictions), predictions.shape[0]
    if max_bytes is None:
        max_bytes = HOST_BYTES if isinstance(predictions, np.ndarray) else block_size(DEVICE_BYTES)
    of_one = 8 * int(np.prod(predictions.shape[1:]))
    step = max(1, max_bytes // max(of_one, 1))
    if step >= m:
        return scores(predictions)
    return xp.concat([scores(predictions[j : min(j + step, m), ...]) for j in range(0, m, step)])
