"""Options for thresholds of two classes, and the record of each threshold."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from qualms.wording import suggest

RuleKind = Literal[
    "given",
    "youden",
    "cost",
    "sensitivity",
    "specificity",
    "promised-sensitivity",
    "promised-specificity",
]
YesNo = Literal["yes", "no", "cannot be told", "not asked"]
ANY = "any threshold"
"""Rule of the answer about the whole ROC curve."""
MEETS = ("sensitivity", "specificity", "ppv", "npv")
"""Scores that a target may be set for."""
_FORMS = (
    "a number such as 0.3, or sensitivity=0.9, specificity=0.8, youden, cost=5, "
    "promised-sensitivity=0.9 or promised-specificity=0.8"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdRule:
    """A rule that chooses a threshold."""

    kind: RuleKind
    value: float
    """The threshold, the rate to reach, or the cost of a miss; nan for Youden's."""
    text: str
    """Text of the user: the setting `threshold` of its rows."""

    @property
    def chosen(self) -> bool:
        """True if the rule needs validation items."""
        return self.kind != "given"

    @property
    def promised(self) -> bool:
        """True if the rate is promised for new items."""
        return self.kind.startswith("promised-")

    @property
    def rate(self) -> str:
        """The rate that the threshold must reach: sensitivity, specificity, or ''."""
        name = self.kind.removeprefix("promised-")
        return name if name in ("sensitivity", "specificity") else ""


def threshold_rule(wanted: str | float) -> ThresholdRule:
    """Return the rule for a number, or for a text such as "sensitivity=0.9".

    >>> threshold_rule("sensitivity=0.9").kind, threshold_rule(0.3).text
    ('sensitivity', '0.3')
    """
    text = f"{wanted:g}" if isinstance(wanted, float | int) else wanted.strip()
    name, equals, number = text.partition("=")
    if not equals and name == "youden":
        return ThresholdRule(kind="youden", value=math.nan, text=text)
    kind = next((k for k in get_args(RuleKind)[2:] if equals and k == name), None)
    value = _number(number if kind else text)
    if math.isnan(value):
        known = [k for k in get_args(RuleKind) if k != "given"]
        raise ValueError(
            f"a threshold must be {_FORMS}, got {text!r}.{suggest(name, known)}"
        )
    if kind is None and not 0.0 <= value <= 1.0:
        raise ValueError(
            f"a threshold on P(y=1) must lie between 0 and 1, got {text!r}; write "
            f"{value / 100:g} for {text} %"
            if 1.0 < value <= 100.0
            else f"a threshold on P(y=1) must lie between 0 and 1, got {text!r}"
        )
    if kind is None:
        return ThresholdRule(kind="given", value=value, text=text)
    rule = ThresholdRule(kind=kind, value=value, text=text)
    if rule.rate and not 0.0 < value < 1.0:
        raise ValueError(
            f"a {rule.rate} must lie between 0 and 1, got {number} in {text!r}; write "
            f"{kind}=0.9 for 90 %"
        )
    if kind == "cost" and not value > 0.0:
        raise ValueError(
            f"cost must be above 0, got {text!r}: how many false alarms a miss costs"
        )
    return rule


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class PointOptions:
    """Options for judging at thresholds (docs/operating_points.md)."""

    thresholds: tuple[str | float, ...] = ()
    """Numbers, or rules that choose a threshold on validation items: sensitivity=0.9,
    specificity=0.8, youden, cost=5, promised-sensitivity=0.9."""
    meets: Mapping[str, float] = field(default_factory=dict)
    """Required least values of sensitivity, specificity, ppv or npv."""
    prevalences: tuple[float, ...] = ()
    """Further shares of positive items for which PPV and NPV are computed."""
    per_cluster: bool = False
    """True to judge clusters, such as patients, too: a cluster is positive, or called
    so, if any of its items is."""
    positive: tuple[int, ...] = ()
    """Classes that are positive; by default class 1 of two."""
    confidence: float = 0.9
    """Confidence of promises."""

    def __post_init__(self) -> None:
        thresholds: Any = self.thresholds
        if isinstance(thresholds, str | float | int):
            raise ValueError(
                "thresholds must be a list of numbers or rules, got"
                f" {thresholds!r}; write thresholds=[{thresholds!r}]"
            )
        for wanted in self.thresholds:
            threshold_rule(wanted)
        for name, least in self.meets.items():
            if name not in MEETS:
                raise ValueError(
                    f"meets must name {', '.join(MEETS)}, got {name!r}."
                    f"{suggest(name, MEETS)}"
                )
            _check_share(f"the {name} to meet", least)
        for prevalence in self.prevalences:
            _check_share("prevalence", prevalence)
        _check_share("confidence", self.confidence)
        if any(number < 0 for number in self.positive):
            raise ValueError(
                f"positive must be numbers of classes from 0 on, got {self.positive}"
            )
        if self.meets and not self.thresholds and not self.whole_curve:
            raise ValueError(
                "meets needs a threshold at which it is met: give --threshold "
                "(thresholds=), or both a sensitivity and a specificity, which any "
                "threshold may meet"
            )

    @property
    def rules(self) -> tuple[ThresholdRule, ...]:
        """The thresholds as rules, each once."""
        rules = (threshold_rule(wanted) for wanted in self.thresholds)
        return tuple({rule.text: rule for rule in rules}.values())

    @property
    def whole_curve(self) -> bool:
        """True if the target can be checked for any threshold: it has both rates."""
        return {*self.meets} == {"sensitivity", "specificity"}

    @property
    def asked(self) -> bool:
        """True if there are thresholds or targets."""
        return bool(self.thresholds or self.meets)


def _check_share(name: str, value: float) -> None:
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name} must lie between 0 and 1, got {value}")


def targets(text: str) -> dict[str, float]:
    """Return the targets of a text such as "sensitivity=0.85,specificity=0.8".

    >>> targets("sensitivity=0.85,specificity=0.8")
    {'sensitivity': 0.85, 'specificity': 0.8}
    """
    wanted: dict[str, float] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, _, number = part.partition("=")
        value = _number(number)
        if math.isnan(value):
            raise ValueError(
                "meets must be written as sensitivity=0.85,specificity=0.8, got "
                f"{text!r}"
            )
        wanted[name.strip()] = value
    return wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """A threshold, where it comes from, and whether it meets the target."""

    rule: str
    """The setting `threshold` of rows; "any threshold" for the ROC curve."""
    unit: str
    """Unit that is called positive: "item" or "cluster"."""
    subset: str
    """Name of the set of items, as in rows of scores."""
    threshold: float
    """Least score of items that are called positive; nan for the ROC curve, inf if none
    is called."""
    source: str
    """Source of the threshold, in words."""
    answer: YesNo = "not asked"
    """Answer whether the target is met."""
    because: str = ""
    """The numbers behind the answer, in a clause."""
