"""Scores: functions from arrays to numbers, in float64 and with exact ties.

The plain name is the correct score. If the released code of a paper computes another
number, `qualms.scores.as_published.<paper>` has it under the same name. Larger
uncertainty means less certain. Functions that take `probs` accept P(y=1) of shape (N,),
class probabilities (N, C), or draws (M, N, C), which they average.
"""

from types import ModuleType as _Module

from qualms.scores import as_published as as_published
from qualms.scores._about import *
from qualms.scores._sums import *
from qualms.scores.aggregation import *
from qualms.scores.arguments import *
from qualms.scores.calibration import *
from qualms.scores.calibration_line import *
from qualms.scores.conformal import *
from qualms.scores.conformal_sets import *
from qualms.scores.decomposition import *
from qualms.scores.distance import *
from qualms.scores.gallery import *
from qualms.scores.human import *
from qualms.scores.influence import *
from qualms.scores.intervals import *
from qualms.scores.maps import *
from qualms.scores.multiclass import *
from qualms.scores.ood import *
from qualms.scores.operating_points import *
from qualms.scores.overlap import *
from qualms.scores.platt import *
from qualms.scores.pooled import *
from qualms.scores.proper import *
from qualms.scores.ranking import *
from qualms.scores.raters import *
from qualms.scores.recalibration import *
from qualms.scores.referral import *
from qualms.scores.regions import *
from qualms.scores.regression import *
from qualms.scores.resampling import *
from qualms.scores.retrieval import *
from qualms.scores.selective import *
from qualms.scores.threshold import *
from qualms.scores.ties import *

__all__ = sorted(  # what the families export, and `as_published`
    name
    for name, value in globals().items()
    if name == "as_published" or not (name[0] == "_" or isinstance(value, _Module))
)
