"""Checksums of PNG pictures, all of which a reader must compare.

Decoders stop at the last row of pixels. The checksum of the data that holds it, and
whatever follows, is compared by none of them.
"""

import zlib

_BEGINS = b"\x89PNG\r\n\x1a\n"
_LAST = b"IEND"


def check_png(content: bytes) -> None:
    """Raise ValueError if a PNG is cut short, or a part does not match its checksum.

    Other pictures are left alone.
    """
    if not content.startswith(_BEGINS):
        return
    view, start, kind = memoryview(content), len(_BEGINS), b""
    while kind != _LAST:
        kind = bytes(view[start + 4 : start + 8])
        end = start + 8 + int.from_bytes(view[start : start + 4], "big")
        if end + 4 > len(view):
            raise ValueError("it is cut short or damaged; copy it again")
        if zlib.crc32(view[start + 4 : end]) != int.from_bytes(view[end : end + 4]):
            raise ValueError(
                f"its part {kind.decode('latin-1')!r} does not match its checksum, so"
                " it is damaged; copy it again"
            )
        start = end + 4
