"""One pass over segmented items: from maps to a few numbers per item, and means."""

import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from qualms import scores
from qualms.arrays import Array, Index
from qualms.evaluate.entry import Entry, ScoreOptions
from qualms.evaluate.segmented._fit import Validation
from qualms.evaluate.segmented._layers import (
    Labels,
    Layer,
    foreground,
    label_layers,
    layer_agreement,
    marks,
    summed_agreement,
)
from qualms.evaluate.segmented._stream import (
    OWN,
    Map,
    MapKind,
    map_kind,
    measure_settings,
    measured_maps,
    streamed,
)
from qualms.inference import Influence, mean_influence
from qualms.predictions import (
    Header,
    Maps,
    Predictions,
    check_entropies,
    with_stated,
)
from qualms.scores import Platt
from qualms.scores.as_published import values as published
from qualms.scores.influence import AboveNoise
from qualms.scores.platt import stated_gaps

FEWEST = 30
"""Fewest counts of a bin over all items: gaps of fewer counts are noise."""
NO_BIN = f"no bin has {FEWEST} counts"
CONSTANT = "the map or the raters' disagreement is constant on every item"
AGGREGATIONS = ("image", "patch", "threshold")
"""Aggregations of Kahl et al. (2024)."""
EXTRAS = ("quantile", "boundary", "object")
"""Aggregations that depend on the position of the uncertainty in the map."""


class ItemColumn(NamedTuple):
    """The labels of one number per item."""

    score: str
    """dice, macro_dice, ged, ncc, ace; `uncertainty` of the item as a whole;
    `stated_size` and `stated_gap` by bin, which `stated_ace` pools; `predicted_size`,
    `reference_size` and `disagreement`, which figures show."""
    measure: str = ""
    aggregation: str = ""
    published: bool = False
    """True for numbers by the rule of the released code of VALUES."""
    region: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Options for reading the maps of an item."""

    fitted: Validation | None = None
    """Fits on validation items, which threshold aggregation and ACE need."""
    published: bool = False
    """True to add numbers by the rules of the released code."""
    dice_only: bool = False
    background: str | None = None
    """The background, if a benchmark states it and the header does not."""
    swaps: tuple[int, ...] = ()
    """Classes that raters may mark by a second label instead."""
    swap_share: float = 1 / 3
    """Share of raters' marks with the second label."""


_EXCESS = ItemColumn("excess")
"""Excess of the mean entropy of the draws over that of their mean, in nats."""
_STATED = ("stated_size", "stated_gap")
_DRAWN = ItemColumn("drawn")
"""Digest of the raters' labels, which float64 represents exactly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapScores:
    """Numbers of every item of a segmentation folder, by `ItemColumn`."""

    columns: Mapping[ItemColumn, Array]
    drawn: Array
    """Digests (N,) of the raters' labels, which are equal for equal items."""

    def of(self, *column: Any, published: bool = False) -> Array:
        """Return the numbers (N,) of `ItemColumn(*column)`; nan if there are none."""
        values = self.columns.get(ItemColumn(*column)._replace(published=published))
        return np.full(self.items, np.nan) if values is None else values

    @property
    def items(self) -> int:
        """Number of items."""
        return len(self.columns[ItemColumn("dice")])

    @property
    def overlap(self) -> tuple[str, Array]:
        """The Dice by which items are judged: its score, and a number for each.

        Pooled Dice is dominated by the background, so it is the mean over foreground
        classes where there are several.
        """
        macro = self.columns.get(ItemColumn("macro_dice"))
        return ("dice", self.of("dice")) if macro is None else ("macro_dice", macro)

    def labelled(self, index: Index) -> Index:
        """Return those items of `index` in which a rater labels a pixel."""
        return index[np.isfinite(self.of("dice")[index])]

    @property
    def measures(self) -> tuple[str, ...]:
        """Measures of these items, in order."""
        columns = (c for c in self.columns if c.score == "ncc" and not c.published)
        return tuple(c.measure for c in columns)

    @property
    def built_in(self) -> tuple[str, ...]:
        """Measures without the user's own maps."""
        return tuple(name for name in self.measures if not name.startswith(OWN))

    @property
    def aggregated(self) -> dict[tuple[str, str], Array]:
        """Item-level uncertainties by measure and aggregation."""
        return {
            (c.measure, c.aggregation): values
            for c, values in self.columns.items()
            if c.score == "uncertainty"
        }


