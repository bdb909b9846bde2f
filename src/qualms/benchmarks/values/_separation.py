"""Table 4: the separation study, and how far ours lie from the published numbers."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

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
    AUROC,
    DATASETS,
    NCC,
    SEPARATION,
    Component,
    ScoreColumn,
    Study,
    as_in_values,
    printed_number,
    stands_in,
)
from qualms.report.table import Column, Table, TableCell, TableLine

_SECTIONS = ("in-domain test items", "shifted test items")
NEAR, FAR = 0.05, 0.1
"""Differences from table 4 that are counted."""


def separation_tables(study: Study) -> Iterator[Table]:
    """Tables 4a and 4b, and how far ours lie from them."""
    yield from _ambiguity(study)
    yield from _detection(study)
    yield from _differences(study)


def _ambiguity(study: Study) -> Iterator[Table]:
    """Table 4a: does uncertainty lie where raters disagree?"""
    shown = study.variants
    names = [name for name in ("toy1", *list(DATASETS)[4:]) if name in shown]
    if not names:
        return
    ones = _once(study.components(shown[name] for name in names))
    lines = [
        _line(study, one, [(name, score) for name in names], section=section)
        for score, section in zip(NCC, _SECTIONS, strict=True)
        for one in ones
    ]
    yield _study_table(
        study,
        names,
        [line for line in lines if any(cell.repeats for cell in line.cells)],
        name="4a",
        title="Table 4a: NCC of uncertainty and the raters' disagreement ↑",
        left=("model", "measure"),
    )


def _detection(study: Study) -> Iterator[Table]:
    """Table 4b: does an item's uncertainty tell that it is shifted?"""
    shown = study.variants
    names = [name for name in shown if name != "toy1"]
    if not names:
        return
    ones = study.components(shown[name] for name in names)
    lines = [_line(study, one, [(name, AUROC) for name in names]) for one in ones]
    lines = [line for line in lines if any(cell.repeats for cell in line.cells)]
    for beyond, name in ((False, "4b"), (True, "4b_beyond")):
        told = " of methods beyond the paper" if beyond else ""
        chosen = [line for line in lines if line.beyond == beyond]
        if chosen:
            yield _study_table(
                study,
                names,
                chosen,
                name=name,
                title=f"Table 4b: AUROC of shifted items by uncertainty{told} ↑",
                left=("measure", "over"),
            )


def _once(ones: Sequence[Component]) -> list[Component]:
    """Each model and measure with one aggregation, which does not enter."""
    found: dict[tuple[str, str], Component] = {}
    for one in ones:
        found.setdefault((one.row, one.measure), one)
    return list(found.values())


def _line(
    study: Study,
    one: Component,
    places: Sequence[tuple[str, ScoreColumn]],
    *,
    section: str = "",
) -> TableLine:
    cells = []
    for name, score in places:
        place = ValuesPlace(name, study.variants[name], one, score)
        cells.append(values_cell(study, place, SEPARATION))
    model, measure = line_labels(study, one)
    aggregated = any(score is AUROC for _, score in places)
    keys = {"aggregation": one.aggregation} if aggregated else {"items": section}
    return TableLine(
        labels=(measure, one.aggregation) if aggregated else (model, measure),
        cells=tuple(cells),
        section=section or model,
        beyond=study.beyond(one),
        keys={**line_keys(study, one), **keys},
    )


def _study_table(
    study: Study,
    names: Sequence[str],
    lines: Sequence[TableLine],
    *,
    name: str,
    title: str,
    left: tuple[str, ...],
) -> Table:
    variants = [study.variants[each] for each in names]
    columns = tuple(
        Column(
            label=DATASETS[each],
            decimals=2,
            keys={"dataset": each, "variant": study.variants[each].name},
        )
        for each in names
    )
    return Table(
        name=f"table_{name}",
        title=title,
        about=study_about(study.results, variants),
        simulated=any(map(stands_in, variants)),
        columns=columns,
        lines=tuple(lines),
        left=left,
        notes=(TYPES, *warned(variants)),
        spread=SAMPLE,
        level=study.results.level,
        main=not name.endswith("beyond"),
        keys={"number": name, "preset": study.results.preset.told},
    )


class Gap(NamedTuple):
    """How far our number lies from the published one."""

    place: ValuesPlace
    difference: float


