"""One pass over segmented items: from maps to a few numbers per item, and means."""

import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.arrays import Array, Index
from qualms.evaluate.entry import Entry, ScoreOptions
from qualms.evaluate.segmented._fit import Validation
from qualms.evaluate.segmented._stream import (
    Map,
    measured_maps,
    segmented_labels,
    streamed,
)
from qualms.inference import Influence, mean_influence
from qualms.predictions import Header, Maps, Predictions, check_entropies
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
"""Aggregations that depend on where in the map the uncertainty is."""


class ItemColumn(NamedTuple):
    """The labels of one number per item."""

    score: str
    """dice, macro_dice, ged, ncc, ace; `uncertainty` of the item as a whole;
    `stated_size` and `stated_gap` by bin, which `stated_ace` pools; `predicted_size`,
    `reference_size` and `disagreement`, which figures show."""
    measure: str = ""
    aggregation: str = ""
    published: bool = False
    """Whether the released code of VALUES defines it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Options for reading the maps of an item."""

    fitted: Validation | None = None
    """Fits on validation items, which threshold aggregation and ACE need."""
    published: bool = False
    """Whether to add numbers by the rules of the released code."""
    dice_only: bool = False
    swaps: tuple[int, ...] = ()
    """Classes with a second name that raters may use instead."""
    swap_share: float = 1 / 3
    """How often raters use the second name."""


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
        """Return the number of items."""
        return len(self.columns[ItemColumn("dice")])

    def labelled(self, index: Index) -> Index:
        """Return those items of `index` in which a rater labels a pixel."""
        return index[np.isfinite(self.of("dice")[index])]

    @property
    def measures(self) -> tuple[str, ...]:
        """Return the measures of these items, in order."""
        columns = (c for c in self.columns if c.score == "ncc" and not c.published)
        return tuple(c.measure for c in columns)

    @property
    def aggregated(self) -> dict[tuple[str, str], Array]:
        """Return item-level uncertainties by measure and aggregation."""
        return {
            (c.measure, c.aggregation): values
            for c, values in self.columns.items()
            if c.score == "uncertainty"
        }


def measure_items(
    predictions: Predictions, reading: Reading, options: ScoreOptions
) -> MapScores:
    """Read every item once, several at a time, and return its numbers."""
    work = partial(_measure, predictions.header, reading)
    names: tuple[ItemColumn, ...] = ()
    rows: list[Array] = []
    with closing(streamed(work, predictions, options)) as items:
        for numbers in items:
            names = names or tuple(numbers)
            rows.append(np.array([numbers[name] for name in names]))
    columns = dict(zip(names, np.stack(rows, axis=1), strict=True))
    check_entropies(predictions, columns.pop(_EXCESS, np.zeros(1)))
    return MapScores(drawn=columns.pop(_DRAWN), columns=columns)


def quality_entries(measured: MapScores, subset: str, index: Index) -> Iterator[Entry]:
    """Yield the means of Dice, GED, NCC and ACE over the items of a subset."""
    overlaps = (scores.dice, scores.macro_dice, scores.ged)
    for score in (*overlaps, scores.ncc, scores.ace):
        for column, values in measured.columns.items():
            if column.score == score.__name__ and not column.published:
                released = measured.of(*column[:3], published=True)
                settings = {"measure": column.measure} if column.measure else {}
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
    """Return the mean over items with a defined score; theirs is over all items."""
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

    A bin of a single item has few pixels, whose gap is noise: by the mean of such gaps
    every model would seem badly calibrated.

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
    # The mean of |x| where x is normal around 0: what a calibrated model would show.
    noise = math.sqrt(2.0 / math.pi) * np.sqrt((changes**2).sum(axis=1)).mean()
    return Influence(
        value=float(np.abs(missed).mean()),
        values=(np.sign(missed) * changes).mean(axis=0),
        scale="logit",
        construction=AboveNoise(float(noise)),
    )


Numbers = Iterator[tuple[ItemColumn, float]]


def _measure(header: Header, reading: Reading, maps: Maps) -> dict[ItemColumn, float]:
    predicted = segmented_labels(maps)
    numbers = dict(_overlap(header, reading, maps, predicted))
    numbers[_DRAWN] = _digest(maps.raters)
    if reading.dice_only:
        return numbers
    measures = measured_maps(header, maps)
    numbers[_EXCESS] = -float(measures["MI"].min()) if "MI" in measures else 0.0
    numbers.update(_sizes(maps))
    numbers.update(_ambiguity(header, reading, maps, measures))
    numbers.update(_calibration(header, reading, maps, predicted, measures))
    numbers.update(_aggregated(reading, predicted, measures))
    return numbers


def _digest(raters: NDArray[np.uint8]) -> float:
    shape = zlib.crc32(str(raters.shape).encode())
    return float(zlib.crc32(raters.tobytes(), shape))


