"""Scores of the paper's tables: our name, the published one, and the unit."""

from typing import NamedTuple

Value = str | float


class Unit(NamedTuple):
    """How a score is printed."""

    scale: float = 1.0
    """What ours is multiplied by to have the published unit."""
    decimals: int = 2
    text: str = ""


class Score(NamedTuple):
    """A score as we and as the paper name it."""

    name: str
    """Ours, without the subset."""
    metric: str
    """The published one."""
    label: str
    unit: Unit
    referral: Value = ""
    """Share referred, as the published numbers state it."""


PERCENT = Unit(100.0, 1, "%")
HUNDREDFOLD = Unit(100.0, 1, "x100")
_NATS = Unit(1.0, 2, "nats")
_FRACTION = Unit(1.0, 2, "")

STANDARD = {
    name: Score(name, name, label, unit, 0.0)
    for name, label, unit in (
        ("nll", "NLL ↓", _NATS),
        ("accuracy", "Accuracy ↑", PERCENT),
        ("auprc", "AUPRC ↑", PERCENT),
        ("auroc", "AUROC ↑", PERCENT),
        ("ece", "ECE ↓", _FRACTION),
    )
}
AREAS = {
    name: Score(
        f"referral_{name}_oracle_area",
        f"r_{name}_auc",
        f"R-{label} AUC {'↓' if name == 'nll' else '↑'}",
        HUNDREDFOLD if name == "nll" else PERCENT,
    )
    for name, label in (
        ("auroc", "AUROC"),
        ("accuracy", "Accuracy"),
        ("nll", "NLL"),
        ("auprc", "AUPRC"),
    )
}
