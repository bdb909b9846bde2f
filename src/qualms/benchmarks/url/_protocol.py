"""Protocol of URL: retrieval on unseen classes, and uncertainties of its failures.

The protocol of Kirchhof et al. (2023, arXiv:2307.03810). On every downstream set: R@1,
R-AUROC, the crop test, and where people voted, alignment with their disagreement; its
items against upstream ones by AUROC, and R-AUROC of both together; on upstream items
top-1 accuracy, R@1, R-AUROC and the crop test.

The label `subset` of a score is the name of its set, or `upstream`. `all` stands for
the unweighted mean over the retrieval sets, `soft` for that over the sets with votes,
and `val` for that over the validation items of retrieval sets. A row is judged by the
uncertainty that the paper takes for it. Where it has several, all of them have numbers
too, with the label `uncertainty`.

Settings that a variant states:

- "retrieval" and "votes": names of its downstream sets.
- "upstream": False if there is no upstream set, but only sets that a pretrained network
  is judged on; what compares with it is then left out.
- "chosen": by row, the uncertainty that is taken, where it is not the first of `us`.

A row of a second training has the label "taught", the set of whose classes it saw
items. It is judged on the other items of these classes (`test/odd`).
"""

from qualms.benchmarks.url._judge import judge_url
from qualms.evaluate.entry import ScoreOptions
from qualms.evaluate.protocol import Protocol
from qualms.study import RunPlan


def _notes(plan: RunPlan, _options: ScoreOptions) -> tuple[str, ...]:
    notes: tuple[str, ...] = (
        "ours: an item is never its own neighbour, equally near items share the "
        "verdict, AUROC by ranks alone, upstream and downstream classes never mix; "
        "beside the paper: its released code",
        "means over downstream sets are unweighted; upstream items against those of a "
        "set: as many of each, drawn once",
        "intervals of retrieval sets cover other classes: a class is a cluster; those "
        "of upstream items and of sets with votes cover other items of the same "
        "classes, and two items that are each other's nearest count as one",
    )
    if any("taught" in row.labels for row in plan.rows):
        notes += (
            "few-shot rows are judged on the items of the test classes that none of "
            "them was trained on, set by set",
        )
    return notes


PROTOCOL = Protocol(judge=judge_url, notes=_notes)
"""Protocol that scores by the right rule, and by that of the released code."""
