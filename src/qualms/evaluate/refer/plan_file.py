"""Reading the file of a plan: whatever is wrong with it ends in one sentence."""

import json
import math
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from qualms.evaluate.refer.likeness import ReferenceSample
from qualms.evaluate.refer.request import Promise, Request
from qualms.evaluate.refer.saved import (
    FILE_FORMAT,
    KIND,
    PlanOrigin,
    SavedPlan,
    checksum,
)
from qualms.evaluate.refer.uncertainty import FAMILY, UncertaintyUsed
from qualms.scores import Estimate

# A plan holds at most 5,000 numbers twice; anything far larger is none.
LARGEST_BYTES = 8_000_000


class PlanError(ValueError):
    """A file that is no plan, or not a whole one; the message says why."""


def read_plan(path: str | PathLike[str]) -> SavedPlan:
    """The plan that `qualms refer --plan` or `plan.save(path)` wrote.

    Raises:
        PlanError: If the file is missing, damaged, changed by hand, of a newer
            version, or no plan at all.
    """
    where = Path(path)
    held = _loaded(where)
    _refuse_foreign(held, where)
    try:
        return _plan(_Fields(held))
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        # The checksum was right, so somebody made it so.
        _refuse(where, f"does not hold a plan ({error})", "make it again")


def _loaded(where: Path) -> dict[str, Any]:
    try:
        large = where.stat().st_size > LARGEST_BYTES
        text = "" if large else where.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        _refuse(where, f"cannot be read ({error.strerror})", "check the path")
    if large:
        _refuse(where, "is too large for a plan", "give the file of --plan")
    try:
        held = json.loads(text)
    except (ValueError, RecursionError):
        _refuse(
            where,
            "is not the JSON of a plan; it may be cut short, or something else",
            "give the file that qualms refer --plan wrote, or make it again",
        )
    if not isinstance(held, dict):
        _refuse(where, "is JSON, but not of a plan", "give the file of --plan")
    return held


def _refuse_foreign(held: dict[str, Any], where: Path) -> None:
    if held.get("kind") != KIND:
        printed = {"request", "outcomes"} <= set(held)
        what = "is what --json prints, which is" if printed else "is JSON, but"
        _refuse(where, f"{what} not the file of a plan", "write one with --plan FILE")
    version = held.get("format")
    if isinstance(version, int) and version > FILE_FORMAT:
        _refuse(
            where,
            f"was written in format {version} by a newer qualms, this one reads up to "
            f"{FILE_FORMAT}",
            "upgrade with pip install -U qualms-bench",
        )
    if held.get("checksum") != checksum(held):
        _refuse(
            where,
            "was changed after it was written, so that nobody knows what it promises",
            "take the original, or make the plan again",
        )


def _refuse(where: Path, what: str, remedy: str) -> NoReturn:
    raise PlanError(f"{where}: {what}; {remedy}") from None


class _Fields:
    """Values of a mapping, each of the kind that is asked for."""

    def __init__(self, held: Mapping[str, Any]) -> None:
        self._held = held

    def under(self, name: str) -> "_Fields":
        return _Fields(self.of(name, dict))

    def of(self, name: str, kind: Any) -> Any:
        value = self._held[name]
        if not isinstance(value, kind) or (
            isinstance(value, bool) and kind is not bool
        ):
            raise TypeError(f"'{name}' is {value!r:.40}")
        return value

    def text(self, name: str) -> str | None:
        found: str | None = self.of(name, (str, type(None)))
        return found

    def number(self, name: str, *, otherwise: float = math.nan) -> float:
        """A number; `otherwise` where it is null."""
        value = self.of(name, (int, float, type(None)))
        return otherwise if value is None else float(value)

    def share(self, name: str) -> float | None:
        value = self.of(name, (int, float, type(None)))
        return None if value is None else float(value)

    def count(self, name: str) -> int | None:
        found: int | None = self.of(name, (int, type(None)))
        return found


def _plan(held: _Fields) -> SavedPlan:
    rule = held.under("rule")
    task = held.of("task", str)
    level = held.under("made_on").number("level")
    if task not in FAMILY or not 0.0 < level < 1.0:
        raise ValueError(f"'task' is {task!r:.40} and 'level' {level}")
    return SavedPlan(
        task=task,
        classes=held.count("classes"),
        uncertainty=_used(rule.under("uncertainty")),
        threshold=rule.number("threshold", otherwise=math.inf),
        rounded=rule.number("rounded", otherwise=math.inf),
        request=Request(**held.of("request", dict)),
        promise=_promise(held, rule.number("threshold", otherwise=math.inf)),
        made_on=_origin(held.under("made_on")),
        reference=_reference(held.under("reference"), held.count("classes")),
        level=level,
        version=held.of("qualms", str),
    )


def _used(held: _Fields) -> UncertaintyUsed:
    return UncertaintyUsed(
        name=held.of("name", str),
        given=held.of("given", bool),
        how=held.of("how", str),
        draws=held.of("draws", int),
    )


def _promise(whole: _Fields, threshold: float) -> Promise | None:
    if whole.of("promise", (dict, type(None))) is None:
        return None
    held = whole.under("promise")
    return Promise(
        threshold=threshold,
        at_least={k: float(v) for k, v in held.of("at_least", dict).items()},
        budget=held.share("budget"),
        confidence=held.number("confidence"),
        items=held.of("items", int),
        tested=held.of("tested", int),
    )


def _origin(held: _Fields) -> PlanOrigin:
    referred = held.under("referred")
    ends = {name: referred.number(name) for name in ("value", "low", "high")}
    return PlanOrigin(
        name=held.of("name", str),
        subset=held.of("subset", str),
        sha256=held.text("sha256"),
        items=held.of("items", int),
        clusters=held.count("clusters"),
        referred=Estimate(**ends, undefined=0.0),
        accuracy=held.number("accuracy"),
        method=held.text("method"),
        split=held.text("split"),
    )


def _reference(held: _Fields, classes: int | None) -> ReferenceSample:
    predicted = held.of("predicted", list)
    if classes is not None and len(predicted) != classes:
        raise ValueError(f"'predicted' counts {len(predicted)} of {classes} classes")
    if not predicted or not held.of("uncertainty", list):
        raise ValueError("'reference' is empty")
    kind: Any = np.float64 if classes is None else np.int64
    return ReferenceSample(
        uncertainty=np.array(held.of("uncertainty", list), np.float64),
        predicted=np.array(predicted, kind),
    )
