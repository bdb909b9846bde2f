"""Applying a plan to new items whose targets are not known yet."""

import csv
import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qualms.arrays import Array, Flags, Index
from qualms.atomic import replacing
from qualms.evaluate.chosen_uncertainty import own_uncertainties
from qualms.evaluate.notebook import notebook_lines, notebook_table, pandas_frame
from qualms.evaluate.sources import Source
from qualms.inference import Design, difference_of_samples, exact_interval
from qualms.predictions import NO_TARGET, Predictions
from qualms.referral._items import (
    array_name,
    cluster_codes,
    one_per_cluster,
    predicted_values,
    read_for_referral,
    uncertainty_values,
)
from qualms.referral._likeness import (
    LikenessCheck,
    ReferenceSample,
    check_likeness,
    reference_sample,
)
from qualms.referral._task import referral_of
from qualms.referral.shares import percent_interval
from qualms.results import harmless
from qualms.scores import Estimate
from qualms.wording import plural

if TYPE_CHECKING:
    from qualms.referral._plan import ReferralPlan

LISTED = 10
"""Most items of a list that a notebook shows."""
FEW = 10
"""Fewest items that show whether another network predicted them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReferredItems:
    """The items to refer, most uncertain first; all arrays are (R,)."""

    row: Index = field(repr=False)
    """Places in the file, from 0."""
    item: NDArray[np.str_] = field(repr=False)
    """Names of the items; their places where the file has none."""
    uncertainty: Array = field(repr=False)
    predicted: Index | Array | NDArray[np.str_] = field(repr=False)
    """Predicted classes or values; names of classes if the file has them. For
    embeddings, their lengths."""
    output: str = "predicted"
    """Name of the column of `predicted`."""
    labels: dict[str, NDArray[Any]] = field(default_factory=dict, repr=False)
    """cluster and group, if the file has them."""

    def __len__(self) -> int:
        return len(self.row)

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """Columns of a table of the items, by name."""
        return {
            "item": self.item,
            "row": self.row,
            "uncertainty": self.uncertainty,
            self.output: self.predicted,
            **self.labels,
        }

    def first(self, count: int) -> list[tuple[Any, ...]]:
        """Return the table lines of the `count` most uncertain items."""
        columns = (values[:count].tolist() for values in self.columns.values())
        return list(zip(*columns, strict=True))

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the items as CSV; the file appears complete or not at all.

        Text that a spreadsheet would run as a formula gets a leading quote.
        """
        target = Path(path)
        with (
            replacing(target) as temporary,
            temporary.open("w", encoding="utf-8", newline="") as file,
        ):
            lines = csv.writer(file, lineterminator="\n")
            lines.writerow(self.columns)
            lines.writerows(map(harmless, row) for row in self.first(len(self)))
            file.flush()
        return target

    def to_frame(self) -> Any:
        """Return a DataFrame of pandas with a line for each item.

        Raises:
            ImportError: If pandas is not installed.
        """
        return pandas_frame(self.columns, instead="use .save(path)")

    def __repr__(self) -> str:
        names = ", ".join(map(repr, self.item[:3].tolist()))
        first = f": {names}{', ...' if len(self) > 3 else ''}" if len(self) else ""
        return f"<{len(self)} items to refer{first}; see .save(path), .to_frame()>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Number of items that go to the expert, and the expectation of the plan."""

    items: int
    clusters: int | None
    referred: int
    share: Estimate
    """Share of these items that is referred, with its interval for such items."""
    planned: Estimate
    """Share of the items of the plan that is referred."""
    change: Estimate
    """`share` minus `planned`, with Newcombe's (1998) interval from both."""

    @property
    def expected(self) -> tuple[int, int, int]:
        """Expected referrals of items like those of the plan: number, low, high."""
        number = self.items * self.planned.value
        low, high = self.items * self.planned.low, self.items * self.planned.high
        return round(number), math.floor(low), math.ceil(high)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AppliedPlan:
    """A plan applied to new items: which to refer, the workload, and a comparison.

    `items.save(path)` writes the list; `refer` marks them in the order of the file.
    """

    name: str
    """Name of the predictions file, without its folder."""
    rule: str
    """The rule of the plan in words."""
    promise: str
    """The promise of the plan in words; '' where it has none."""
    refer: Flags = field(repr=False)
    """(N,) True for items to be referred."""
    items: ReferredItems
    workload: Workload
    check: LikenessCheck
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        work = self.workload
        return (
            f"<AppliedPlan on {self.name}: {work.referred} of {work.items} items to "
            f"refer ({work.share.value:.1%}, plan {work.planned.value:.1%}), "
            f"{self.check.verdict}; see .items, .workload, .check>"
        )

    def _repr_html_(self) -> str:
        work, expected = self.workload, self.workload.expected[0]
        shares = [
            ("these items", str(work.referred), percent_interval(work.share)),
            ("as planned", str(expected), percent_interval(work.planned)),
        ]
        items = plural(work.items, "item")
        title = f"{self.name}: {work.items:,} {items}. {self.rule}"
        rows = [[str(cell) for cell in line] for line in self.items.first(LISTED)]
        left = len(self.items) - len(rows)
        more = f" (and {left:,} more)" if left else ""
        return (
            notebook_table(title, ("workload", "items", "share referred"), shares)
            + notebook_lines([self.check.sentence, *self.warnings])
            + notebook_table(f"items to refer{more}", list(self.items.columns), rows)
        )


