"""Pages of embeddings."""

from qualms.report.showing import Showing

SHOWING = Showing(
    pages=(
        ("neighbours.html", "nearest neighbours"),
        ("planner.html", "a referral plan"),
    ),
)
