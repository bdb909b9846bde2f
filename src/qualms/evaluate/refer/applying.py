"""Applying a plan to new predictions: refuse what does not fit, then judge the rest."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from qualms.evaluate.refer.applied import AppliedPlan, workload_of
from qualms.evaluate.refer.items import cluster_codes, one_per_cluster, referable
from qualms.evaluate.refer.likeness import (
    ReferenceSample,
    check_likeness,
    reference_of,
)
from qualms.evaluate.refer.referred import referred_items
from qualms.evaluate.refer.uncertainty import (
    FAMILY,
    predicted_of,
    uncertainty_values,
)
from qualms.evaluate.scoring import Source
from qualms.predictions import NO_TARGET, Predictions

if TYPE_CHECKING:
    from qualms.evaluate.refer.saved import SavedPlan


Array = NDArray[np.float64]

FEW = 10
"""Fewer items than these do not show that another network predicted them."""


def apply_plan(
    plan: "SavedPlan", source: Source, *, logits: bool = False, seed: int = 0
) -> AppliedPlan:
    """Which of new items to refer, how many, and whether they are like the plan's."""
    new = referable(source, logits=logits, labelled=False)
    _refuse_other(plan, new)
    uncertainty = uncertainty_values(new, plan.uncertainty)
    predicted = predicted_of(new)
    everyone = np.arange(new.n)
    cluster = cluster_codes(new.get("cluster"), everyone)
    refer = uncertainty >= plan.threshold
    work = workload_of(refer, cluster, plan.made_on.referred, plan.level)
    if cluster is not None:
        everyone = one_per_cluster(cluster, (predicted, uncertainty), seed)
    sample = reference_of(
        uncertainty[everyone], predicted[everyone], plan.classes, seed
    )
    check = check_likeness(plan.reference, sample, moved=work.change, seed=seed)
    _refuse_no_overlap(plan, new, sample, different=check.departures[1].differs)
    return AppliedPlan(
        name=Path(new.source).name,
        rule=plan.rule,
        promise=plan.promise_words,
        refer=refer,
        items=referred_items(new, uncertainty, predicted, plan.threshold),
        workload=work,
        check=check,
        warnings=tuple(_warnings(plan, new, file_digest(source))),
        notes=tuple(_notes(plan, new, uncertainty)),
    )


def file_digest(source: Source) -> str | None:
    """The hash of a predictions file; None for what lies in memory."""
    if not isinstance(source, (str, Path)) or not Path(source).is_file():
        return None
    with Path(source).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _refuse_other(plan: "SavedPlan", new: Predictions) -> None:
    if new.task != plan.task:
        raise ValueError(
            f"{new.source}: holds {new.task}, and the plan is for {plan.task}; "
            "give predictions of the task that the plan was made for"
        )
    if new.classes != plan.classes:
        raise ValueError(
            f"{new.source}: has {new.classes} classes, and the plan is for "
            f"{plan.classes}; give predictions of the same network, with its "
            "classes in the same order"
        )


def _refuse_no_overlap(
    plan: "SavedPlan", new: Predictions, sample: ReferenceSample, *, different: bool
) -> None:
    if plan.classes is None or not different or sample.n < FEW:
        return
    if (np.minimum(plan.reference.predicted, sample.predicted) > 0).any():
        return
    raise ValueError(
        f"{new.source}: predicts {_classes(sample)} only, none of which was "
        f"predicted on the items of the plan ({_classes(plan.reference)}); give "
        "predictions of the same network, with its classes in the same order"
    )


def _warnings(plan: "SavedPlan", new: Predictions, digest: str | None) -> Iterator[str]:
    made, used = plan.made_on, plan.uncertainty
    if digest is not None and digest == made.sha256:
        yield (
            "this is the file that the plan was made from: these items are not "
            "new, and comparing them with the plan says nothing"
        )
    if new.header.split == "train":
        yield "the file says that it holds training items: the network knows them"
    if made.method and new.header.method and made.method != new.header.method:
        yield (
            f"the plan was made for predictions of {made.method!r}, these are of "
            f"{new.header.method!r}: what it promises is not about them"
        )
    if new.draws != used.draws and not used.given:
        yield (
            f"the plan was made from predictions with {used.draws} draws, these "
            f"have {new.draws}: their {used.name} is not quite the same"
        )
    if made.clusters is not None and new.get("cluster") is None:
        yield (
            "the plan was made on items in clusters, and this file has no "
            "'cluster': where several items are of one cluster, the intervals are "
            "too narrow and the check finds differences that are none"
        )


def _notes(plan: "SavedPlan", new: Predictions, uncertainty: Array) -> Iterator[str]:
    own, used = new.named(FAMILY[plan.task]), plan.uncertainty
    if not used.given and used.name in own:
        yield (
            f"the plan computes its {used.name}, so the array "
            f"'{FAMILY[plan.task]}/{used.name}' of this file is not used"
        )
    at = int((uncertainty == plan.threshold).sum())
    if at > 1:
        yield f"{at} items lie at the threshold itself: all of them are referred"
    near = int(((uncertainty >= plan.rounded) & (uncertainty < plan.threshold)).sum())
    if near:
        items = "1 item lies" if near == 1 else f"{near} items lie"
        yield (
            f"{items} between the rounded threshold {plan.rounded!r} and the exact "
            f"one, {plan.threshold!r}, which decides: not referred"
        )
    if "target" in new.arrays:
        yield "targets are not used here; refer FILE --on judges labelled items"
    yield from (note for note in new.notes if note != NO_TARGET)


def _classes(sample: ReferenceSample) -> str:
    there = np.flatnonzero(sample.predicted).tolist()
    more = ", ..." if len(there) > 5 else ""
    noun = "class" if len(there) == 1 else "classes"
    return f"{noun} {', '.join(map(str, there[:5]))}{more}"
