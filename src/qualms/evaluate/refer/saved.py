"""A plan as its file holds it: all that is needed to use it on new items."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from qualms.atomic import replacing
from qualms.evaluate.notebook import notebook_lines, notebook_table
from qualms.evaluate.refer.applied import AppliedPlan, interval_words
from qualms.evaluate.refer.applying import apply_plan
from qualms.evaluate.refer.likeness import ReferenceSample
from qualms.evaluate.refer.request import Promise, Request, promised
from qualms.evaluate.refer.uncertainty import UncertaintyUsed
from qualms.evaluate.scoring import Source
from qualms.scores import Estimate
from qualms.wording import plural

KIND = "qualms referral plan"
FILE_FORMAT = 1
TIES = "items of equal uncertainty are referred together or not at all"
PER_CLUSTER = "one random item per cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOrigin:
    """The items a plan was made on, in numbers."""

    name: str
    """Name of the predictions file, without its folder."""
    subset: str
    """'in_domain' where shifted items took no part; else ''."""
    sha256: str | None
    """Of the predictions file; None for arrays in memory."""
    items: int
    clusters: int | None
    referred: Estimate
    accuracy: float
    """Of the kept items; nan for regression."""
    method: str | None
    split: str | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SavedPlan:
    """A referral plan to apply to new items: the rule, its promise, its origin.

    It holds no names and no targets of items, so that it may be handed on.
    """

    task: str
    classes: int | None
    uncertainty: UncertaintyUsed
    threshold: float
    """Refer where uncertainty >= threshold; inf refers none."""
    rounded: float
    request: Request
    promise: Promise | None
    made_on: PlanOrigin
    reference: ReferenceSample
    level: float
    """Level of the intervals."""
    version: str
    """The qualms that made it."""

    @property
    def rule(self) -> str:
        """Which items are referred, in words."""
        if math.isinf(self.threshold):
            return "Refer no item."
        name, cut = self.uncertainty.name, self.rounded
        return f"Refer an item when its {name} is {cut!r} or more."

    @property
    def promise_words(self) -> str:
        """What is promised, of whom and how surely; '' where nothing is."""
        if self.promise is None:
            return ""
        clustered = self.made_on.clusters is not None
        whom = (
            f"new clusters like these, of {PER_CLUSTER}"
            if clustered
            else "new items like these"
        )
        sure = f"(confidence {self.promise.confidence:g})"
        return f"For {whom}: {promised(self.promise)} {sure}."

    def apply(
        self, source: Source, *, logits: bool = False, seed: int = 0
    ) -> AppliedPlan:
        """Which of new items to refer, how many, and whether they are like the plan's.

        Args:
            source: Predictions, labelled or not: a path, a mapping of arrays, a frame,
                or predictions already read.
            logits: The class scores are logits; never guessed.
            seed: Draws one item of each cluster, and the permutations of the check.
        """
        return apply_plan(self, source, logits=logits, seed=seed)

    def to_json(self) -> str:
        """The text of the plan's file (docs/refer.md)."""
        held = self._as_data()
        held["checksum"] = checksum(held)
        # Long lists on one line each keep the rest readable.
        lists = {
            f"@{key}": held["reference"][key] for key in ("uncertainty", "predicted")
        }
        held["reference"] |= {name[1:]: name for name in lists}
        text = json.dumps(held, indent=2, allow_nan=False)
        for name, values in lists.items():
            text = text.replace(f'"{name}"', json.dumps(values, allow_nan=False))
        return text + "\n"

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the plan; the file appears whole or not at all."""
        where = Path(path)
        with replacing(where) as temporary:
            temporary.write_text(self.to_json(), encoding="utf-8")
        return where

    def __repr__(self) -> str:
        made = self.made_on
        return (
            f"<SavedPlan from {made.name} ({made.items} items): {self.rule} "
            f"{self.promise_words or 'Nothing is promised.'} See .apply(predictions)>"
        )

    def _repr_html_(self) -> str:
        made = self.made_on
        rows = [
            ("made on", f"{made.name}, {made.items:,} {plural(made.items, 'item')}"),
            ("refers", interval_words(made.referred)),
            ("uncertainty", self.uncertainty.how),
        ]
        lines = [self.promise_words or "Nothing is promised for new items."]
        return notebook_table(self.rule, ("", ""), rows) + notebook_lines(lines)

    def _as_data(self) -> dict[str, Any]:
        """Everything but the checksum, as JSON holds it."""
        return {
            "kind": KIND,
            "format": FILE_FORMAT,
            "qualms": self.version,
            "task": self.task,
            "classes": self.classes,
            "rule": self._rule_data(),
            "request": {
                name: None if asked is None else float(asked)
                for name, asked in asdict(self.request).items()
            },
            "promise": self._promise_data(),
            "made_on": _origin_data(self.made_on) | {"level": self.level},
            "reference": {
                "about": "independent items of the plan, without names or targets",
                "uncertainty": self.reference.uncertainty.tolist(),
                "predicted": self.reference.predicted.tolist(),
            },
        }

    def _rule_data(self) -> dict[str, Any]:
        refers = not math.isinf(self.threshold)
        return {
            "words": self.rule,
            "refer_where": "uncertainty >= threshold",
            "refers": refers,
            "threshold": self.threshold if refers else None,
            "rounded": self.rounded if refers else None,
            "ties": TIES,
            "uncertainty": asdict(self.uncertainty),
        }

    def _promise_data(self) -> dict[str, Any] | None:
        if self.promise is None:
            return None
        clustered = self.made_on.clusters is not None
        return {
            "words": self.promise_words,
            "about": PER_CLUSTER if clustered else "items",
            "at_least": dict(self.promise.at_least),
            "budget": self.promise.budget,
            "confidence": self.promise.confidence,
            "items": self.promise.items,
            "tested": self.promise.tested,
        }


def checksum(held: Mapping[str, Any]) -> str:
    """A hash of all that a plan's file says beside it."""
    said = {name: value for name, value in held.items() if name != "checksum"}
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _origin_data(made: PlanOrigin) -> dict[str, Any]:
    share = made.referred
    return {
        **asdict(made),
        "referred": {"value": share.value, "low": share.low, "high": share.high},
        "accuracy": None if math.isnan(made.accuracy) else made.accuracy,
    }
