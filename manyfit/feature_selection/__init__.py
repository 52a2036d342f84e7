"""Selection of features whose many fits share one pass over the rows."""

from manyfit.feature_selection._rfecv import RFECV
from manyfit.feature_selection._sequential import SequentialFeatureSelector

__all__ = ["RFECV", "SequentialFeatureSelector"]
