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
from qualms.evaluate.refer import refer
from qualms.evaluate.refer.plan import (
    Cutoff,
    Measure,
    Offer,
    Outcome,
    Promise,
    ReferralOptions,
    ReferralPlan,
    Request,
)
from qualms.evaluate.results import Results, ScoreRow
from qualms.evaluate.scoring import Scored, score, score_files

__all__ = [
    "Accumulator",
    "Comparison",
    "Contrast",
    "Curve",
    "Cutoff",
    "Entry",
    "Histogram",
    "Judgement",
    "MapSlice",
    "Measure",
    "Offer",
    "Outcome",
    "Promise",
    "ReferralOptions",
    "ReferralPlan",
    "Request",
    "Results",
    "Scatter",
    "ScoreOptions",
    "ScoreRow",
    "Scored",
    "compare",
    "refer",
    "score",
    "score_files",
]
