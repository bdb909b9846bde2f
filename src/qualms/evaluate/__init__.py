"""Judging predictions: calibrate, select, score; frozen tables with intervals."""

from qualms.evaluate._accumulator import Accumulator
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
from qualms.evaluate.main_scores import with_main_scores, with_rows, with_scores
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
from qualms.evaluate.subsets import subset_words
from qualms.evaluate.verdict import Answer

__all__ = [
    "Accumulator",
    "Answer",
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
    "subset_words",
    "with_main_scores",
    "with_rows",
    "with_scores",
]
