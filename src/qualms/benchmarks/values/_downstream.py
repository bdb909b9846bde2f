"""Tables 5 and 6: every downstream task of one dataset."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from qualms.benchmarks import Variant
from qualms.report.judged import SAMPLE
from qualms.report.papers.values.lines import (
    TYPES,
    ValuesPlace,
    line_keys,
    line_labels,
    study_about,
    values_cell,
    warned,
)
from qualms.report.papers.values.settings import (
    ALL_SCORES,
    DATASETS,
    DETAILED,
    Component,
    ScoreColumn,
    Study,
    stands_in,
)
from qualms.report.table import Column, Table, TableLine


def task_tables(study: Study) -> Iterator[Table]:
    """Tables 5 and 6: everything about one dataset after the other."""
    for name, variant in study.variants.items():
        number = {"lidc_tex": "5", "lidc_mal": "5", "gta5_cs": "6"}.get(name, "")
        ones = study.components([variant])
        for beyond in (False, True):
            chosen = [one for one in ones if study.beyond(one) == beyond]
            if chosen:
                yield _tasks_table(study, (name, variant), chosen, number)


def _tasks_table(
    study: Study, at: tuple[str, Variant], ones: Sequence[Component], number: str
) -> Table:
    """All scores of one dataset. The paper has no such table of the toy data."""
    name, variant = at
    beyond = study.beyond(ones[0])
    scores = [score for score in ALL_SCORES if _judged(study, at, ones, score)]
    head = f"Table {number}: " if number and not beyond else ""
    told = ", methods beyond the paper" if beyond else ""
    end = "_beyond" if beyond else ""
    return Table(
        name=f"table_{number or 'tasks'}_{name}{end}",
        title=f"{head}{DATASETS[name]}, every downstream task{told} (x 100)",
        about=study_about(study.results, [variant]),
        simulated=stands_in(variant),
        columns=tuple(
            Column(
                label=score.head,
                group=score.group,
                decimals=1,
                keys={"score": score.keys[0]},
            )
            for score in scores
        ),
        lines=tuple(_tasks_line(study, at, one, scores) for one in ones),
        left=("measure", "over"),
        notes=(TYPES, *warned([variant])),
        spread=SAMPLE,
        level=study.results.level,
        main=False,
        keys={
            "number": number,
            "preset": study.results.preset.told,
            "dataset": name,
            "variant": variant.name,
            "scale": 100,
        },
    )


def _judged(
    study: Study, at: tuple[str, Variant], ones: Sequence[Component], score: ScoreColumn
) -> bool:
    return any(study.cell(at[1], one, score).values for one in ones)


def _tasks_line(
    study: Study,
    at: tuple[str, Variant],
    one: Component,
    scores: Sequence[ScoreColumn],
) -> TableLine:
    model, measure = line_labels(study, one)
    cells = []
    for score in scores:
        cell = values_cell(study, ValuesPlace(*at, one, score), DETAILED, scale=100.0)
        asked = study.kind(one) != "AU" or score.name != "gain"
        cells.append(cell if asked else replace(cell, why=""))
    return TableLine(
        labels=(measure, one.aggregation),
        cells=tuple(cells),
        section=model,
        beyond=study.beyond(one),
        keys={**line_keys(study, one), "aggregation": one.aggregation},
    )
