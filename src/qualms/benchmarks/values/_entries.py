"""Entries of a repeat: its scores, with the influence of each item on them."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.arrays import Array, Index
from qualms.evaluate.entry import Entry, entry_of
from qualms.evaluate.segmented import EXTRAS, OWN, MapScores, measure_settings
from qualms.inference import Influence
from qualms.scores.as_published import values as published

BY_AURC = "it differs from aurc, which has an interval, by the ends of the curve alone"
BY_AUROC = "ood_auroc of the same items has one"
NOTHING = "nothing was segmented before"
FAILURES = (
    scores.aurc,
    scores.eaurc,
    scores.augrc,
    scores.threshold_aurc,
    scores.threshold_eaurc,
)


class JudgedItems(NamedTuple):
    """The test items of a repeat."""

    measured: MapScores
    subsets: Mapping[str, Index]
    released: bool
    """True if the released code has numbers of this row."""


def failure_entries(judged: JudgedItems) -> Iterator[Entry]:
    """Yield how well each uncertainty announces a low Dice."""
    risks = [1.0 - judged.measured.of("dice", published=p) for p in (False, True)]
    for subset, index in judged.subsets.items():
        risk, their_risk = (values[index] for values in risks)
        for (measure, aggregation), values in judged.measured.aggregated.items():
            at = _RankedBy(subset, index, measure, aggregation)
            rank = values[index]
            released: dict[str, float] = {}
            if judged.released and not at.extra:
                released["aurc"] = published.aurc(risk=their_risk, uncertainty=rank)
                released["eaurc"] = published.eaurc(risk=their_risk, uncertainty=rank)
            for score in FAILURES:
                name = score.__name__
                yield at.entry(
                    score,
                    (risk, rank),
                    as_published=released.get(name.removeprefix("threshold_")),
                    no_interval=BY_AURC if name.startswith("threshold") else "",
                )


def detection_entries(
    measured: MapScores, shifted: NDArray[np.bool_], first: int, released: bool
) -> Iterator[Entry]:
    """Yield how well each uncertainty tells shifted items from others.

    Items are numbered from `first` on.
    """
    if not shifted.any() or shifted.all():
        return
    index = first + np.arange(len(shifted))
    for (measure, aggregation), values in measured.aggregated.items():
        at = _RankedBy("all", index, measure, aggregation)
        for score in (scores.ood_auroc, scores.ood_found):
            named = score is scores.ood_auroc and released and not at.extra
            yield at.entry(
                score,
                (values, shifted),
                as_published=scores.ood_auroc(uncertainty=values, shifted=shifted)
                if named
                else None,
                no_interval="" if score is scores.ood_auroc else BY_AUROC,
            )


class _RankedBy(NamedTuple):
    """The items of a score, and the uncertainty that ranks them."""

    subset: str
    rows: Index
    measure: str
    aggregation: str

    @property
    def extra(self) -> bool:
        """True if the paper does not have this aggregation or measure."""
        return self.aggregation in EXTRAS or self.measure.startswith(OWN)

    def entry(
        self,
        score: Callable[..., Any],
        arrays: Sequence[NDArray[Any]],
        *,
        as_published: float | None,
        no_interval: str,
    ) -> Entry:
        """Return the entry of `score(*arrays)`; not ranked without an interval."""
        entry = entry_of(
            score,
            arrays,
            self.rows,
            subset=self.subset,
            settings=measure_settings(self.measure, self.aggregation),
        )
        return replace(
            entry,
            influence=None if no_interval else entry.influence,
            resampled=None if no_interval else entry.resampled,
            as_published=math.nan if as_published is None else as_published,
            no_interval=no_interval,
            ranked=not self.extra and not no_interval,
        )


def drop_entry(judged: JudgedItems) -> Iterator[Entry]:
    """Yield how much Dice the shift costs, where there is one."""
    if len(judged.subsets) < 2:
        return
    dice, released_dice = (
        judged.measured.of("dice", published=p) for p in (False, True)
    )
    yield Entry(
        score=scores.dice_drop,
        value=_drop(dice, judged.subsets),
        index=np.arange(len(dice)),
        influence=partial(_drop_influence, dice, judged.subsets),
        as_published=_drop(released_dice, judged.subsets)
        if judged.released
        else math.nan,
        why=NOTHING,
    )


def _drop(dice: Array, subsets: Mapping[str, Index]) -> float:
    inside, outside = (
        float(dice[subsets[name]].mean()) for name in ("in_domain", "shifted")
    )
    return scores.dice_drop(dice_in_domain=inside, dice_shifted=outside)


def _drop_influence(dice: Array, subsets: Mapping[str, Index]) -> Influence:
    """Return the influence on a ratio of two means over different items."""
    inside, outside = (dice[subsets[name]] for name in ("in_domain", "shifted"))
    before = inside.mean()
    changes = np.zeros(len(dice))
    ratio = outside.mean() / before
    changes[subsets["in_domain"]] = ratio * (inside - before) / before / len(inside)
    changes[subsets["shifted"]] = (outside.mean() - outside) / before / len(outside)
    part = np.zeros(len(dice), np.int64)
    part[subsets["shifted"]] = 1
    return Influence(
        value=float(1.0 - ratio),
        values=changes,
        scale="linear",
        low=-math.inf,
        part=part,
    )


def gain_entry(
    judged: JudgedItems,
    second: Sequence[MapScores | None],
    *,
    settings: Mapping[str, Any],
    why: str,
) -> Entry:
    """Return what a query gained on shifted items.

    `second` holds the Dice after the query, and after drawing at random.
    """
    index = judged.subsets["shifted"]
    after = [one for one in second if one is not None]
    complete = len(after) == len(second)
    dice, released_dice = (
        [one.of("dice", published=p)[index] for one in (judged.measured, *after)]
        for p in (False, True)
    )
    return Entry(
        name="gain",
        score=scores.al_improvement,
        value=_gain(dice) if complete else math.nan,
        index=index,
        subset="shifted",
        influence=partial(_gain_influence, dice) if complete else None,
        settings={name: settings[name] for name in ("measure", "aggregation")},
        as_published=_gain(released_dice) if complete and judged.released else math.nan,
        why=NOTHING if complete else why,
    )


def _gain(dice: Sequence[Array]) -> float:
    before, after, random = (float(each.mean()) for each in dice)
    return scores.al_improvement(
        dice_before=before, dice_after=after, dice_random=random
    )


def _gain_influence(dice: Sequence[Array]) -> Influence:
    """Return the influence on a ratio of two means over the same items."""
    before, after, random = dice
    value, level = _gain(dice), before.mean()
    change = after - random
    return Influence(
        value=value,
        values=(change - value * before) / (level * len(before)),
        scale="linear",
        low=-math.inf,
        high=math.inf,
    )
