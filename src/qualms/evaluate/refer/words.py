"""The warnings and notes of a plan, in sentences."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from qualms.evaluate.refer.items import ReferralItems
from qualms.evaluate.refer.plan import Outcome, ReferralPlan
from qualms.evaluate.refer.request import Cutoff, ReferralOptions
from qualms.predictions import Predictions
from qualms.wording import plural

ARRAYS = ("target", "probs", "mean", "lower")


def percent(share: float) -> str:
    """A share in percent with one decimal, none where that says the same.

    >>> percent(0.2), percent(0.9543)
    ('20%', '95.4%')
    """
    return f"{round(100 * share, 1):g}%"


def place_of(outcome: Outcome) -> str:
    """What to call a set of items in a sentence."""
    items = outcome.subset.replace("_", "-")
    return ", ".join(part for part in (outcome.name, items) if part)


def warnings_of(
    plan: ReferralPlan, read: Sequence[Predictions], names: Sequence[str]
) -> Iterator[str]:
    """What a reader of the plan must know before using it."""
    planning, *others = read
    if planning.header.split == "train":
        yield (
            f"{names[0]} says that it holds training items: the network knows them, so "
            "the plan is too good; use items that it was not trained on"
        )
    yield from _unlike_its_clusters(plan)
    for outcome in plan.outcomes:
        yield from _missed(plan, outcome)
        yield from _falling(outcome)
    for other, name in zip(others, names[1:], strict=True):
        yield from _shared(planning, other, names[0], name)


def notes_of(
    plan: ReferralPlan,
    planning: ReferralItems,
    read: Sequence[Predictions],
    options: ReferralOptions,
) -> Iterator[str]:
    """What explains the numbers."""
    yield from _chosen_on(plan, planning, read[0])
    yield from _other_choice(plan, planning)
    yield from _ties(plan, planning)
    yield from _clusters(planning)
    if options.by_group:
        yield from _groupless(read)
    yield from _unknown(read)
    yield from dict.fromkeys(note for each in read for note in each.notes)


def _unlike_its_clusters(plan: ReferralPlan) -> Iterator[str]:
    """Warn where all items together do worse than what is promised of clusters."""
    promise, own = plan.promise, plan.outcomes[0]
    if promise is None or own.clusters is None:
        return
    if promise.budget is not None and own.referred.low > promise.budget:
        yield (
            f"on {place_of(own)} itself {percent(own.referred.value)} of all items are "
            f"referred, beyond the {percent(promise.budget)} promised of one random "
            "item per cluster: large clusters are referred more than small ones"
        )
    for name, bound in promise.at_least.items():
        kept = own.measure(name).kept
        if kept.high < bound:
            yield (
                f"on {place_of(own)} itself all kept items together have {name} "
                f"{percent(kept.value)}, below the {percent(bound)} promised of one "
                "random item per cluster: large clusters are worse than small ones"
            )


def _missed(plan: ReferralPlan, outcome: Outcome) -> Iterator[str]:
    sure = plan.request.sure
    for name, verdict in outcome.verdicts.items():
        if verdict != "missed":
            continue
        if name == "budget":
            yield (
                f"on {place_of(outcome)} {percent(outcome.referred.value)} are "
                f"referred, beyond the budget of {percent(plan.request.budget or 0.0)} "
                f"(confidence {sure:g})"
            )
        else:
            wanted = plan.request.targets[name]
            yield (
                f"on {place_of(outcome)} the kept items have {name} "
                f"{percent(outcome.measure(name).kept.value)}, below the "
                f"{percent(wanted)} asked for (confidence {sure:g})"
            )


def _falling(outcome: Outcome) -> Iterator[str]:
    fall = outcome.fall
    if fall is None:
        return
    yield (
        f"on {place_of(outcome)} the referral curve falls: accuracy of the kept items "
        f"is {percent(fall.from_accuracy)} with {percent(fall.from_referred)} "
        f"referred, but {percent(fall.to_accuracy)} with "
        f"{percent(fall.to_referred)} referred; "
        "the uncertainty does not find the errors there"
    )


def _shared(
    planning: Predictions, other: Predictions, first: str, name: str
) -> Iterator[str]:
    same = other.n == planning.n and all(
        np.array_equal(planning.arrays[key], other.arrays.get(key, ()))
        for key in ARRAYS
        if key in planning.arrays
    )
    if same:
        yield (
            f"{name} holds the same predictions as {first}, so it is no check of the "
            "plan"
        )
        return
    mine, theirs = planning.get("item"), other.get("item")
    if mine is None or theirs is None:
        return
    both = len(np.intersect1d(mine, theirs))
    if both:
        yield (
            f"{both} items of {name} have the names of items of {first}: if they are "
            f"the same items, {name} is no independent check of the plan"
        )


def _chosen_on(
    plan: ReferralPlan, planning: ReferralItems, given: Predictions
) -> Iterator[str]:
    """Which items the threshold was chosen on, where that needs a word."""
    split, shifted = given.header.split or "", given.get("shifted")
    if split.startswith("val"):
        yield (
            f"these are items of the split {split!r}: if an epoch or a configuration "
            "was chosen on them, their scores and what is promised are too good"
        )
    if planning.subset:
        apart = plan.outcomes[1].n
        items = plural(apart, "item")
        yield f"the threshold is chosen without the {apart} {items} marked as shifted"
    elif shifted is not None and shifted.all():
        yield "all items are marked shifted: the plan is for shifted items"


def _other_choice(plan: ReferralPlan, planning: ReferralItems) -> Iterator[str]:
    """The threshold that was not taken: without the promise, or with it."""
    request = plan.request
    if request.budget is None:
        if plan.observed is not None and plan.observed != plan.promised:
            yield (
                f"on these items {_cut(plan.observed)} is enough, but that promises "
                "nothing for new items"
            )
        return
    if plan.promised is None or not 0.0 < request.budget < 1.0:
        return
    if math.isinf(plan.promised.threshold):
        tied = int((planning.uncertainty == planning.uncertainty.max()).sum())
        why = "these items are too few"
        if tied > request.budget * planning.n:
            why = f"{tied} items share the highest uncertainty, which is too many"
        yield (
            f"{why} to promise a budget of {percent(request.budget)} for new items, "
            "unless none is referred"
        )
    elif request.confidence is None:
        clustered = plan.outcomes[0].clusters is not None
        new = "one random item per new cluster" if clustered else "new items"
        yield (
            f"to stay within {percent(request.budget)} for {new} with confidence "
            f"{request.sure:g}, take {_cut(plan.promised)} "
            f"(--confidence {request.sure:g})"
        )


def _cut(choice: Cutoff) -> str:
    if math.isinf(choice.threshold):
        return "referring none"
    return f"a threshold of {choice.rounded!r} (referring {percent(choice.referred)})"


def _ties(plan: ReferralPlan, planning: ReferralItems) -> Iterator[str]:
    """How much of a budget is left because tied items are referred together."""
    budget = plan.request.budget
    if budget is None or plan.request.confidence is not None:
        return
    unspent = math.floor(budget * planning.n + 1e-9) - planning.n
    unspent += plan.outcomes[0].kept
    if unspent <= 0:
        return
    kept = planning.uncertainty[planning.uncertainty < plan.threshold]
    tied = int((kept == kept.max()).sum())
    yield (
        f"{tied} items share the uncertainty {kept.max():.4g} and are referred "
        f"together or not at all, which leaves {unspent} referrals of the budget unused"
    )


def _groupless(read: Sequence[Predictions]) -> Iterator[str]:
    for each in read:
        if each.get("group") is None:
            yield f"{each.source} has no array 'group', so its groups are not shown"


def _unknown(read: Sequence[Predictions]) -> Iterator[str]:
    for each in read:
        known = each.get("known")
        if known is not None and not known.all():
            count = int((~known).sum())
            items = plural(count, "item")
            have = "has" if count == 1 else "have"
            yield f"{count} {items} of {each.source} {have} no known class: left out"


def _clusters(planning: ReferralItems) -> Iterator[str]:
    if planning.cluster is None:
        return
    yield (
        f"intervals are over the {planning.clusters} clusters, because items of one "
        "cluster are alike"
    )
    yield (
        "the promise is about one random item per cluster, so that a large cluster "
        "counts no more than a small one; it is tested on one item of each cluster, "
        "drawn by --seed"
    )