def apply_plan(
    plan: "ReferralPlan", source: Source, *, logits: bool = False, seed: int = 0
) -> AppliedPlan:
    """Apply `plan` to new items: find those to refer, and compare them with its own.

    Raises:
        ValueError: If the predictions are of another kind than those of the plan.
    """
    new = read_for_referral(source, logits=logits, labelled=False)
    _check_kind(plan, new)
    uncertainty = uncertainty_values(new, plan.uncertainty)
    predicted = predicted_values(new)
    index = np.arange(new.n)
    cluster = cluster_codes(new.get("cluster"), index)
    refer = uncertainty >= plan.threshold
    workload = measure_workload(refer, cluster, plan.made_on.referred, plan.level)
    if cluster is not None:
        index = one_per_cluster(cluster, (predicted, uncertainty), seed)
    sample = reference_sample(uncertainty[index], predicted[index], plan.classes, seed)
    check = check_likeness(
        plan.reference,
        sample,
        change=workload.change,
        seed=seed,
        classes=new.header.classes,
        values=referral_of(new.task).outputs,
    )
    if check.departures[1].differs:
        _check_overlap(plan, new, sample)
    return AppliedPlan(
        name=Path(new.source).name,
        rule=plan.rule,
        promise=plan.promise_words,
        refer=refer,
        items=referred_items(new, uncertainty, predicted, plan.threshold),
        workload=workload,
        check=check,
        warnings=tuple(_warnings(plan, new, file_digest(source))),
        notes=tuple(_notes(plan, new, uncertainty)),
    )


def referred_items(
    predictions: Predictions,
    uncertainty: Array,
    predicted: Index | Array,
    threshold: float,
) -> ReferredItems:
    """Return all items of `predictions` at or above `threshold`."""
    row = np.flatnonzero(uncertainty >= threshold)
    row = row[np.argsort(-uncertainty[row], kind="stable")]
    names = predictions.get("item")
    labels = {name: predictions.get(name) for name in ("cluster", "group")}
    return ReferredItems(
        row=row,
        item=row.astype(np.str_) if names is None else names[row],
        uncertainty=uncertainty[row],
        predicted=_named(predictions, predicted[row]),
        output=referral_of(predictions.task).output,
        labels={name: v[row] for name, v in labels.items() if v is not None},
    )


def _named(
    predictions: Predictions, predicted: Index | Array
) -> Index | Array | NDArray[np.str_]:
    """Return predicted classes by name, where the header names them."""
    if not predictions.header.classes or predictions.classes is None:
        return predicted
    return np.array(predictions.header.classes)[predicted.astype(np.int64)]


