"""Cases of segmentations for the viewer: which are shown, and their packed panels.

A panel holds a number of 8 bits per pixel, slice by slice in one PNG, and the script
gives them colours. A case whose data exceed `CASE_BYTES` is shown at every second or
third pixel, so that values stay those of the file.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.evaluate.segmented import (
    OWN,
    Layer,
    MapKind,
    label_layers,
    map_kind,
    measured_maps,
)
from qualms.predictions import Maps, Predictions
from qualms.report._csv_files import records_csv
from qualms.report.site._png import png_address
from qualms.report.site.case_figure import DrawnCase, case_drawing, drawn_case
from qualms.report.site.case_view import grid_words, upright, view_of
from qualms.report.site.charts import on_paper
from qualms.report.site.item_pictures import ItemPictures
from qualms.report.site.item_sources import PageItems
from qualms.report.site.page import DataFile, Download
from qualms.report.site.telling_items import item_marks, item_name, shown_number

EXAMINED_ITEMS = 200
EXAMINED_PIXELS = 20_000_000
"""Items that cases are chosen among, and their pixels: reading them takes time."""
CASE_BYTES = 900_000
"""Size of the data of a case at most."""
STEPS = 254
"""Shades of an uncertainty; 255 is undefined."""
OUTLINES = 6
"""Raters or regions that are outlined in a panel; there are six colours."""
_RATERS = 3
"""Raters with a panel of their own, where their labels are no outlines."""
_FORMULAS = {
    "PE": "predictive entropy",
    "EE": "expected entropy",
    "MI": "mutual information",
    "MSR": "1 \u2212 largest probability",
}
_TYPES = {"predictive": "PU: ", "aleatoric": "AU: ", "epistemic": "EU: "}
_NATS = ("PE", "EE", "MI")


class _Case(NamedTuple):
    row: int
    uncertainty: float
    """Mean over the pixels."""
    overlap: float
    """Mean Dice with the raters; nan without them."""


def segmented_cases(
    predictions: Predictions,
    pictures: ItemPictures,
    key: str,
    *,
    title: str = "Segmentations",
    simulated: bool = False,
    paper: bool = False,
) -> PageItems:
    """Return cases that tell most, each as data that is loaded when it is chosen.

    Args:
        predictions: Segmentations.
        pictures: Finds the images of items.
        key: Name of the data of the cases, before their number, and of their files.
        title: Title of the figure for paper.
        simulated: Whether the items are simulated.
        paper: Whether there is a figure for paper.

    Raises:
        ValueError: If there is no item.
    """
    if predictions.maps is None or not predictions.n:
        raise ValueError("there is no segmented item")
    kind = map_kind(predictions)
    examined = list(_examined(kind, predictions))
    measure = next(iter(measured_maps(kind, predictions.maps[0])))
    cases, data, drawn = [], [], []
    chosen = list(_chosen(examined))
    for number, (why, case) in enumerate(chosen):
        panels = _case_panels(kind, predictions, pictures, case)
        value = _packed(kind, predictions, panels, case)
        file = DataFile(name=f"{key}-{number}", value=value, on_demand=True)
        data.append(file)
        name = item_name(predictions, case.row)
        drawn.append(drawn_case(name, panels))
        cases.append({"data": file.name, "label": f"{why}: {name}"})
    few = len(examined) < predictions.n
    among = f"{len(examined)} of {predictions.n} items" if few else "all items"
    dice = _dice_words(kind, predictions.maps[0])
    about = (
        f"Chosen among {among} by {dice} with the raters and by the mean of"
        f" {_title(measure, kind.header.draws)}. A failure has at most the median Dice."
    )
    rows = [case.row for _, case in chosen]
    maps = len(measured_maps(kind, predictions.maps[0]))
    return PageItems(
        value={"about": about, "cases": cases},
        richness=maps + 10 * bool(pictures.images(predictions, rows)),
        cases=tuple(data),
        downloads=(
            _cases_csv(predictions, chosen, key),
            *(_on_paper(drawn, key, title, simulated=simulated) if paper else ()),
        ),
    )


def _dice_words(kind: MapKind, maps: Maps) -> str:
    return "macro Dice" if label_layers(kind, maps)[0].averaged else "Dice"


def _cases_csv(
    predictions: Predictions, chosen: Sequence[tuple[str, _Case]], key: str
) -> Download:
    """Return a line for each case, why it is shown and its numbers."""
    records = [
        {
            "case": item_name(predictions, case.row),
            "kind": why,
            "row": case.row,
            "mean_uncertainty": case.uncertainty,
            "dice": "" if math.isnan(case.overlap) else case.overlap,
            **dict(item_marks(predictions, case.row)),
        }
        for why, case in chosen
    ]
    text = records_csv(records)
    return Download(name=f"{key}.csv", content=text.encode("utf-8", "replace"))


def _on_paper(
    drawn: Sequence[DrawnCase], key: str, title: str, *, simulated: bool
) -> tuple[Download, ...]:
    return on_paper(case_drawing(drawn, title, simulated=simulated), key, None)


def _examined(kind: MapKind, predictions: Predictions) -> Iterator[_Case]:
    """Yield items, spread over all, until enough pixels were read."""
    maps_of = predictions.maps or ()
    count = min(predictions.n, EXAMINED_ITEMS)
    rows = np.linspace(0, predictions.n - 1, count).round().astype(int)
    # In an order that is spread over the file wherever it stops.
    pixels = 0
    for row in sorted(set(rows.tolist()), key=_scattered):
        maps = maps_of[row]
        uncertainty = next(iter(measured_maps(kind, maps).values()))
        pixels += uncertainty.size
        yield _Case(row, float(np.nanmean(uncertainty)), _overlap(kind, maps))
        if pixels > EXAMINED_PIXELS:
            return


def _scattered(row: int) -> int:
    """Return a key by which the rows of a file are mixed, always in the same way."""
    return (row * 2_654_435_761) % 2**32


def _overlap(kind: MapKind, maps: Maps) -> float:
    """Return the mean Dice over raters, and over the regions if there are any."""
    ignore = kind.header.ignore
    values = [
        scores.dice(prediction=layer.predicted, reference=rater, ignore=ignore)
        if not layer.averaged
        else scores.macro_dice(
            prediction=layer.predicted,
            reference=rater,
            classes=layer.classes,
            ignore=ignore,
            background=layer.background,
        )
        for layer in label_layers(kind, maps)
        for rater in layer.raters
    ]
    return float(np.mean(values)) if values else math.nan


def _chosen(examined: Sequence[_Case]) -> Iterator[tuple[str, _Case]]:
    """Yield cases and why they are shown; no case twice."""
    certain = sorted(examined, key=lambda case: (case.uncertainty, case.row))
    rated = [case for case in certain if not math.isnan(case.overlap)]
    middle = float(np.median([case.overlap for case in rated])) if rated else 0.0
    failures = [c for c in rated if c.overlap < 1 and c.overlap <= middle]
    successes = [c for c in reversed(rated) if c.overlap == 1 or c.overlap > middle]
    chosen_rows: set[int] = set()
    for why, cases, count in (
        ("certain failure", failures, 3),
        ("uncertain success", successes, 2),
        ("most uncertain", certain[::-1], 1 if rated else 3),
        ("most certain", certain, 0 if rated else 3),
    ):
        remaining = [case for case in cases if case.row not in chosen_rows][:count]
        chosen_rows |= {case.row for case in remaining}
        yield from ((why, case) for case in remaining)


def _case_panels(
    kind: MapKind, predictions: Predictions, pictures: ItemPictures, case: _Case
) -> list[dict[str, Any]]:
    """Return the panels of a case, with the image where there is one."""
    maps = (predictions.maps or ())[case.row]
    image = pictures.images(predictions, [case.row]).get(case.row)
    return [upright(panel, maps.grid) for panel in _panels(kind, maps, image)]


def _packed(
    kind: MapKind,
    predictions: Predictions,
    panels: Sequence[dict[str, Any]],
    case: _Case,
) -> dict[str, Any]:
    """Return a case as data for `assets/charts/viewer.js`."""
    maps = (predictions.maps or ())[case.row]
    space = maps.expected_entropy.shape
    marks = item_marks(predictions, case.row)
    dice = _dice_words(kind, (predictions.maps or ())[case.row])
    rated = "" if math.isnan(case.overlap) else f", {dice} {case.overlap:.3f}"
    about = (
        f"mean uncertainty {shown_number(case.uncertainty)}{rated}"
        f"{''.join(f', {name} {value}' for name, value in marks)}"
    )
    most = 2_000_000  # pixels that are worth trying
    every = max(1, math.ceil((math.prod(space) / most) ** (1 / len(space))))
    while True:
        shown = [_thinned(panel, every) for panel in panels]
        depth, height, width = shown[0]["shape"]
        across = math.ceil(math.sqrt(depth))
        packed = [_sprite(panel, across) for panel in shown]
        if sum(len(panel["png"]) for panel in packed) <= CASE_BYTES:
            break
        every += 1
    thinned = f", shown at every {_ordinal(every)} pixel" if every > 1 else ""
    return {
        "name": item_name(predictions, case.row),
        "about": f"{' x '.join(map(str, space))} pixels{grid_words(maps.grid)},"
        f" {about}{thinned}",
        "shape": [depth, height, width],
        **view_of(maps.grid),
        "across": across,
        "panels": packed,
        "classes": _shown_classes(kind, panels),
    }


def _shown_classes(
    kind: MapKind, panels: Sequence[Mapping[str, Any]]
) -> list[tuple[int, str]]:
    """Return the classes that panels of labels show, with their names."""
    labels = [panel["pixels"] for panel in panels if panel["kind"] == "labels"]
    numbers = sorted({int(n) for pixels in labels for n in np.unique(pixels)})
    name = kind.header.class_name
    return [(n, name(n) if kind.header.classes else f"class {n}") for n in numbers]


def _panels(
    kind: MapKind, maps: Maps, image: NDArray[Any] | None
) -> Iterator[dict[str, Any]]:
    """Yield the panels of an item with `pixels` (*space) or (*space, 3)."""
    space = maps.expected_entropy.shape
    if image is not None and image.shape[:-1] == space:
        yield _image_panel(image)
    layers = label_layers(kind, maps)
    yield from _label_panels(kind, layers)
    measures = measured_maps(kind, maps)
    for name, values in measures.items():
        # The kinds of entropy have one scale, so that they can be compared.
        alike = [measures[each] for each in _NATS if each in measures]
        most = _largest(alike if name in _NATS else [values])
        unit = "nats" if name in _NATS else ""
        yield _heat_panel(_title(name, kind.header.draws), values, most, unit)


def _image_panel(image: NDArray[Any]) -> dict[str, Any]:
    if image.shape[-1] == 3:
        bytes_ = image if image.dtype == np.uint8 else _to_bytes(image)
        return {"title": "Image", "kind": "colour", "ground": True, "pixels": bytes_}
    grey = _to_bytes(image[..., 0])
    return {"title": "Image", "kind": "grey", "ground": True, "pixels": grey}


def _to_bytes(values: NDArray[Any]) -> NDArray[np.uint8]:
    numbers = np.nan_to_num(values.astype(np.float64), posinf=0.0, neginf=0.0)
    low, high = float(numbers.min()), float(numbers.max())
    return (255 * (numbers - low) / ((high - low) or 1.0)).astype(np.uint8)


def _label_panels(kind: MapKind, layers: tuple[Layer, ...]) -> Iterator[dict[str, Any]]:
    """Yield raters and prediction: outlines of two classes, else labels."""
    raters = len(layers[0].raters)
    if kind.header.regions:
        names = list(kind.header.regions[:OUTLINES])
        for rater in range(min(raters, _RATERS)):
            flags = [layer.raters[rater] == 1 for layer in layers[:OUTLINES]]
            yield _outlines(f"Rater {rater + 1} of {raters}", flags, names)
        predicted = [layer.predicted == 1 for layer in layers[:OUTLINES]]
        yield _outlines("Prediction", predicted, names)
        return
    (layer,) = layers
    if layer.classes == 2:
        shown = layer.raters[:OUTLINES]
        if raters:
            title = "Raters" if raters <= OUTLINES else f"{OUTLINES} of {raters} raters"
            names = [f"rater {number}" for number in range(1, len(shown) + 1)]
            yield _outlines(title, [rater == 1 for rater in shown], names)
        names = [kind.header.class_name(1) if kind.header.classes else "predicted"]
        yield _outlines("Prediction", [layer.predicted == 1], names)
        return
    for number, rater in enumerate(layer.raters[:_RATERS], start=1):
        title = f"Rater {number} of {raters}"
        yield {"title": title, "kind": "labels", "pixels": rater}
    yield {"title": "Prediction", "kind": "labels", "pixels": layer.predicted}


def _outlines(
    title: str, flags: Sequence[NDArray[np.bool_]], names: list[str]
) -> dict[str, Any]:
    """Return a panel of regions, each of which is a bit of the pixels."""
    pixels = np.zeros(flags[0].shape, np.uint8)
    for bit, inside in enumerate(flags):
        pixels |= inside.astype(np.uint8) << bit
    return {"title": title, "kind": "regions", "names": names, "pixels": pixels}


def _heat_panel(
    title: str, values: NDArray[Any], most: float, unit: str
) -> dict[str, Any]:
    largest = _largest([values])
    shares = np.clip(values.astype(np.float64) / largest, 0.0, 1.0)
    shades = np.where(np.isfinite(shares), np.nan_to_num(shares) * STEPS, 255)
    pixels = shades.round().astype(np.uint8)
    # Bytes reach to the largest value of the map, and colours to that of all maps.
    scale = {"largest": largest, "most": max(most, largest), "unit": unit}
    return {"title": title, "kind": "heat", **scale, "pixels": pixels}


def _largest(maps: Sequence[NDArray[Any]]) -> float:
    """Return the largest finite value of maps; 1 where there is none above 0."""
    finite = [each[np.isfinite(each)] for each in maps]
    most = max((float(values.max()) for values in finite if values.size), default=0.0)
    return most if most > 0 else 1.0


def _title(measure: str, draws: str | None) -> str:
    """Return a measure in words, with its type by what the draws vary."""
    if measure not in _FORMULAS:
        return measure.removeprefix(OWN)
    kind = _TYPES.get(scores.uncertainty_type(measure, draws), "")
    return f"{'' if measure == 'MSR' else kind}{_FORMULAS[measure]}"


def _thinned(panel: Mapping[str, Any], every: int) -> dict[str, Any]:
    """Return a panel with every so many pixels, as a volume; images have one slice."""
    pixels = panel["pixels"]
    ndim = pixels.ndim - (panel["kind"] == "colour")
    volume = pixels[(slice(None, None, every),) * ndim]
    while volume.ndim - (panel["kind"] == "colour") < 3:
        volume = volume[None]
    return {**panel, "pixels": volume, "shape": volume.shape[:3]}


def _sprite(panel: Mapping[str, Any], across: int) -> dict[str, Any]:
    """Return a panel whose slices stand in one picture, so many beside each other."""
    volume = panel["pixels"]
    depth, height, width = panel["shape"]
    down = -(-depth // across)
    filled = np.zeros((down * across, *volume.shape[1:]), np.uint8)
    filled[:depth] = volume
    rows = filled.reshape(down, across, height, width, -1).swapaxes(1, 2)
    picture = rows.reshape(down * height, across * width, -1)
    if panel["kind"] != "colour":
        picture = picture[..., 0]
    left_out = ("pixels", "shape", "spacing")
    shown = {name: value for name, value in panel.items() if name not in left_out}
    return {**shown, "png": png_address(picture)}


def _ordinal(number: int) -> str:
    return {2: "second", 3: "third"}.get(number, f"{number}th")
