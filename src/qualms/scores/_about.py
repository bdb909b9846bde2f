"""What a score declares about itself: its label, direction, bounds and plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from qualms.scores.resampling import Plan

Better = Literal["higher", "lower", "neither"]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Label and direction of a score, and the range its values can take."""

    label: str
    better: Better
    low: float
    high: float


def as_score(
    *,
    label: str,
    better: Better,
    low: float = 0.0,
    high: float = 1.0,
    plan: Callable[..., Plan] | None = None,
) -> Callable[[F], F]:
    """Declare a function to be a score; the function itself is unchanged.

    `plan` takes the arguments of the score and makes its fast plan for resampling,
    which `qualms.scores.plan_of` finds. Without one the score is called on repeated
    items.
    """

    def attach(function: F) -> F:
        record = About(label=label, better=better, low=low, high=high)
        function.__score__ = record  # type: ignore[attr-defined]
        function.__plan__ = plan  # type: ignore[attr-defined]
        return function

    return attach


def about(function: Callable[..., Any]) -> About:
    """The `About` of a score function."""
    record = getattr(function, "__score__", None)
    if not isinstance(record, About):
        raise LookupError(f"{function!r} is not a score: declare it with @as_score")
    return record
