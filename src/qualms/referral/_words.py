"""The warnings and notes of a plan, in sentences."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from qualms.evaluate.chosen_uncertainty import own_uncertainties
from qualms.predictions import Predictions
from qualms.referral._items import (
    ReferralItems,
    UncertaintySource,
    in_domain_items,
    is_computable,
    uncertainty_source,
    uncertainty_values,
)
from qualms.referral._outcome import Outcome
from qualms.referral._plan import PER_CLUSTER, ReferralPlan
from qualms.referral._request import ReferralOptions
from qualms.referral._task import referral_of
from qualms.referral._threshold import Cutoff
from qualms.referral.shares import short_percent
from qualms.scores import aurc
from qualms.shelf import traits
from qualms.wording import plural

OTHERS = 4
"""Most other uncertainties whose AURC is listed."""
ARRAYS = ("target", "probs", "mean", "lower")
"""Arrays that are equal in two files of the same predictions."""


def plan_warnings(
    plan: ReferralPlan, files: Sequence[Predictions], names: Sequence[str]
) -> Iterator[str]:
    """Yield warnings for readers of the plan."""
    yield from _training_items(files[0], names[0])
    yield from _large_clusters(plan)
    for outcome in plan.outcomes:
        yield from _missed(plan, outcome)
        yield from _fall(outcome)
    yield from _items_shared_with(files, names)


def file_warnings(files: Sequence[Predictions], names: Sequence[str]) -> Iterator[str]:
    """Yield the warnings about the files, which do not depend on the request."""
    yield from _training_items(files[0], names[0])
    yield from _items_shared_with(files, names)


def file_notes(
    items: ReferralItems,
    others: Sequence[ReferralItems],
    files: Sequence[Predictions],
    options: ReferralOptions,
) -> Iterator[str]:
    """Yield the notes about the files, which do not depend on the request."""
    shifted = others[0].n if items.subset else 0
    yield from _chosen_on(items, shifted, files[0])
    yield from _clusters(items)
    yield from _queries(items, options)
    yield from _unknown_classes(files)
    yield from dict.fromkeys(note for file in files for note in file.notes)


def plan_notes(
    plan: ReferralPlan,
    items: ReferralItems,
    files: Sequence[Predictions],
    options: ReferralOptions,
) -> Iterator[str]:
    """Yield notes that explain the numbers of a plan that was made on `items`."""
    shifted = plan.outcomes[1].n if items.subset else 0
    yield from _chosen_on(items, shifted, files[0])
    yield from _other_choice(plan, items)
    yield from _other_uncertainties(plan.uncertainty, items, files[0])
    yield from _ties(plan, items)
    yield from _clusters(items)
    yield from _queries(items, options)
    if options.by_group:
        yield from _missing_groups(files)
    yield from _unknown_classes(files)
    yield from dict.fromkeys(note for file in files for note in file.notes)


def _large_clusters(plan: ReferralPlan) -> Iterator[str]:
    """Warn if all items together miss the promise about clusters."""
    promise, outcome = plan.promise, plan.outcomes[0]
    if promise is None or not plan.clustered:
        return
    if promise.budget is not None and outcome.referred.low > promise.budget:
        referred, budget = _percents(outcome.referred.value, promise.budget)
        yield (
            f"on {outcome.label} itself {referred} of all items are referred, beyond "
            f"the {budget} promised of {PER_CLUSTER}: large clusters are referred more "
            "than small ones"
        )
    for name, bound in promise.at_least.items():
        estimate = outcome.measure(name).kept
        if estimate.high < bound:
            share, least = _percents(estimate.value, bound)
            yield (
                f"on {outcome.label} itself all kept items together have {name} "
                f"{share}, below the {least} promised of {PER_CLUSTER}: large "
                "clusters are worse than small ones"
            )


def _missed(plan: ReferralPlan, outcome: Outcome) -> Iterator[str]:
    request = plan.request
    sure = f"(confidence {request.effective_confidence:g})"
    for name, verdict in outcome.verdicts.items():
        if verdict != "missed":
            continue
        if name == "budget":
            share, most = _percents(outcome.referred.value, request.budget or 0.0)
            yield (
                f"on {outcome.label} {share} are referred, beyond the budget of {most} "
                f"{sure}"
            )
        else:
            estimate = outcome.measure(name).kept
            share, least = _percents(estimate.value, request.at_least[name])
            yield (
                f"on {outcome.label} the kept items have {name} {share}, below the "
                f"{least} asked for {sure}"
            )


def _fall(outcome: Outcome) -> Iterator[str]:
    fall = outcome.fall
    if fall is None:
        return
    before, before_referred = _percents(fall.from_accuracy, fall.from_referred)
    after, after_referred = _percents(fall.to_accuracy, fall.to_referred)
    yield (
        f"on {outcome.label} the referral curve falls: accuracy of the kept items "
        f"is {before} with {before_referred} referred, but {after} with "
        f"{after_referred} referred; the uncertainty does not find the errors there"
    )


def _percents(first: float, second: float) -> tuple[str, str]:
    return short_percent(first), short_percent(second)


def _training_items(file: Predictions, name: str) -> Iterator[str]:
    if file.header.split == "train":
        yield (
            f"{name} says that it holds training items: the network knows them, so "
            "the plan is too good; use items that it was not trained on"
        )


def _items_shared_with(
    files: Sequence[Predictions], names: Sequence[str]
) -> Iterator[str]:
    """Warn of other files that hold items of the first one."""
    for other, name in zip(files[1:], names[1:], strict=True):
        yield from _shared_items(files[0], other, names[0], name)


def _shared_items(
    first: Predictions, other: Predictions, first_name: str, name: str
) -> Iterator[str]:
    same = other.n == first.n and all(
        np.array_equal(first.arrays[key], other.arrays.get(key, ()))
        for key in ARRAYS
        if key in first.arrays
    )
    if same:
        yield (
            f"{name} holds the same predictions as {first_name}, so it is no check of "
            "the plan"
        )
        return
    items, other_items = first.get("item"), other.get("item")
    if items is None or other_items is None:
        return
    both = len(np.intersect1d(items, other_items))
    if both:
        yield (
            f"{both} items of {name} have the names of items of {first_name}: if they "
            f"are the same items, {name} is no independent check of the plan"
        )


def _chosen_on(items: ReferralItems, others: int, file: Predictions) -> Iterator[str]:
    """Yield notes on the items on which the threshold was chosen.

    `others` is the number of shifted items of the same file.
    """
    split, shifted = file.header.split or "", file.get("shifted")
    if split.startswith("val"):
        yield (
            f"these are items of the split {split!r}: if an epoch or a configuration "
            "was chosen on them, their scores and what is promised are too good"
        )
    if items.subset:
        noun = plural(others, "item")
        yield f"the threshold is chosen without the {others} {noun} marked as shifted"
    elif shifted is not None and shifted.all():
        yield "all items are marked shifted: the plan is for shifted items"


def _other_choice(plan: ReferralPlan, items: ReferralItems) -> Iterator[str]:
    """Yield a note on the other threshold: without a promise, or with one."""
    request = plan.request
    if request.budget is None:
        if plan.observed is not None and plan.observed != plan.promised:
            yield (
                f"on these items {_cutoff(plan.observed)} is enough, but that promises "
                "nothing for new items"
            )
        return
    if plan.promised is None or not 0.0 < request.budget < 1.0:
        return
    if math.isinf(plan.promised.threshold):
        tied = int((items.uncertainty == items.uncertainty.max()).sum())
        why = "these items are too few"
        if tied > request.budget * items.n:
            why = f"{tied} items share the highest uncertainty, which is too many"
        yield (
            f"{why} to promise a budget of {short_percent(request.budget)} for new "
            "items, unless none is referred"
        )
    elif request.confidence is None:
        new = "one random item per new cluster" if plan.clustered else "new items"
        yield (
            f"to stay within {short_percent(request.budget)} for {new} with confidence "
            f"{request.effective_confidence:g}, take {_cutoff(plan.promised)} "
            f"(--confidence {request.effective_confidence:g})"
        )


def _other_uncertainties(
    source: UncertaintySource, items: ReferralItems, file: Predictions
) -> Iterator[str]:
    """Yield the AURC of all uncertainties if the file has any of its own."""
    own = own_uncertainties(file)
    if not own:
        return
    index = in_domain_items(file)
    risk = 1.0 - items.correct if items.is_decided else items.loss
    area = {source.name: float(aurc(risk=risk, uncertainty=items.uncertainty))}
    for name in dict.fromkeys((*own, referral_of(file.task).usual(file))):
        if name not in area and (name in own or is_computable(file, name)):
            values = uncertainty_values(file, uncertainty_source(file, name))[index]
            area[name] = float(aurc(risk=risk, uncertainty=values))
    listed = [f"{value:.3g} by {name}" for name, value in area.items()]
    more = len(listed) - 1 - OTHERS
    words = [*listed[1 : 1 + OTHERS], *([f"{more} more"] if more > 0 else [])]
    if words:
        yield (
            f"AURC is {listed[0]}, which is taken; {', '.join(words)} (--uncertainty"
            " NAME takes another)"
        )


def _cutoff(cutoff: Cutoff) -> str:
    if math.isinf(cutoff.threshold):
        return "referring none"
    referred = short_percent(cutoff.referred)
    return f"a threshold of {cutoff.rounded!r} (referring {referred})"


def _ties(plan: ReferralPlan, items: ReferralItems) -> Iterator[str]:
    """Yield a note on the unused part of a budget, if tied items are the reason."""
    budget = plan.request.budget
    if budget is None or plan.request.confidence is not None:
        return
    unspent = math.floor(budget * items.n + 1e-9) - items.n
    unspent += plan.outcomes[0].kept
    if unspent <= 0:
        return
    uncertainty = items.uncertainty[items.uncertainty < plan.threshold]
    tied = int((uncertainty == uncertainty.max()).sum())
    yield (
        f"{tied} items share the uncertainty {uncertainty.max():.4g} and are referred "
        f"together or not at all, which leaves {unspent} referrals of the budget unused"
    )


def _missing_groups(files: Sequence[Predictions]) -> Iterator[str]:
    for file in files:
        if file.get("group") is None:
            yield f"{file.source} has no array 'group', so its groups are not shown"


def _unknown_classes(files: Sequence[Predictions]) -> Iterator[str]:
    for file in files:
        is_known = file.get("known")
        if is_known is not None and not is_known.all():
            count = int((~is_known).sum())
            noun = plural(count, "item")
            have = "has" if count == 1 else "have"
            yield f"{count} {noun} of {file.source} {have} no known class: left out"


def _queries(items: ReferralItems, options: ReferralOptions) -> Iterator[str]:
    """Yield notes on the search for neighbours, and on the unit of promises."""
    if "vectors" not in traits(items.task):
        return
    if options.gallery is not None:
        yield (
            "neighbours are sought in the gallery: what is promised is about new"
            " queries of it"
        )
        return
    yield (
        "neighbours are sought among the items themselves, and two that are each"
        " other's nearest are one cluster; with a gallery of other items (--gallery)"
        " a promise is about single queries"
    )


def _clusters(items: ReferralItems) -> Iterator[str]:
    if items.cluster is None:
        return
    yield (
        f"intervals are over the {items.clusters} clusters, because items of one "
        "cluster are alike"
    )
    yield (
        f"the promise is about {PER_CLUSTER}, so that a large cluster counts no more "
        "than a small one; it is tested on one item of each cluster, drawn by --seed"
    )
