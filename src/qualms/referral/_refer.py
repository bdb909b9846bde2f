"""From labelled predictions to a referral plan: the twin of `qualms refer`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from qualms import __version__
from qualms.evaluate.sources import Source
from qualms.predictions import Predictions
from qualms.referral._applied import ReferredItems, file_digest, referred_items
from qualms.referral._items import predicted_values, uncertainty_values
from qualms.referral._likeness import reference_sample
from qualms.referral._outcome import Outcome, judged_outcome, outcome_at
from qualms.referral._plan import PlanOrigin, ReferralPlan
from qualms.referral._request import (
    SHARE_SCORES,
    ReferralOptions,
    Request,
    make_request,
)
from qualms.referral._sets import read_files, split_files
from qualms.referral._task import referral_of
from qualms.referral._threshold import choose_threshold, list_offers
from qualms.referral._words import plan_notes, plan_warnings
from qualms.wording import in_one_line


@in_one_line
def refer(  # noqa: PLR0913 - what a plan may have to reach
    source: Source,
    *,
    budget: float | None = None,
    accuracy: float | None = None,
    sensitivity: float | None = None,
    specificity: float | None = None,
    confidence: float | None = None,
    on: Sequence[Source] = (),
    options: ReferralOptions | None = None,
) -> ReferralPlan:
    """Choose a threshold on the uncertainty; return its costs and its promise.

    Give either a `budget` or what the kept items must reach: an `accuracy`, or a
    `sensitivity` or `specificity` of two classes.

    Args:
        source: Labelled predictions of classes or values that the network was neither
            trained nor tuned on: a path, a mapping of arrays, or predictions already
            read. Items marked `shifted` take no part in the choice. For values only a
            budget can be asked for.
        budget: The largest share of items that may be referred: of new items with
            `confidence`, else of the given ones.
        accuracy: The least accuracy of the kept items, for new items.
        sensitivity: Their least sensitivity; instead of that of `options`.
        specificity: Their least specificity; instead of that of `options`.
        confidence: Probability with which the promise must hold; 0.9 for `accuracy`.
            With clusters the promise is about one random item per cluster.
        on: Other labelled predictions to apply the threshold to: a later month,
            another hospital, a shifted set.
        options: Uncertainty, further scores to reach, level of the intervals.

    >>> items = {"target": [0, 0, 1, 1], "prob": [0.1, 0.2, 0.4, 0.9]}
    >>> plan = refer(items, budget=0.25)
    >>> round(plan.threshold, 4), plan.outcomes[0].measure("accuracy").kept.value
    (0.673, 1.0)
    """
    options = options or ReferralOptions()
    request = make_request(
        budget=budget,
        confidence=confidence,
        accuracy=accuracy,
        sensitivity=options.sensitivity if sensitivity is None else sensitivity,
        specificity=options.specificity if specificity is None else specificity,
    )
    files = read_files(source, on, options)
    _check_classes(files[0], request)
    names, uncertainty, items, others = split_files(files, options)
    sample = items.independent(options.seed)
    choice = choose_threshold(items, sample, request)
    threshold = choice.shown.threshold
    outcomes = (
        outcome_at(threshold, items, options),
        *(judged_outcome(threshold, other, request, options) for other in others),
    )
    plan = ReferralPlan(
        task=files[0].task,
        classes=files[0].classes,
        request=request,
        uncertainty=uncertainty,
        **choice._asdict(),
        made_on=_origin(source, files[0], outcomes[0]),
        reference=reference_sample(
            sample.uncertainty, sample.predicted, sample.classes, options.seed
        ),
        level=options.level,
        version=__version__,
        offers=list_offers(items, sample, request.effective_confidence),
        outcomes=outcomes,
    )
    return replace(
        plan,
        items=_items_to_refer(plan, files[0]) if plan.found else None,
        warnings=tuple(plan_warnings(plan, files, names)),
        notes=tuple(plan_notes(plan, items, files, options)),
    )


def _check_classes(file: Predictions, request: Request) -> None:
    """Raise unless the scores of `request` are defined for the classes of the file."""
    needed = [name for name in request.at_least if name != "accuracy"]
    task = referral_of(file.task)
    if task.asks and needed:
        raise ValueError(
            f"{needed[0]} needs two classes, {file.source} holds {file.task}; ask for"
            f" {task.asks}"
        )
    if request.at_least and not task.is_decided:
        raise ValueError(
            f"{next(iter(request.at_least))} needs classes, {file.source} holds "
            f"{file.task}; ask for a budget"
        )
    for name in request.at_least:
        if SHARE_SCORES[name].target is not None and file.classes != 2:
            raise ValueError(
                f"{name} needs two classes, {file.source} has {file.classes}; "
                "ask for an accuracy or a budget"
            )


def _origin(source: Source, file: Predictions, outcome: Outcome) -> PlanOrigin:
    return PlanOrigin(
        name=Path(file.source).name,
        subset=outcome.subset,
        sha256=file_digest(source),
        items=outcome.n,
        clusters=outcome.clusters,
        referred=outcome.referred,
        method=file.header.method,
        split=file.header.split,
    )


def _items_to_refer(plan: ReferralPlan, file: Predictions) -> ReferredItems:
    uncertainty = uncertainty_values(file, plan.uncertainty)
    return referred_items(file, uncertainty, predicted_values(file), plan.threshold)
