"""Judging predictions: calibrate, select, score; a frozen table with intervals."""

from qualms.evaluate._compare import Comparison, Contrast, compare
from qualms.evaluate._entry import Settings
from qualms.evaluate._files import Scored, score_files
from qualms.evaluate._refer_plan import (
    Measure,
    Offer,
    Outcome,
    Promise,
    ReferralOptions,
    ReferralPlan,
    Request,
)
from qualms.evaluate._results import Bars, Curve, Results, Row
from qualms.evaluate._score import score
from qualms.evaluate.refer import refer

__all__ = [
    "Bars",
    "Comparison",
    "Contrast",
    "Curve",
    "Measure",
    "Offer",
    "Outcome",
    "Promise",
    "ReferralOptions",
    "ReferralPlan",
    "Request",
    "Results",
    "Row",
    "Scored",
    "Settings",
    "compare",
    "refer",
    "score",
    "score_files",
]
