"""Judging classification benchmarks: referral in-domain, under shift, and together.

The protocol of Band et al. (2021): every row is scored on the in-domain and the shifted
test items, on both together, and on a joint set with as many of either kind.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from qualms.benchmarks import Benchmark, Preset
from qualms.benchmarks._benchmark import Place, ensembles, regimes
from qualms.benchmarks._retina_data import epochs_text
from qualms.evaluate._benchmark_results import Band, Cell, DrawnKey, Sides
from qualms.evaluate._entry import Settings
from qualms.evaluate._judge import Asked, Direction, Judge, Judged
from qualms.evaluate._referral_cells import Repeat, cells_of, empty_cells, repeat_of
from qualms.evaluate._referral_drawings import band_of, mean_sides
from qualms.evaluate._referral_items import Items, items_of
from qualms.evaluate._referral_replicates import RESAMPLED, RESAMPLED_SETS
from qualms.evaluate._runs import AbsentError, complete_pools
from qualms.predictions import PredictionsError


class _Row(NamedTuple):
    place: Place
    repeats: Sequence[Repeat]
    why: str = ""
    """Why there is no repeat."""


def _variant(asked: Asked) -> Judged:
    rows = _rows(asked)
    cells: list[Cell] = []
    bands: dict[DrawnKey, Band] = {}
    sides: dict[DrawnKey, Sides] = {}
    for place, repeats, why in rows:
        names = asked.benchmark.scores
        if not repeats:
            cells += empty_cells(place, names, why)
            continue
        cells += cells_of(place, names, repeats, asked.settings)
        bands |= _bands(place, repeats)
        sides |= _sides(place, repeats)
    return Judged(cells, bands, sides)


def _rows(asked: Asked) -> list[_Row]:
    """Every row with its repeats, which are scored several at a time."""
    read = [
        _read(asked, place)
        for place in asked.benchmark.places(asked.preset, asked.variant)
    ]
    scored = partial(repeat_of, seed=asked.settings.seed)
    # The kernels release the interpreter's lock, so threads really run at once.
    with ThreadPoolExecutor(asked.settings.workers) as pool:
        waiting = [
            (place, [pool.submit(scored, each) for each in items], why)
            for place, items, why in read
        ]
        return [
            _Row(place, [each.result() for each in repeats], why)
            for place, repeats, why in waiting
        ]


def _read(asked: Asked, place: Place) -> tuple[Place, list[Items], str]:
    benchmark, preset, variant, runs, _ = asked
    try:
        pools = complete_pools(benchmark, preset, place, runs)
        items = [
            items_of(
                runs.pooled(specs, variant.test),
                runs.pooled(specs, f"{variant.test}/shifted"),
            )
            for specs in pools
        ]
    except (AbsentError, PredictionsError) as error:
        return place, [], str(error)
    return place, items, ""


def _bands(place: Place, repeats: Sequence[Repeat]) -> Iterator[tuple[DrawnKey, Band]]:
    for drawn in repeats[0].lines:
        lines = [repeat.lines[drawn] for repeat in repeats]
        yield DrawnKey(place.variant.name, place.row.name, *drawn), band_of(lines)


def _sides(place: Place, repeats: Sequence[Repeat]) -> Iterator[tuple[DrawnKey, Sides]]:
    for drawn in repeats[0].sides:
        each = [repeat.sides[drawn] for repeat in repeats]
        yield DrawnKey(place.variant.name, place.row.name, *drawn), mean_sides(each)


def _tied() -> dict[str, Direction]:
    found = {
        f"{where}/{score}": better
        for where in RESAMPLED_SETS
        for score, better in RESAMPLED.items()
    }
    return {**found, "joint/ood_auroc": "higher"}


def _notes(benchmark: Benchmark, preset: Preset, settings: Settings) -> tuple[str, ...]:
    notes = [
        *regimes(preset),
        *_epochs(preset),
        "all items of a split count; the released code leaves out the last incomplete "
        "batch",
        "ours: exact at every threshold (AUPRC at 2,000 of a large set), ties shared, "
        "balanced scores on the balanced set; beside the paper: its released code, "
        "whose balanced AUROC and AUPRC are those of the plain joint set, and areas, "
        "which count referred items as right",
    ]
    pools = ensembles(benchmark, preset)
    if sum(map(len, pools)) > len(preset.seeds):
        notes.append(
            f"the {len(pools)} pools are drawn from {len(preset.seeds)} runs: "
            "they share some, and spread less than separate ensembles would"
        )
    elif len(pools) == 1:
        notes.append(
            f"the {len(preset.seeds)} runs form one pool, so pools have one repeat, "
            "and their intervals nothing of what other runs would change"
        )
    if settings.resamples:
        notes.append(
            f"{settings.level:.0%} intervals resample test items, whole patients where "
            f"they are known, and repeats together, {settings.resamples} times; "
            "referral areas of other scores than accuracy have none"
        )
    return tuple(notes)


def _epochs(preset: Preset) -> Iterator[str]:
    """Where a user had epochs chosen by another rule than the regime's."""
    for variant in preset.variants:
        if text := epochs_text(preset, variant):
            yield f"in {variant.name}: {text}"


CLASSIFICATION = Judge(variant=_variant, tied=_tied(), notes=_notes)
