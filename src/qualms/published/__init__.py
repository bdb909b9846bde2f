"""The papers' numbers as data: one CSV per benchmark, misprints corrected and marked.

`published("regression")` reads them once. Every number keeps the place it was printed
at, so that ours can stand beside it.
"""

from qualms.published._reader import Number, Published, published

__all__ = ["Number", "Published", "published"]
