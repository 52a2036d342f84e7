"""Written by ``python -m tests.stubs``: names that are made at run time, for type checkers."""

from sklearn.metrics.cluster import contingency_matrix as contingency_matrix
from sklearn.metrics.cluster import entropy as entropy
from sklearn.metrics.cluster import expected_mutual_information as expected_mutual_information

from manyfit.metrics._published import adjusted_mutual_info_score as adjusted_mutual_info_score
from manyfit.metrics._published import adjusted_rand_score as adjusted_rand_score
from manyfit.metrics._published import calinski_harabasz_score as calinski_harabasz_score
from manyfit.metrics._published import completeness_score as completeness_score
from manyfit.metrics._published import consensus_score as consensus_score
from manyfit.metrics._published import davies_bouldin_score as davies_bouldin_score
from manyfit.metrics._published import fowlkes_mallows_score as fowlkes_mallows_score
from manyfit.metrics._published import (
    homogeneity_completeness_v_measure as homogeneity_completeness_v_measure,
)
from manyfit.metrics._published import homogeneity_score as homogeneity_score
from manyfit.metrics._published import mutual_info_score as mutual_info_score
from manyfit.metrics._published import normalized_mutual_info_score as normalized_mutual_info_score
from manyfit.metrics._published import pair_confusion_matrix as pair_confusion_matrix
from manyfit.metrics._published import rand_score as rand_score
from manyfit.metrics._published import silhouette_samples as silhouette_samples
from manyfit.metrics._published import silhouette_score as silhouette_score
from manyfit.metrics._published import v_measure_score as v_measure_score

__all__ = [
    "adjusted_mutual_info_score", "adjusted_rand_score", "calinski_harabasz_score",
    "completeness_score", "consensus_score", "contingency_matrix", "davies_bouldin_score",
    "entropy", "expected_mutual_information", "fowlkes_mallows_score",
    "homogeneity_completeness_v_measure", "homogeneity_score", "mutual_info_score",
    "normalized_mutual_info_score", "pair_confusion_matrix", "rand_score", "silhouette_samples",
    "silhouette_score", "v_measure_score"
]  # fmt: skip