def measure_items(
    predictions: Predictions, reading: Reading, options: ScoreOptions
) -> MapScores:
    """Read every item once, several at a time, and return its numbers."""
    kind = map_kind(with_stated(predictions, background=reading.background))
    work = partial(_measure, kind, reading)
    names: tuple[ItemColumn, ...] = ()
    rows: list[Array] = []
    with closing(streamed(work, predictions, options)) as items:
        for of_item in items:
            names = names or tuple(of_item)
            rows.append(np.array([of_item[name] for name in names]))
    columns = dict(zip(names, np.stack(rows, axis=1), strict=True))
    check_entropies(predictions, columns.pop(_EXCESS, np.zeros(1)))
    if not reading.dice_only:
        for name, numbers in predictions.named("uncertainty").items():
            columns[ItemColumn("uncertainty", f"{OWN}{name}")] = numbers
    return MapScores(drawn=columns.pop(_DRAWN), columns=columns)


def quality_entries(measured: MapScores, subset: str, index: Index) -> Iterator[Entry]:
    """Yield the means of Dice, GED, NCC and ACE over the items of a subset."""
    overlaps = (scores.dice, scores.macro_dice, scores.ged)
    for score in (*overlaps, scores.ncc, scores.ace):
        for column, values in measured.columns.items():
            if column.score == score.__name__ and not column.published:
                released = measured.of(*column[:3], published=True)
                settings = measure_settings(column.measure) if column.measure else {}
                if column.region:
                    released = np.full_like(values, np.nan)
                    settings = {"region": column.region}
                yield _mean_entry(score, values, released, subset, index, settings)
    sizes, gaps = (
        np.array([v[index] for c, v in measured.columns.items() if c.score == name])
        for name in _STATED
    )
    if len(sizes):
        yield _stated_entry(sizes, gaps, subset, index)


def _mean_entry(
    score: Callable[..., Any],
    values: Array,
    released: Array,
    subset: str,
    index: Index,
    settings: Mapping[str, str],
) -> Entry:
    """Return the mean over items with a defined score; as published, over all items."""
    values = values[index]
    return Entry(
        score=score,
        value=scores.mean_defined(values).mean,
        index=index,
        influence=partial(mean_influence, values, about=scores.about(score)),
        subset=subset,
        settings=settings,
        as_published=float(np.mean(released[index])),
        why=CONSTANT,
    )


def _stated_entry(sizes: Array, gaps: Array, subset: str, index: Index) -> Entry:
    """Return `stated_ace` over bins that pool the pixels of all items.

    A bin of a single item has few pixels, whose gap is noise: the mean of such gaps
    would make every model seem badly calibrated.

    Args:
        sizes: Counts (B, n) of pixels by bin and item.
        gaps: Counts (B, n) of right pixels minus the sums of their confidences.
        subset: The name of the items.
        index: The positions (n,) of the items.
    """
    used = sizes.sum(axis=1) >= FEWEST
    sizes, gaps = sizes[used], gaps[used]
    missed = gaps.sum(axis=1) / sizes.sum(axis=1)
    return Entry(
        score=scores.stated_ace,
        value=float(np.abs(missed).mean()) if used.any() else math.nan,
        index=index,
        influence=partial(_stated_influence, sizes, gaps) if used.any() else None,
        subset=subset,
        why=NO_BIN,
    )


