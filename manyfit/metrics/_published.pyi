"""Written by ``python -m tests.stubs``: names that are made at run time, for type checkers."""

from collections.abc import Callable
from typing import Any, ParamSpec, Protocol

from sklearn.metrics import ConfusionMatrixDisplay as ConfusionMatrixDisplay
from sklearn.metrics import DetCurveDisplay as DetCurveDisplay
from sklearn.metrics import DistanceMetric as DistanceMetric
from sklearn.metrics import PrecisionRecallDisplay as PrecisionRecallDisplay
from sklearn.metrics import PredictionErrorDisplay as PredictionErrorDisplay
from sklearn.metrics import RocCurveDisplay as RocCurveDisplay

__all__ = [
    "ConfusionMatrixDisplay", "DetCurveDisplay", "DistanceMetric", "PrecisionRecallDisplay",
    "PredictionErrorDisplay", "RocCurveDisplay", "accuracy_score", "adjusted_mutual_info_score",
    "adjusted_rand_score", "auc", "average_precision_score", "balanced_accuracy_score",
    "brier_score_loss", "calinski_harabasz_score", "class_likelihood_ratios",
    "classification_report", "cohen_kappa_score", "completeness_score", "confusion_matrix",
    "confusion_matrix_at_thresholds", "consensus_score", "coverage_error",
    "d2_absolute_error_score", "d2_brier_score", "d2_log_loss_score", "d2_pinball_score",
    "d2_tweedie_score", "davies_bouldin_score", "dcg_score", "det_curve", "euclidean_distances",
    "explained_variance_score", "f1_score", "fbeta_score", "fowlkes_mallows_score", "hamming_loss",
    "hinge_loss", "homogeneity_completeness_v_measure", "homogeneity_score", "jaccard_score",
    "label_ranking_average_precision_score", "label_ranking_loss", "log_loss", "matthews_corrcoef",
    "max_error", "mean_absolute_error", "mean_absolute_percentage_error", "mean_gamma_deviance",
    "mean_pinball_loss", "mean_poisson_deviance", "mean_squared_error", "mean_squared_log_error",
    "mean_tweedie_deviance", "median_absolute_error", "metric_at_thresholds",
    "multilabel_confusion_matrix", "mutual_info_score", "nan_euclidean_distances", "ndcg_score",
    "negative_likelihood_ratio", "normalized_mutual_info_score", "pair_confusion_matrix",
    "pairwise_distances", "pairwise_distances_argmin", "pairwise_distances_argmin_min",
    "pairwise_distances_chunked", "pairwise_kernels", "positive_likelihood_ratio",
    "precision_recall_curve", "precision_recall_fscore_support", "precision_score", "r2_score",
    "rand_score", "recall_score", "roc_auc_score", "roc_curve", "root_mean_squared_error",
    "root_mean_squared_log_error", "silhouette_samples", "silhouette_score", "top_k_accuracy_score",
    "v_measure_score", "zero_one_loss"
]  # fmt: skip

_P = ParamSpec("_P")

class Metric(Protocol[_P]):
    """A metric function; `many` takes the predictions of many settings at once."""

    many: Callable[..., Any]

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> Any: ...

