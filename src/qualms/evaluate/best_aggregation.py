"""The uncertainties and aggregations of segmented items that may be best by AURC."""

from collections.abc import Iterator, Sequence

from qualms.evaluate._ranking import Rival, rankings
from qualms.evaluate.entry import ScoreOptions
from qualms.evaluate.rows import ScoreRow
from qualms.evaluate.subsets import subset_label
from qualms.inference import Design

LISTED = 6
"""Most uncertainties that a sentence names."""


def best_aggregations(
    rows: Sequence[ScoreRow],
    design: Design | None,
    subsets: Sequence[str],
    options: ScoreOptions,
) -> Iterator[str]:
    """Yield a sentence on each subset: which uncertainty to take, if one is best.

    There are many rows of AURC, and the lowest one is seldom lower than the others by
    more than chance. The model confidence set of tables says which may be best.
    """
    for subset in subsets:
        rivals = [
            Rival(row.detail, row.value, (row.entry,))
            for row in rows
            if (row.score, row.subset) == ("aurc", subset) and row.entry is not None
        ]
        ranked = rankings({subset: rivals}, design, options) if design else {}
        if subset not in ranked:
            continue
        group, count = ranked[subset].group, len(ranked[subset].differences)
        head = "AURC" if subset == "all" else f"AURC of {subset_label(subset)} items"
        among = f"{head}, {count} uncertainties"
        if group.reason:
            yield f"{among}: which is best is not said: {group.reason}"
        elif len(group.members) == 1:
            yield f"{among}: take {group.best}, which is better than all others"
        else:
            alike = len(group.members)
            named = "; ".join(group.members[:LISTED])
            more = f" and {alike - LISTED} more" if alike > LISTED else ""
            which = "all" if alike == count else f"{alike}"
            yield (
                f"{among}: {which} cannot be told apart from the best, which is"
                f" {group.best}: {named}{more}"
            )
