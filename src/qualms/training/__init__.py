"""Training: one readable loop from a `RunSpec` to predictions files.

`run` trains one run, `run_together` several that differ in their seed; both go on from
what a killed process left behind.
"""

from qualms.training._callbacks import Callbacks
from qualms.training._error import TrainingError
from qualms.training.check import check_run
from qualms.training.entry import run_alone, run_together
from qualms.training.options import Training

__all__ = [
    "Callbacks",
    "Training",
    "TrainingError",
    "check_run",
    "run_alone",
    "run_together",
]
