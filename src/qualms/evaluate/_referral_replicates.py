"""Bootstrap replicates of the scores of a repeat, by the plans of the scores."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from qualms import scores
from qualms.evaluate._aleatoric import truth_parts
from qualms.evaluate._entry import Settings
from qualms.evaluate._judge import Direction
from qualms.evaluate._referral_items import Array, Index, Items
from qualms.evaluate._replicates import mean_of_repeats
from qualms.scores import Copies, Plan, Resampling

Replay = Callable[[Copies], Array]
"""From how often each item counts to replicates (draws, scores)."""

RESAMPLED: Mapping[str, Direction] = {
    "accuracy": "higher",
    "nll": "lower",
    "ece": "lower",
    "auroc": "higher",
    "accuracy@0.7": "higher",
    "accuracy@0.5": "higher",
    "referral_accuracy_area": "higher",
}
"""Scores of a set that are cheap enough to resample, and which value is best."""
RESAMPLED_SETS = ("in_domain", "shifted", "joint")
"""The other sets hold the same items once more."""
_KEPT = (0.3, 0.5)
_AT_ONCE = 16
"""Replicates whose weights are in memory together, in each thread."""


def replicates(repeats: Sequence[Items], settings: Settings) -> dict[str, Array]:
    """By score, (draws,) replicates of the mean over repeats, themselves drawn anew.

    Items are drawn within classes and sides of the shift, by patients where these are
    known; all rows of a variant see the same draws.
    """
    items = repeats[0]
    resampling = Resampling(
        len(items.target),
        strata=2 * items.target + items.shifted,
        cluster=items.cluster,
        seed=settings.seed,
    )
    each = [dict(_replays(repeat)) for repeat in repeats]
    names = [name for name in each[0] if all(name in own for own in each)]
    work = partial(_replayed, [[own[name] for name in names] for own in each])
    draws = settings.resamples
    starts = range(0, draws, _AT_ONCE)
    with ThreadPoolExecutor(settings.workers) as pool:
        parts = pool.map(
            lambda first: work(resampling, range(first, min(first + _AT_ONCE, draws))),
            starts,
        )
        samples = np.concatenate(list(parts), axis=1)
    means = mean_of_repeats(samples, settings.seed)
    columns = [score for name in names for score in name]
    return dict(zip(columns, means.T, strict=True))


def _replayed(
    replays: Sequence[Sequence[Replay]], resampling: Resampling, draws: range
) -> Array:
    """(repeats, draws, scores) of some of the replicates."""
    weights = resampling.block(draws)
    found = []
    with np.errstate(invalid="ignore"):  # whole clusters may miss a small set
        for own in replays:
            copies = Copies(weights)  # repeats share no sums
            found.append(np.concatenate([replay(copies) for replay in own], axis=1))
    return np.stack(found)


def _replays(items: Items) -> Iterator[tuple[tuple[str, ...], Replay]]:
    """What replays scores, by the names of the scores."""
    inside = int((~items.shifted).sum())
    n = len(items.shifted)
    sets = (np.arange(inside), np.arange(inside, n), np.arange(n))
    for where, index in zip(RESAMPLED_SETS, sets, strict=True):
        names = tuple(f"{where}/{score}" for score in RESAMPLED)
        yield names, _replay(_set_plans(items, index), index)
    detection = {"joint/ood_auroc": items.uncertainty.total}
    for name, values in (detection | truth_parts(items).shift).items():
        yield (name,), _replay([scores.auroc_plan(values, items.shifted)], sets[2])
    for name, values in truth_parts(items).distance.items():
        yield (name,), _replay([scores.mean_plan(values[sets[0]])], sets[0])


def _replay(wanted: Sequence[Plan], index: Index) -> Replay:
    """What replays plans over the items at `index`; nan where none of them is drawn."""

    def replay(copies: Copies) -> Array:
        held = copies.of(index)
        found = np.column_stack([plan.value(held) for plan in wanted])
        return np.where(held.total()[:, None] > 0, found, np.nan)

    return replay


def _set_plans(items: Items, index: Index) -> list[Plan]:
    """The plans of `RESAMPLED`, in its order."""
    probs, target = items.probs[index], items.target[index]
    doubt = items.uncertainty.total[index]
    right = scores.correct(probs, target).astype(np.float64)
    return [
        scores.mean_plan(right),
        scores.mean_plan(scores.item_nll(probs, target)),
        scores.ece_plan(probs.max(axis=1), right),
        scores.auroc_plan(probs[:, 1], target == 1),
        *(_kept_plan(right, doubt, share) for share in _KEPT),
        scores.aurc_plan(right, doubt),
    ]


def _kept_plan(right: Array, doubt: Array, share: float) -> Plan:
    """Accuracy of the most certain `share`, after referring a whole number of items."""

    def kept(total: Array) -> Array:
        return np.maximum(1.0, total - np.rint((1.0 - share) * total))[:, None]

    return scores.edge_plan(right, doubt, kept, lambda sums, edge: (sums / edge)[:, 0])
