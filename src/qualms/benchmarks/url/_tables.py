"""Table 1 and the numbers of the figures, ours beside the published ones."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from qualms.benchmarks.url._correlations import (
    CORRELATIONS,
    CorrelatedPair,
    correlation,
)
from qualms.benchmarks.url._rows import HALF
from qualms.benchmarks.url._settings import (
    AMBIGUITY,
    BY_R_AUROC,
    BY_RECALL,
    CROP,
    FEW,
    FEW_SHOT,
    HUMAN,
    MAIN_SCORES,
    R_AUROC,
    RECALL,
    UPSTREAM_SCORES,
    UrlScore,
    UrlStudy,
)
from qualms.labels import Labels
from qualms.report.judged import SAMPLE
from qualms.report.layout import Layout, LayoutColumn, Section, layout_table
from qualms.report.table import Column, Table, TableCell, TableLine
from qualms.results import Summary
from qualms.study import RunPlan, TableRow, Variant

_ELSEWHERE = (
    "Published numbers in brackets are of the paper's data, ours are not: read them "
    "for the order of methods, not for their size."
)


def url_tables(study: UrlStudy) -> Iterator[Table | None]:
    """Yield all tables."""
    main = study.listed
    if main:
        yield _fill_layout(study, main, RESULTS)
        yield _fill_layout(study, main, _by_set(main))
        yield _fill_layout(study, main, UPSTREAM)
        yield _uncertainties(study, main)
        yield _fill_layout(study, main, _truth(main))
    recall = [v for v in study.judged if v.selection == "recall"]
    if recall:
        yield _fill_layout(study, recall, RESULTS_BY_RECALL)
    yield from _few_shot(study, study.backbones)
    yield from _correlations(study)
    yield from _costs(study, study.backbones)


def _columns(scores: Iterable[UrlScore], group: str = "") -> tuple[LayoutColumn, ...]:
    return tuple(
        LayoutColumn(label=s.head, group=group, decimals=3, labels=s.labels)
        for s in scores
    )


def _layout(
    name: str,
    title: str,
    columns: tuple[LayoutColumn, ...],
    *,
    source: str = BY_R_AUROC,
    **fields: Any,
) -> Layout:
    return Layout(
        name=name,
        title=title,
        columns=columns,
        where={"uncertainty": None},
        printed_in={"source": source, "shots": None},
        spread=SAMPLE,
        **fields,
    )


RESULTS = _layout(
    "results",
    "Means over downstream sets (figures 1, 2, 10 and 12)",
    _columns(MAIN_SCORES),
    main=True,
    notes=(
        "R@1: share of items whose nearest other item is of the same class. R-AUROC: "
        "chance that a wrong one is less certain than a right one. Crop rate: share of "
        "items less certain once cropped. Human alignment: rank correlation with the "
        "entropy of votes, on the sets that have votes.",
    ),
)
RESULTS_BY_RECALL = _layout(
    "by_recall",
    "Means over downstream sets, chosen by R@1 (figures 3 and 6)",
    _columns(MAIN_SCORES),
    source=BY_RECALL,
)
UPSTREAM = _layout(
    "upstream",
    "Upstream items, of classes that were trained on",
    _columns(UPSTREAM_SCORES),
)


def _by_set(variants: Sequence[Variant]) -> Layout:
    sets = dict.fromkeys(
        name
        for variant in variants
        for name in (*variant.settings["retrieval"], *variant.settings["votes"])
    )
    return _layout(
        "by_set",
        "R-AUROC and R@1 of every downstream set",
        tuple(
            column
            for name in sets
            for column in _columns(
                (s._replace(subset=name) for s in (R_AUROC, RECALL)), name
            )
        ),
    )


def _truth(variants: Sequence[Variant]) -> Layout:
    """Lay out how uncertainties follow the ambiguity that a simulator knows."""
    retrieval = dict.fromkeys(n for v in variants for n in v.settings["retrieval"])
    votes = dict.fromkeys(n for v in variants for n in v.settings["votes"])
    sets = [(name, name.replace("_", " ")) for name in (*retrieval, *votes, "upstream")]
    return _layout(
        "truth",
        "Uncertainty beside the true ambiguity of the pictures (rank correlation)",
        _columns(
            (AMBIGUITY, *(AMBIGUITY._replace(subset=n, label=t) for n, t in sets))
        ),
        notes=(
            "A simulator knows how far a picture is occluded, out of focus or cut off. "
            "0: the uncertainty says nothing of it; below 0: clear pictures are less "
            "certain.",
        ),
    )


def _uncertainties(study: UrlStudy, variants: Sequence[Variant]) -> Table | None:
    names = study.results.table.distinct("uncertainty")
    layout = Layout(
        name="uncertainties",
        title="Uncertainties by name: which one transfers",
        columns=_columns((R_AUROC, CROP, HUMAN)),
        where={"uncertainty": names},
        lines=("row", "uncertainty"),
        line_labels=_with_uncertainty,
        left=("method", "uncertainty"),
        printed_in=None,
        spread=SAMPLE,
        notes=(
            "The mutual information of draws is the paper's Jensen-Shannon divergence.",
        ),
    )
    return _fill_layout(study, variants, layout)


def _with_uncertainty(plan: RunPlan, labels: Labels) -> tuple[str, ...]:
    name = str(labels["uncertainty"]).replace("_", " ")
    return plan.row(str(labels["row"])).label, name


def _fill_layout(
    study: UrlStudy, variants: Sequence[Variant], layout: Layout
) -> Table | None:
    """Lay a table out with a section for each variant."""
    simulated = any(variant.simulated for variant in variants)
    configured = any("config" in variant.labels for variant in variants)
    rows = {row.name for variant in variants for row in study.shown_on(variant)}
    layout = replace(
        layout,
        where={**layout.where, "row": tuple(rows)},
        sections=tuple(Section(v.label, {"variant": v.name}) for v in variants),
        printed_in=None if configured else layout.printed_in,
        compares=not simulated,
    )
    table = layout_table(
        study.results, layout, about=study.about(variants), simulated=simulated
    )
    if table is None or not (simulated and table.compares):
        return table
    return replace(table, published_notes=(_ELSEWHERE,))


def _table(  # noqa: PLR0913 - what a table is made of
    study: UrlStudy,
    variants: Sequence[Variant],
    *,
    name: str,
    title: str,
    columns: Sequence[Column],
    lines: Iterable[TableLine],
    left: tuple[str, ...] = ("method",),
    notes: tuple[str, ...] = (),
) -> Table:
    """Make a table of numbers that are computed from several results."""
    lines = tuple(lines)
    simulated = any(variant.simulated for variant in variants)
    compares = any(cell.published for line in lines for cell in line.cells)
    return Table(
        name=f"table_{name}",
        title=title,
        about=study.about(variants),
        simulated=simulated,
        columns=tuple(columns),
        lines=lines,
        left=left,
        main=False,
        notes=notes,
        published_notes=(_ELSEWHERE,) if compares and simulated else (),
        spread=SAMPLE,
        level=study.results.level,
        keys={"preset": study.results.plan.preset_text},
    )


def _few_shot(study: UrlStudy, variants: Sequence[Variant]) -> Iterator[Table]:
    """Yield a table of the numbers of figure 13."""
    lines = [
        TableLine(
            labels=(study.label(row),),
            cells=tuple(
                _few_shot_cell(study, variant, row, shots, score)
                for score in (R_AUROC, RECALL)
                for shots in (*FEW, HALF)
            ),
            section=variant.label,
            keys={"variant": variant.name, "row": row},
        )
        for variant in variants
        for row in study.taught_methods(variant)
    ]
    if lines:
        yield _table(
            study,
            variants,
            name="few_shot",
            title="After training on some items of each test class (figure 13)",
            columns=[
                Column(
                    label=label,
                    group=score.head,
                    decimals=3,
                    keys={**score.labels, "shots": label},
                )
                for score in (R_AUROC, RECALL)
                for label in (*FEW, HALF)
            ],
            lines=lines,
            notes=(
                f"Means over {study.taught_text(variants)}, each trained on by itself;"
                " judged on the other half of the items of these classes.",
            ),
        )


def _few_shot_cell(
    study: UrlStudy, variant: Variant, row: str, shots: str, score: UrlScore
) -> TableCell:
    values = study.taught(variant, row, shots, score)
    source = BY_R_AUROC if shots == HALF else FEW_SHOT
    number = study.released(variant, row, score, source, shots=shots)
    defined = [value for value in values if math.isfinite(value)]
    return TableCell(
        mean=math.fsum(defined) / len(defined) if defined else math.nan,
        repeats=len(defined),
        published=None if number is None else Summary(number.value, math.nan),
        why="" if defined else "not part of the runs",
    )


def _correlation_line(study: UrlStudy, pair: CorrelatedPair) -> TableLine:
    rank_correlation = correlation(study, study.judged, pair.x, pair.y)
    number = study.printed_in_text(pair.published) if pair.published else math.nan
    cell = TableCell(
        mean=rank_correlation.value,
        repeats=0 if rank_correlation.why else rank_correlation.runs,
        published=Summary(number, math.nan) if math.isfinite(number) else None,
        low=rank_correlation.low,
        high=rank_correlation.high,
        why=rank_correlation.why,
        no_interval=rank_correlation.no_interval,
    )
    return TableLine(
        labels=(pair.text, pair.figure),
        cells=(cell, TableCell(mean=float(rank_correlation.runs), repeats=1)),
        keys={"x": pair.x.label, "y": pair.y.label},
    )


def _correlations(study: UrlStudy) -> Iterator[Table]:
    """Yield a table of the rank correlations between scores over all runs."""
    lines = [_correlation_line(study, pair) for pair in CORRELATIONS]
    if any(line.cells[0].repeats for line in lines):
        yield _table(
            study,
            study.judged,
            name="correlations",
            title="Rank correlations between scores, over all runs",
            columns=(
                Column(
                    label="rank correlation", decimals=2, keys={"score": "spearman"}
                ),
                Column(label="runs", decimals=0, keys={"score": "runs"}),
            ),
            lines=lines,
            left=("scores", "figure"),
            notes=(
                "A run is one method with one configuration and one seed. Runs of a "
                "method are alike: intervals come from leaving out one method at a time"
                " (jackknife), and speak of other methods.",
            ),
        )


def _costs(study: UrlStudy, variants: Sequence[Variant]) -> Iterator[Table]:
    """Yield table 1: parameters, seconds of an epoch, milliseconds for each image."""
    lines = [
        line
        for variant in variants
        for row in study.methods_on(variant)
        for line in _cost_line(study, variant, row)
    ]
    if lines:
        machines = ", ".join(study.results.hardware) or "no known machine"
        yield _table(
            study,
            variants,
            name="1",
            title="Table 1: what methods cost",
            columns=(
                _cost_column("parameters", "million", 2),
                _cost_column("epoch", "s", 1),
                _cost_column("over CE", "", 2),
                _cost_column("image", "ms", 3),
                _cost_column("image and crop", "ms", 3),
            ),
            lines=lines,
            notes=(
                f"Measured on {machines}; the paper's times are of an RTX 2080 Ti "
                "(ResNet-50) and an A100 (ViT-Medium), and its time for an image "
                "includes that of its crop.",
            ),
        )


def _cost_column(label: str, unit: str, decimals: int) -> Column:
    return Column(label=label, unit=unit, decimals=decimals, keys={"score": label})


def _cost_line(study: UrlStudy, variant: Variant, row: TableRow) -> Iterator[TableLine]:
    costs = study.results.costs
    cost, plain = (costs.get((variant.name, name)) for name in (row.name, "ce"))
    if cost is None or cost.seconds is None:
        return
    per_item = cost.per_item
    with_crop = None if per_item is None else per_item + (cost.per_crop or 0.0)
    place = variant, row.name
    yield TableLine(
        labels=(row.label,),
        cells=(
            _cost(study, cost.parameters, 1e-6, *place, "params_millions"),
            _cost(study, cost.per_epoch, 1, *place, "epoch_time_s"),
            _ratio(cost.per_epoch, None if plain is None else plain.per_epoch),
            _cost(study, per_item, 1e3, *place, ""),
            _cost(study, with_crop, 1e3, *place, "inference_ms_per_sample"),
        ),
        section=variant.label,
        keys={"variant": variant.name, "row": row.name},
    )


def _cost(
    study: UrlStudy,
    value: float | None,
    scale: float,
    variant: Variant,
    row: str,
    score: str,
) -> TableCell:
    labels = {"backbone": variant.labels.get("backbone"), "row": row, "score": score}
    number = study.printed(source="table1", **labels)
    return TableCell(
        mean=math.nan if value is None else scale * value,
        repeats=0 if value is None else 1,
        published=None if number is None else Summary(number.value, math.nan),
        why="" if value is not None else "was not recorded",
    )


def _ratio(value: float | None, base: float | None) -> TableCell:
    if value is None or not base:
        return TableCell(why="was not recorded")
    return TableCell(mean=value / base, repeats=1)
