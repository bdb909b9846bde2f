"""What a table needs to know about a score: its label, direction and bounds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

Better = Literal["higher", "lower", "neither"]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Label and direction of a score, and the range its values can take."""

    label: str
    better: Better
    low: float
    high: float


def score(
    *,
    label: str,
    better: Better,
    low: float = 0.0,
    high: float = 1.0,
) -> Callable[[F], F]:
    """Attach an `About` to a score function; the function itself is unchanged."""

    def attach(function: F) -> F:
        record = About(label=label, better=better, low=low, high=high)
        function.__score__ = record  # type: ignore[attr-defined]
        return function

    return attach


def about(function: Callable[..., Any]) -> About:
    """The `About` of a score function."""
    record = getattr(function, "__score__", None)
    if not isinstance(record, About):
        raise LookupError(f"{function!r} is not a score: it carries no @score")
    return record
