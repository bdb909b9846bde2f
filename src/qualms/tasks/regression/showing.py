"""Pages of predicted values."""

from qualms.report.showing import Showing

SHOWING = Showing(
    pages=(("items.html", "its items"), ("planner.html", "a referral plan")),
    tells_items=True,
)
