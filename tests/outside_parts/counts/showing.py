"""Pages of counts."""

from qualms.report.showing import Showing

SHOWING = Showing(pages=(("planner.html", "a referral plan"),))
