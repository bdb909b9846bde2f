"""Figures 1, 6, 10 and 12: a score of every method as bars."""

import math
from collections.abc import Iterator, Mapping, Sequence

from qualms.benchmarks.url._rows import HALF
from qualms.benchmarks.url._settings import (
    BY_R_AUROC,
    BY_RECALL,
    MIXED,
    OOD,
    R_AUROC,
    RECALL,
    UrlScore,
    UrlStudy,
)
from qualms.report.captions import If, caption, hollow, ranged
from qualms.report.figures import (
    SERIES,
    SOFT,
    BarMark,
    Drawing,
    Mark,
    Panel,
    PointMark,
    RuleMark,
)
from qualms.results import Result
from qualms.study import Variant


def bar_figures(study: UrlStudy) -> Iterator[Drawing]:
    """Yield the bar figures that have numbers."""
    main = study.backbones
    recall = [v for v in study.judged if v.selection == "recall"]
    yield from _figure(
        study,
        main,
        R_AUROC,
        ("1", "uncertainty on unseen classes", BY_R_AUROC),
        "R-AUROC, the chance that an item with a wrong nearest neighbour is less "
        "certain than one with a right one; mean over the downstream sets.",
    )
    yield from _figure(
        study,
        recall,
        RECALL,
        ("6", "retrieval on unseen classes, chosen by R@1", BY_RECALL),
        "R@1, the share of items whose nearest other item is of the same class; "
        "epochs were chosen by it.",
    )
    yield from _figure(
        study,
        main,
        OOD,
        ("10", "telling downstream items from upstream ones", BY_R_AUROC),
        "AUROC of the uncertainty for downstream items among as many upstream ones; "
        "mean over the downstream sets.",
    )
    yield from _figure(
        study,
        main,
        MIXED,
        ("12", "uncertainty on mixed items", BY_R_AUROC),
        "R-AUROC of downstream and upstream items together, as many of each; mean over "
        "the downstream sets.",
    )


def _figure(
    study: UrlStudy,
    variants: Sequence[Variant],
    score: UrlScore,
    about: tuple[str, str, str],
    about_score: str,
) -> Iterator[Drawing]:
    number, title, source = about
    with_values = [v for v in variants if any(_heights(study, v, score).values())]
    if with_values:
        rows = tuple((_panel(study, v, score, source),) for v in with_values)
        yield Drawing(
            name=f"figure_{number}",
            title=f"Figure {number}: {title}",
            caption=caption(
                rows,
                about_score,
                *_how_to_read(study, with_values, score),
                "Methods stand in order of their height.",
                "" if score is RECALL else "The axis begins near 0.4.",
                If(hollow, "Hollow diamonds are the released runs of the paper."),
                study.source(with_values),
            ),
            rows=rows,
            simulated=any(variant.simulated for variant in with_values),
            size=(6.4, 2.0),
        )


def _how_to_read(
    study: UrlStudy, variants: Sequence[Variant], score: UrlScore
) -> Iterator[str | If]:
    """Say what bars and their ranges are."""
    counts = {
        sum(map(math.isfinite, study.result(variant, row, score).values))
        for variant in variants
        for row in _heights(study, variant, score)
    }
    if counts == {1}:
        yield "Bars are of one seed."
        yield If(ranged, "Ranges are the interval over items.")
        return
    yield "Bars are means over seeds, with the lowest and the highest one."
    if 1 in counts:
        yield "A single seed has the interval over items."


def _heights(study: UrlStudy, variant: Variant, score: UrlScore) -> dict[str, float]:
    means = {row.name: study.mean(variant, row.name, score) for row in study.methods}
    defined = {row: value for row, value in means.items() if math.isfinite(value)}
    return dict(sorted(defined.items(), key=lambda pair: -pair[1]))


def _panel(study: UrlStudy, variant: Variant, score: UrlScore, source: str) -> Panel:
    heights = _heights(study, variant, score)
    bars = [
        _bar(study.result(variant, row, score), place)
        for place, row in enumerate(heights)
    ]
    marks: list[Mark] = [*bars, *_published(study, heights, variant, score, source)]
    ends = -0.6, len(heights) - 0.4
    if math.isfinite(score.chance):
        marks.append(_level(ends, score.chance, ":", "chance"))
    levels = list(_many_shot(study, variant, score, ends))
    tops = [bar.high for bar in bars] + [level.start[1] for level in levels]
    low = 0.0 if score is RECALL else 0.4
    return Panel(
        marks=(*marks, *levels),
        title=variant.label,
        y_label=score.label,
        x_ticks={p: _break_label(study.label(row)) for p, row in enumerate(heights)},
        x_range=ends,
        y_range=(
            min(low, 0.95 * min(heights.values())),
            max(filter(math.isfinite, (*tops, *heights.values()))) * 1.05,
        ),
        y_most=1.0,
    )


def _bar(result: Result, place: int) -> BarMark:
    defined = [value for value in result.values if math.isfinite(value)]
    alone = len(defined) == 1
    return BarMark(
        x=place,
        height=result.value,
        low=result.low if alone else min(defined),
        high=result.high if alone else max(defined),
        colour=SERIES[0],
        width=0.7,
    )


def _published(
    study: UrlStudy,
    heights: Mapping[str, float],
    variant: Variant,
    score: UrlScore,
    source: str,
) -> Iterator[PointMark]:
    for place, row in enumerate(heights):
        number = study.released(variant, row, score, source)
        if number is not None and not variant.simulated:
            yield PointMark(
                x=place,
                y=number.value,
                marker="D",
                hollow=True,
                size=4,
                label="released runs",
            )


def _break_label(label: str) -> str:
    """Break a long name into two lines, so that neighbours do not touch."""
    return label.replace("MC", "MC\n", 1)


def _many_shot(
    study: UrlStudy, variant: Variant, score: UrlScore, ends: tuple[float, float]
) -> Iterator[RuleMark]:
    """Yield a line for cross-entropy trained on half of the test classes' items."""
    if score not in (R_AUROC, RECALL):
        return
    main = next((v for v in study.kin(variant) if "family" not in v.labels), variant)
    taught = study.taught(main, "ce", HALF, score)
    values = [value for value in taught if math.isfinite(value)]
    if values:
        height = math.fsum(values) / len(values)
        yield _level(ends, height, "--", "trained on the test classes")
    printed = study.printed_in_text(f"{score.score}_many_shot")
    if math.isfinite(printed) and not variant.simulated:
        yield _level(ends, printed, "-.", "trained on the test classes, paper")


def _level(ends: tuple[float, float], height: float, line: str, label: str) -> RuleMark:
    return RuleMark((ends[0], height), (ends[1], height), SOFT, line, label)
