"""Judging predictions: calibrate, select, score; frozen tables with intervals."""

from qualms.evaluate.accumulator import Accumulator
from qualms.evaluate.compare import Comparison, Contrast, compare
from qualms.evaluate.entry import (
    Curve,
    Entry,
    Histogram,
    Judgement,
    MapSlice,
    Scatter,
    ScoreOptions,
)
from qualms.evaluate.refer import PlanError, read_plan, refer
from qualms.evaluate.refer.applied import AppliedPlan, Workload
from qualms.evaluate.refer.likeness import Departure, LikenessCheck
from qualms.evaluate.refer.plan import Measure, Offer, Outcome, ReferralPlan
from qualms.evaluate.refer.referred import ReferredItems
from qualms.evaluate.refer.request import (
    Cutoff,
    Promise,
    ReferralOptions,
    Request,
)
from qualms.evaluate.refer.saved import SavedPlan
from qualms.evaluate.results import Results, ScoreRow
from qualms.evaluate.scoring import Scored, score, score_files

__all__ = [
    "Accumulator",
    "AppliedPlan",
    "Comparison",
    "Contrast",
    "Curve",
    "Cutoff",
    "Departure",
    "Entry",
    "Histogram",
    "Judgement",
    "LikenessCheck",
    "MapSlice",
    "Measure",
    "Offer",
    "Outcome",
    "PlanError",
    "Promise",
    "ReferralOptions",
    "ReferralPlan",
    "ReferredItems",
    "Request",
    "Results",
    "SavedPlan",
    "Scatter",
    "ScoreOptions",
    "ScoreRow",
    "Scored",
    "Workload",
    "compare",
    "read_plan",
    "refer",
    "score",
    "score_files",
]