def _metric(function: Callable[_P, Any]) -> Metric[_P]: ...
@_metric
def accuracy_score(y_true: Any, y_pred: Any, *, normalize: Any = ..., sample_weight: Any = ...) -> Any: ...
@_metric
def adjusted_mutual_info_score(labels_true: Any, labels_pred: Any, *, average_method: Any = ...) -> Any: ...
@_metric
def adjusted_rand_score(labels_true: Any, labels_pred: Any) -> Any: ...
def auc(x: Any, y: Any) -> Any: ...
@_metric
def average_precision_score(
    y_true: Any, y_score: Any, *, average: Any = ..., pos_label: Any = ..., sample_weight: Any = ...
) -> Any: ...
@_metric
def balanced_accuracy_score(
    y_true: Any, y_pred: Any, *, sample_weight: Any = ..., adjusted: Any = ...
) -> Any: ...
@_metric
def brier_score_loss(
    y_true: Any,
    y_proba: Any,
    *,
    sample_weight: Any = ...,
    pos_label: Any = ...,
    labels: Any = ...,
    scale_by_half: Any = ...,
) -> Any: ...
@_metric
def calinski_harabasz_score(X: Any, labels: Any) -> Any: ...
def class_likelihood_ratios(
    y_true: Any, y_pred: Any, *, labels: Any = ..., sample_weight: Any = ..., replace_undefined_by: Any = ...
) -> Any: ...
def classification_report(
    y_true: Any,
    y_pred: Any,
    *,
    labels: Any = ...,
    target_names: Any = ...,
    sample_weight: Any = ...,
    digits: Any = ...,
    output_dict: Any = ...,
    zero_division: Any = ...,
) -> Any: ...
@_metric
def cohen_kappa_score(
    y1: Any,
    y2: Any,
    *,
    labels: Any = ...,
    weights: Any = ...,
    sample_weight: Any = ...,
    replace_undefined_by: Any = ...,
) -> Any: ...
@_metric
def completeness_score(labels_true: Any, labels_pred: Any) -> Any: ...
def confusion_matrix(
    y_true: Any, y_pred: Any, *, labels: Any = ..., sample_weight: Any = ..., normalize: Any = ...
) -> Any: ...
def confusion_matrix_at_thresholds(
    y_true: Any, y_score: Any, *, pos_label: Any = ..., sample_weight: Any = ...
) -> Any: ...
def consensus_score(a: Any, b: Any, *, similarity: Any = ...) -> Any: ...
@_metric
def coverage_error(y_true: Any, y_score: Any, *, sample_weight: Any = ...) -> Any: ...
@_metric
def d2_absolute_error_score(
    y_true: Any, y_pred: Any, *, sample_weight: Any = ..., multioutput: Any = ...
) -> Any: ...
@_metric
def d2_brier_score(
    y_true: Any, y_proba: Any, *, sample_weight: Any = ..., pos_label: Any = ..., labels: Any = ...
) -> Any: ...
@_metric
def d2_log_loss_score(
    y_true: Any, y_proba: Any = ..., *, sample_weight: Any = ..., labels: Any = ..., y_pred: Any = ...
) -> Any: ...
@_metric
def d2_pinball_score(
    y_true: Any, y_pred: Any, *, sample_weight: Any = ..., alpha: Any = ..., multioutput: Any = ...
) -> Any: ...
@_metric
def d2_tweedie_score(y_true: Any, y_pred: Any, *, sample_weight: Any = ..., power: Any = ...) -> Any: ...
@_metric
def davies_bouldin_score(X: Any, labels: Any) -> Any: ...
@_metric
def dcg_score(
    y_true: Any,
    y_score: Any,
    *,
    k: Any = ...,
    log_base: Any = ...,
    sample_weight: Any = ...,
    ignore_ties: Any = ...,
) -> Any: ...
def det_curve(
    y_true: Any, y_score: Any, pos_label: Any = ..., sample_weight: Any = ..., drop_intermediate: Any = ...
) -> Any: ...
def euclidean_distances(
    X: Any, Y: Any = ..., *, Y_norm_squared: Any = ..., squared: Any = ..., X_norm_squared: Any = ...
) -> Any: ...
@_metric
def explained_variance_score(
    y_true: Any, y_pred: Any, *, sample_weight: Any = ..., multioutput: Any = ..., force_finite: Any = ...
) -> Any: ...
@_metric
def f1_score(
    y_true: Any,
    y_pred: Any,
    *,
    labels: Any = ...,
    pos_label: Any = ...,
    average: Any = ...,
    sample_weight: Any = ...,
    zero_division: Any = ...,
) -> Any: ...
@_metric
def fbeta_score(
    y_true: Any,
    y_pred: Any,
    *,
    beta: Any,
    labels: Any = ...,
    pos_label: Any = ...,
    average: Any = ...,
    sample_weight: Any = ...,
    zero_division: Any = ...,
) -> Any: ...
@_metric
def fowlkes_mallows_score(labels_true: Any, labels_pred: Any) -> Any: ...
@_metric
def hamming_loss(y_true: Any, y_pred: Any, *, sample_weight: Any = ...) -> Any: ...
@_metric
def hinge_loss(y_true: Any, pred_decision: Any, *, labels: Any = ..., sample_weight: Any = ...) -> Any: ...
def homogeneity_completeness_v_measure(labels_true: Any, labels_pred: Any, *, beta: Any = ...) -> Any: ...
@_metric
def homogeneity_score(labels_true: Any, labels_pred: Any) -> Any: ...
@_metric
def jaccard_score(
    y_true: Any,
    y_pred: Any,
    *,
    labels: Any = ...,
    pos_label: Any = ...,
    average: Any = ...,
    sample_weight: Any = ...,
    zero_division: Any = ...,
) -> Any: ...
@_metric
def label_ranking_average_precision_score(y_true: Any, y_score: Any, *, sample_weight: Any = ...) -> Any: ...
@_metric
def label_ranking_loss(y_true: Any, y_score: Any, *, sample_weight: Any = ...) -> Any: ...
@_metric
def log_loss(
    y_true: Any,
    y_proba: Any = ...,
    *,
    normalize: Any = ...,
    sample_weight: Any = ...,
    labels: Any = ...,
    y_pred: Any = ...,
) -> Any: ...
@_metric
def matthews_corrcoef(y_true: Any, y_pred: Any, *, sample_weight: Any = ...) -> Any: ...
@_metric
def max_error(y_true: Any, y_pred: Any) -> Any: ...
@_metric
def mean_absolute_error(
    y_true: Any, y_pred: Any, *, sample_weight: Any = ..., multioutput: Any = ...
) -> Any: ...
@_metric
def mean_absolute_percentage_error(
    y_true: Any, y_pred: Any, *, sample_weight: Any = ..., multioutput: Any = ...
) -> Any: ...
@_metric
def mean_gamma_deviance(y_true: Any, y_pred: Any, *, sample_weight: Any = ...) -> Any: ...
@_metric
def mean_pinball_loss(
    y_true: Any, y_pred: Any, *, sample_weight: Any = ..., alpha: Any = ..., multioutput: Any = ...
) -> Any: ...
@_metric
def mean_poisson_deviance(y_true: Any, y_pred: Any, *, sample_weight: Any = ...) -> Any: ...
@_metric
def mean_squared_error(
    y_true: Any, y_pred: Any, *, sample_weight: Any = ..., multioutput: Any = ...
) -> Any: ...
@_metric
def mean_squared_log_error(
    y_true: Any, y_pred: Any, *, sample_weight: Any = ..., multioutput: Any = ...
) -> Any: ...
@_metric
def mean_tweedie_deviance(y_true: Any, y_pred: Any, *, sample_weight: Any = ..., power: Any = ...) -> Any: ...
@_metric
def median_absolute_error(
    y_true: Any, y_pred: Any, *, multioutput: Any = ..., sample_weight: Any = ...
) -> Any: ...
def metric_at_thresholds(
    y_true: Any, y_score: Any, metric_func: Any, *, sample_weight: Any = ..., metric_params: Any = ...
) -> Any: ...
def multilabel_confusion_matrix(
    y_true: Any, y_pred: Any, *, sample_weight: Any = ..., labels: Any = ..., samplewise: Any = ...
) -> Any: ...
@_metric
def mutual_info_score(labels_true: Any, labels_pred: Any, *, contingency: Any = ...) -> Any: ...
def nan_euclidean_distances(
    X: Any, Y: Any = ..., *, squared: Any = ..., missing_values: Any = ..., copy: Any = ...
) -> Any: ...
@_metric
def ndcg_score(
    y_true: Any, y_score: Any, *, k: Any = ..., sample_weight: Any = ..., ignore_ties: Any = ...
) -> Any: ...
@_metric
def negative_likelihood_ratio(y_true: Any, y_pred: Any) -> Any: ...
@_metric
def normalized_mutual_info_score(labels_true: Any, labels_pred: Any, *, average_method: Any = ...) -> Any: ...
def pair_confusion_matrix(labels_true: Any, labels_pred: Any) -> Any: ...
def pairwise_distances(
    X: Any, Y: Any = ..., metric: Any = ..., *, n_jobs: Any = ..., ensure_all_finite: Any = ..., **kwds: Any
) -> Any: ...
def pairwise_distances_argmin(
    X: Any, Y: Any, *, axis: Any = ..., metric: Any = ..., metric_kwargs: Any = ...
) -> Any: ...
def pairwise_distances_argmin_min(
    X: Any, Y: Any, *, axis: Any = ..., metric: Any = ..., metric_kwargs: Any = ...
) -> Any: ...
def pairwise_distances_chunked(
    X: Any,
    Y: Any = ...,
    *,
    reduce_func: Any = ...,
    metric: Any = ...,
    n_jobs: Any = ...,
    working_memory: Any = ...,
    **kwds: Any,
) -> Any: ...
def pairwise_kernels(
    X: Any, Y: Any = ..., metric: Any = ..., *, filter_params: Any = ..., n_jobs: Any = ..., **kwds: Any
) -> Any: ...
@_metric
def positive_likelihood_ratio(y_true: Any, y_pred: Any) -> Any: ...
def precision_recall_curve(
    y_true: Any, y_score: Any, *, pos_label: Any = ..., sample_weight: Any = ..., drop_intermediate: Any = ...
) -> Any: ...
def precision_recall_fscore_support(
    y_true: Any,
    y_pred: Any,
    *,
    beta: Any = ...,
    labels: Any = ...,
    pos_label: Any = ...,
    average: Any = ...,
    warn_for: Any = ...,
    sample_weight: Any = ...,
    zero_division: Any = ...,
) -> Any: ...
@_metric
def precision_score(
    y_true: Any,
    y_pred: Any,
    *,
    labels: Any = ...,
    pos_label: Any = ...,
    average: Any = ...,
    sample_weight: Any = ...,
    zero_division: Any = ...,
) -> Any: ...
@_metric
def r2_score(
    y_true: Any, y_pred: Any, *, sample_weight: Any = ..., multioutput: Any = ..., force_finite: Any = ...
) -> Any: ...
@_metric
def rand_score(labels_true: Any, labels_pred: Any) -> Any: ...
@_metric
def recall_score(
    y_true: Any,
    y_pred: Any,
    *,
    labels: Any = ...,
    pos_label: Any = ...,
    average: Any = ...,
    sample_weight: Any = ...,
    zero_division: Any = ...,
) -> Any: ...
@_metric
def roc_auc_score(
    y_true: Any,
    y_score: Any,
    *,
    average: Any = ...,
    sample_weight: Any = ...,
    max_fpr: Any = ...,
    multi_class: Any = ...,
    labels: Any = ...,
) -> Any: ...
def roc_curve(
    y_true: Any, y_score: Any, *, pos_label: Any = ..., sample_weight: Any = ..., drop_intermediate: Any = ...
) -> Any: ...
@_metric
def root_mean_squared_error(
    y_true: Any, y_pred: Any, *, sample_weight: Any = ..., multioutput: Any = ...
) -> Any: ...
@_metric
def root_mean_squared_log_error(
    y_true: Any, y_pred: Any, *, sample_weight: Any = ..., multioutput: Any = ...
) -> Any: ...
@_metric
def silhouette_samples(X: Any, labels: Any, *, metric: Any = ..., **kwds: Any) -> Any: ...
@_metric
def silhouette_score(
    X: Any, labels: Any, *, metric: Any = ..., sample_size: Any = ..., random_state: Any = ..., **kwds: Any
) -> Any: ...
@_metric
def top_k_accuracy_score(
    y_true: Any,
    y_score: Any,
    *,
    k: Any = ...,
    normalize: Any = ...,
    sample_weight: Any = ...,
    labels: Any = ...,
) -> Any: ...
@_metric
def v_measure_score(labels_true: Any, labels_pred: Any, *, beta: Any = ...) -> Any: ...
@_metric
def zero_one_loss(y_true: Any, y_pred: Any, *, normalize: Any = ..., sample_weight: Any = ...) -> Any: ...
