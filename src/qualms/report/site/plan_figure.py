"""The curves of the planner as a figure for paper: scores of the kept items."""

import numpy as np

from qualms.referral import MeasureChoices, PlanChoices, SetChoices
from qualms.report.figures import SERIES, CurveMark, Drawing, Panel

MOST_REFERRED = 0.9
"""Few items are left beyond it, and their intervals hide the curves."""


def plan_drawing(choices: PlanChoices, label: str, *, simulated: bool) -> Drawing:
    """Return the scores of the kept items by the share that is referred.

    Args:
        choices: The answers to all budgets and targets.
        label: Of the predictions.
        simulated: Whether their items are simulated.
    """
    first, *others = choices.sets
    planned = f"Thresholds are those of {first.label}"
    more = f", applied to {len(others)} more" if others else ""
    return Drawing(
        name="plan",
        title=f"Referral by {choices.uncertainty.name}: {label}",
        caption="The most uncertain items are referred to an expert, and the score is"
        " of those that the network decides, with"
        f" {choices.level:.0%} intervals. {planned}{more}.",
        rows=(tuple(_panel(choices, measure) for measure in first.measures),),
        simulated=simulated,
        size=(2.3, 1.9),
        legend_columns=2,
    )


def _panel(choices: PlanChoices, measure: MeasureChoices) -> Panel:
    scale = 1.0 if measure.score == "mae" else 100.0
    marks = [
        _curve(shown, own, number, scale)
        for number, shown in enumerate(choices.sets)
        for own in shown.measures
        if own.score == measure.score
    ]
    unit = "" if scale == 1.0 else ", %"
    return Panel(
        marks=tuple(marks),
        x_label="% referred",
        y_label=f"{measure.label}{unit}",
        x_range=(0.0, 100.0 * MOST_REFERRED),
    )


def _curve(
    shown: SetChoices, measure: MeasureChoices, number: int, scale: float
) -> CurveMark:
    share = np.asarray(shown.referred.value, np.float64)
    places = np.flatnonzero(share <= MOST_REFERRED)
    places = places[np.argsort(share[places], kind="stable")]
    estimate = measure.kept
    return CurveMark(
        x=100.0 * share[places],
        y=scale * np.asarray(estimate.value)[places],
        low=scale * np.asarray(estimate.low)[places],
        high=scale * np.asarray(estimate.high)[places],
        colour=SERIES[number % len(SERIES)],
        label=shown.label,
    )
