"""Figures 9 to 14: uncertainty maps of one item, of every model and measure."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.benchmarks.values._rows import TYPES, type_of
from qualms.benchmarks.values._settings import Study, stands_in, study_source
from qualms.evaluate import MapSlice
from qualms.report.figures import Drawing, Mark, OutlineMark, Panel, PictureMark
from qualms.report.pictures import label_picture, prepared_dataset, slice_picture
from qualms.study import Variant
from qualms.wording import listed_words

NUMBERS = {
    ("Toy 1", "in_domain"): "9",
    ("LIDC TEX", "in_domain"): "10",
    ("LIDC TEX", "shifted"): "11",
    ("LIDC MAL", "in_domain"): "12",
    ("LIDC MAL", "shifted"): "13",
    ("GTA5/CS", "in_domain"): "14",
    ("Toy 3b", "in_domain"): "",
    ("Toy 3b", "shifted"): "",
    ("GTA5/CS", "shifted"): "",
}
"""Numbers of the paper's figures; '' for those that are ours alone."""
RATER_COLOURS = ("#35c2f0", "#f28e2b", "#8fd175", "#e46ac2", "#ffdf4d")
"""Bright, as they stand on dark pictures."""
_MOST = {"MSR": 0.5}
_OTHERS = 0.7
"""The largest value of the scale of the other measures."""
_KINDS = {"PU": "predictive (PU)", "AU": "aleatoric (AU)", "EU": "epistemic (EU)"}
_ITEMS = {"in_domain": "an in-domain", "shifted": "a shifted"}

_NO_ITEM = (
    "The item itself is not shown, as its dataset is not prepared here; grey is the "
    "share of raters that mark a pixel. "
)


class ShownModel(NamedTuple):
    """A prediction model, and its maps of the item."""

    label: str
    measures: Mapping[str, str]
    """By type: PU, AU, EU."""
    maps: MapSlice


def map_drawings(study: Study, data: Path | None) -> Iterator[Drawing]:
    """Yield a figure for each dataset and subset whose maps were kept."""
    for variant in study.variants:
        for subset in _ITEMS:
            models = _models(study, variant, subset)
            if models and (variant.label, subset) in NUMBERS:
                yield _drawing(study, variant, subset, models, data)


def _models(study: Study, variant: Variant, subset: str) -> list[ShownModel]:
    slices = study.results.slices.where(variant=variant.name, subset=subset)
    models = []
    for row in study.results.plan.rows:
        maps = slices.get(row=row.name)
        if maps is not None:
            measures = {
                type_of(row, name, maps.draws): name for name in maps.uncertainty
            }
            models.append(ShownModel(row.label, measures, maps))
    return models


def _drawing(
    study: Study,
    variant: Variant,
    subset: str,
    models: Sequence[ShownModel],
    data: Path | None,
) -> Drawing:
    number = NUMBERS[variant.label, subset]
    first = models[0].maps
    picture = _picture(variant, first, data)
    many = _classes(first) > 2
    top = _item_row(first, picture)
    kinds = [
        kind for kind in TYPES if any(model.measures.get(kind) for model in models)
    ]
    rows: list[tuple[Panel, ...]] = [
        top if many else (*top, _scale_panel(_ranges(models))),
        tuple(_predicted(model, picture) for model in models),
        *(_type_row(models, kind, fixed=not many) for kind in kinds),
    ]
    scale = (
        "each between its own least and largest value"
        if many
        else f"{_scale_text(_ranges(models))}, as in the paper"
    )
    wide = first.raters.shape[2] / first.raters.shape[1]
    return Drawing(
        name=f"figure_{number or f'maps_{variant.name}_{subset}'}",
        title=f"{f'Figure {number}: ' if number else ''}uncertainty maps of "
        f"{_ITEMS[subset]} item of {variant.label}",
        caption=f"{_which(first)} ({first.item}"
        f"{'' if first.at is None else f', slice {first.at}'}), "
        f"{_overlaid(first, many=many)}, the raters' disagreement, what each model "
        f"segments, and maps of {listed_words([_KINDS[kind] for kind in kinds])} "
        f"uncertainty; brighter is less certain, {scale}. "
        f"{_NO_ITEM if picture is None and not many else ''}"
        f"{study_source(study.results, [variant])}",
        rows=_padded(rows),
        sides=("item", "segmented", *kinds),
        simulated=stands_in(variant),
        size=(1.05 * min(wide, 1.6), 1.15 if wide < 1.3 else 1.0),
        legend_columns=5,
    )


def _which(maps: MapSlice) -> str:
    if np.nan_to_num(maps.disagreement).any():
        return "The item whose raters disagree most"
    return "The first item, as raters agree on all"


def _overlaid(maps: MapSlice, *, many: bool) -> str:
    if not many:
        return "with the outline that each rater gave"
    return "two of the raters" if len(maps.raters) > 1 else "its rater"


