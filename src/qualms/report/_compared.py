"""Our number beside the paper's, and how a mean with its spread is written."""

import math
from dataclasses import dataclass

from qualms.evaluate.benchmark import Cell, Summary
from qualms.published import Number

NOT_PRINTED = "not in the paper"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Our cell beside the published number, either of which may be missing."""

    cell: Cell
    number: Number | None
    tied: bool = False
    """Whether ours is the best of its column or cannot be told apart from it."""
    scale: float = 1.0
    """What ours is multiplied by to have the published unit."""
    absent: str = NOT_PRINTED
    """Why there is no published number, where there is none."""

    @property
    def gap(self) -> float:
        """Ours, by the paper's rule, minus published, in the published unit."""
        if self.number is None:
            return math.nan
        return self.scale * self.cell.by_their_rule.mean - self.number.mean

    @property
    def difference(self) -> float:
        """The gap in units of the published spread.

        nan where either is missing or the paper prints no spread, or one of zero.
        """
        if self.number is None or not self.number.spread:
            return math.nan
        return self.gap / self.number.spread

    @property
    def why(self) -> str:
        """Why one of the two is missing; a remark on the published number."""
        absent = "" if self.number else self.absent
        note = self.number.note if self.number else ""
        return "; ".join(part for part in (self.cell.why, absent, note) if part)


def with_error(values: tuple[float, ...], *, ddof: int, scale: float = 1.0) -> Summary:
    """Mean and standard error of the mean over repeats that are defined.

    >>> with_error((1.0, 3.0), ddof=1)
    Summary(mean=2.0, std=1.0)
    """
    known = [scale * value for value in values if math.isfinite(value)]
    if not known:
        return Summary(math.nan, math.nan)
    mean = math.fsum(known) / len(known)
    if len(known) == 1:
        return Summary(mean, math.nan)
    squares = math.fsum((value - mean) ** 2 for value in known)
    return Summary(mean, math.sqrt(squares / (len(known) - ddof) / len(known)))


def pair(
    mean: float,
    spread: float | None,
    *,
    plus_minus: str = "±",
    decimals: int | None = None,
) -> str:
    """Mean and spread with `decimals`, by default those the size of the mean calls for.

    A spread of zero is left out unless `decimals` are given: nothing can vary there, as
    in a rate of 1.

    >>> pair(0.89672, 0.01192), pair(13.2134, 0.1262), pair(1.0, 0.0)
    ('0.897 ± 0.012', '13.21 ± 0.13', '1')
    >>> pair(88.62, 0.04, decimals=1)
    '88.6 ± 0.0'
    """
    if not math.isfinite(mean):
        return "-" if math.isnan(mean) else "inf"
    free = decimals is None
    places = _places(mean) if decimals is None else decimals
    if spread is None or math.isnan(spread) or (free and spread == 0):
        return "1" if free and mean == 1 else f"{mean:.{places}f}"
    return f"{mean:.{places}f} {plus_minus} {spread:.{places}f}"


def _places(mean: float) -> int:
    size = abs(mean)
    return 3 if size < 1 else 2 if size < 100 else 1
