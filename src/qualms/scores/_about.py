"""The declaration of a score: label, direction, bounds, and influence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, get_args

from numpy.typing import ArrayLike

from qualms.scores.arguments import called_in_order
from qualms.scores.influence import Influence, mean_influence

__all__ = ["About", "Better", "about", "as_score"]

Better = Literal["higher", "lower", "neither"]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Label and direction of a score, and the range its values can take."""

    label: str
    better: Better
    low: float
    high: float
    influence: Callable[..., Influence] | None = field(
        default=None, repr=False, compare=False
    )
    """Function of the score's arguments that returns the contribution of each item, for
    the interval; None to bootstrap the score."""
    tasks: tuple[str, ...] = ()
    """Tasks whose files get a row of this score, besides the rows of every file."""


def as_score(  # noqa: PLR0913 - what a declaration may say
    *,
    label: str,
    better: Better,
    low: float = 0.0,
    high: float = 1.0,
    items: Callable[..., ArrayLike] | None = None,
    influence: Callable[..., Influence] | None = None,
    tasks: tuple[str, ...] = (),
) -> Callable[[F], F]:
    """Declare a function to be a score; the function itself is unchanged.

    `items` or `influence` is used for the interval; both take the arguments of the
    score. `items` returns a value per item (N,) whose mean is the score, `influence` an
    `Influence`. A score with neither is bootstrapped.

    `tasks` names the tasks ("classification", "regression", ...) in whose files
    `qualms score` looks for the arrays that the parameters of the score name.
    """
    if better not in get_args(Better):
        raise ValueError(
            f"better must be one of {', '.join(get_args(Better))}, got {better!r}"
        )
    if items is not None and influence is not None:
        raise ValueError(f"{label}: say items or influence, not both")

    def attach(function: F) -> F:
        record = About(
            label=label,
            better=better,
            low=low,
            high=high,
            influence=influence,
            tasks=tasks,
        )
        if items is not None:
            record = replace(record, influence=_influence_on_mean(items, record))
        function.__score__ = record  # type: ignore[attr-defined]
        return function

    return attach


def _influence_on_mean(
    items: Callable[..., ArrayLike], about: About
) -> Callable[..., Influence]:
    def influence(*arrays: ArrayLike, **options: Any) -> Influence:
        values = called_in_order(items, *arrays, **options)
        return mean_influence(values, about=about)

    return influence


def about(function: Callable[..., Any]) -> About:
    """Return the `About` of a score function."""
    record = getattr(function, "__score__", None)
    if not isinstance(record, About):
        raise LookupError(f"{function!r} is not a score: declare it with @as_score")
    return record
