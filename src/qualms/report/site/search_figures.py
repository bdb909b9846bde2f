"""The history of a search: data for a chart, and a figure for paper of the same."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from qualms.arrays import Array
from qualms.report.figures import (
    FAINT,
    SERIES,
    SOFT,
    CloudMark,
    CurveMark,
    Drawing,
    Mark,
    Panel,
)
from qualms.report.search_report import ObjectiveFacts, SearchReport, TrialFacts
from qualms.report.site.charts import chart, on_paper
from qualms.report.site.page import Fragment, slug

HISTORY = (
    "Every trial in its order; the line is the best value so far. Trials that were"
    " stopped early or failed have no value and stand on the axis."
)
_SIZE = (4.6, 2.7)


def history_figures(report: SearchReport, page: str, *, paper: bool) -> list[Fragment]:
    """Return the values of trials in their order, by each objective."""
    figures: list[Fragment] = []
    for place, objective in enumerate(report.objectives):
        name = slug(f"{page}-history-{objective.name}")
        title = f"{objective.label}, trial by trial"
        drawing = _history_drawing(report, place, title)
        figures.append(
            chart(
                "history",
                name,
                _history(report, place, title),
                title=title,
                caption=None if figures else HISTORY,
                downloads=on_paper(drawing, name, None) if paper else (),
            )
        )
    return figures


def _history(report: SearchReport, place: int, title: str) -> dict[str, Any]:
    objective = report.objectives[place]
    best = best_so_far(report, place)
    so_far: dict[int, float | None] = {}
    for trial in report.trials:
        before = next(reversed(so_far.values()), None)
        so_far[trial.number] = dict(best).get(trial.number, before)
    return {
        "title": title,
        "alt": "The numbers are in the table of trials.",
        "x": {"label": "trial", "range": _trial_range(report), "ticks": None},
        "y": {
            "label": _axis(objective),
            "range": _range([trial.values[place] for trial in report.valued]),
            "ticks": None,
        },
        "at": _best(report, place),
        "best": best,
        "trials": [
            {
                "n": trial.number,
                "state": trial.state,
                "y": trial.values[place] if trial.values else None,
                "error": trial.error,
                "options": [[n, option_text(v)] for n, v in trial.options.items()],
            }
            for trial in report.trials
        ],
        "head": ["trial", "state", "value", "best so far", "options"],
        "lines": [
            [
                trial.number,
                trial.state,
                trial.values[place] if trial.values else None,
                so_far[trial.number],
                _options_text(trial),
            ]
            for trial in report.trials
        ],
    }


def best_so_far(report: SearchReport, place: int) -> list[tuple[int, float]]:
    """Return the best value of an objective at each trial with a value."""
    sign = _sign(report.objectives[place])
    best: list[tuple[int, float]] = []
    for trial in report.valued:
        value = trial.values[place]
        if best and sign * best[-1][1] > sign * value:
            value = best[-1][1]
        best.append((trial.number, value))
    return best


def _best(report: SearchReport, place: int) -> int | None:
    """Return the number of the best trial by an objective; the first of equal ones."""
    sign = _sign(report.objectives[place])
    ranked = sorted(report.valued, key=lambda trial: -sign * trial.values[place])
    return ranked[0].number if ranked else None


def option_text(value: Any) -> str:
    """Return the value of an option as it is printed."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _options_text(trial: TrialFacts) -> str:
    return ", ".join(f"{n}={option_text(v)}" for n, v in trial.options.items())


def _sign(objective: ObjectiveFacts) -> int:
    return 1 if objective.better == "higher" else -1


def _axis(objective: ObjectiveFacts) -> str:
    return f"{objective.label} {'↑' if objective.better == 'higher' else '↓'}"


def _trial_range(report: SearchReport) -> list[float]:
    numbers = [trial.number for trial in report.trials] or [0]
    return [min(numbers) - 0.5, max(numbers) + 0.5]


def _range(values: Sequence[float]) -> list[float]:
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = 0.06 * (high - low) or 0.05 * abs(high) or 0.5
    # Below it there is a line for trials without a value.
    return [low - 2 * room, high + room]


def _history_drawing(report: SearchReport, place: int, title: str) -> Drawing:
    objective = report.objectives[place]
    floor = _range([trial.values[place] for trial in report.valued])[0]
    best = best_so_far(report, place)
    marks: list[Mark] = []
    if best:
        x = np.array([n for n, _ in best], float)
        y = np.array([value for _, value in best])
        marks.append(
            CurveMark(
                x=np.repeat(x, 2)[1:],
                y=np.repeat(y, 2)[:-1],
                colour=SOFT,
                label="best so far",
            )
        )
    for state, colour, marker in (
        ("done", SERIES[0], "o"),
        ("pruned", FAINT, "v"),
        ("failed", SERIES[1], "X"),
        ("under way", FAINT, "d"),
    ):
        trials = [trial for trial in report.trials if trial.state == state]
        if trials:
            values = [t.values[place] if t.values else floor for t in trials]
            marks.append(
                CloudMark(
                    x=_numbers([trial.number for trial in trials]),
                    y=_numbers(values),
                    colour=colour,
                    marker=marker,
                    label=state,
                )
            )
    panel = Panel(marks=tuple(marks), x_label="trial", y_label=_axis(objective))
    return _drawing(report, "history", title, HISTORY, panel)


def _drawing(
    report: SearchReport, name: str, title: str, caption: str, panel: Panel
) -> Drawing:
    return Drawing(
        name=name,
        title=f"{report.title}: {title}",
        caption=caption,
        rows=((panel,),),
        simulated=report.simulated,
        size=_SIZE,
    )


def _numbers(values: Sequence[float]) -> Array:
    return np.array(values, np.float64)
