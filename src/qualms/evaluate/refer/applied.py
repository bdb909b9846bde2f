"""What a plan does on new items whose targets nobody knows yet."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from qualms.evaluate.notebook import notebook_lines, notebook_table
from qualms.evaluate.refer.likeness import LikenessCheck
from qualms.evaluate.refer.referred import SHOWN, ReferredItems
from qualms.inference import Design, difference_of_samples, exact_interval
from qualms.scores import Estimate
from qualms.wording import plural

Index = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """How many items go to the expert, beside what the plan expected."""

    items: int
    clusters: int | None
    referred: int
    share: Estimate
    """Share referred: what to expect of further items like these."""
    planned: Estimate
    """The same of the items of the plan."""
    change: Estimate
    """`share` minus `planned`, with Newcombe's (1998) interval from both."""

    @property
    def expected(self) -> tuple[int, int, int]:
        """How many of so many items like those of the plan: number, low, high."""
        ends = (self.planned.value, self.planned.low, self.planned.high)
        number, low, high = (self.items * end for end in ends)
        return round(number), math.floor(low), math.ceil(high)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AppliedPlan:
    """Which new items to refer, the workload, and whether the plan was made for them.

    `items.save(path)` writes the list; `refer` marks them in the order of the file.
    """

    name: str
    rule: str
    """Which items are referred, in words."""
    promise: str
    """What the plan promised, in words; '' where nothing."""
    refer: Flags = field(repr=False)
    """(N,) whether each item is to be referred."""
    items: ReferredItems
    workload: Workload
    check: LikenessCheck
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        work = self.workload
        return (
            f"<AppliedPlan on {self.name}: {work.referred} of {work.items} items to "
            f"refer ({work.share.value:.1%}, plan {work.planned.value:.1%}), "
            f"{self.check.verdict}; see .items, .workload, .check>"
        )

    def _repr_html_(self) -> str:
        work, number = self.workload, self.workload.expected
        shares = [
            ("these items", str(work.referred), interval_words(work.share)),
            ("as planned", str(number[0]), interval_words(work.planned)),
        ]
        items = plural(work.items, "item")
        title = f"{self.name}: {work.items:,} {items}. {self.rule}"
        rows = [[str(held) for held in line] for line in self.items.first(SHOWN)]
        left = len(self.items) - len(rows)
        more = f" (and {left:,} more)" if left else ""
        return (
            notebook_table(title, ("workload", "items", "share referred"), shares)
            + notebook_lines([self.check.sentence, *self.warnings])
            + notebook_table(f"items to refer{more}", list(self.items.columns), rows)
        )


def interval_words(found: Estimate) -> str:
    """A share with its interval, in percent.

    >>> interval_words(Estimate(value=0.2, low=0.15, high=0.262, undefined=0.0))
    '20.0% [15.0, 26.2]'
    """
    ends = f"{100 * found.low:.1f}, {100 * found.high:.1f}"
    return f"{100 * found.value:.1f}% [{ends}]"


def workload_of(
    refer: Flags, cluster: Index | None, planned: Estimate, level: float
) -> Workload:
    """The share referred among new items, and how far it moved."""
    design = Design(items=len(refer), cluster=cluster)
    low, high = exact_interval(refer, design=design, level=level)
    share = Estimate(value=float(refer.mean()), low=low, high=high, undefined=0.0)
    return Workload(
        items=len(refer),
        clusters=None if cluster is None else len(np.unique(cluster)),
        referred=int(refer.sum()),
        share=share,
        planned=planned,
        change=_minus(share, planned),
    )


def _minus(now: Estimate, before: Estimate) -> Estimate:
    gap = difference_of_samples(now, before)
    low, high = max(-1.0, gap.low), min(1.0, gap.high)
    return Estimate(value=gap.value, low=low, high=high, undefined=0.0)