def _overlap(
    header: Header, reading: Reading, maps: Maps, predicted: NDArray[np.uint8]
) -> Numbers:
    options: dict[str, Any] = {
        "classes": len(maps.mean_probs),
        "ignore": header.ignore,
    }
    rated, all_rate = _labelled(maps, header.ignore)
    dices = [scores.dice(predicted, rater, **options) for rater in rated]
    yield ItemColumn("dice"), float(np.mean(dices)) if dices else np.nan
    if not reading.dice_only:
        if options["classes"] > 2:
            dices = [scores.macro_dice(predicted, rater, **options) for rater in rated]
            yield ItemColumn("macro_dice"), float(np.mean(dices)) if dices else np.nan
        distance = scores.ged(maps.draw_labels, maps.raters, **options)
        yield ItemColumn("ged"), distance if all_rate else np.nan
    if not reading.published:
        return
    dices = [published.dice(predicted, rater, **options) for rater in maps.raters]
    yield ItemColumn("dice", published=True), float(np.mean(dices))
    if not reading.dice_only:
        distance = published.ged(maps.draw_labels, maps.raters, **options)
        yield ItemColumn("ged", published=True), distance


def _labelled(maps: Maps, ignore: int | None) -> tuple[NDArray[np.uint8], bool]:
    """Return raters that label a pixel, and whether all label a common pixel."""
    if ignore is None:
        return maps.raters, True
    counts = (maps.raters != ignore).reshape(len(maps.raters), -1)
    return maps.raters[counts.any(axis=1)], bool(counts.all(axis=0).any())


def _sizes(maps: Maps) -> Numbers:
    """Yield foreground pixels without ignored ones, as means over draws and raters."""
    yield ItemColumn("predicted_size"), _size(maps.draw_labels, len(maps.mean_probs))
    yield ItemColumn("reference_size"), _size(maps.raters, len(maps.mean_probs))


def _size(labels: NDArray[np.uint8], classes: int) -> float:
    return np.count_nonzero((labels > 0) & (labels < classes)) / len(labels)


def _ambiguity(
    header: Header, reading: Reading, maps: Maps, measures: Mapping[str, Map]
) -> Numbers:
    spread = scores.rater_variance(maps.raters, ignore=header.ignore)
    rated = np.isfinite(spread)
    reference = np.where(rated, spread, 0.0)
    yield ItemColumn("disagreement"), float(reference.sum())
    for name, values in measures.items():
        mask = None if rated.all() else rated
        yield ItemColumn("ncc", name), scores.ncc(values, reference, mask=mask)
    if not reading.published:
        return
    if reading.swaps:
        # The released code knows how often a class is swapped.
        chance = reading.swap_share * (1.0 - reading.swap_share)
        reference = chance * np.isin(maps.raters[0], reading.swaps)
    for name, values in measures.items():
        yield ItemColumn("ncc", name, published=True), published.ncc(values, reference)


def _calibration(
    header: Header,
    reading: Reading,
    maps: Maps,
    predicted: NDArray[np.uint8],
    measures: Mapping[str, Map],
) -> Numbers:
    agreed = scores.rater_agreement(predicted, maps.raters, ignore=header.ignore)
    gaps = stated_gaps(maps.mean_probs, agreed.correct, total=agreed.total)
    for kind, by_bin in zip(_STATED, gaps, strict=True):
        for number, value in enumerate(by_bin):
            yield ItemColumn(kind, aggregation=f"bin {number}"), float(value)
    if reading.fitted is None:
        return
    platt: Mapping[str, Platt] = reading.fitted.platt
    mean_platt = reading.fitted.mean_platt if reading.published else {}
    for name, values in measures.items():
        for ace, fits in ((scores.ace, platt), (published.ace, mean_platt)):
            if name in fits:
                error = ace(
                    fits[name].confidence(values), agreed.correct, total=agreed.total
                )
                yield ItemColumn("ace", name, published=fits is mean_platt), error


def _aggregated(
    reading: Reading, predicted: NDArray[np.uint8], measures: Mapping[str, Map]
) -> Numbers:
    band = scores.boundary_band(predicted)
    fitted = reading.fitted
    for name, values in measures.items():
        size = scores.patch_size(values.shape)
        aggregated = {
            "image": scores.aggregate_image(values),
            "patch": scores.aggregate_patch(values, size=size),
            "quantile": scores.aggregate_quantile(values),
            "boundary": scores.aggregate_boundary(values, band),
            "object": scores.aggregate_object(values, predicted),
        }
        if fitted is not None:
            aggregated["threshold"] = scores.aggregate_threshold(
                values, threshold=fitted.threshold[name]
            )
        for aggregation in (*AGGREGATIONS, *EXTRAS):
            if aggregation in aggregated:
                column = ItemColumn("uncertainty", name, aggregation)
                yield column, aggregated[aggregation]
