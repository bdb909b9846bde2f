"""Judging predictions: calibrate, select, score; a frozen table with intervals."""

from qualms.evaluate._compare import Comparison, Contrast, compare
from qualms.evaluate._entry import Settings
from qualms.evaluate._files import Scored, score_files
from qualms.evaluate._results import Bars, Curve, Results, Row
from qualms.evaluate._score import score

__all__ = [
    "Bars",
    "Comparison",
    "Contrast",
    "Curve",
    "Results",
    "Row",
    "Scored",
    "Settings",
    "compare",
    "score",
    "score_files",
]