def measure_workload(
    refer: Flags, cluster: Index | None, planned: Estimate, level: float
) -> Workload:
    """Return the share referred among new items, and its change."""
    design = Design(items=len(refer), cluster=cluster)
    low, high = exact_interval(refer, design=design, level=level)
    share = Estimate(value=float(refer.mean()), low=low, high=high, undefined=0.0)
    return Workload(
        items=len(refer),
        clusters=None if cluster is None else len(np.unique(cluster)),
        referred=int(refer.sum()),
        share=share,
        planned=planned,
        change=_change(planned, share),
    )


def file_digest(source: Source) -> str | None:
    """Return the hash of a predictions file; None for arrays in memory."""
    if not isinstance(source, (str, Path)) or not Path(source).is_file():
        return None
    with Path(source).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _change(before: Estimate, now: Estimate) -> Estimate:
    change = difference_of_samples(now, before)
    low, high = max(-1.0, change.low), min(1.0, change.high)
    return Estimate(value=change.value, low=low, high=high, undefined=0.0)


def _check_kind(plan: "ReferralPlan", new: Predictions) -> None:
    """Raise unless the predictions have the task and classes of the plan."""
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


def _check_overlap(
    plan: "ReferralPlan", new: Predictions, sample: ReferenceSample
) -> None:
    """Raise if the plan's items were never predicted as any of the classes of now."""
    if plan.classes is None or sample.n < FEW:
        return
    if (np.minimum(plan.reference.predicted, sample.predicted) > 0).any():
        return
    raise ValueError(
        f"{new.source}: predicts {_class_words(sample)} only, none of which was "
        f"predicted on the items of the plan ({_class_words(plan.reference)}); give "
        "predictions of the same network, with its classes in the same order"
    )


def _class_words(sample: ReferenceSample) -> str:
    classes = np.flatnonzero(sample.predicted).tolist()
    more = ", ..." if len(classes) > 5 else ""
    noun = "class" if len(classes) == 1 else "classes"
    return f"{noun} {', '.join(map(str, classes[:5]))}{more}"


def _warnings(
    plan: "ReferralPlan", new: Predictions, digest: str | None
) -> Iterator[str]:
    origin, source = plan.made_on, plan.uncertainty
    if digest is not None and digest == origin.sha256:
        yield (
            "this is the file that the plan was made from: these items are not "
            "new, and comparing them with the plan says nothing"
        )
    if new.header.split == "train":
        yield "the file says that it holds training items: the network knows them"
    if origin.method and new.header.method and origin.method != new.header.method:
        yield (
            f"the plan was made for predictions of {origin.method!r}, these are of "
            f"{new.header.method!r}: its promise is not about them"
        )
    if new.draws != source.draws and not source.from_file:
        yield (
            f"the plan was made from predictions with {source.draws} draws, these "
            f"have {new.draws}: their {source.name} is not quite the same"
        )
    if origin.clusters is not None and new.get("cluster") is None:
        yield (
            "the plan was made on items in clusters, and this file has no 'cluster': "
            "where several items belong to one cluster, the intervals are too narrow "
            "and the check may find differences where there are none"
        )


def _notes(plan: "ReferralPlan", new: Predictions, uncertainty: Array) -> Iterator[str]:
    source = plan.uncertainty
    if not source.from_file and source.name in own_uncertainties(new):
        yield (
            f"the plan computes its {source.name}, so the array "
            f"'{array_name(new, source.name)}' of this file is not used"
        )
    tied = int((uncertainty == plan.threshold).sum())
    if tied > 1:
        yield f"{tied} items lie at the threshold itself: all of them are referred"
    rounded = plan.shown.rounded
    near = int(((uncertainty >= rounded) & (uncertainty < plan.threshold)).sum())
    if near:
        items = "1 item lies" if near == 1 else f"{near} items lie"
        yield (
            f"{items} between the rounded threshold {rounded!r} and the exact one, "
            f"{plan.threshold!r}, which decides: not referred"
        )
    if "target" in new.arrays:
        yield "targets are not used here; refer FILE --on judges labelled items"
    yield from (note for note in new.notes if note != NO_TARGET)
