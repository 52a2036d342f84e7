"""Kernels: metrics of many settings at once, on any device, and how they are called.

Metric functions call a `MetricKernel`. The scorers of a search call its `kernel` through a `SearchMetric`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from manyfit.arrays import array_namespace, block_size, device, float_dtype, to_device_of
from manyfit.folds import Unsupported
from manyfit.metrics.kernels._label_codes import encode_labels, require_exact

Array = Any

# Bytes of predictions that a kernel reads at a time: on the host, where they stay in a second-level cache,
# and on a device, where each call costs a launch.
HOST_BYTES = 2**19
DEVICE_BYTES = 2**28

Kind = Literal["numbers", "labels", "scores", "probabilities"]


@dataclass(frozen=True)
class Targets:
    """Targets and weights of n rows, on the device of the predictions.

    `numbers`, (n,) or (n, q), are targets of regression or indicators of labels; else `codes`, int64 of shape
    (n,), are positions in the sorted `classes`, which are on the host. `weight`, (n,), is None if all weights
    are 1.
    """

    numbers: Array = None
    codes: Array = None
    classes: Any = None
    weight: Array = None
    rows: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 without classes."""
        return 0 if self.classes is None else len(self.classes)

    def sum(self, rows: Array) -> Array:
        """Weighted sum along the last axis, which has length n."""
        if not is_floating(rows):
            dtype = float_dtype(rows) if self.weight is None else self.weight.dtype
            rows = array_namespace(rows).astype(rows, dtype)
        return row_sums(rows if self.weight is None else rows * self.weight)

    def mean(self, rows: Array) -> Array:
        """Weighted mean along the last axis."""
        return self.sum(rows) / (rows.shape[-1] if self.weight is None else row_sums(self.weight))


@dataclass(frozen=True)
class MetricKernel:
    """A metric for the predictions of many settings.

    ``kernel(targets, P, **options)`` returns scores (m,) on the device of `P`: numbers (m, n) or (m, n, q),
    integer codes of labels (m, n), or scores of classes (m, n) or (m, n, n_classes). It uses the array API
    only; no shape depends on values, and the host never waits. It returns NaN where scikit-learn refuses the
    predictions. `kind` says what it reads, `options` are the supported options of scikit-learn's function
    with their defaults. `rowwise` means that it is a mean of losses of rows, which is defined for any
    targets.
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
        """Scores (m,) on the device of the predictions, (m, n) or (m, n, q); targets may be on the host.

        Without `classes`, the host waits twice to find the labels. About `max_bytes` of predictions are
        scored at a time; the kernel needs a small multiple of it. Raises Unsupported for options that are not
        supported, and for labels or scores that a common dtype does not tell apart.
        """
        strange = set(options) - set(self.options)
        if strange:
            raise Unsupported(f"{', '.join(sorted(strange))} is not supported for many settings")
        targets, predictions = make_targets(self.kind, y_true, predictions, sample_weight, classes)
        chosen = {**self.options, **options}
        with np.errstate(all="ignore"):  # devices divide by zero without a warning
            return score_in_chunks(lambda P: self.kernel(targets, P, **chosen), predictions, max_bytes)


def make_targets(
    kind: Kind, y_true: Array, predictions: Array, sample_weight: Array | None = None, classes: Any = None
) -> tuple[Targets, Array]:
    """The targets and predictions that a kernel reads; see `MetricKernel.__call__`."""
    xp, texts = array_namespace(predictions), None
    has_texts = isinstance(y_true, np.ndarray) and y_true.dtype.kind not in "biufc"
    if kind in ("scores", "probabilities"):
        require_exact(predictions)
        if has_texts:  # a device holds none: their codes are sent
            texts, y_true, _ = encode_labels(y_true, None, classes)
            classes = np.arange(len(texts))
    elif kind == "labels" and has_texts and not isinstance(predictions, np.ndarray):
        raise ValueError(
            f"Mix of label input types (string and number): y_true has dtype {y_true.dtype}, and predictions "
            f"are {predictions.dtype}. Pass both as texts on the host, or both as numbers."
        )
    y_true = to_device_of(y_true, predictions, label="y")
    sample_weight = to_device_of(sample_weight, predictions, label="weights")
    if sample_weight is not None and not xp.isdtype(sample_weight.dtype, "real floating"):
        sample_weight = xp.astype(sample_weight, float_dtype(predictions))
    if kind == "numbers" or y_true.ndim != 1:
        return Targets(numbers=y_true, classes=classes, weight=sample_weight), predictions
    labels = predictions if kind == "labels" else None
    classes, codes, coded = encode_labels(y_true, labels, classes)
    targets = Targets(codes=codes, classes=classes if texts is None else texts, weight=sample_weight)
    return targets, predictions if coded is None else coded


def score_in_chunks(
    scores: Callable[[Array], Array], predictions: Array, max_bytes: int | None = None
) -> Array:
    """Scores of predictions (m, ...), some settings at a time."""
    m = predictions.shape[0]
    if max_bytes is None:
        max_bytes = HOST_BYTES if isinstance(predictions, np.ndarray) else block_size(DEVICE_BYTES)
    setting_bytes = 8 * math.prod(predictions.shape[1:])
    step = max(1, max_bytes // max(setting_bytes, 1))
    if step >= m:
        return scores(predictions)
    parts = [scores(predictions[j : min(j + step, m), ...]) for j in range(0, m, step)]
    return array_namespace(predictions).concat(parts)


def is_floating(array: Array) -> bool:
    """Whether an array has a real floating dtype."""
    if isinstance(array, np.ndarray):
        return array.dtype.kind == "f"
    return bool(array_namespace(array).isdtype(array.dtype, "real floating"))


def row_sums(rows: Array, axis: int = -1) -> Array:
    """Sums along an axis; a method of NumPy's arrays takes a fifth of the time of `xp.sum` for a few rows."""
    if isinstance(rows, np.ndarray):
        return rows.sum(axis=axis)
    return array_namespace(rows).sum(rows, axis=axis)


def or_nan(values: Array, allowed: Array) -> Array:
    """Values, NaN where not allowed; `allowed` has their shape, or is (m,) for values (m, q)."""
    if isinstance(values, (np.ndarray, np.generic)):
        allowed = allowed if np.ndim(allowed) in (0, values.ndim) else allowed[:, None]
        return np.where(allowed, values, values.dtype.type(np.nan))
    xp = array_namespace(values)
    allowed = allowed if allowed.ndim in (0, values.ndim) else xp.reshape(allowed, (-1, 1))
    return xp.where(allowed, values, xp.full((), np.nan, dtype=values.dtype, device=device(values)))
