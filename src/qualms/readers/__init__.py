"""Readers: the layouts in which other programs write predictions.

A reader is a file with one function of its name, which returns a `Reader`: a function
that recognises the layout by names, and one that reads it. `qualms.predictions.read`
asks all of them, so that every command accepts these layouts.
"""

from qualms.predictions import (
    ForeignCases,
    ForeignContents,
    ForeignRequest,
    Reader,
)

__all__ = ["ForeignCases", "ForeignContents", "ForeignRequest", "Reader"]
