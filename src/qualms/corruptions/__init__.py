"""Corruptions: how images are changed at five severities, one file each.

Fifteen are those of ImageNet-C (Hendrycks & Dietterich, 2019), for pictures. Six are
those of scanners and patients, for pictures and volumes, with the definitions of
TorchIO (Pérez-García et al., 2021). A corruption depends on the name of the item and on
a seed, and on nothing else: not on the order of items, nor on what is corrupted with
them.
"""

from qualms.corruptions._apply import corrupt, corrupt_labels
from qualms.corruptions._chosen import (
    SEVERITIES,
    AppliedCorruption,
    applied_corruptions,
    chosen_corruptions,
    parse_severities,
)
from qualms.corruptions._corruption import Corruption

__all__ = [
    "SEVERITIES",
    "AppliedCorruption",
    "Corruption",
    "applied_corruptions",
    "chosen_corruptions",
    "corrupt",
    "corrupt_labels",
    "parse_severities",
]
