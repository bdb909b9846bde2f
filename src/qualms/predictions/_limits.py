"""Limits on memory: a small file must not unpack to a very large one."""

import os

from qualms.predictions._errors import PredictionsError

# Unpacked bytes that are always allowed.
_SMALL = 2**30
# Most bytes unpacked from one byte. Only constants exceed it, no real predictions.
_PACKED = 200
# Characters that are always allowed in a column of text, whatever its width.
_SHORT_TEXT = 2**22
# Most stored characters per character of text: NumPy pads entries to the longest.
_PADDING = 64


def machine_memory() -> int:
    """Return the machine's memory in bytes."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 2**40


def refuse_unpacking(unpacked: int, packed: int) -> None:
    """Raise if a file of `packed` bytes must not unpack to `unpacked` bytes."""
    if unpacked > machine_memory():
        raise PredictionsError(
            f"unpacks to {unpacked / 2**30:.0f} GiB, more than this machine's memory; "
            "split it into several files"
        )
    if unpacked > max(_SMALL, _PACKED * packed):
        raise PredictionsError(
            f"unpacks from {packed / 2**20:.1f} MiB to {unpacked / 2**30:.1f} GiB, "
            "which real predictions do not; if it is right, write it without "
            "compression"
        )


def refuse_wide_text(name: str, *, rows: int, longest: int, characters: int) -> None:
    """Raise if one long entry would widen all rows of a large array of text."""
    if rows * longest > max(_SHORT_TEXT, _PADDING * characters):
        raise PredictionsError(
            f"array '{name}' has {rows} rows and an entry of {longest} characters, "
            "and every row would take as much memory; shorten that entry"
        )
