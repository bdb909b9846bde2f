"""Pages of segmentations."""

from qualms.report.showing import Showing

SHOWING = Showing(
    pages=(("viewer.html", "its segmentations"),),
)
