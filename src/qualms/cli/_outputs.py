"""Files that a command writes must not be those that it reads."""

from collections.abc import Iterable
from pathlib import Path


def refuse_overwriting(
    outputs: Iterable[Path | None], inputs: Iterable[Path | None]
) -> None:
    """Raise if a file that will be written is read by the same command, or is twice."""
    read = {path.resolve() for path in inputs if path is not None}
    written: set[Path] = set()
    for path in outputs:
        if path is None:
            continue
        if path.resolve() in read:
            raise ValueError(
                f"cannot write {path}: this command reads it, and it would be lost;"
                " give another path"
            )
        if path.resolve() in written:
            raise ValueError(
                f"cannot write {path} twice: two options name it; give each its own"
            )
        written.add(path.resolve())
