"""Planners: which predictions have one, and its data for `charts/planner.js`.

Python computes the answers to every budget and target (`qualms.referral.plan_choices`),
and the page looks them up. Numbers are packed, since a page must show what `qualms
refer` says to the last digit.
"""

import base64
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.referral import (
    MeasureChoices,
    PlanChoices,
    ScoreAnswers,
    SetChoices,
    plan_choices,
    referable_tasks,
)
from qualms.referral.shares import lower_percent
from qualms.report.site.contents import ScoredFile, ShownBenchmark, SiteContents
from qualms.report.site.first_runs import first_runs
from qualms.runs import stored
from qualms.shelf import traits
from qualms.spec import RunSpec

MOST = 24
"""Planners of a site; more would take long to compute and to choose from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSource:
    """Predictions that a plan can be made on, and those that it is applied to."""

    label: str
    group: str
    """Its group: a benchmark with its variant, or the files of a user."""
    path: Path
    on: tuple[Path, ...] = ()
    simulated: bool = False

    def choices(self) -> PlanChoices:
        """Return all answers.

        Raises:
            ValueError: If no plan can be made; the message says why.
        """
        return plan_choices(self.path, on=self.on)

    @property
    def command(self) -> tuple[str, str]:
        """The command of a plan, before and after what is asked for."""
        others = "".join(f" \\\n  --on {_quoted(path)}" for path in self.on)
        return f"qualms refer {_quoted(self.path)}", others


def plan_sources(contents: SiteContents) -> Iterator[PlanSource]:
    """Yield the predictions of a site that a plan can be made on."""
    for shown in contents.benchmarks:
        if shown.report.task in referable_tasks():
            yield from _of_benchmark(shown)
    yield from _of_files(contents.files)


def plan_data(choices: PlanChoices, command: tuple[str, str]) -> dict[str, Any]:
    """Return all answers as data for `assets/charts/planner.js`."""
    first = choices.sets[0]
    return {
        "uncertainty": choices.uncertainty.name,
        "queries": "vectors" in traits(choices.task),
        "level": choices.level,
        "items": choices.items,
        "clustered": first.clusters is not None,
        "thresholds": packed_numbers(choices.thresholds),
        "rounded": packed_numbers(choices.rounded),
        "budgets": choices.budgets.tolist(),
        "targets": choices.targets.tolist(),
        "confidences": list(choices.confidences),
        "budget": {
            "observed": _places(choices, choices.budget.observed),
            "promised": [
                _places(choices, choices.budget.promised[each])
                for each in choices.confidences
            ],
        },
        "scores": [
            _score_data(choices, name, answers)
            for name, answers in choices.scores.items()
        ],
        "sets": [_set_data(choices, each) for each in choices.sets],
        "command": list(command),
        "notes": [*choices.warnings, *choices.notes],
    }


def packed_numbers(values: NDArray[Any]) -> dict[str, str]:
    """Return numbers as text that holds all their digits.

    >>> packed_numbers(np.array([1, 2]))
    {'i32': 'AQAAAAIAAAA='}
    """
    kind, dtype = ("f64", "<f8") if values.dtype.kind == "f" else ("i32", "<i4")
    return {kind: base64.b64encode(values.astype(dtype).tobytes()).decode("ascii")}


def _score_data(
    choices: PlanChoices, name: str, answers: ScoreAnswers
) -> dict[str, Any]:
    most = [answers.most[each] for each in choices.confidences]
    thresholds = np.array([threshold for threshold, _ in most])
    return {
        "name": name,
        "starts": answers.starts,
        "observed": _places(choices, answers.observed),
        "promised": [
            _places(choices, answers.promised[each]) for each in choices.confidences
        ],
        "needed": [
            packed_numbers(answers.needed[each]) for each in choices.confidences
        ],
        "most": _places(choices, thresholds),
        "bounds": [lower_percent(bound) for _, bound in most],
    }


def _set_data(choices: PlanChoices, columns: SetChoices) -> dict[str, Any]:
    return {
        "label": columns.label,
        "n": columns.n,
        "clusters": columns.clusters,
        "kept": packed_numbers(columns.kept),
        "referred": _ends(columns.referred.low, columns.referred.high),
        "measures": [_measure_data(columns, each) for each in columns.measures],
        "verdicts": {
            asked: [
                _signs(columns.verdicts[asked, each])
                for each in ((None,) if asked == "budget" else ()) + choices.confidences
            ]
            for asked in dict.fromkeys(asked for asked, _ in columns.verdicts)
        },
    }


def _measure_data(columns: SetChoices, measure: MeasureChoices) -> dict[str, Any]:
    """Return a score of a set: shares as counts, which are shorter and exact."""
    before = measure.before
    data = {
        "name": measure.score,
        "label": measure.label,
        "before": packed_numbers(np.array([before.value, before.low, before.high])),
        **_ends(measure.kept.low, measure.kept.high),
    }
    if measure.score in columns.wrong:
        return data | {
            "counted": packed_numbers(columns.counted[measure.score]),
            "wrong": packed_numbers(columns.wrong[measure.score]),
        }
    return data | {
        "value": packed_numbers(measure.kept.value),
        "expert": packed_numbers(measure.with_expert),
    }


def _places(choices: PlanChoices, thresholds: NDArray[np.float64]) -> dict[str, str]:
    return packed_numbers(choices.places(thresholds))


def _ends(low: NDArray[np.float64], high: NDArray[np.float64]) -> dict[str, Any]:
    return {"low": packed_numbers(low), "high": packed_numbers(high)}


def _signs(verdicts: NDArray[np.int8]) -> str:
    """Return verdicts as a text: + met, - missed, ? undecided."""
    return "".join("?+-"[verdict] for verdict in verdicts.tolist())


def _of_benchmark(shown: ShownBenchmark) -> Iterator[PlanSource]:
    """Yield the first run of each kind on each variant of a benchmark."""
    for run in first_runs(shown):
        paths = _paths(run.spec, run.folder)
        if paths:
            yield PlanSource(
                label=run.label,
                group=run.group,
                path=paths[0],
                on=tuple(paths[1:]),
                simulated=shown.report.simulated,
            )


def _paths(spec: RunSpec, folder: Path) -> list[Path]:
    """Return the predictions of a run: first `val`, then `test` and its shifts."""
    vals = [split for split in spec.splits if split == "val"]
    tests = [split for split in spec.splits if split.partition("/")[0] == "test"]
    files = (stored(folder.resolve().parent, split) for split in (*vals, *tests))
    return [folder / file.name for file in files if file is not None]


def _of_files(files: Sequence[ScoredFile]) -> Iterator[PlanSource]:
    """Yield plans on validation predictions, or on the files themselves."""
    by_val: dict[Path, list[ScoredFile]] = {}
    for file in files:
        if file.path is None or file.results.task not in referable_tasks():
            continue
        if file.val is None:
            yield PlanSource(label=file.results.name, group="Files", path=file.path)
        else:
            by_val.setdefault(file.val, []).append(file)
    for val, others in by_val.items():
        paths = tuple(file.path for file in others if file.path is not None)
        label = ", ".join(file.results.name for file in others)
        yield PlanSource(label=label, group="Files", path=val, on=paths)


def _quoted(path: Path) -> str:
    """Return a path as a shell takes it."""
    text = path.as_posix()
    return shlex.quote(f"./{text}" if text.startswith("-") else text)