def _stated_influence(sizes: Array, gaps: Array) -> Influence:
    total = sizes.sum(axis=1, keepdims=True)
    missed = gaps.sum(axis=1, keepdims=True) / total
    changes = (gaps - missed * sizes) / total
    # The error of a calibrated model: the mean of |x| where x is normal around 0.
    noise = math.sqrt(2.0 / math.pi) * np.sqrt((changes**2).sum(axis=1)).mean()
    return Influence(
        value=float(np.abs(missed).mean()),
        values=(np.sign(missed) * changes).mean(axis=0),
        scale="logit",
        construction=AboveNoise(float(noise)),
    )


Numbers = Iterator[tuple[ItemColumn, float]]


def _measure(kind: MapKind, reading: Reading, maps: Maps) -> dict[ItemColumn, float]:
    layers = label_layers(kind, maps)
    numbers = dict(_overlap(kind.header, reading, layers))
    numbers[_DRAWN] = _digest(maps.raters)
    if reading.dice_only:
        return numbers
    measures = measured_maps(kind, maps)
    numbers[_EXCESS] = -float(measures["MI"].min()) if "MI" in measures else 0.0
    numbers.update(_sizes(layers))
    numbers.update(_ambiguity(kind.header, reading, layers, measures))
    numbers.update(_calibration(kind.header, reading, layers, measures))
    numbers.update(_aggregated(reading, layers, measures))
    return numbers


def _digest(raters: Labels) -> float:
    shape = zlib.crc32(str(raters.shape).encode())
    return float(zlib.crc32(raters.tobytes(), shape))


def _overlap(header: Header, reading: Reading, layers: tuple[Layer, ...]) -> Numbers:
    """Yield overlaps of regions and their means; for classes, a single number."""
    of_each = [dict(_layer_overlap(header, reading, layer)) for layer in layers]
    for column in of_each[0]:
        yield column, float(np.mean([numbers[column] for numbers in of_each]))
    for layer, numbers in zip(layers, of_each, strict=True):
        if layer.region:
            for column, number in numbers.items():
                yield column._replace(region=layer.region), number


def _layer_overlap(header: Header, reading: Reading, layer: Layer) -> Numbers:
    options: dict[str, Any] = {"classes": layer.classes, "ignore": header.ignore}
    rated, all_rate = _labelled(layer.raters, header.ignore)
    dices = [
        scores.dice(prediction=layer.predicted, reference=rater, **options)
        for rater in rated
    ]
    yield ItemColumn("dice"), _mean(dices)
    if not reading.dice_only:
        if layer.averaged:
            options |= {"background": layer.background}
            dices = [
                scores.macro_dice(
                    prediction=layer.predicted, reference=rater, **options
                )
                for rater in rated
            ]
            del options["background"]
            yield ItemColumn("macro_dice"), _mean(dices)
        yield (
            ItemColumn("ged"),
            scores.ged(draws=layer.draws, raters=layer.raters, **options)
            if all_rate
            else np.nan,
        )
    if not reading.published:
        return
    dices = [
        published.dice(prediction=layer.predicted, reference=r, **options)
        for r in layer.raters
    ]
    yield ItemColumn("dice", published=True), _mean(dices)
    if not reading.dice_only:
        yield (
            ItemColumn("ged", published=True),
            published.ged(draws=layer.draws, raters=layer.raters, **options)
            if dices
            else np.nan,
        )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else np.nan


def _labelled(raters: Labels, ignore: int | None) -> tuple[Labels, bool]:
    """Return the raters that label any pixel, and whether all label a common pixel."""
    if ignore is None or not len(raters):
        return raters, bool(len(raters))
    counts = (raters != ignore).reshape(len(raters), -1)
    return raters[counts.any(axis=1)], bool(counts.all(axis=0).any())


def _sizes(layers: tuple[Layer, ...]) -> Numbers:
    """Yield numbers of foreground pixels, not ignored ones, over draws and raters."""
    predicted, reference = (
        sum(_size(labels, layer) for layer, labels in each)
        for each in (
            [(layer, layer.draws) for layer in layers],
            [(layer, layer.raters) for layer in layers],
        )
    )
    yield ItemColumn("predicted_size"), predicted
    yield ItemColumn("reference_size"), reference


