"""What a small file may cost: memory is compared with the file before it is taken."""

import os

from qualms.predictions._errors import PredictionsError

# Unpacking below this many bytes is never refused.
_SMALL = 2**30
# Real predictions do not shrink this much; constants do.
_PACKED = 200
# Characters in a column of text below which its width does not matter.
_SHORT_TEXT = 2**22
# NumPy stores text as wide as its longest entry: how much of that may be padding.
_PADDING = 64


def machine_memory() -> int:
    """The machine's memory in bytes."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 2**40


def refuse_unpacking(unpacked: int, packed: int) -> None:
    """Refuse a file of `packed` bytes whose arrays would take `unpacked` bytes."""
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
    """Refuse text in which one long entry would widen all rows of a large array."""
    if rows * longest > max(_SHORT_TEXT, _PADDING * characters):
        raise PredictionsError(
            f"array '{name}' has {rows} rows and an entry of {longest} characters, "
            "and every row would take as much memory; shorten that entry"
        )