def gaps(study: Study) -> list[Gap]:
    """Every cell of table 4 that has both, on comparable data.

    Where the released code has a rule of its own, ours is by that rule.
    """
    found = []
    for name, variant in study.variants.items():
        if not as_in_values(variant):
            continue
        ones = study.components([variant])
        places = [
            *((one, score) for one in _once(ones) for score in NCC if name != "toy2"),
            *((one, AUROC) for one in ones),
        ]
        for one, score in places:
            number = printed_number(name, one, score, SEPARATION)
            difference = math.nan
            if number is not None and not study.beyond(one):
                difference = study.ours(name, one, score) - number.mean
            if math.isfinite(difference):
                found.append(Gap(ValuesPlace(name, variant, one, score), difference))
    return found


def _differences(study: Study) -> Iterator[Table]:
    """How many cells of table 4 lie near the published ones, and each of them."""
    found = gaps(study)
    if not found:
        return
    groups: dict[str, list[Gap]] = {}
    for gap in found:
        label = f"{DATASETS[gap.place.dataset]}, {gap.place.score.head[:-2]}"
        groups.setdefault(label, []).append(gap)
    groups["all"] = found
    variants = [gap.place.variant for gap in found]
    unique = list({variant.name: variant for variant in variants}.values())
    yield Table(
        name="table_4_differences",
        title="Table 4: how far ours lie from the published numbers",
        about=study_about(study.results, unique),
        columns=(
            Column(label="cells", decimals=0, keys={"score": "cells"}),
            Column(label=f"within {NEAR:g}", decimals=0, keys={"score": "near"}),
            Column(label=f"within {FAR:g}", decimals=0, keys={"score": "far"}),
            Column(label="mean |difference|", decimals=3, keys={"score": "mean"}),
            Column(label="mean difference", decimals=3, keys={"score": "bias"}),
            Column(label="largest", decimals=2, keys={"score": "largest"}),
        ),
        lines=tuple(_near_line(label, each) for label, each in groups.items()),
        left=("data and score",),
        notes=(
            "Ours minus published, means over repeats; ours by the rule of the "
            "released code where it has one. table_4_cells has every cell.",
        ),
        keys={"number": "4", "preset": study.results.preset.told},
    )
    yield _cells_table(study, found, unique)


def _near_line(label: str, found: Sequence[Gap]) -> TableLine:
    sizes = [abs(gap.difference) for gap in found]
    # Published numbers have two decimals: a cell at the limit lies within.
    near = sum(size <= NEAR + 1e-9 for size in sizes)
    far = sum(size <= FAR + 1e-9 for size in sizes)
    mean = math.fsum(sizes) / len(sizes)
    bias = math.fsum(gap.difference for gap in found) / len(found)
    values = (len(found), near, far, mean, bias, max(sizes))
    return TableLine(
        labels=(label,),
        cells=tuple(TableCell(mean=float(value), repeats=1) for value in values),
        keys={"data": label},
    )


def _cells_table(
    study: Study, found: Sequence[Gap], variants: Sequence[Variant]
) -> Table:
    """Every difference; a line of the CSV file is a cell of table 4."""
    names = list(dict.fromkeys((g.place.dataset, g.place.score) for g in found))
    by_line: dict[Component, dict[tuple[str, ScoreColumn], Gap]] = {}
    for gap in found:
        one = gap.place.one
        if gap.place.score is not AUROC:
            one = one._replace(aggregation="")
        at = gap.place.dataset, gap.place.score
        by_line.setdefault(one, {})[at] = gap
    return Table(
        name="table_4_cells",
        title="Table 4: ours minus the published numbers, cell by cell",
        about=study_about(study.results, variants),
        columns=tuple(
            Column(
                label=DATASETS[name],
                group=score.head[:-2],
                decimals=2,
                keys={"dataset": name, "score": score.keys[0]},
            )
            for name, score in names
        ),
        lines=tuple(
            _gap_line(study, one, [cells.get(at) for at in names])
            for one, cells in by_line.items()
        ),
        left=("model", "measure", "over"),
        main=False,
        keys={"number": "4", "preset": study.results.preset.told},
    )


def _gap_line(study: Study, one: Component, found: Sequence[Gap | None]) -> TableLine:
    cells = []
    for gap in found:
        cell = TableCell()
        if gap is not None:
            ours = values_cell(study, gap.place, SEPARATION)
            cell = replace(ours, text=f"{round(gap.difference, 2) + 0.0:+.2f}")
        cells.append(cell)
    return TableLine(
        labels=(*line_labels(study, one), one.aggregation),
        cells=tuple(cells),
        keys={**line_keys(study, one), "aggregation": one.aggregation},
    )
