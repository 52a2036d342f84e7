"""Families: each answers many settings of one estimator at once."""

from typing import TYPE_CHECKING

# For manyfit's other rooms, hence not in `__all__`.
from manyfit.families.columns._composites import View as View
from manyfit.families.columns._composites import apply_step as apply_step
from manyfit.families.columns._composites import check_output as check_output
from manyfit.families.columns._composites import check_step as check_step
from manyfit.families.columns._composites import map_behind as map_behind
from manyfit.families.columns._composites import moments_behind as moments_behind
from manyfit.families.meta_estimators._wrapped import TargetFunction as TargetFunction
from manyfit.families.meta_estimators._wrapped import WrappedFamily as WrappedFamily
from manyfit.families.meta_estimators._wrapped import family_in as family_in
from manyfit.families.meta_estimators._wrapped import inner_estimator as inner_estimator
from manyfit.families.meta_estimators._wrapped import is_of_manyfit as is_of_manyfit
from manyfit.families.meta_estimators._wrapped import target_function as target_function
from manyfit.families.meta_estimators._wrapped import wrapper_of as wrapper_of
from manyfit.families.nested._continuable import why_anew as why_anew
from manyfit.families.nested._continuable import why_rounds_start_anew as why_rounds_start_anew
from manyfit.families.nested._continued_fits import Continued as Continued
from manyfit.families.nested._continued_fits import ContinuedFits as ContinuedFits
from manyfit.families.nested._continued_fits import continued_fits as continued_fits
from manyfit.families.nested._continued_fits import continuing as continuing
from manyfit.families.nested._continued_fits import fit_continued as fit_continued
from manyfit.families.nested._ensemble_stores import LOST as LOST
from manyfit.families.nested._ensemble_stores import Ensemble as Ensemble
from manyfit.families.nested._ensemble_stores import EnsembleStore as EnsembleStore
from manyfit.families.nested._ensemble_stores import FolderStore as FolderStore
from manyfit.families.nested._ensemble_stores import ProcessStore as ProcessStore
from manyfit.families.protocol import STOPS_EARLY as STOPS_EARLY
from manyfit.families.protocol import (
    AffineStep,
    Answers,
    ClassSums,
    Cost,
    Family,
    FoldRows,
    Iterations,
    LinearAnswers,
    MomentSums,
    Predictions,
    Shape,
    affine_step_of,
    family_of,
    register_affine_step,
    register_family,
    unregister_family,
)
from manyfit.families.protocol import LeavesOut as LeavesOut
from manyfit.families.protocol import LeavesRowsOut as LeavesRowsOut
from manyfit.families.protocol import LeftOut as LeftOut
from manyfit.families.protocol import Responses as Responses
from manyfit.families.protocol import SolvesSubsets as SolvesSubsets
from manyfit.families.protocol import SubsetAnswers as SubsetAnswers
from manyfit.families.protocol import column_step_of as column_step_of
from manyfit.families.protocol import require_usual_numbers as require_usual_numbers
from manyfit.families.protocol import require_valid_answers as require_valid_answers
from manyfit.families.protocol import sparse_step_of as sparse_step_of

if TYPE_CHECKING:
    from manyfit.families.smooth._glm_answers import GLMAnswers
    from manyfit.families.smooth._glm_answers import Probabilities as Probabilities
else:  # the only names that need a family
    from manyfit.introspection.late_names import late_names

    __getattr__, __dir__ = late_names(__name__, "smooth._glm_answers")

__all__ = [
    "AffineStep",
    "Answers",
    "ClassSums",
    "Cost",
    "Family",
    "FoldRows",
    "GLMAnswers",
    "Iterations",
    "LinearAnswers",
    "MomentSums",
    "Predictions",
    "Shape",
    "affine_step_of",
    "family_of",
    "register_affine_step",
    "register_family",
    "unregister_family",
]
