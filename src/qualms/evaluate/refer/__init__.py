"""From labelled predictions to a referral plan: the twin of `qualms refer`."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from qualms import __version__, scores
from qualms.evaluate.refer.applying import file_digest
from qualms.evaluate.refer.items import (
    ReferralItems,
    independent,
    referable,
    sets_of,
)
from qualms.evaluate.refer.likeness import ReferenceSample, reference_of
from qualms.evaluate.refer.outcome import outcome_of, verdicts_of
from qualms.evaluate.refer.plan import Outcome, ReferralPlan
from qualms.evaluate.refer.plan_file import PlanError, read_plan
from qualms.evaluate.refer.promise import certify, cutoff_at, offers_of, reaching
from qualms.evaluate.refer.referred import referred_items
from qualms.evaluate.refer.request import (
    CONFIDENCE,
    Cutoff,
    Promise,
    ReferralOptions,
    Request,
)
from qualms.evaluate.refer.saved import PlanOrigin, SavedPlan
from qualms.evaluate.refer.uncertainty import (
    UncertaintyUsed,
    predicted_of,
    uncertainty_used,
    uncertainty_values,
)
from qualms.evaluate.refer.words import notes_of, warnings_of
from qualms.evaluate.scoring import Source
from qualms.predictions import Predictions

__all__ = ["PlanError", "read_plan", "refer"]


def refer(
    source: Source,
    *,
    budget: float | None = None,
    accuracy: float | None = None,
    confidence: float | None = None,
    on: Sequence[Source] = (),
    options: ReferralOptions | None = None,
) -> ReferralPlan:
    """A threshold on the uncertainty, what it costs, and what it promises.

    Give either a `budget` or an `accuracy` (or, in `options`, a sensitivity or
    specificity) that the kept items must reach.

    Args:
        source: Labelled predictions of classes or values that the network was neither
            trained nor tuned on: a path, a mapping of arrays, or predictions already
            read. Items marked `shifted` take no part in the choice. Of values only a
            budget can be asked for.
        budget: The largest share of items that may be referred. With `confidence` it
            holds for new items, else for the given ones.
        accuracy: The least accuracy of the kept items, for new items.
        confidence: Probability with which the promise must hold; 0.9 for `accuracy`.
            With clusters the promise is about one random item per cluster.
        on: Other labelled predictions to apply the threshold to: a later month,
            another hospital, a shifted set.
        options: Which uncertainty, further targets, level of the intervals.

    >>> items = {"target": [0, 0, 1, 1], "prob": [0.1, 0.2, 0.4, 0.9]}
    >>> plan = refer(items, budget=0.25)
    >>> round(plan.threshold, 4), plan.outcomes[0].measure("accuracy").kept.value
    (0.673, 1.0)
    """
    options = options or ReferralOptions()
    request = _request(budget, accuracy, confidence, options)
    read = [referable(each, logits=options.logits) for each in (source, *on)]
    _check_alike(read, request)
    names, used = _names(read), uncertainty_used(read[0], options.uncertainty)
    planning, *others = (
        items
        for each, name in zip(read, names, strict=True)
        for items in sets_of(each, name, used)
    )
    sample = independent(planning, options.seed)
    chosen = _choose(planning, sample, request)
    plan = ReferralPlan(
        request=request,
        uncertainty=used.name,
        **chosen._asdict(),
        offers=offers_of(planning, sample, request.sure),
        outcomes=tuple(
            _outcomes(planning, others, chosen.shown.threshold, request, options)
        ),
        level=options.level,
    )
    plan = replace(
        plan,
        warnings=tuple(warnings_of(plan, read, names)),
        notes=tuple(notes_of(plan, planning, read, options)),
    )
    if not plan.found:
        return plan
    reference = reference_of(
        sample.uncertainty, sample.predicted, sample.classes, options.seed
    )
    return _with_file(plan, read[0], used, reference, file_digest(source))


def _with_file(
    plan: ReferralPlan,
    given: Predictions,
    used: UncertaintyUsed,
    reference: ReferenceSample,
    digest: str | None,
) -> ReferralPlan:
    """The plan with the list of items to refer, and what its file will hold."""
    own = plan.outcomes[0]
    uncertainty, predicted = uncertainty_values(given, used), predicted_of(given)
    made_on = PlanOrigin(
        name=Path(given.source).name,
        subset=own.subset,
        sha256=digest,
        items=own.n,
        clusters=own.clusters,
        referred=own.referred,
        accuracy=plan.shown.accuracy,
        method=given.header.method,
        split=given.header.split,
    )
    saved = SavedPlan(
        task=given.task,
        classes=given.classes,
        uncertainty=used,
        threshold=plan.threshold,
        rounded=plan.shown.rounded,
        request=plan.request,
        promise=plan.promise,
        made_on=made_on,
        reference=reference,
        level=plan.level,
        version=__version__,
    )
    items = referred_items(given, uncertainty, predicted, plan.threshold)
    return replace(plan, items=items, saved=saved)


def _request(
    budget: float | None,
    accuracy: float | None,
    confidence: float | None,
    options: ReferralOptions,
) -> Request:
    if budget is None and confidence is None:
        confidence = CONFIDENCE
    return Request(
        budget=budget,
        accuracy=accuracy,
        sensitivity=options.sensitivity,
        specificity=options.specificity,
        confidence=confidence,
    )


def _check_alike(read: Sequence[Predictions], request: Request) -> None:
    first, *others = read
    for other in others:
        if other.task != first.task:
            raise ValueError(
                f"{other.source} must hold {first.task} as {first.source} does, it "
                f"holds {other.task}"
            )
        if other.classes != first.classes:
            raise ValueError(
                f"{other.source} must have the {first.classes} classes of "
                f"{first.source}, got {other.classes}"
            )
    if request.targets and first.classes is None:
        raise ValueError(
            f"{next(iter(request.targets))} needs classes, {first.source} holds "
            f"{first.task}; ask for a budget"
        )
    wanted = [name for name in request.targets if name != "accuracy"]
    if wanted and first.classes != 2:
        raise ValueError(
            f"{wanted[0]} needs two classes, {first.source} has {first.classes}; "
            "ask for an accuracy or a budget"
        )


def _names(read: Sequence[Predictions]) -> list[str]:
    """File names where they differ, else as much of the path as tells them apart.

    A file that is given twice is told apart by its place in the list.
    """
    paths = [Path(each.source) for each in read]
    for depth in range(1, 12):
        names = ["/".join(path.parts[-depth:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [f"{path.name} ({i + 1})" for i, path in enumerate(paths)]


class _Settled(NamedTuple):
    """The fields of a plan that the choice settles."""

    threshold: float
    shown: Cutoff
    observed: Cutoff | None
    promised: Cutoff | None
    promise: Promise | None
    needed: int | None


def _choose(items: ReferralItems, sample: ReferralItems, request: Request) -> _Settled:
    if request.budget is None:
        return _choose_reaching(items, sample, request)
    asked = {"budget": request.budget, "confidence": request.sure}
    plain = scores.referral_threshold(items.correct, items.uncertainty, **asked)
    safe = scores.referral_threshold(sample.correct, sample.uncertainty, **asked)
    observed = cutoff_at(items, plain.threshold)
    promised = cutoff_at(items, safe.guaranteed_threshold)
    if request.confidence is None:
        return _Settled(observed.threshold, observed, observed, promised, None, None)
    promise = Promise(
        threshold=promised.threshold,
        at_least={},
        budget=request.budget,
        confidence=request.sure,
        items=sample.n,
        tested=1,
    )
    return _Settled(promised.threshold, promised, observed, promised, promise, None)


def _choose_reaching(
    items: ReferralItems, sample: ReferralItems, request: Request
) -> _Settled:
    for name in request.targets:
        if not items.among(name).any():
            side = "positive" if name == "sensitivity" else "negative"
            raise ValueError(
                f"{name} needs {side} items, {items.name} has none; give a file that "
                "has both classes"
            )
    assert request.confidence is not None
    observed = reaching(items, request.targets)
    found = certify(items, sample, request.targets, request.confidence)
    if found.passed is None:
        best = cutoff_at(items, found.best.threshold)
        return _Settled(math.nan, best, observed, None, found.best, found.needed)
    passed = found.passed
    promise = replace(found.best, threshold=passed.threshold, at_least=request.targets)
    return _Settled(passed.threshold, passed, observed, passed, promise, None)


def _outcomes(
    planning: ReferralItems,
    others: Sequence[ReferralItems],
    threshold: float,
    request: Request,
    options: ReferralOptions,
) -> Iterator[Outcome]:
    yield outcome_of(planning, threshold, options)
    for items in others:
        verdicts = verdicts_of(items, threshold, request)
        yield replace(outcome_of(items, threshold, options), verdicts=verdicts)
