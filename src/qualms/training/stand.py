"""How far a run is: what its checkpoint holds beside the state of the learner."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from torch import Tensor

from qualms.training.schedule import Plateau


@dataclass(frozen=True, slots=True, kw_only=True)
class BestEpoch:
    """The best epoch by a rule."""

    value: float = -math.inf
    weights: dict[str, Tensor] | None = None
    """None until an epoch counts."""


@dataclass(slots=True, kw_only=True)
class Stand:
    """How far a run is."""

    epoch: int = 0
    """Epochs done."""
    plateau: Plateau = field(default_factory=Plateau)
    best: dict[str, BestEpoch] = field(default_factory=dict)
    """By rule; one that is followed at all is followed from the first epoch on."""
    seconds: float = 0.0
    """Spent on epochs."""
    fit_seconds: float = 0.0
    fitted: bool = False

    def follow(self, rules: list[str]) -> None:
        """Begin to follow `rules`, if nothing is trained yet; else leave others out."""
        known = self.best if self.epoch else dict.fromkeys(rules, BestEpoch())
        self.best = {rule: known[rule] for rule in rules if rule in known}

    def state(self) -> dict[str, Any]:
        """It as plain data."""
        best = {
            rule: {"value": one.value, "weights": one.weights}
            for rule, one in self.best.items()
        }
        held = {name: getattr(self, name) for name in _PLAIN}
        return {**held, "best": best, "plateau": asdict(self.plateau)}


_PLAIN = ("epoch", "seconds", "fit_seconds", "fitted")


def stand_of(state: Mapping[str, Any]) -> Stand:
    """What `Stand.state` gave."""
    best = {rule: BestEpoch(**one) for rule, one in state["best"].items()}
    plateau = Plateau(**state["plateau"])
    return Stand(**{**state, "best": best, "plateau": plateau})
