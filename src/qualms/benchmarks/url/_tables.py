"""Table 1 and the numbers of the figures, ours beside the published ones."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from qualms.benchmarks import TableRow, Variant
from qualms.evaluate.results import Summary
from qualms.report.judged import NOT_PRINTED, SAMPLE, table_cell
from qualms.report.papers.url.correlations import (
    CORRELATIONS,
    CorrelatedPair,
    correlation,
)
from qualms.report.papers.url.settings import (
    BY_R_AUROC,
    BY_RECALL,
    CROP,
    HUMAN,
    MAIN_SCORES,
    R_AUROC,
    RECALL,
    SHOTS,
    UPSTREAM_SCORES,
    UrlScore,
    UrlStudy,
    named_number,
    released_number,
)
from qualms.report.papers.url.shots import shot_values, taught_methods, taught_text
from qualms.report.table import Column, Table, TableCell, TableLine

_ELSEWHERE = (
    "Published numbers in brackets are of the paper's data, ours are not: read them "
    "for the order of methods, not for their size."
)


def url_tables(study: UrlStudy) -> Iterator[Table]:
    """All of them."""
    main = study.listed
    if main:
        yield _results(study, main)
        yield _by_set(study, main)
        yield _upstream(study, main)
        yield _uncertainties(study, main)
    recall = [v for v in study.judged if v.selection == "recall"]
    if recall:
        yield _by_recall(study, recall)
    yield from _few_shot(study, study.backbones)
    yield from _correlations(study)
    yield from _costs(study, study.backbones)


def _table(  # noqa: PLR0913 - what a table is made of
    study: UrlStudy,
    variants: Sequence[Variant],
    *,
    name: str,
    title: str,
    columns: Sequence[Column],
    lines: Iterable[TableLine],
    left: tuple[str, ...] = ("method",),
    main: bool = False,
    notes: tuple[str, ...] = (),
) -> Table:
    found = tuple(lines)
    compares = any(cell.published for line in found for cell in line.cells)
    elsewhere = compares and any(variant.simulated for variant in variants)
    return Table(
        name=f"table_{name}",
        title=title,
        about=study.about(variants),
        simulated=any(variant.simulated for variant in variants),
        columns=tuple(columns),
        lines=found,
        left=left,
        main=main,
        notes=(*notes, *((_ELSEWHERE,) if elsewhere else ())),
        spread=SAMPLE,
        level=study.results.level,
        keys={"preset": study.results.preset.told},
    )


def _cell(
    study: UrlStudy,
    variant: Variant,
    row: str,
    score: UrlScore,
    source: str = BY_R_AUROC,
) -> TableCell:
    """Our number beside that of the released runs."""
    number = released_number(variant, row, score.metric, source)
    cell = table_cell(
        study.results,
        study.cell(variant, row, score),
        spread=SAMPLE,
        number=None if "config" in variant.settings else number,
        absent=NOT_PRINTED,
    )
    return replace(cell, by_their_rule=None) if variant.simulated else cell


def _columns(scores: Sequence[UrlScore], group: str = "") -> tuple[Column, ...]:
    return tuple(
        Column(label=s.head, group=group, decimals=3, keys={"score": s.name})
        for s in scores
    )


def _lines(
    study: UrlStudy,
    variants: Sequence[Variant],
    scores: Sequence[UrlScore],
    source: str = BY_R_AUROC,
) -> Iterator[TableLine]:
    for variant in variants:
        for row in study.methods_on(variant):
            cells = (_cell(study, variant, row.name, s, source) for s in scores)
            yield TableLine(
                labels=(row.label,),
                cells=tuple(cells),
                section=variant.label,
                keys={"variant": variant.name, "row": row.name},
                beyond=row.beyond,
            )


def _results(study: UrlStudy, variants: Sequence[Variant]) -> Table:
    return _table(
        study,
        variants,
        name="results",
        title="Means over downstream sets (figures 1, 2, 10 and 12)",
        columns=_columns(MAIN_SCORES),
        lines=_lines(study, variants, MAIN_SCORES),
        main=True,
        notes=(
            "R@1: share of items whose nearest other item is of the same class. "
            "R-AUROC: chance that a wrong one is less certain than a right one. Crop "
            "rate: share of items less certain once cropped. Human alignment: rank "
            "correlation with the entropy of votes, on the sets that have votes.",
        ),
    )


def _by_recall(study: UrlStudy, variants: Sequence[Variant]) -> Table:
    return _table(
        study,
        variants,
        name="by_recall",
        title="Means over downstream sets, chosen by R@1 (figures 3 and 6)",
        columns=_columns(MAIN_SCORES),
        lines=_lines(study, variants, MAIN_SCORES, BY_RECALL),
    )


def _upstream(study: UrlStudy, variants: Sequence[Variant]) -> Table:
    return _table(
        study,
        variants,
        name="upstream",
        title="Upstream items, of classes that were trained on",
        columns=_columns(UPSTREAM_SCORES),
        lines=_lines(study, variants, UPSTREAM_SCORES),
    )


def _by_set(study: UrlStudy, variants: Sequence[Variant]) -> Table:
    sets = dict.fromkeys(
        name
        for variant in variants
        for name in (*variant.settings["retrieval"], *variant.settings["votes"])
    )
    scores = [
        (name, UrlScore(f"{name}/{score.name}", score.label))
        for name in sets
        for score in (R_AUROC, RECALL)
    ]
    return _table(
        study,
        variants,
        name="by_set",
        title="R-AUROC and R@1 of every downstream set",
        columns=[c for name, s in scores for c in _columns((s,), name)],
        lines=_lines(study, variants, [score for _, score in scores]),
    )


def _uncertainties(study: UrlStudy, variants: Sequence[Variant]) -> Table:
    scores = (R_AUROC, CROP, HUMAN)

    def lines() -> Iterator[TableLine]:
        for variant in variants:
            for row in study.methods_on(variant):
                for u in study.uncertainties(variant, row):
                    cells = (
                        study.results.cell(variant.name, row.name, s.name, {"u": u})
                        for s in scores
                    )
                    yield TableLine(
                        labels=(row.label, u.replace("_", " ")),
                        cells=tuple(
                            table_cell(study.results, cell, spread=SAMPLE)
                            for cell in cells
                        ),
                        section=variant.label,
                        keys={"variant": variant.name, "row": row.name, "u": u},
                    )

    return _table(
        study,
        variants,
        name="uncertainties",
        title="Methods with several uncertainties: which one transfers",
        columns=_columns(scores),
        lines=lines(),
        left=("method", "uncertainty"),
        notes=(
            "The mutual information of draws is the paper's Jensen-Shannon divergence.",
        ),
    )


def _few_shot(study: UrlStudy, variants: Sequence[Variant]) -> Iterator[Table]:
    """Figure 13 in numbers."""
    lines = [
        TableLine(
            labels=(study.label(row),),
            cells=tuple(
                _few_shot_cell(study, variant, row, name, score)
                for score in (R_AUROC, RECALL)
                for name in (*(f"few{k}" for k in SHOTS), "many")
            ),
            section=variant.label,
            keys={"variant": variant.name, "row": row},
        )
        for variant in variants
        for row in taught_methods(study, variant)
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
                    keys={"score": score.name, "items": label},
                )
                for score in (R_AUROC, RECALL)
                for label in (*map(str, SHOTS), "half")
            ],
            lines=lines,
            notes=(
                f"Means over {taught_text(study, variants)}, each trained on by itself;"
                " judged on the other half of the items of these classes.",
            ),
        )


def _few_shot_cell(
    study: UrlStudy, variant: Variant, row: str, name: str, score: UrlScore
) -> TableCell:
    values = shot_values(study, variant, row, name, score)
    few = name.startswith("few")
    number = released_number(
        variant,
        row,
        f"{score.name}_{name if few else 'many_shot'}",
        "released_few_shot" if few else BY_R_AUROC,
    )
    known = [value for value in values if math.isfinite(value)]
    return TableCell(
        mean=math.fsum(known) / len(known) if known else math.nan,
        repeats=len(known),
        published=None if number is None else Summary(number.mean, math.nan),
        why="" if known else "not part of the runs",
    )


def _correlation_line(study: UrlStudy, pair: CorrelatedPair) -> TableLine:
    found = correlation(study, study.judged, pair.x, pair.y)
    number = named_number(pair.metric) if pair.metric else math.nan
    cell = TableCell(
        mean=found.value,
        repeats=0 if found.why else found.runs,
        published=Summary(number, math.nan) if math.isfinite(number) else None,
        why=found.why,
    )
    return TableLine(
        labels=(pair.text, pair.figure),
        cells=(cell, TableCell(mean=float(found.runs), repeats=1)),
        keys={"x": pair.x.name, "y": pair.y.name},
    )


def _correlations(study: UrlStudy) -> Iterator[Table]:
    """Rank correlations between scores over all runs."""
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
                "A run is one method with one configuration and one seed; runs of a "
                "method are alike, so that these correlations have no interval.",
            ),
        )


def _costs(study: UrlStudy, variants: Sequence[Variant]) -> Iterator[Table]:
    """Table 1: parameters, seconds of an epoch, milliseconds for each image."""
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
    each = cost.per_item
    whole = None if each is None else each + (cost.per_crop or 0.0)
    place = variant, row.name
    yield TableLine(
        labels=(row.label,),
        cells=(
            _cost(cost.parameters, 1e-6, *place, "params_millions"),
            _cost(cost.per_epoch, 1, *place, "epoch_time_s"),
            _ratio(cost.per_epoch, None if plain is None else plain.per_epoch),
            _cost(each, 1e3, *place, ""),
            _cost(whole, 1e3, *place, "inference_ms_per_sample"),
        ),
        section=variant.label,
        keys={"variant": variant.name, "row": row.name},
    )


def _cost(
    value: float | None, scale: float, variant: Variant, row: str, metric: str
) -> TableCell:
    number = released_number(variant, row, metric, "table1") if metric else None
    return TableCell(
        mean=math.nan if value is None else scale * value,
        repeats=0 if value is None else 1,
        published=None if number is None else Summary(number.mean, math.nan),
        why="" if value is not None else "the predictions do not state it",
    )


def _ratio(value: float | None, base: float | None) -> TableCell:
    if value is None or not base:
        return TableCell(why="the predictions do not state it")
    return TableCell(mean=value / base, repeats=1)
