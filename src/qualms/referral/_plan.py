"""The record of a referral plan, and its form in a file."""

import math
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from qualms.atomic import replacing
from qualms.evaluate.notebook import (
    NotebookCell,
    notebook_lines,
    notebook_number,
    notebook_table,
    with_intervals,
)
from qualms.evaluate.sources import Source
from qualms.inference import WithInterval
from qualms.referral._applied import AppliedPlan, ReferredItems, apply_plan
from qualms.referral._items import UncertaintySource
from qualms.referral._likeness import ReferenceSample
from qualms.referral._outcome import Outcome
from qualms.referral._plan_file import Fields, PlanError, file_text, read_fields
from qualms.referral._request import SHARE_SCORES, Request
from qualms.referral._task import referable_tasks, referral_of
from qualms.referral._threshold import Cutoff, Offer, Promise
from qualms.referral.shares import percent_interval
from qualms.scores import Estimate
from qualms.wording import plural

PER_CLUSTER = "one random item per cluster"
TIES = "items of equal uncertainty are referred together or not at all"
NO_PROMISE = "Nothing is promised for new items."


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOrigin:
    """The items a plan was made on, in numbers."""

    name: str
    """Name of the predictions file, without its folder."""
    subset: str
    """'in_domain' where shifted items took no part; else ''."""
    sha256: str | None
    """Hash of the predictions file; None for arrays in memory."""
    items: int
    clusters: int | None
    referred: Estimate
    method: str | None
    split: str | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReferralPlan:
    """A referral threshold with the request, its promise, and its effect on each set.

    `save` writes what is needed to apply it to new items, without names and targets of
    items, so that the file may be handed on. A plan read from its file has no offers,
    outcomes, items, warnings or notes.
    """

    task: str
    classes: int | None
    """Number of classes; None for regression."""
    request: Request
    uncertainty: UncertaintySource
    found: bool = True
    """True if a threshold fulfils the request."""
    shown: Cutoff
    """The threshold; if none fulfils the request, the one with the highest promise."""
    promise: Promise | None
    """Promise of `shown`; None for a budget of the given items."""
    made_on: PlanOrigin
    reference: ReferenceSample = field(repr=False)
    """Sample that new items are compared with."""
    level: float
    """Level of the intervals."""
    version: str
    """Version of qualms that made the plan."""
    observed: Cutoff | None = None
    """The threshold that fulfils the request on the given items alone."""
    promised: Cutoff | None = None
    """The threshold that fulfils the request for new items."""
    needed: int | None = None
    """Approximate number of items that would be enough if these are too few; else None.

    All items of a cluster are counted.
    """
    offers: tuple[Offer, ...] = ()
    """Other thresholds."""
    outcomes: tuple[Outcome, ...] = ()
    """Outcomes of `shown` on each set; that of the choice comes first."""
    items: ReferredItems | None = field(default=None, repr=False)
    """The items of the given file to refer; None without a threshold."""
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def threshold(self) -> float:
        """Least uncertainty of referred items; inf refers none.

        It is nan if no threshold fulfils the request.
        """
        return self.shown.threshold if self.found else math.nan

    @property
    def clustered(self) -> bool:
        """True if the promise is about one random item per cluster."""
        return self.made_on.clusters is not None

    @property
    def rule(self) -> str:
        """The rule in words: which items are referred."""
        name = self.uncertainty.name
        if not self.found:
            return f"No threshold on the {name} can promise what was asked."
        if math.isinf(self.threshold):
            return "Refer no item."
        return f"Refer an item when its {name} is {self.shown.rounded!r} or more."

    @property
    def promise_words(self) -> str:
        """The promise for new items, with its confidence; '' if there is none."""
        if self.promise is None or not self.found:
            return ""
        units = f"clusters like these, of {PER_CLUSTER}"
        new = units if self.clustered else "items like these"
        sure = f"(confidence {self.promise.confidence:g})"
        words = self.promise.words(accuracy=referral_of(self.task).promise)
        return f"For new {new}: {words} {sure}."

    def apply(
        self, source: Source, *, logits: bool = False, seed: int = 0
    ) -> AppliedPlan:
        """Find the new items to refer, count them, and compare them with the plan's.

        Args:
            source: Predictions, labelled or not: a path, a mapping of arrays, a frame,
                or predictions already read.
            logits: The class scores are logits; never guessed.
            seed: Seed of the choice of one item per cluster, and of permutations.
        """
        self._check_found()
        return apply_plan(self, source, logits=logits, seed=seed)

    def to_json(self) -> str:
        """Return the text of the plan's file (docs/plan_files.md)."""
        self._check_found()
        return file_text(_as_data(self))

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the plan's file, for `read_plan` and `qualms refer --apply`.

        The file appears complete or not at all.
        """
        text, target = self.to_json(), Path(path)
        with replacing(target) as temporary:
            temporary.write_text(text, encoding="utf-8")
        return target

    def _check_found(self) -> None:
        if not self.found:
            raise ValueError(
                "no threshold can promise what was asked, so there is no plan to save "
                "or to apply; ask for less, or give more items"
            )

    def __repr__(self) -> str:
        origin = self.made_on
        text = f"<ReferralPlan from {origin.name} ({origin.items} items): {self.rule}"
        if not self.found:
            return f"{text} See .shown, .needed>"
        outcomes = ".outcomes, " if self.outcomes else ""
        return (
            f"{text} That refers {origin.referred.value:.1%}. "
            f"{self.promise_words or NO_PROMISE} "
            f"See {outcomes}.apply(predictions), .save(path)>"
        )

    def _repr_html_(self) -> str:
        lines = [self.rule]
        if self.found:
            lines.append(self.promise_words or NO_PROMISE)
        tables = [_outcome_html(outcome) for outcome in self.outcomes]
        return notebook_lines([*lines, *self.warnings]) + "".join(
            tables or [_origin_html(self)]
        )


def _outcome_html(outcome: Outcome) -> str:
    rows: list[list[str | NotebookCell]] = [
        [each.label, *_before_and_kept(each.before, each.kept)]
        for each in outcome.measures
    ]
    items = f"{outcome.n:,} {plural(outcome.n, 'item')}"
    return notebook_table(
        f"{outcome.label}: {items}, {percent_interval(outcome.referred)} referred",
        ("score", "referring none", "kept by the plan"),
        rows,
    )


def _before_and_kept(*numbers: WithInterval) -> list[NotebookCell]:
    return with_intervals(list(map(notebook_number, numbers)), numbers)


def _origin_html(plan: ReferralPlan) -> str:
    origin = plan.made_on
    items = f"{origin.items:,} {plural(origin.items, 'item')}"
    rows = [
        ("made on", f"{origin.name}, {items}"),
        ("refers", percent_interval(origin.referred)),
        ("uncertainty", plan.uncertainty.how),
    ]
    return notebook_table("referral plan", ("", ""), rows)


def read_plan(path: str | PathLike[str]) -> ReferralPlan:
    """Read the plan that `qualms refer --plan` or `plan.save(path)` wrote.

    Raises:
        PlanError: If the file is missing, damaged, changed by hand, of a newer
            version, or no plan at all.
    """
    fields = read_fields(Path(path))
    try:
        return _from_data(fields)
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        # The checksum is right, so the file was written on purpose.
        raise PlanError(
            f"{path}: does not hold a plan ({error}); make it again"
        ) from None


def _as_data(plan: ReferralPlan) -> dict[str, Any]:
    """Return the content of the file as plain data."""
    return {
        "qualms": plan.version,
        "task": plan.task,
        "classes": plan.classes,
        "rule": _rule_data(plan),
        "request": {
            name: None if value is None else float(value)
            for name, value in plan.request.as_data().items()
        },
        "promise": _promise_data(plan),
        "made_on": _origin_data(plan),
        "reference": {
            "about": "independent items of the plan, without names or targets",
            "uncertainty": plan.reference.uncertainty.tolist(),
            "predicted": plan.reference.predicted.tolist(),
        },
    }


def _rule_data(plan: ReferralPlan) -> dict[str, Any]:
    refers, source = not math.isinf(plan.threshold), plan.uncertainty
    return {
        "words": plan.rule,
        "refer_where": "uncertainty >= threshold",
        "refers": refers,
        "threshold": plan.threshold if refers else None,
        "rounded": plan.shown.rounded if refers else None,
        "ties": TIES,
        "uncertainty": {
            "name": source.name,
            "given": source.from_file,
            "how": source.how,
            "draws": source.draws,
        },
    }


def _promise_data(plan: ReferralPlan) -> dict[str, Any] | None:
    promise = plan.promise
    if promise is None:
        return None
    return {
        "words": plan.promise_words,
        "about": PER_CLUSTER if plan.clustered else "items",
        **promise.as_data(),
    }


def _origin_data(plan: ReferralPlan) -> dict[str, Any]:
    origin, accuracy = plan.made_on, plan.shown.accuracy
    share = origin.referred
    return {
        "name": origin.name,
        "subset": origin.subset,
        "sha256": origin.sha256,
        "items": origin.items,
        "clusters": origin.clusters,
        "referred": {"value": share.value, "low": share.low, "high": share.high},
        "accuracy": None if math.isnan(accuracy) else accuracy,
        "method": origin.method,
        "split": origin.split,
        "level": plan.level,
    }


def _from_data(data: Fields) -> ReferralPlan:
    rule, origin = data.under("rule"), data.under("made_on")
    task, classes = data.of("task", str), data.count("classes")
    level = origin.number("level")
    if task not in referable_tasks() or not 0.0 < level < 1.0:
        raise ValueError(f"'task' is {task!r:.40} and 'level' {level}")
    made_on = _origin(origin)
    shown = Cutoff(
        threshold=rule.number("threshold", otherwise=math.inf),
        rounded=rule.number("rounded", otherwise=math.inf),
        referred=made_on.referred.value,
        accuracy=origin.number("accuracy"),
    )
    return ReferralPlan(
        task=task,
        classes=classes,
        request=_request(data.under("request")),
        uncertainty=_uncertainty(rule.under("uncertainty")),
        shown=shown,
        promise=_promise(data),
        made_on=made_on,
        reference=_reference(data.under("reference"), classes),
        level=level,
        version=data.of("qualms", str),
    )


def _request(data: Fields) -> Request:
    data.check_names({"budget", "confidence", *SHARE_SCORES})
    shares = {name: data.number_or_none(name) for name in SHARE_SCORES}
    return Request(
        budget=data.number_or_none("budget"),
        at_least={name: share for name, share in shares.items() if share is not None},
        confidence=data.number_or_none("confidence"),
    )


def _uncertainty(data: Fields) -> UncertaintySource:
    return UncertaintySource(
        name=data.of("name", str),
        from_file=data.of("given", bool),
        how=data.of("how", str),
        draws=data.of("draws", int),
    )


def _promise(plan: Fields) -> Promise | None:
    if plan.of("promise", (dict, type(None))) is None:
        return None
    data = plan.under("promise")
    bounds = data.under("at_least")
    bounds.check_names(set(SHARE_SCORES))
    return Promise(
        at_least={name: bounds.share(name) for name in bounds.names},
        budget=data.number_or_none("budget"),
        confidence=data.number("confidence"),
        items=data.of("items", int),
        tested=data.of("tested", int),
    )


def _origin(data: Fields) -> PlanOrigin:
    referred = data.under("referred")
    ends = {name: referred.share(name) for name in ("value", "low", "high")}
    return PlanOrigin(
        name=data.of("name", str),
        subset=data.of("subset", str),
        sha256=data.text("sha256"),
        items=data.of("items", int),
        clusters=data.count("clusters"),
        referred=Estimate(**ends, undefined=0.0),
        method=data.text("method"),
        split=data.text("split"),
    )


def _reference(data: Fields, classes: int | None) -> ReferenceSample:
    predicted = data.of("predicted", list)
    if classes is not None and len(predicted) != classes:
        raise ValueError(f"'predicted' counts {len(predicted)} of {classes} classes")
    if not predicted or not data.of("uncertainty", list):
        raise ValueError("'reference' is empty")
    kind: Any = np.float64 if classes is None else np.int64
    sample = ReferenceSample(
        uncertainty=np.array(data.of("uncertainty", list), np.float64),
        predicted=np.array(predicted, kind),
    )
    for values in (sample.uncertainty, sample.predicted):
        if values.ndim != 1 or not np.isfinite(values).all():
            raise ValueError("'reference' must be lists of finite numbers")
    return sample
