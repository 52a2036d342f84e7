"""Families: each answers many settings of one estimator at once."""

from manyfit.families import (  # noqa: F401  (they register themselves)
    _affine_steps,
    columns,
    generative,
    kernels,
    least_squares,
    meta_estimators,
    neighbours,
    nested,
    smooth,
)
from manyfit.families.columns._composites import (
    View,
    apply_step,
    check_output,
    check_step,
    map_behind,
    moments_behind,
)
from manyfit.families.meta_estimators import (
    TargetFunction,
    WrappedFamily,
    family_in,
    inner_estimator,
    is_of_manyfit,
    target_function,
    wrapper_of,
)

# For manyfit's other rooms, hence not in `__all__`.
from manyfit.families.nested._continued_fits import ContinuedFits as ContinuedFits
from manyfit.families.nested._continued_fits import can_continue as can_continue
from manyfit.families.nested._continued_fits import continued_fits as continued_fits
from manyfit.families.nested._continued_fits import continuing as continuing
from manyfit.families.nested._continued_fits import fit_continued as fit_continued
from manyfit.families.nested._ensemble_stores import EnsembleStore as EnsembleStore
from manyfit.families.nested._ensemble_stores import FolderStore as FolderStore
from manyfit.families.nested._ensemble_stores import ProcessStore as ProcessStore
from manyfit.families.protocol import (
    AffineStep,
    Answers,
    ClassSums,
    Cost,
    Family,
    FoldRows,
    Iterations,
    LeavesOut,
    LeavesRowsOut,
    LeftOut,
    LinearAnswers,
    MomentSums,
    Predictions,
    Responses,
    Shape,
    SolvesSubsets,
    SubsetAnswers,
    affine_step_of,
    column_step_of,
    family_of,
    register_affine_step,
    register_family,
    require_usual_numbers,
    require_valid_answers,
    unregister_family,
)
from manyfit.families.smooth import GLMAnswers

__all__ = [
    "AffineStep",
    "Answers",
    "ClassSums",
    "Cost",
    "Family",
    "FoldRows",
    "GLMAnswers",
    "Iterations",
    "LeavesOut",
    "LeavesRowsOut",
    "LeftOut",
    "LinearAnswers",
    "MomentSums",
    "Predictions",
    "Responses",
    "Shape",
    "SolvesSubsets",
    "SubsetAnswers",
    "TargetFunction",
    "View",
    "WrappedFamily",
    "affine_step_of",
    "apply_step",
    "check_output",
    "check_step",
    "column_step_of",
    "family_in",
    "family_of",
    "inner_estimator",
    "is_of_manyfit",
    "map_behind",
    "moments_behind",
    "register_affine_step",
    "register_family",
    "require_usual_numbers",
    "require_valid_answers",
    "target_function",
    "unregister_family",
    "wrapper_of",
]