def _size(labels: Labels, layer: Layer) -> float:
    inside = marks(labels, layer.background) & (labels < layer.classes)
    marked = np.count_nonzero(inside)
    return marked / len(labels) if len(labels) else np.nan


def _ambiguity(
    header: Header,
    reading: Reading,
    layers: tuple[Layer, ...],
    measures: Mapping[str, Map],
) -> Numbers:
    raters = [layer.raters for layer in layers]
    spread = np.full(layers[0].predicted.shape, np.nan)
    if len(raters[0]):
        of_each = [scores.rater_variance(each, ignore=header.ignore) for each in raters]
        spread = of_each[0] if len(of_each) == 1 else np.sum(of_each, axis=0)
    rated = np.isfinite(spread)
    reference = np.where(rated, spread, 0.0)
    total = float(reference.sum()) if len(raters[0]) else np.nan
    yield ItemColumn("disagreement"), total
    for name, values in measures.items():
        mask = None if rated.all() else rated
        yield ItemColumn("ncc", name), scores.ncc(values, reference, mask=mask)
    if not reading.published:
        return
    if reading.swaps and len(raters[0]):
        # The released code uses the true frequency of swapped classes.
        chance = reading.swap_share * (1.0 - reading.swap_share)
        reference = chance * np.isin(raters[0][0], reading.swaps)
    for name, values in _built_in(measures):
        yield ItemColumn("ncc", name, published=True), published.ncc(values, reference)


def _built_in(measures: Mapping[str, Map]) -> list[tuple[str, Map]]:
    """Return the measures that the released code of VALUES has."""
    return [(n, values) for n, values in measures.items() if not n.startswith(OWN)]


def _calibration(
    header: Header,
    reading: Reading,
    layers: tuple[Layer, ...],
    measures: Mapping[str, Map],
) -> Numbers:
    of_each = [layer_agreement(layer, header.ignore) for layer in layers]
    gaps = [
        stated_gaps(layer.probs, agreed.correct, total=agreed.total)
        for layer, agreed in zip(layers, of_each, strict=True)
    ]
    for kind, by_layer in zip(_STATED, zip(*gaps, strict=True), strict=True):
        for number, value in enumerate(np.sum(by_layer, axis=0)):
            yield ItemColumn(kind, aggregation=f"bin {number}"), float(value)
    if reading.fitted is None:
        return
    platt: Mapping[str, Platt] = reading.fitted.platt
    mean_platt = reading.fitted.mean_platt if reading.published else {}
    agreed = summed_agreement(of_each)
    for name, values in measures.items():
        for ace, fits in ((scores.ace, platt), (published.ace, mean_platt)):
            if name in fits:
                error = ace(
                    confidence=fits[name].confidence(values),
                    correct=agreed.correct,
                    total=agreed.total,
                )
                yield ItemColumn("ace", name, published=fits is mean_platt), error


def _aggregated(
    reading: Reading, layers: tuple[Layer, ...], measures: Mapping[str, Map]
) -> Numbers:
    bands = [scores.boundary_band(layer.predicted) for layer in layers]
    band = np.any(bands, axis=0)
    predicted, fitted = foreground(layers), reading.fitted
    for name, values in measures.items():
        size = scores.patch_size(values.shape)
        aggregated = {
            "image": scores.aggregate_image(values),
            "patch": scores.aggregate_patch(values, size=size),
            "quantile": scores.aggregate_quantile(values),
            "boundary": scores.aggregate_boundary(values, band),
            "object": scores.aggregate_object(values, predicted),
        }
        if fitted is not None and name in fitted.threshold:
            aggregated["threshold"] = scores.aggregate_threshold(
                values, threshold=fitted.threshold[name]
            )
        for aggregation in (*AGGREGATIONS, *EXTRAS):
            if aggregation in aggregated:
                column = ItemColumn("uncertainty", name, aggregation)
                yield column, aggregated[aggregation]