def _ranges(models: Sequence[ShownModel]) -> dict[str, float]:
    """Return the largest value of the scales of maps, by the measures they are of."""
    measures = {name for model in models for name in model.measures.values()}
    ranges = {name: _MOST[name] for name in _MOST if name in measures}
    return ranges | ({"others": _OTHERS} if measures - ranges.keys() else {})


def _scale_text(ranges: Mapping[str, float]) -> str:
    """Say between which values maps are drawn."""
    if len(ranges) == 1:
        return f"from 0 to {next(iter(ranges.values())):g}"
    return listed_words(
        [f"from 0 to {most:g} ({name})" for name, most in ranges.items()]
    )


def _classes(maps: MapSlice) -> int:
    named = maps.raters[maps.raters != 255]
    return int(max(named.max(initial=0), maps.predicted.max(initial=0))) + 1


def _picture(
    variant: Variant, maps: MapSlice, data: Path | None
) -> NDArray[Any] | None:
    """Return the item itself; None where its dataset is not prepared here."""
    dataset = prepared_dataset(variant, data)
    if dataset is None:
        return None
    for name in (variant.test, *dataset.splits):
        split = dataset.splits.get(name)
        if split is None:
            continue
        rows = np.flatnonzero(np.asarray(split.item) == maps.item)
        if len(rows):
            return slice_picture(np.asarray(split.image[int(rows[0])]), maps.at)
    return None


def _item_row(maps: MapSlice, picture: NDArray[Any] | None) -> tuple[Panel, ...]:
    panels = []
    if _classes(maps) > 2:
        if picture is not None:
            panels.append(_bare(PictureMark(pixels=picture), title="item"))
        for number, labels in enumerate(maps.raters[:2], start=1):
            mark = PictureMark(pixels=label_picture(labels, background=False))
            panels.append(_bare(mark, title=f"rater {number}"))
    else:
        outlines = tuple(
            OutlineMark(
                region=rater == 1,
                colour=RATER_COLOURS[number % len(RATER_COLOURS)],
                label=f"rater {number + 1}",
            )
            for number, rater in enumerate(maps.raters)
        )
        ground = PictureMark(pixels=_ground(maps, picture))
        title = "raters" if picture is None else "item, raters"
        panels.append(_bare(ground, *outlines, title=title))
    spread = PictureMark(pixels=np.nan_to_num(maps.disagreement), heat=True)
    return (*panels, _bare(spread, title="disagreement"))


def _ground(maps: MapSlice, picture: NDArray[Any] | None) -> NDArray[Any]:
    """Return the item, or the share of raters that mark a pixel."""
    return (maps.raters == 1).mean(axis=0) if picture is None else picture


def _predicted(model: ShownModel, picture: NDArray[Any] | None) -> Panel:
    maps = model.maps
    if _classes(maps) > 2:
        mark = PictureMark(pixels=label_picture(maps.predicted, background=False))
        return _bare(mark, title=model.label)
    outline = OutlineMark(region=maps.predicted == 1, colour="#ffffff")
    ground = PictureMark(pixels=0.6 * _ground(maps, picture), scale=(0.0, 1.0))
    return _bare(ground, outline, title=model.label)


def _type_row(
    models: Sequence[ShownModel], kind: str, *, fixed: bool
) -> tuple[Panel, ...]:
    panels = []
    for model in models:
        measure = model.measures.get(kind, "")
        if not measure:
            panels.append(Panel(bare=True))
            continue
        pixels = model.maps.uncertainty[measure]
        scale = (0.0, _MOST.get(measure, _OTHERS)) if fixed else None
        mark = PictureMark(pixels=pixels, scale=scale, heat=True)
        panels.append(_bare(mark, title=measure))
    return tuple(panels)


def _scale_panel(ranges: Mapping[str, float]) -> Panel:
    """Return the colours of the maps with their values."""
    largest = max(ranges.values())
    less = [f"{name}: {most:g}" for name, most in ranges.items() if most < largest]
    colours = np.tile(np.linspace(0.0, 1.0, 100), (20, 1))
    return Panel(
        marks=(PictureMark(pixels=colours, heat=True),),
        title="scale of maps",
        x_ticks={0: "0", 99: f"{largest:g}"},
        x_label=f"({', '.join(less)})" if less else "",
        y_ticks=(),
        framed=False,
    )


def _padded(rows: Sequence[tuple[Panel, ...]]) -> tuple[tuple[Panel, ...], ...]:
    """Return rows of one length, since legends stand beside the last panel."""
    most = max(map(len, rows))
    empty = Panel(bare=True)
    return tuple((*row, *(most - len(row)) * (empty,)) for row in rows)


def _bare(*marks: Mark, title: str) -> Panel:
    return Panel(marks=marks, title=title, bare=True)
