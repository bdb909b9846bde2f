"""The record `Showing`: what a task states for pages.

`tasks/<name>/showing.py` holds one as `SHOWING`.
"""

from dataclasses import dataclass

from qualms.shelf import task_part


@dataclass(frozen=True, slots=True, kw_only=True)
class Showing:
    """What pages show of the files of a task."""

    pages: tuple[tuple[str, str], ...] = ()
    """Pages of a site with more of a file: each with the words of a link to it."""
    tells_items: bool = False
    """True if items are listed that are right or wrong beside how sure the model is."""


def showing_of(task: str) -> Showing:
    """Return what a task states for pages."""
    showing: Showing = task_part(task, "showing")
    return showing
