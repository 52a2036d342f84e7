"""The protocol of families: its questions, its answers, their checks, and the registry."""

from manyfit.families.protocol._answer_checks import require_valid_answers
from manyfit.families.protocol._answers import (
    STOPS_EARLY,
    Answers,
    LinearAnswers,
    Predictions,
    Responses,
    Role,
)
from manyfit.families.protocol._catalog import WRAPPERS
from manyfit.families.protocol._fold_family import (
    CLASSIFIER_METHODS,
    FoldFamily,
    ModelAnswers,
    lazy_responses,
    made_or_refused,
)
from manyfit.families.protocol._left_out import LeavesOut, LeavesRowsOut, LeftOut
from manyfit.families.protocol._parameter_values import require_number, require_usual_numbers
from manyfit.families.protocol._protocol import (
    AffineStep,
    ClassSums,
    ColumnStep,
    Cost,
    Family,
    FoldRows,
    Iterations,
    MomentSums,
    Setting,
    Settings,
    Shape,
    SparseStep,
)
from manyfit.families.protocol._recorded_warnings import recorded_warnings, refused_warnings
from manyfit.families.protocol._registry import (
    affine_step_of,
    column_step_of,
    family_of,
    register_affine_step,
    register_column_step,
    register_family,
    register_sparse_step,
    sparse_step_of,
    unregister_family,
)
from manyfit.families.protocol._subsets import SolvesSubsets, SubsetAnswers
from manyfit.folds import Array

__all__ = [
    "CLASSIFIER_METHODS",
    "STOPS_EARLY",
    "WRAPPERS",
    "AffineStep",
    "Answers",
    "Array",
    "ClassSums",
    "ColumnStep",
    "Cost",
    "Family",
    "FoldFamily",
    "FoldRows",
    "Iterations",
    "LeavesOut",
    "LeavesRowsOut",
    "LeftOut",
    "LinearAnswers",
    "ModelAnswers",
    "MomentSums",
    "Predictions",
    "Responses",
    "Role",
    "Setting",
    "Settings",
    "Shape",
    "SolvesSubsets",
    "SparseStep",
    "SubsetAnswers",
    "affine_step_of",
    "column_step_of",
    "family_of",
    "lazy_responses",
    "made_or_refused",
    "recorded_warnings",
    "refused_warnings",
    "register_affine_step",
    "register_column_step",
    "register_family",
    "register_sparse_step",
    "require_number",
    "require_usual_numbers",
    "require_valid_answers",
    "sparse_step_of",
    "unregister_family",
]
