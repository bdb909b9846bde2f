"""The scores that matter most for a user's own data, by the task."""

from typing import NamedTuple

from qualms import scores
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.labels import Wanted
from qualms.report.layout import Wishes
from qualms.report.ordinary import ARROWS


class SummaryScore(NamedTuple):
    """A score of the table."""

    score: str
    labels: Wishes = {}  # noqa: RUF012 - nothing changes it
    """Settings of its results; of several values a row has one."""
    label: str = ""
    """'' for the score's own."""


ENTROPY: Wishes = {"uncertainty": "entropy"}
INTERVAL: Wishes = {"interval": ("gaussian", "as predicted")}
PATCH: Wishes = {"measure": "predictive", "aggregation": "patch"}
SCORES = {
    "classification": (
        SummaryScore("accuracy"),
        SummaryScore("nll"),
        SummaryScore("ece"),
        SummaryScore("aurc", ENTROPY),
    ),
    "regression": (
        SummaryScore("mae"),
        SummaryScore("crps_gaussian"),
        SummaryScore("coverage", INTERVAL),
        SummaryScore("interval_length", INTERVAL),
        SummaryScore("coverage", {"interval": "conformal"}, "conformal coverage"),
    ),
    "segmentation": (
        SummaryScore("macro_dice", {"classes": ("foreground", "all")}),
        SummaryScore("dice", {"classes": (None, "pooled")}),
        SummaryScore("ged"),
        SummaryScore("stated_ace"),
        SummaryScore("aurc", PATCH, "AURC by patches"),
    ),
}
"""Main scores of each task."""
USUAL = ("entropy", "epistemic", "mutual_information", "interval length")
"""Uncertainties that every method of a task has, by the label of their numbers."""
DETECTED = {
    "classification": SummaryScore("ood_auroc", ENTROPY),
    "segmentation": SummaryScore("ood_auroc", PATCH, "OOD AUROC by patches"),
}


def without_settings(results: BenchmarkResults) -> dict[str, Wanted]:
    """Return the labels of numbers that have no setting such as an uncertainty."""
    of_lines = {name for line in results.plan.lines for name in line.labels}
    return {
        name: None
        for name in results.table.labels
        if name not in of_lines and name not in ("subset", "score")
    }


def score_head(shown: SummaryScore) -> str:
    """Return the name of a score, with an arrow to where it is better."""
    about = scores.about(getattr(scores, shown.score))
    return f"{shown.label or about.label}{ARROWS[about.better]}"


def score_labels(results: BenchmarkResults, shown: SummaryScore, subset: str) -> Wishes:
    """Return the labels of a score; settings that it does not name must be missing."""
    number = {"subset": subset, "score": shown.score}
    return {**without_settings(results), **number, **shown.labels}
