"""Judging predictions: calibrate, select, score; frozen tables with intervals."""

from qualms.evaluate._accumulator import Accumulator
from qualms.evaluate._compare import Comparison, Contrast, compare
from qualms.evaluate._results import Results
from qualms.evaluate._selected import (
    with_main_scores,
    with_rows,
    with_scores,
    with_shown_items,
)
from qualms.evaluate.entry import (
    Curve,
    Entry,
    Histogram,
    Judgement,
    MapSlice,
    Scatter,
    ScoreOptions,
)
from qualms.evaluate.group_spreads import GroupSpread
from qualms.evaluate.operating_points import OperatingPoint, PointOptions
from qualms.evaluate.pairs import PairedDifference, PairedScore, compare_pairs
from qualms.evaluate.rows import Answer, ScoreRow
from qualms.evaluate.scoring import Scored, score, score_files
from qualms.evaluate.subsets import subset_words

__all__ = [
    "Accumulator",
    "Answer",
    "Comparison",
    "Contrast",
    "Curve",
    "Entry",
    "GroupSpread",
    "Histogram",
    "Judgement",
    "MapSlice",
    "OperatingPoint",
    "PairedDifference",
    "PairedScore",
    "PointOptions",
    "Results",
    "Scatter",
    "ScoreOptions",
    "ScoreRow",
    "Scored",
    "compare",
    "compare_pairs",
    "score",
    "score_files",
    "subset_words",
    "with_main_scores",
    "with_rows",
    "with_scores",
    "with_shown_items",
]
