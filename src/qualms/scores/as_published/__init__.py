"""Scores as the released code of each paper computes them, with its faults.

The module of a paper has a function of the same name for every score that its code
computes differently, and describes the difference:
`qualms.scores.as_published.retina.nll`.
"""

from importlib import import_module
from types import ModuleType

__all__ = ["regression", "retina", "url", "values"]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}; the papers are "
        + ", ".join(__all__)
    )
